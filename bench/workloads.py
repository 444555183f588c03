"""Who takes part in which workload. docs/benchmarks.md describes them."""

from __future__ import annotations

import dataclasses

from field import Entry, Pace

CONTENDERS = (1, 2, 4, 8, 16, 32)
DEPTHS = (100, 300, 1000, 3000)
# Longer than a create and a list take.
GAP_US = 3000


def options(**words) -> tuple[tuple[str, object], ...]:
    return tuple((name.replace("_", "-"), value) for name, value in words.items())


def joined(workload: str, where: str, **words) -> Entry:
    """A bare socket with Latchkey's own requests: the floor."""
    return Entry(workload, "bare", where, "one transaction",
                 options=options(unlock="joined", **words))


ALONE = [("latchkey", "apache"), ("curator", "apache"), ("c", "apache"), ("kazoo", "apache"),
         ("go", "apache"), ("latchkey", "embedded"), ("curator", "embedded"),
         ("latchkey", "memory"), ("etcd", "etcd"), ("redis", "redis")]


def w1(_: Pace) -> list[Entry]:
    """One worker, nobody else."""
    entries = [Entry("W1", *who) for who in ALONE]
    entries += [Entry("W1", who, where) for where in ("apache3", "apache5")
                for who in ("latchkey", "curator", "bare")]
    entries += [Entry("W1", "bare", where) for where in ("apache", "embedded", "memory")]
    entries += [Entry("W1", "bare", where, "one flush", options=options(unlock="with-next"))
                for where in ("apache", "embedded")]
    return entries + [joined("W1", where) for where in ("apache", "embedded", "apache3", "apache5")]


def w2(_: Pace) -> list[Entry]:
    """64 workers on one session, each with a lock of its own."""
    crowd = options(workers=64)
    entries = [Entry("W2", *who, options=crowd) for who in ALONE]
    entries += [Entry("W2", "bare", where, options=crowd) for where in ("apache", "embedded")]
    return entries + [joined("W2", where, workers=64) for where in ("apache", "embedded")]


def w3(pace: Pace) -> list[Entry]:
    """8 sessions on one lock."""
    entries = [Entry("W3", *who, options=options(sessions=8, locks="one")) for who in ALONE]
    if not pace.quick:
        entries += [Entry("W3", who, where, f"{n} sessions",
                          options=options(sessions=n, locks="one"))
                    for who, where in (("latchkey", "apache"), ("curator", "apache"),
                                       ("go", "apache"), ("latchkey", "embedded"),
                                       ("redis", "redis"))
                    for n in CONTENDERS if n != 8]
    return entries


def w4(pace: Pace) -> list[Entry]:
    """N wait on one lock and leave one after the other; every byte is counted.

    Who comes while others come as well sees some of those who come after it, as many as the client
    is fast: sessions come one after the other, and in one variant all at once.
    """
    entries = []
    if not pace.quick:
        entries += [Entry("W4", who, "apache", "N sessions at once, N = 1000", "drain",
                          options(waiters=1000, sessions=1000), True)
                    for who in ("latchkey", "curator")]
    for depth in DEPTHS:
        if pace.quick and depth == 300:
            continue
        for who in ("latchkey", "curator"):
            if who == "latchkey" or depth <= (100 if pace.quick else 1000):
                entries.append(Entry("W4", who, "apache", f"one session, N = {depth}", "drain",
                                     options(waiters=depth), True))
            if depth <= (100 if pace.quick else 3000 if who == "latchkey" else 1000):
                entries.append(Entry("W4", who, "apache", f"N sessions, N = {depth}", "drain",
                                     options(waiters=depth, sessions=depth, gap_us=GAP_US), True))
    return entries


def w5(_: Pace) -> list[Entry]:
    """8 threads of one process and one session on one lock."""
    shared = options(workers=8, locks="one")
    entries = [Entry("W5", who, "apache", options=shared)
               for who in ("latchkey", "curator", "c", "kazoo", "go")]
    entries.append(Entry("W5", "latchkey", "apache", "local hand-over",
                         options=options(workers=8, locks="one", hand_over="yes")))
    return entries


def w6(_: Pace) -> list[Entry]:
    """Read-write, nine of ten read, 8 sessions; wake-ups are counted."""
    entries = [Entry("W6", who, "apache", kind="rw", options=options(sessions=8))
               for who in ("latchkey", "curator")]
    entries.append(Entry("W6", "latchkey", "apache", "directory watch", "rw",
                         options(sessions=8, watch="directory")))
    entries += [Entry("W6", who, "apache", "counted", "rw", options(sessions=8), True)
                for who in ("latchkey", "curator")]
    entries.append(Entry("W6", "latchkey", "apache", "directory watch, counted", "rw",
                         options(sessions=8, watch="directory"), True))
    return entries


def w8(_: Pace) -> list[Entry]:
    """Memory with a thousand held locks; processor time for each pair comes from W1 and W2."""
    return [Entry("W8", who, "apache", "1000 held", "hold", options(held=1000))
            for who in ("latchkey", "curator", "c", "go")]


def s1(pace: Pace) -> list[Entry]:
    """What servers do under many clients that cost next to nothing themselves."""
    counts = (1, 8, 64, 512)
    return [Entry("S1", "bare", where, f"{n} clients", options=options(sessions=n))
            for where in (("embedded", "apache") if pace.quick else
                          ("embedded", "memory", "apache"))
            for n in counts]


# Nobody is kept out here, which has to be found out: who says that all others were alone?
OPEN_DOOR = Entry("W3", "latchkey", "memory", "no lock",
                  options=options(workers=8, locks="one", exclusion="no"))

# Each pair is one request, so that it is known what the proxy has to count.
ONE_REQUEST = dataclasses.replace(joined("W1", "memory"), counted=True)

RACES = {"W1": w1, "W2": w2, "W3": w3, "W4": w4, "W5": w5, "W6": w6, "W8": w8, "S1": s1}
