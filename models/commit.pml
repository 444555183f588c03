/* M4, group commit: does anything leave the server that a crash can take back?
 *
 * One tree::Service with its journal, two connections, one node that both write, read and watch. A
 * zxid stands for the state after that write. Records are decided at once, wait in the pipeline,
 * and are applied, announced and answered when their batch is durable; the next batch gathers
 * meanwhile. A crash keeps what was synced and any part of what was only written.
 *
 * Claims: what a client has seen in a reply, an event or a refusal is there after recovery
 * (invariant 11); a read shows the writes its own connection sent before it (G2); nobody goes back
 * in time (G3); the event comes before an answer that shows its change (G4).
 *
 * Rules that can be removed:
 *   DIRTY_READ        a read is answered from what is decided, not from what is durable (H78)
 *   REPLY_AT_ONCE     a write is answered when it is decided (H78)
 *   REFUSE_AT_ONCE    a refusal does not wait for what it is based on (H78)
 *   EVENT_AT_ONCE     watches fire when a write is decided (H78)
 *   STORED_EARLY      the journal reports a batch that it has written and not synced (H78)
 *   GATHERED_COUNTS   when a batch is synced, what gathered meanwhile is taken for durable (H78)
 *   READ_OVERTAKES    a read does not wait for the writes of its own connection (G2)
 *   EVENT_AFTER_REPLY the reply leaves before the events of the same write (G4)
 */

#define PEERS 2
#define WRITES 4
#define CRASHES 2

#define WRITE 1
#define REFUSAL 2
chan pipeline = [4] of { byte, byte, byte };  /* Service::pipeline_: kind, peer, zxid */

byte decided = 0;                  /* Tree::decide, with Pending */
byte written = 0;                  /* take_batch(): given to the journal */
byte synced = 0;                   /* on disk for certain */
byte durable = 0;                  /* durable_: what the service was told */
byte applied = 0;                  /* Tree::applied_zxid() */
byte crashes = CRASHES;

byte requests[PEERS];              /* of this connection, in the pipeline */
byte wrote[PEERS];                 /* its last write */
bool deferred[PEERS];              /* Peer::deferred: a read behind them */
bool watches[PEERS];
byte seen[PEERS];                  /* the newest state the client knows of */

/* What must be reachable, lest the claims hold of nothing: -DREACH=LOST_WRITE and so on. */
#define LOST_WRITE 1               /* a crash takes a write that nobody has heard of */
#define UNTOLD_WRITE 2             /* a write survives although nobody was told */
#define DEFERRED_READ 3
#define FIRED_WATCH 4
#define READ_PASSES_WRITE 5        /* a read does not wait for another connection's write */
#ifndef REACH
#define REACH 0
#endif
#define reached(what, when) assert(!(REACH == (what) && (when)))

inline observe(p, z) {
  if
  :: (z) > seen[p] -> seen[p] = z
  :: else
  fi
}

inline fire(z) {                   /* send_notices() */
  k = 0;
  do
  :: k < PEERS ->
    if
    :: watches[k] -> watches[k] = false; reached(FIRED_WATCH, true); observe(k, z)
    :: else
    fi;
    k++
  :: else -> break
  od;
  k = 0
}

#ifdef DIRTY_READ
#define readable decided
#else
#define readable applied
#endif

inline answer_read(p) {
  printf("connection %d reads %d\n", p, readable);
  assert(readable >= wrote[p]);                         /* claim: G2, own writes */
  assert(readable >= seen[p]);                          /* claim: G3, never back */
  reached(READ_PASSES_WRITE, decided > readable);
  observe(p, readable);
  if
  :: watches[p] = true
  :: true
  fi
}

inline reply(p, z) {
  printf("connection %d is answered: %d\n", p, z);
  assert(!(watches[p] && applied > seen[p]));           /* claim: G4, events first */
  observe(p, z)
}

/* Service::release() and take_turn(). */
inline take_turn() {
  pipeline ? kind, peer, z;
  if
  :: kind == WRITE ->
    applied = z;
#ifdef EVENT_AFTER_REPLY
    reply(peer, z);
    fire(z)
#else
    fire(z);
    reply(peer, z)
#endif
  :: kind == REFUSAL -> reply(peer, z)
  fi;
  requests[peer]--;
  if
  :: requests[peer] == 0 && deferred[peer] ->           /* run_deferred() */
    deferred[peer] = false;
    reached(DEFERRED_READ, true);
    answer_read(peer)
  :: else
  fi;
  kind = 0; peer = 0; z = 0
}

proctype connection(byte p) {
  byte k;
end:
  do
  :: atomic { decided < WRITES && nfull(pipeline) && !deferred[p] ->    /* take_write() */
      decided++;
      wrote[p] = decided;
      requests[p]++;
      printf("connection %d writes %d\n", p, decided);
      pipeline ! WRITE, p, decided;
#ifdef REPLY_AT_ONCE
      observe(p, decided);
#endif
#ifdef EVENT_AT_ONCE
      fire(decided);
#endif
      skip }
  :: atomic { nfull(pipeline) && !deferred[p] && requests[p] == 0 ->    /* refuse() */
#ifdef REFUSE_AT_ONCE
      observe(p, decided)
#else
      requests[p]++;
      pipeline ! REFUSAL, p, decided
#endif
      }
  :: atomic { !deferred[p] ->                                           /* take_read() */
      if
#ifndef READ_OVERTAKES
      :: requests[p] > 0 -> deferred[p] = true
#endif
      :: else -> answer_read(p)
      fi }
  od
}

proctype service() {
  byte kind, peer, z, k;
end:
  do
  :: atomic { pipeline ? [WRITE, _, _] ->
      pipeline ? <kind, peer, z>;
      if
      :: z <= durable -> take_turn()
      :: else -> kind = 0; peer = 0; z = 0
      fi }
  :: atomic { pipeline ? [REFUSAL, _, _] -> take_turn() }
  od
}

proctype journal() {
  byte recovered;
end:
  do
  :: atomic { written == synced && written < decided ->
      written = decided;
#ifdef STORED_EARLY
      durable = written;
#endif
      printf("the journal writes up to %d\n", written) }
  :: atomic { synced < written ->
      synced = written;
      printf("the journal has synced up to %d\n", synced) }
  :: atomic { durable < synced ->                                       /* stored() */
#ifdef GATHERED_COUNTS
      durable = decided
#else
      durable = synced
#endif
      }
  :: atomic { crashes > 0 ->
      crashes--;
      if
      :: recovered = synced
      :: recovered = written
      :: written > synced -> recovered = synced + 1                     /* part of a batch */
      fi;
      printf("crash; %d is recovered\n", recovered);
      assert(recovered >= seen[0] && recovered >= seen[1]);             /* claim: durable */
      reached(LOST_WRITE, recovered < decided);
      reached(UNTOLD_WRITE, recovered > durable);
      do
      :: nempty(pipeline) -> pipeline ? _, _, _
      :: empty(pipeline) -> break
      od;
      decided = recovered; written = recovered; synced = recovered; durable = recovered;
      applied = recovered;
      requests[0] = 0; deferred[0] = false; watches[0] = false; wrote[0] = 0;
      requests[1] = 0; deferred[1] = false; watches[1] = false; wrote[1] = 0;
      recovered = 0 }
  od
}

init {
  atomic { run connection(0); run connection(1); run service(); run journal() }
}
