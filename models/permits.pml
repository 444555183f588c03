/* M3, permits: how many hold at once, in which order, and who is woken when a permit comes back.
 *
 * Three claims to one or two permits each of a semaphore of two, whose size changes. A queue in
 * front orders them (admission.pml is about such a queue); its head makes a lease for each permit
 * in one transaction, and then looks: it lists the leases, reads the size, and holds if all up to
 * its newest are no more than that. A first look sets no watches; after it, it looks once more with
 * a watch on the list and on the size and waits for either. A crash or an expiry takes a claim's
 * entry and leases at any moment; another hand takes an entry, and its claim goes on if it has been
 * the head; somebody changes the size. A holder lets go or stays for ever.
 *
 * Claims: whoever holds had enough permits at some moment since its leases were made; no more are
 * held than there ever were; permits are given in the order of arrival; when nothing happens any
 * more, whoever is first has too few permits to hold, and nobody waits unless somebody holds.
 *
 * Rules that can be removed:
 *   COUNT_FIRST       whoever finds enough permits free makes its leases and holds (H46)
 *   SIZE_FIRST        the size is read before the list (H48)
 *   NO_QUEUE          nobody waits for its turn to make leases
 *   COUNT_ALL         leases behind its own count as well
 *   ONE_BY_ONE        the leases are made one after the other
 *   WATCH_ONE         it waits for the nearest lease before its own instead of all (H47)
 *   NO_SIZE_WATCH     a change of the size wakes nobody (H48)
 *   NO_SECOND_LOOK    the watches are set without another look
 */

#define CLAIMS 3
#ifndef FAULTS
#define FAULTS 2                   /* crashes, entries taken by another hand */
#endif
#ifndef RESIZES
#define RESIZES 1
#endif
#define bit(n) (1 << (n))
#define is_in(n, set) (((set) >> (n)) & 1)
#define below(n) (bit(n) - 1)

byte size = 2;
byte greatest = 2;                 /* that the size ever was */
byte made = 0;
byte weight[CLAIMS];               /* permits that it wants */
byte older[CLAIMS];                /* when its leases were made; 0: it has none */
byte newer[CLAIMS];
byte now = 0;
byte queue = 0;                    /* the entries in front */
byte alive = 0;
byte robbed = 0;                   /* of its entry */
byte waiting = 0;                  /* arrived, and neither held nor ended */
byte holding = 0;
byte fitted = 0;                   /* those that had enough permits at some moment */
byte on_list = 0;                  /* watches */
byte on_size = 0;
byte woken = 0;
byte over = 0;

#define WAIT_FOR_TWO 1
#define HELD_BEYOND_THE_SIZE 2
#define WOKEN_BY_THE_SIZE 3
#define ROBBED_AND_HELD 4
#define OLDER_LEFT_FIRST 5
#ifndef REACH
#define REACH 0
#endif
#define reached(what, when) assert(!(REACH == (what) && (when)))

/* taken_up_to() */
#define up_to(m, n) ((older[m] != 0 && older[m] <= newer[n]) + \
                     (weight[m] == 2 && newer[m] != 0 && newer[m] <= newer[n]))
#define taken_up_to(n) (up_to(0, n) + up_to(1, n) + up_to(2, n))
#define leases(m) ((older[m] != 0) + (weight[m] == 2 && newer[m] != 0))
#define all_taken (leases(0) + leases(1) + leases(2))
#define held(m) (is_in(m, holding) * weight[m])
#define all_held (held(0) + held(1) + held(2))

inline note_fit(n) {
  if
  :: newer[n] != 0 && taken_up_to(n) <= size -> fitted = fitted | bit(n)
  :: else
  fi
}

inline leases_changed() {
  woken = woken | on_list;
  on_list = 0;
  note_fit(0); note_fit(1); note_fit(2)
}

inline resize(to) {
  size = to;
  greatest = (size > greatest -> size : greatest);
  woken = woken | on_size;
  on_size = 0;
  note_fit(0); note_fit(1); note_fit(2);
  printf("the size is %d\n", size)
}

/* Its entry, its leases and whatever it waits for. */
inline leave(n) {
  alive = alive & ~bit(n);
  queue = queue & ~bit(n);
  waiting = waiting & ~bit(n);
  holding = holding & ~bit(n);
  on_list = on_list & ~bit(n);
  on_size = on_size & ~bit(n);
  woken = woken & ~bit(n);
  if
  :: older[n] != 0 -> older[n] = 0; newer[n] = 0; leases_changed()
  :: else
  fi
}

inline make_leases(n) {
#ifdef ONE_BY_ONE
  now++; older[n] = now;
  if
  :: weight[n] == 1 -> newer[n] = now
  :: else
  fi;
#else
  now++; older[n] = now; newer[n] = now;
#endif
  leases_changed()
}

proctype claim(byte n) {
  byte taken = 0, seen = 0, nearest = 0;
  bool vigil = false;
  atomic { made == n ->
    if
    :: weight[n] = 1
    :: weight[n] = 2
    fi;
    queue = queue | bit(n);
    alive = alive | bit(n);
    waiting = waiting | bit(n);
    made++ }
end_turn:                          /* event::First */
  atomic {
    if
    :: !is_in(n, alive) -> goto done
    :: is_in(n, alive) && !is_in(n, queue) -> leave(n); goto done       /* event::OutOfLine */
#ifdef NO_QUEUE
    :: is_in(n, queue)
#else
    :: is_in(n, queue) && (queue & below(n)) == 0
#endif
    fi }
enter:
#ifdef COUNT_FIRST
  goto look;
#endif
  atomic {
    if
    :: !is_in(n, alive) -> goto done
    :: else -> make_leases(n)
    fi }
#ifdef ONE_BY_ONE
  atomic {
    if
    :: !is_in(n, alive) -> goto done
    :: is_in(n, alive) && weight[n] == 2 -> now++; newer[n] = now; leases_changed()
    :: else
    fi }
#endif
look:                              /* view(): the leases, and then the size */
#ifdef SIZE_FIRST
  atomic { seen = size; on_size = (vigil -> on_size | bit(n) : on_size) }
#endif
  atomic {
    if
    :: !is_in(n, alive) -> goto done
    :: else
    fi;
    woken = woken & ~bit(n);
    on_list = (vigil -> on_list | bit(n) : on_list);
#ifdef COUNT_FIRST
    taken = all_taken + weight[n]
#else
#ifdef COUNT_ALL
    taken = all_taken
#else
    taken = taken_up_to(n)
#endif
#endif
#ifdef WATCH_ONE
    ;
    on_list = on_list & ~bit(n);
    nearest = n;
    if
    :: older[0] != 0 && older[0] < older[n] -> nearest = 0
    :: else
    fi;
    if
    :: older[1] != 0 && older[1] < older[n] && (nearest == n || older[1] > older[nearest]) ->
      nearest = 1
    :: else
    fi;
    if
    :: older[2] != 0 && older[2] < older[n] && (nearest == n || older[2] > older[nearest]) ->
      nearest = 2
    :: else
    fi
#endif
  }
#ifndef SIZE_FIRST
  atomic { seen = size;
#ifndef NO_SIZE_WATCH
    on_size = (vigil && is_in(n, alive) -> on_size | bit(n) : on_size)
#endif
  }
#endif
decide:
  atomic {
    if
    :: !is_in(n, alive) -> goto done
    :: is_in(n, alive) && weight[n] > seen -> leave(n); goto done       /* judge(): it never will */
    :: is_in(n, alive) && weight[n] <= seen && taken <= seen -> goto prove
    :: is_in(n, alive) && weight[n] <= seen && taken > seen ->
      reached(WAIT_FOR_TWO, taken - seen == 2);
      if
      :: vigil -> goto end_wait
      :: else ->
        vigil = true;
#ifdef NO_SECOND_LOOK
        on_list = on_list | bit(n); on_size = on_size | bit(n); goto end_wait
#else
        goto look
#endif
      fi
    fi }
end_wait:                          /* whoever has to wait may do so for ever */
  atomic {
    if
    :: !is_in(n, alive) -> goto done
    :: is_in(n, alive) && is_in(n, woken) ->
      reached(WOKEN_BY_THE_SIZE, is_in(n, on_list));
      goto look
#ifdef WATCH_ONE
    :: is_in(n, alive) && nearest != n && older[nearest] == 0 -> goto look
#endif
    fi }
prove:
  atomic {
    if
    :: !is_in(n, alive) -> goto done
    :: else
    fi;
#ifdef COUNT_FIRST
    goto grant }
grant:
  atomic {
    if
    :: !is_in(n, alive) -> goto done
    :: else -> make_leases(n)
    fi;
#endif
    printf("claim %d holds %d; %d taken, size %d\n", n, weight[n], all_taken, size);
    waiting = waiting & ~bit(n);
    holding = holding | bit(n);
    assert(is_in(n, fitted));                          /* claim: enough at some moment */
    assert(all_held <= greatest);                      /* claim: no more than there ever were */
    assert((waiting & below(n) & ~robbed) == 0);       /* claim: in the order of arrival */
    reached(HELD_BEYOND_THE_SIZE, all_held > size);
    reached(ROBBED_AND_HELD, is_in(n, robbed) && holding != bit(n));
    reached(OLDER_LEFT_FIRST, vigil && (holding & below(n)) && older[0] == 0);
    queue = queue & ~bit(n);
    on_list = on_list & ~bit(n);
    on_size = on_size & ~bit(n);
    woken = woken & ~bit(n) }
release:
  atomic {
    if
    :: is_in(n, alive) -> leave(n); printf("claim %d lets go\n", n)
    :: true                                                             /* it stays */
    fi }
done:
  atomic { over = over | bit(n); taken = 0; seen = 0; nearest = 0; vigil = false }
}

inline crash(n) {
  faults--;
  leave(n);
  printf("claim %d crashes\n", n)
}

/* By another hand. Whoever has not been the head is out of line. */
inline rob(n) {
  faults--;
  robbed = robbed | bit(n);
  queue = queue & ~bit(n);
  printf("the entry of claim %d is gone\n", n)
}

proctype fate() {
  byte faults = FAULTS, resizes = RESIZES;
  do
  :: atomic { faults > 0 && is_in(0, alive) -> crash(0) }
  :: atomic { faults > 0 && is_in(1, alive) -> crash(1) }
  :: atomic { faults > 0 && is_in(2, alive) -> crash(2) }
  :: atomic { faults > 0 && is_in(0, queue) -> rob(0) }
  :: atomic { faults > 0 && is_in(1, queue) -> rob(1) }
  :: atomic { resizes > 0 && size > 1 -> resizes--; resize(size - 1) }
  :: atomic { resizes > 0 && size < 3 -> resizes--; resize(size + 1) }
  :: break
  od
}

/* It waits, it is first, and it could hold or never will. */
#define sleeps(n) (!is_in(n, over) && (queue & below(n)) == 0 && \
                   (taken_up_to(n) <= size || weight[n] > size))

init {
  byte i;
  atomic {
    do
    :: i < CLAIMS -> run claim(i); i++
    :: else -> break
    od;
    i = 0;
    run fate() }
  timeout;                         /* nothing can happen any more */
  assert(!sleeps(0) && !sleeps(1) && !sleeps(2));      /* claim: no permit is idle */
  assert(holding != 0 || over == bit(CLAIMS) - 1)      /* claim: no deadlock */
}
