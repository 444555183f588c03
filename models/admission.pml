/* M3, admission: who may hold, whom to watch, and whether deletions alone can tell.
 *
 * Three entries of one directory, each a reader or a writer (a mutex is a writer), in the order of
 * their numbers. Some leave at any moment after their create, by a cancel, a crash or an expiry;
 * the patient ones leave when they have held. To the others all that looks alike. A contender lists
 * once, keeps the set ahead_ of that list (P4's A), watches its nearest member and steps back
 * through the set as deletions come in.
 *
 * Claims: when its set is empty, a full list says the same (the shortcut and the re-list admit
 * alike); a writer holds alone, and nobody holds before one ahead that excludes it has left (FIFO);
 * nobody sleeps while nothing stands in its way.
 *
 * Rules that can be removed:
 *   ONLY_NEIGHBOUR    the watched one has left, so it is our turn (H27, H45)
 *   ANY_WRITER        a reader waits for writers behind it as well (H42)
 *   READERS_PASS      a reader joins the readers that hold, past a writer that waits (H43)
 *   WATCH_ABSENT      a watch on what has left in the meantime is taken for set (H26)
 *   EVENT_IS_DELETION a change of the watched node is taken for its deletion (H34)
 * Alternative:
 *   RELIST            every wake lists again (Relist::kAlways)
 */

#define ENTRIES 3
#define FAULTS 3                   /* entries that go before their time, changes of a node */
#define bit(n) (1 << (n))
#define is_in(n, set) (((set) >> (n)) & 1)
#define below(n) (bit(n) - 1)
#define all_but(n) ((bit(ENTRIES) - 1) & ~bit(n))

byte made = 0;
byte there = 0;                    /* the entries that exist */
byte writers = 0;                  /* Share::kExclusive, of those made so far */
byte holding = 0;
bool touched = false;              /* somebody's data changes, once */
byte over = 0;

#define SHORTCUT_AFTER_A_WAIT 1
#define READERS_TOGETHER 2
#define CROWD_IN_FRONT 3
#define MIDDLE_LEFT_FIRST 4
#ifndef REACH
#define REACH 0
#endif
#define reached(what, when) assert(!(REACH == (what) && (when)))

/* admit(): who of `there` stands in the way of n. */
#ifdef ANY_WRITER
#define candidates(n) all_but(n)
#else
#define candidates(n) below(n)
#endif
#define in_the_way(n) (is_in(n, writers) -> (there & below(n)) : reader_way(n))
#ifdef READERS_PASS
#define reader_way(n) (there & candidates(n) & writers & holding)
#else
#define reader_way(n) (there & candidates(n) & writers)
#endif
/* The truth, whatever rule was removed. */
#define excluded(n) (is_in(n, writers) -> (there & below(n)) : (there & below(n) & writers))

proctype contender(byte n) {
  byte ahead = 0, watched = 0;
  bool waited = false;
  /* Create and list in one flush: number n, after everyone with a smaller number. */
  atomic { made == n ->
    if
    :: writers = writers | bit(n)
    :: true
    fi;
    there = there | bit(n);
    made++ }
list:
  atomic {
    if
    :: !is_in(n, there) -> goto done
    :: else -> ahead = in_the_way(n)
    fi }
advance:                           /* decide(), advance() */
  atomic {
    if
    :: !is_in(n, there) -> goto done
    :: is_in(n, there) && ahead == 0 -> goto prove
    :: else
    fi;
    reached(CROWD_IN_FRONT, ahead == 3);
    waited = true;
    watched = ENTRIES - 1;         /* the nearest */
    do
    :: !is_in(watched, ahead) -> watched--
    :: else -> break
    od;
    goto watch }
watch:                             /* watch_nearest(): a getData with a watch */
  atomic {
    if
    :: is_in(watched, there)
#ifdef WATCH_ABSENT
    :: !is_in(watched, there) -> (!is_in(n, there)); goto done
#else
    :: !is_in(watched, there) -> goto gone                              /* NONODE is a wake */
#endif
    fi }
waiting:
  atomic {
    if
    :: !is_in(n, there) -> goto done                                    /* own_is_gone() */
    :: is_in(n, there) && !is_in(watched, there) -> goto gone           /* event::Gone */
#ifdef EVENT_IS_DELETION
    :: touched && is_in(watched, there) -> goto gone
#else
    :: touched && is_in(watched, there) -> touched = false; goto watch  /* event::Touched */
#endif
    fi }
gone:
  atomic {
    reached(MIDDLE_LEFT_FIRST, there & ahead & below(watched));
    ahead = ahead & ~bit(watched);
#ifdef RELIST
    goto list
#endif
#ifdef ONLY_NEIGHBOUR
    ahead = 0;
#endif
    goto advance }
prove:
  atomic {
    if
    :: is_in(n, there) ->
      printf("entry %d (%d: writer) holds; there %d, writers %d\n", n, is_in(n, writers), there,
             writers);
      /* The full list admits alike; with P2 that is exclusion. */
      assert(excluded(n) == 0);                        /* claim: nothing ahead excludes it */
      assert(!is_in(n, writers) || holding == 0);      /* claim: a writer is alone */
      assert((holding & writers) == 0);                /* claim: no writer holds */
      reached(SHORTCUT_AFTER_A_WAIT, waited);
      reached(READERS_TOGETHER, holding != 0);
      holding = holding | bit(n)
    :: else -> goto done
    fi }
release:
  atomic { there = there & ~bit(n); holding = holding & ~bit(n); printf("entry %d leaves\n", n) }
done:
  atomic { over = over | bit(n); ahead = 0; watched = 0 }
}

inline go(n) {
  faults--;
  there = there & ~bit(n);
  holding = holding & ~bit(n);
  printf("entry %d goes\n", n)
}

/* A cancel, a crash or an expiry takes an entry; a change touches one. */
proctype fate() {
  byte faults = FAULTS;
  do
  :: atomic { faults > 0 && is_in(0, there) -> go(0) }
  :: atomic { faults > 0 && is_in(1, there) -> go(1) }
  :: atomic { faults > 0 && is_in(2, there) -> go(2) }
  :: atomic { faults > 0 && there != 0 && !touched -> faults--; touched = true }
  :: break
  od
}

init {
  byte i;
  atomic {
    do
    :: i < ENTRIES -> run contender(i); i++
    :: else -> break
    od;
    i = 0;
    run fate() }
  timeout;                         /* nothing can happen any more */
  assert(over == bit(ENTRIES) - 1)                     /* claim: nobody sleeps for ever */
}
