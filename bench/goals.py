"""What Latchkey wants to reach, each goal a ratio within one run; pure functions over results."""

from __future__ import annotations

import dataclasses
from typing import Callable

from results import Results

OTHERS = ("curator", "c", "kazoo", "go")


@dataclasses.dataclass(frozen=True)
class Goal:
    what: str
    against: str
    limit: float
    at_most: bool
    measure: Callable[[Results], float | None]

    def judge(self, results: Results) -> tuple[float | None, str]:
        value = self.measure(results)
        if value is None:
            return None, "not measured"
        good = value <= self.limit if self.at_most else value >= self.limit
        return value, "met" if good else "MISSED"


def ratio(ours: str, theirs: str | list[str], measure: str):
    """Ours by theirs; of several the best of theirs, for measures where more is better."""
    def compute(results: Results) -> float | None:
        mine = results.median(ours, measure)
        keys = [theirs] if isinstance(theirs, str) else theirs
        other = results.best(keys, measure)
        return None if mine is None or not other else mine / other
    return compute


def best_others(workload: str) -> list[str]:
    return [f"{workload}/{who}/apache" for who in OTHERS]


def worst(*computations):
    """The largest of several ratios, if all are there."""
    def compute(results: Results) -> float | None:
        values = [each(results) for each in computations]
        return None if None in values else max(values)
    return compute


def growth(series: list[tuple[str, float]], measure: str):
    """The figure for each unit at the largest step by that at the smallest: 1 is linear."""
    def compute(results: Results) -> float | None:
        ends = [(results.median(key, measure), size) for key, size in (series[0], series[-1])]
        if None in (ends[0][0], ends[1][0]) or not ends[0][0]:
            return None
        return (ends[1][0] / ends[1][1]) / (ends[0][0] / ends[0][1])
    return compute


def tail(key: str):
    def compute(results: Results) -> float | None:
        half, last = results.median(key, "p50_us"), results.median(key, "p99_us")
        return last / half if half and last else None
    return compute


def value(key: str, measure: str):
    return lambda results: results.median(key, measure)


def least(key: str, measure: str):
    def compute(results: Results) -> float | None:
        spread = results.spread(key, measure)
        return spread[0] if spread else None
    return compute


def most(key: str, measure: str):
    def compute(results: Results) -> float | None:
        spread = results.spread(key, measure)
        return spread[1] if spread else None
    return compute


def start_up(results: Results) -> float | None:
    """The command by three times flock and three writes: session, lock, close."""
    ours, theirs, pair = (results.median(key, "p50_ms") for key in
                          ("C1/latchkey/embedded/unix", "C1/flock", "C1/bare/embedded"))
    return ours / (3 * theirs + 3 * pair / 2) if ours and theirs and pair else None


def processor_goals() -> list[Goal]:
    names = (("curator", "Curator", 0.15), ("go", "go-zookeeper", 0.3), ("c", "C client", 0.3))
    return [Goal(f"W8 client CPU for each pair, {load}", name, limit, True,
                 ratio(f"{load}/latchkey/apache", f"{load}/{peer}/apache", "cpu_us"))
            for load in ("W1", "W2") for peer, name, limit in names]


GOALS = [
    Goal("W1 p50, Apache standalone", "Curator", 0.5, True,
         ratio("W1/latchkey/apache", "W1/curator/apache", "p50_us")),
    Goal("W1 p50, Apache, three servers", "Curator", 0.5, True,
         ratio("W1/latchkey/apache3", "W1/curator/apache3", "p50_us")),
    Goal("W1 p50, Apache, five servers", "Curator", 0.5, True,
         ratio("W1/latchkey/apache5", "W1/curator/apache5", "p50_us")),
    Goal("W1 p50, Apache standalone", "bare socket, same requests", 1.25, True,
         ratio("W1/latchkey/apache", "W1/bare/apache/one transaction", "p50_us")),
    Goal("W1 p50, embedded durable", "bare socket, same requests", 1.25, True,
         ratio("W1/latchkey/embedded", "W1/bare/embedded/one transaction", "p50_us")),
    Goal("W2 pairs/s, Apache standalone", "best other client", 1.3, False,
         ratio("W2/latchkey/apache", best_others("W2"), "per_s")),
    Goal("W3 hand-overs/s, Apache standalone", "best other client", 1.5, False,
         ratio("W3/latchkey/apache", best_others("W3"), "per_s")),
    Goal("W5 pairs/s, strict order, Apache", "best other client", 4, False,
         ratio("W5/latchkey/apache", best_others("W5"), "per_s")),
    Goal("W5 pairs/s, local hand-over, Apache", "best other client", 100, False,
         ratio("W5/latchkey/apache/local hand-over", best_others("W5"), "per_s")),
    Goal("W4 bytes for each lock, one session, N = 3000", "itself, N = 100", 1.3, True,
         ratio("W4/latchkey/apache/one session, N = 3000",
               "W4/latchkey/apache/one session, N = 100", "bytes")),
    Goal("W4 bytes for each lock, 1000 sessions", "Curator", 0.6, True,
         ratio("W4/latchkey/apache/N sessions, N = 1000",
               "W4/curator/apache/N sessions, N = 1000", "bytes")),
    Goal("W6 ops/s, Apache standalone", "Curator", 2, False,
         ratio("W6/latchkey/apache", "W6/curator/apache", "per_s")),
    *processor_goals(),
    Goal("W8 memory, 1000 held", "C client", 2, True,
         ratio("W8/latchkey/apache/1000 held", "W8/c/apache/1000 held", "rss_mb")),
    Goal("W2 pairs/s, embedded durable", "Curator on Apache", 8, False,
         ratio("W2/latchkey/embedded", "W2/curator/apache", "per_s")),
    Goal("W2 pairs/s, embedded durable", "Redis, appendfsync always", 1, False,
         ratio("W2/latchkey/embedded", "W2/redis/redis", "per_s")),
    Goal("W3 pairs/s, embedded durable, fair", "Redis, polling, unfair", 1, False,
         ratio("W3/latchkey/embedded", "W3/redis/redis", "per_s")),
    Goal("server CPU for each pair, W2, durable", "Apache", 0.15, True,
         ratio("W2/latchkey/embedded", "W2/latchkey/apache", "server_cpu_us")),
    Goal("S1 server CPU for each pair, 512 clients", "itself, 8 clients", 1, True,
         ratio("S1/bare/embedded/512 clients", "S1/bare/embedded/8 clients", "server_cpu_us")),
    Goal("S1 pairs/s, 512 clients", "itself, 8 clients", 1, False,
         ratio("S1/bare/embedded/512 clients", "S1/bare/embedded/8 clients", "per_s")),
    Goal("S1 p99 by p50, 8, 64 and 512 clients", "itself", 10, True,
         worst(*(tail(f"S1/bare/embedded/{n} clients") for n in (8, 64, 512)))),
    Goal("S2 memory for each node, most", "itself, fewest", 1.05, True,
         growth([("S2/embedded/10000 nodes", 10_000), ("S2/embedded/100000 nodes", 100_000)],
                "grown_mb")),
    Goal("S2 memory for each session, most", "itself, fewest", 1.05, True,
         growth([("S2/embedded/1000 sessions", 1_000), ("S2/embedded/10000 sessions", 10_000)],
                "grown_mb")),
    Goal("S2 idle server, MB", "20 MB", 20, True, value("S2/embedded/idle", "full_mb")),
    Goal("S2 idle server, CPU ms in a second", "none to be seen", 0.1, True,
         value("S2/embedded/idle", "idle_cpu_ms")),
    Goal("S2 100,000 nodes and 10,000 sessions, MB", "300 MB", 300, True,
         value("S2/embedded/100000 nodes, 10000 sessions", "full_mb")),
    Goal("S3 start in memory, ms", "10 ms", 10, True, value("S3/memory/empty", "start_ms")),
    Goal("W7 take-over, Unix socket, ms, latest", "time-out 4 s", 50, True,
         most("W7/latchkey/embedded/unix", "take_over_ms")),
    Goal("W7 take-over, TCP, ms after last byte and time-out, latest", "time-out 4 s", 100, True,
         most("W7/latchkey/embedded/tcp", "late_ms")),
    Goal("W7 take-over, TCP, ms after the last byte, soonest", "time-out 4 s", 4000, False,
         least("W7/latchkey/embedded/tcp", "since_last_ms")),
    Goal("C1 start to finish, Unix socket", "3 x flock + 3 writes", 1, True, start_up),
]
