/* M1, acquire and release: one queue, two contenders (or CLIENTS=3), a leader and a follower that
 * lags behind.
 *
 * Each client is a queue::Contender over a session::Machine; the labels are the contender's phases
 * and functions. Its connection may be cut at every step: before a request has arrived, while it is
 * on the way, before its reply. The session then moves to a server of the model's choice. The
 * number of faults is bounded, so a run that stops short of the end is a waiter that nobody wakes.
 *
 * Claims: a grant goes to the first in line, with a node of its own session (exclusion by server
 * order); never two holders at a time; no node is left behind by an attempt that is over; nobody
 * waits for himself; everybody gets to the end.
 *
 * A guid is the client's number and is never renewed: the worst source of guids there can be (H08).
 *
 * Rules that can be removed:
 *   NO_SYNC           the search for a lost create lists without a sync (H02)
 *   NO_TWIN_RULE      a second node with our guid is not recognised (H02); matters with NO_SYNC
 *   NO_SEARCH         a create without an answer is sent again, not searched for (H01)
 *   NO_OWNER_CHECK    what carries our guid is ours, whatever its session (H04)
 *   NO_DEBT           a delete is tried once (H21)
 *   NO_PROOF          a grant needs no fresh lease (H12)
 *   NO_RECHECK        the watched one has left, so it is our turn (H27)
 *   CANCEL_FORGETS    who cancels before his create is answered does not look for it (H06)
 * Assumptions about the servers that can be removed:
 *   NO_SESSION_MOVED  a request of the old connection is carried out after the session moved (P7)
 *   NO_ZXID_CHECK     a server takes a client back that has seen more than it has itself (G3)
 */

#ifndef FAULTS
#define FAULTS 2
#endif
#ifndef CLIENTS
#define CLIENTS 2
#endif
#define NODES 8                    /* more than the faults can bring about */

#define LEADER 0
#define FOLLOWER 1
#define NOWHERE 2
#define NONE 255
#define bit(n) (1 << (n))
#define is_in(n, set) (((set) >> (n)) & 1)
#define below(n) (bit(n) - 1)

byte faults = FAULTS;

/* The servers. A node is its number; a set of nodes is a mask. */
byte there[2];                     /* what each server shows */
byte zxid[2];                      /* how much of the one history each has applied */
chan lag = [NODES * 2] of { byte, byte };  /* for the follower: nodes made, nodes gone */
byte made = 0;
byte owner[NODES];                 /* ephemeralOwner: a session */
byte guid[NODES];                  /* a client */
byte abandoned = 0;                /* sessions whose client has given them up */
byte alive = below(CLIENTS);       /* sessions, by the leader: client c has c, then c + CLIENTS */

/* The clients. */
byte session[CLIENTS];
byte at[CLIENTS];                  /* the server it is attached to */
byte seen[CLIENTS];                /* last_zxid_ */
byte owed[CLIENTS];                /* debts of the session */
bool leased[CLIENTS];              /* LeaseClock: lease.pml shows that no leased session expires */
bool late_create[CLIENTS];         /* a create of a connection that was cut, still on its way */
bool holds[CLIENTS];
bool is_over[CLIENTS];             /* the client has come to its end */

/* What must be reachable, lest the claims hold of nothing: -DREACH=ADOPTION and so on. */
#define ADOPTION 1
#define GRANT_AFTER_A_WAIT 2
#define GRANT_IN_SECOND_SESSION 3
#define STRANGER_AHEAD 4
#define REFUSED_PROOF 5
#define DELETE_REPEATED 6
#define LATE_CREATE_REFUSED 7
#ifndef REACH
#define REACH 0
#endif
#define reached(what, when) assert(!(REACH == (what) && (when)))

inline commit(makes, takes) {
  there[LEADER] = (there[LEADER] | (makes)) & ~(takes);
  zxid[LEADER]++;
  lag ! makes, takes
}

inline commit_create(c) {
  assert(made < NODES);
  owner[made] = session[c];
  guid[made] = c;
  printf("client %d: node %d is made\n", c, made);
  commit(bit(made), 0);
  made++
}

#ifdef NO_OWNER_CHECK
#define is_owned(n, c) true
#else
#define is_owned(n, c) (owner[n] == session[c])
#endif
#ifdef NO_ZXID_CHECK
#define may_attach(c) true
#else
#define may_attach(c) (zxid[FOLLOWER] >= seen[c])
#endif

/* Nodes of `set` with our guid that are not owed: Traces::collect(), then a look at each. */
inline find_ours(c, set) {
  ours = 0;
  i = 0;
  do
  :: i < made ->
    if
    :: is_in(i, set) && guid[i] == c && !is_in(i, owed[c]) && is_owned(i, c) ->
      ours = ours | bit(i)
    :: else
    fi;
    i++
  :: else -> break
  od;
  i = 0
}

inline lowest(set, n) {
  n = 0;
  do
  :: !is_in(n, set) -> n++
  :: else -> break
  od
}

inline highest(set, n) {
  n = NODES - 1;
  do
  :: !is_in(n, set) -> n--
  :: else -> break
  od
}

/* The connection is lost. Where to go next is known when a server takes the session. */
inline cut(c) {
  faults--;
  at[c] = NOWHERE;
  printf("client %d: the connection is cut\n", c)
}

inline cancel(c) {
  faults--;
  leaving = true;
  printf("client %d: cancels\n", c)
}

/* Too long without a server: the session is lost to the client, not yet to the leader (H20). */
inline give_up(c) {
  faults--;
  abandoned = abandoned | bit(session[c]);
  printf("client %d: gives up its session\n", c)
}

/* A server has taken the session: the leader knows its owner, and refuses what still comes by the
   old connection. */
inline moved(c) {
#ifndef NO_SESSION_MOVED
  reached(LATE_CREATE_REFUSED, late_create[c]);
  late_create[c] = false;
#endif
  printf("client %d: attached to server %d\n", c, at[c])
}

#define attached (at[c] != NOWHERE)
#define may_cut (faults > 0 && attached)
#define has_caught_up(wanted) (attached && zxid[at[c]] >= (wanted))

proctype client(byte c) {
  byte own = NONE;                 /* own_ */
  byte created = NONE;             /* what the answer to the create would say */
  byte view = 0;                   /* children_ */
  byte ahead = 0;                  /* ahead_ */
  byte ours = 0, i = 0, wanted = 0;
  bool leaving = false, waited = false;

enter:                             /* kEntering: create and list in one flush */
  atomic { attached;
    if
    :: is_in(session[c], alive) -> commit_create(c); created = made - 1; wanted = zxid[LEADER]
    :: !is_in(session[c], alive) -> goto session_over
    :: may_cut -> cut(c); goto create_lost                              /* never arrives */
    :: may_cut -> cut(c); late_create[c] = true; goto create_lost       /* arrives late */
    :: faults > 0 && !leaving -> cancel(c); goto enter
    fi }
entering:                          /* carried out, not yet answered */
  atomic {
    if
    :: has_caught_up(wanted) -> seen[c] = zxid[at[c]]; own = created; goto list
    :: may_cut -> cut(c); goto create_lost
    :: faults > 0 && !leaving -> cancel(c); goto entering
    fi }

create_lost:                       /* AfterPair::kSearch */
  created = NONE;
#ifdef CANCEL_FORGETS
  if
  :: leaving -> goto finish
  :: else
  fi;
#endif
#ifdef NO_SEARCH
  if
  :: !leaving -> goto enter
  :: else
  fi;
#endif

search:                            /* kSearching: sync, then list */
  atomic {
    if
    :: !attached && faults > 0 -> give_up(c); goto session_over
    :: attached && !is_in(session[c], alive) -> goto session_over
#ifdef NO_SYNC
    :: attached && is_in(session[c], alive) -> wanted = 0
#else
    :: attached && is_in(session[c], alive) -> wanted = zxid[LEADER]
#endif
    fi }
  atomic {
    if
    :: has_caught_up(wanted) ->
      view = there[at[c]];
      seen[c] = zxid[at[c]];
      find_ours(c, view)
    :: may_cut -> cut(c); goto search
    :: !attached -> goto search
    fi;
    if
    :: leaving -> owed[c] = owed[c] | ours; ours = 0; goto finish
    :: !leaving && ours == 0 -> goto enter
    :: !leaving && ours != 0 ->                                         /* keep_lowest() */
      lowest(ours, own);
      owed[c] = owed[c] | (ours & ~bit(own));
      ours = 0;
      printf("client %d: adopts node %d\n", c, own);
      reached(ADOPTION, true);
      goto decide
    fi }

list:                              /* kListing */
  atomic {
    if
    :: leaving -> goto leave
    :: !leaving && attached -> view = there[at[c]]; seen[c] = zxid[at[c]]
    :: !leaving && may_cut -> cut(c); goto list
    fi;
#ifndef NO_TWIN_RULE
    find_ours(c, view);
    if
    :: ours != 0 ->
      ours = ours | bit(own);
      lowest(ours, own);
      owed[c] = owed[c] | (ours & ~bit(own));
      ours = 0
    :: else
    fi
#endif
  }
decide:
  atomic {
    if
    :: !is_in(own, view) ->                                             /* H05 */
      if
      :: is_in(session[c], alive) -> goto leave
      :: else -> goto session_over
      fi
    :: else
    fi;
    ahead = view & below(own) & ~owed[c];
    view = 0;
    if
    :: ahead == 0 -> goto prove
    :: else -> waited = true
    fi }
waiting:                           /* kWaiting: the nearest watched, and our own */
  atomic {
    highest(ahead, i);
    assert(guid[i] != c || owner[i] != session[c]);                     /* claim: no self-wait */
    reached(STRANGER_AHEAD, guid[i] == c)
  }
  atomic {
    if
    :: attached && !is_in(own, there[at[c]]) -> own = NONE; i = 0;      /* own_is_gone() */
      if
      :: is_in(session[c], alive) -> goto leave
      :: else -> goto session_over
      fi
    :: attached && !is_in(i, there[at[c]]) ->                           /* Gone, advance() */
#ifdef NO_RECHECK
      ahead = 0; i = 0;
#else
      ahead = ahead & ~bit(i); i = 0;
#endif
      if
      :: ahead == 0 -> goto prove
      :: else -> goto waiting
      fi
    :: may_cut -> cut(c); i = 0; goto waiting
    :: faults > 0 -> cancel(c); i = 0; goto leave
    :: !attached && faults > 0 -> give_up(c); goto session_over
    fi }

prove:                             /* kProving: a fresh lease, if need be by a sync */
  atomic {
    if
#ifdef NO_PROOF
    :: true
#else
    :: leased[c]
    :: !leased[c] && attached && is_in(session[c], alive) -> leased[c] = true
    :: !leased[c] && attached && !is_in(session[c], alive) ->
      reached(REFUSED_PROOF, true);
      goto session_over
#endif
    fi;
    /* Grant. By server order: it exists, is our session's, and is first. */
    printf("client %d: granted with node %d\n", c, own);
    reached(GRANT_AFTER_A_WAIT, waited);
    reached(GRANT_IN_SECOND_SESSION, session[c] >= CLIENTS);
    assert(is_in(own, there[LEADER]));                                  /* claim: it is there */
    assert(owner[own] == session[c]);                                   /* claim: it is ours */
    assert(!(there[LEADER] & below(own) & ~owed[c]));                   /* claim: it is first */
    i = 0;
    do
    :: i < CLIENTS ->
      assert(i == c || !holds[i] || !leased[i]);                        /* claim: one holder */
      i++
    :: else -> break
    od;
    i = 0;
    holds[c] = true }
holding:                           /* kHolding */
  atomic {
    if
    :: true -> printf("client %d: releases\n", c)
    :: !leased[c] -> printf("client %d: loses, its lease is over\n", c)
    :: attached && !is_in(own, there[at[c]]) -> printf("client %d: loses, its node is gone\n", c)
    fi;
    holds[c] = false }

leave:                             /* leave(), owe_own() */
  atomic {
    leaving = true;
    if
    :: own != NONE -> owed[c] = owed[c] | bit(own); own = NONE
    :: else
    fi }
finish:                            /* Done; what is owed is the session's business: pay_debts() */
  atomic {
    if
    :: owed[c] == 0 -> goto over
    :: owed[c] != 0 && attached && !is_in(session[c], alive) -> goto session_over
    :: owed[c] != 0 && attached && is_in(session[c], alive) ->
      lowest(owed[c], i);
      if
      :: is_in(i, there[LEADER]) -> commit(0, bit(i)); printf("client %d: deletes node %d\n", c, i)
      :: else -> reached(DELETE_REPEATED, true)                         /* NONODE: gone is gone */
      fi;
      if
      :: owed[c] = owed[c] & ~bit(i)
      :: may_cut -> cut(c)                                              /* done, reply lost */
      fi
    :: owed[c] != 0 && may_cut -> cut(c);                               /* not carried out */
#ifdef NO_DEBT
      owed[c] = 0
#endif
    fi;
    i = 0;
    goto finish }

session_over:                      /* SessionOver: everything went with the session (H22) */
  atomic {
    printf("client %d: session %d is over\n", c, session[c]);
    owed[c] = 0; own = NONE; created = NONE; view = 0; ahead = 0; i = 0; wanted = 0;
    waited = false;
    leased[c] = false;
    late_create[c] = false;
    if
    :: session[c] < CLIENTS && !leaving ->  /* a new session and a new attempt, on any server */
      session[c] = session[c] + CLIENTS;
      alive = alive | bit(session[c]);
      leased[c] = true;
      if
      :: at[c] = LEADER
      :: at[c] = FOLLOWER
      fi;
      seen[c] = 0;
      goto enter
    :: else
    fi }

over:
  atomic {
    printf("client %d: done\n", c);
    is_over[c] = true;
    leased[c] = false;
    seen[c] = 0 }
}

/* The follower applies the leader's history in order, when it likes. */
proctype follower() {
  byte makes, takes;
end:
  do
  :: atomic { lag ? makes, takes ->
      there[FOLLOWER] = (there[FOLLOWER] | makes) & ~takes;
      zxid[FOLLOWER]++;
      makes = 0; takes = 0 }
  od
}

inline close_session(s) {
  alive = alive & ~bit(s);
  i = 0;
  gone = 0;
  do
  :: i < made ->
    if
    :: owner[i] == s && is_in(i, there[LEADER]) -> gone = gone | bit(i)
    :: else
    fi;
    i++
  :: else -> break
  od;
  commit(0, gone);
  printf("session %d is closed\n", s);
  gone = 0;
  i = 0
}

/* The leader's side of a client's session, and the session machine's reconnects. */
proctype network(byte c) {
  byte i, gone;
end:
  do
  /* Dialing: a server that knows less than we have seen refuses us (G3). */
  :: atomic { at[c] == NOWHERE && may_attach(c) -> at[c] = FOLLOWER; moved(c) }
  :: atomic { at[c] == NOWHERE -> at[c] = LEADER; moved(c) }
  /* A create of the old connection reaches the leader after all. */
  :: atomic { late_create[c] && is_in(session[c], alive) ->
      late_create[c] = false; commit_create(c) }
  /* The lease runs out by the client's clock; after that the leader may close the session. */
  :: atomic { faults > 0 && leased[c] && !is_over[c] -> faults--; leased[c] = false;
      printf("client %d: the lease is over\n", c) }
  :: atomic { !leased[c] && is_in(session[c], alive) && !is_over[c] -> close_session(session[c]) }
  :: atomic { is_in(c, abandoned & alive) -> close_session(c) }
  :: atomic { is_in(c + CLIENTS, abandoned & alive) ->
      close_session(c + CLIENTS) }  /* with three faults */
  od
}

init {
  byte c = 0;
  atomic {
    run follower();
    do
    :: c < CLIENTS ->
      session[c] = c;
      leased[c] = true;
      at[c] = (c -> FOLLOWER : LEADER);
      run client(c);
      run network(c);
      c++
    :: else -> break
    od;
    c = 0
  }
  timeout;                         /* nothing can happen any more */
  do
  :: c < CLIENTS -> assert(is_over[c]); c++                /* claim: nobody waits in vain */
  :: else -> break
  od;
  assert(there[LEADER] == 0)                               /* claim: no orphan */
}
