/* M2, the lease: does a holder stop believing before the leader gives its place away?
 *
 * One holder (session::Machine with its LeaseClock) is attached to a follower of an ensemble. The
 * leader knows when it touched the session last. The follower has a touch table of its own and
 * hands it over only in its reply to the leader's next ping, every half tick. The next waiter holds
 * as soon as the leader has expired the session, so the claim is: never expired while the holder
 * believes. Time is discrete; what falls between two instants happens in every order.
 *
 * Rules that can be removed:
 *   READ_HEARTBEAT    the heartbeat is a read, answered by the follower alone (H11)
 *   RECEIVE_TIME      the lease counts from the arrival of the answer (H10)
 *   NO_TICK_DOUBT     no allowance for half a tick between follower and leader (P5)
 *   NO_BEAT_DOUBT     no allowance for the time between two heartbeats (P5)
 *   NO_PAUSE_DOUBT    the pause that was planned counts, not the one that happened (H13)
 *   OWN_TRIP          with JITTER: the proof's own round trip counts, not the longest of late
 * Assumptions that can be removed:
 *   LINGER=n          a deposed leader answers for n instants; T/4 + T/6 of them are harmless
 * Alternatives:
 *   JITTER            a request may take up to T/6 to the follower and the next one none; a
 *                     shorter run, for the states are many
 *   WRITE_HEARTBEAT   the heartbeat is a write: a deposed leader cannot answer it
 */

#define T 12                   /* the time-out: two ticks, the least that servers grant */
#define BEAT (T / 6)           /* LeaseClock::heartbeat() */
#define HALF_TICK_MOST (T / 4)

#ifdef JITTER
#define UP_MOST (T / 6)        /* the longest a request travels to the follower */
#define END 16                 /* the run stops here: some normal life, a fault, T after it */
#else
#define UP_MOST 0
#define END 24
#define OWN_TRIP               /* enough where no request is held up; fewer states */
#endif
#ifdef JITTER
#define DOWN_MOST 1            /* the longest an answer travels back */
#else
#define DOWN_MOST (T / 4)
#endif
#ifndef LINGER
#define LINGER (T / 4 + T / 6)
#endif

byte now = 0;

/* The wires keep their order. A heartbeat is called by the instant it was sent. */
chan up = [5] of { byte };         /* holder to follower: heartbeats */
chan down = [7] of { byte, byte }; /* follower to holder: answers, and when they set out */

/* The ensemble. */
byte half_tick;                /* from 1 (T is many ticks) to T/4 (T is two) */
byte next_ping = 0;
byte touched = 0;              /* the touch table of the leader that counts */
bool heard = false;            /* the follower's, since its last reply to a ping */
byte faults = 2;                /* that may still happen */
bool cut = false;              /* between follower and leader, for good */
bool deposed = false;          /* another leader was elected; ours has not noticed */
byte elected = 0;
bool expired = false;          /* by the leader that counts: the next waiter holds */
#define leader_answers (!deposed || now <= elected + LINGER)
#ifdef READ_HEARTBEAT
#define passes_leader true
#elif defined(WRITE_HEARTBEAT)
#define passes_leader (!cut && !expired && !deposed)
#else
#define passes_leader (!cut && leader_answers && (!expired || deposed))
#endif

/* The holder: LeaseClock's fields under their own names. */
byte last_sent = 0;
byte newest = 0;
byte deadline = T - BEAT - HALF_TICK_MOST;   /* the create was the first proof, sent at 0 */
byte pause_end = 0, pause_length = 0;        /* of pauses_: the model has one at most */
typedef Trip { byte length; byte end }
Trip trips[3];                               /* of trips_: fewer could only be too short */
bool stopped = false, was_stopped = false;   /* SIGSTOP and the like */
#define believes (now < deadline)
#define is_due (now >= last_sent + BEAT)

/* What must be reachable, lest the claim hold of nothing: -DREACH=HELD_TO_THE_END and so on. */
#define EXPIRED_WHILE_ATTACHED 1
#define HELD_TO_THE_END 2
#define PROOF_BY_DEPOSED_LEADER 3
#define PROOF_AFTER_A_STOP 4
#define LITTLE_TO_SPARE 5
#ifndef REACH
#define REACH 0
#endif
#define reached(what, when) assert(!(REACH == (what) && (when)))

inline check() {
  assert(!(expired && believes));  /* claim: no belief after expiry */
  reached(EXPIRED_WHILE_ATTACHED, expired && now < last_sent + BEAT && newest > 0);
  reached(HELD_TO_THE_END, now == END && believes && newest + BEAT > now);
  reached(PROOF_BY_DEPOSED_LEADER, deposed && newest > elected && believes);
  reached(PROOF_AFTER_A_STOP, pause_length > 2 * BEAT && newest >= pause_end && believes);
  reached(LITTLE_TO_SPARE, expired && !deposed && pause_length == 0 && deadline + 1 == touched + T)
}

/* LeaseClock::answered() and longest_trip(): into trips_ and out of it, by way of `trip`. */
#define put(i) trips[i].length = trip; trips[i].end = now
#define put_none(i) trips[i].length = 0; trips[i].end = 0
#define is_old(end) (end + HALF_TICK_MOST < sent)
inline longest_trip() {
  do
  :: trips[0].end > 0 && is_old(trips[0].end) ->
    trips[0].length = trips[1].length; trips[0].end = trips[1].end;
    trips[1].length = trips[2].length; trips[1].end = trips[2].end;
    trips[2].length = 0; trips[2].end = 0
  :: else -> break
  od;
  if
  :: trip >= trips[0].length -> put(0); put_none(1); put_none(2)
  :: else ->
    if
    :: trip >= trips[1].length -> put(1); put_none(2)
    :: else ->
      if
      :: trip >= trips[2].length -> put(2)
      :: else
      fi
    fi;
    trip = trips[0].length
  fi
}

/* LeaseClock::proven(sent, answered = now), with longest_pause() and deadline_of(). */
inline proven() {
  trip = now - sent;
#ifndef OWN_TRIP
  longest_trip();
#endif
  if
  :: sent > newest ->
    newest = sent;
    pause = BEAT;
#ifndef NO_PAUSE_DOUBT
    if
    :: pause_end + HALF_TICK_MOST + trip >= sent && pause_end <= sent && pause_length > BEAT ->
      pause = pause_length
    :: else
    fi;
#endif
    doubt = 0;
#ifndef NO_TICK_DOUBT
    doubt = doubt + HALF_TICK_MOST;
#endif
#ifndef NO_BEAT_DOUBT
    doubt = doubt + pause;
#endif
#ifdef RECEIVE_TIME
    sent = now;
#else
    doubt = doubt + trip;
#endif
    if
    :: sent + T > deadline + doubt -> deadline = sent + T - doubt
    :: else
    fi
  :: else
  fi;
  trip = 0;
  pause = 0;
  doubt = 0
}

active proctype world() {
  byte sent, since, trip, pause, doubt;
  bool late;

  if
  :: half_tick = 1
  :: half_tick = 2
  :: half_tick = HALF_TICK_MOST
  fi;

  do
  /* Machine::tick() -> send_heartbeat(), LeaseClock::sent(). */
  :: atomic { !stopped && is_due && now < END ->
      if
      :: now - last_sent > BEAT -> pause_end = now; pause_length = now - last_sent
      :: else
      fi;
      last_sent = now;
      up ! now;
      printf("%d: the holder sends a heartbeat\n", now) }
  /* Machine::handle_reply(). */
  :: atomic { !stopped && nempty(down) ->
      down ? sent, since;
      proven();
      printf("%d: answer to heartbeat %d; the holder believes until %d\n", now, newest, deadline);
      check();
      sent = 0; since = 0 }

  /* The follower hears a heartbeat. A read it answers itself; a sync or a write is answered if the
     leader is there, knows the session and, for a write, has a majority. Servers are so close to
     each other that this takes no time; every order with pings and faults remains. A sync asks no
     majority: who was deposed answers until he notices, and knows of no end of the session that
     came after his own. */
  :: atomic { nempty(up) && nfull(down) ->
      up ? sent;
      heard = true;
      if
      :: passes_leader -> down ! sent, now; printf("%d: heartbeat %d is answered\n", now, sent)
      :: !passes_leader -> printf("%d: heartbeat %d is heard, not answered\n", now, sent)
      fi;
      sent = 0 }

  /* The leader's ping: the follower answers with its touch table. */
  :: atomic { !cut && now >= next_ping && leader_answers ->
      next_ping = now + half_tick;
      if
      :: heard && !expired && !deposed -> touched = now; printf("%d: the leader touches\n", now)
      :: else
      fi;
      heard = false }
  /* As early as it may: Apache rounds up to a whole tick, which is kinder. */
  :: atomic { !expired && now >= touched + T ->
      expired = true;
      printf("%d: the leader expires the session, touched at %d\n", now, touched);
      check() }

  /* Faults. */
  :: atomic { faults > 0 && !cut ->
      faults--;
      cut = true;
      printf("%d: follower and leader are cut\n", now) }
  /* A new leader gives every session its full time-out. */
  :: atomic { faults > 0 && !deposed && !expired ->
      faults--;
      deposed = true; elected = now; touched = now;
      printf("%d: another leader is elected\n", now) }
  :: atomic { faults > 0 && !was_stopped ->
      faults--;
      stopped = true; was_stopped = true;
      printf("%d: the holder is stopped\n", now) }
  :: atomic { stopped -> stopped = false; printf("%d: the holder goes on\n", now) }

  /* Time goes on when everything due has happened. */
  :: atomic { now < END && (stopped || !is_due) &&
              (cut || now < next_ping || !leader_answers) && (expired || now < touched + T) ->
      late = false;
      if
      :: nempty(up) -> up ? <sent>; late = (now >= sent + UP_MOST)
      :: empty(up)
      fi;
      if
      :: nempty(down) -> down ? <sent, since>; late = late || (now >= since + DOWN_MOST && !stopped)
      :: empty(down)
      fi;
      if
      :: !late -> now++; check()
      :: else
      fi;
      sent = 0; since = 0; late = false }
  :: now == END -> break
  od
}
