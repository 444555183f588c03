"""What was measured: rounds of plain numbers under the key of an entry; medians and spreads."""

from __future__ import annotations

import statistics

# In per mille; every contestant prints its latencies at these points.
QUANTILES = (0, 10, 50, 100, 200, 250, 300, 400, 500,
             600, 700, 750, 800, 900, 950, 990, 999, 1000)


def measures(raw: dict) -> dict[str, float]:
    """The figures of one run of one contestant, from what it and the driver counted."""
    found: dict[str, float] = {}
    for name, value in raw.items():
        if name.endswith(("_ms", "_mb", "_bytes")):
            found[name] = value
    ops = raw.get("ops", 0)
    if raw.get("quantiles_us"):
        at = dict(zip(QUANTILES, raw["quantiles_us"]))
        found.update(p50_us=at[500], p99_us=at[990])
    if raw.get("seconds"):
        found["per_s"] = ops / raw["seconds"]
    if ops:
        for name, source in (("cpu_us", "cpu_s"), ("server_cpu_us", "server_cpu_s")):
            if source in raw:
                found[name] = raw[source] * 1e6 / ops
        if "requests" in raw:
            found["requests"] = raw["requests"] / ops
            found["bytes"] = (raw["bytes_up"] + raw["bytes_down"]) / ops
            found["events"] = raw["events"] / ops
    if "rss_kb" in raw:
        found["rss_mb"] = raw["rss_kb"] / 1024
    return found


class Results:
    """Rounds by key. Thread safety: one thread at a time."""

    def __init__(self):
        self.raw: dict[str, list[dict]] = {}

    def add(self, key: str, raw: dict):
        self.raw.setdefault(key, []).append(raw)

    def values(self, key: str, measure: str) -> list[float]:
        found = [measures(raw).get(measure) for raw in self.raw.get(key, [])]
        return [value for value in found if value is not None]

    def median(self, key: str, measure: str) -> float | None:
        values = self.values(key, measure)
        return statistics.median(values) if values else None

    def spread(self, key: str, measure: str) -> tuple[float, float] | None:
        values = self.values(key, measure)
        return (min(values), max(values)) if values else None

    def best(self, keys: list[str], measure: str) -> float | None:
        """The largest median among some keys."""
        found = [self.median(key, measure) for key in keys]
        there = [value for value in found if value is not None]
        return max(there) if there else None

    def quantiles(self, key: str) -> list[float] | None:
        """Latencies at the quantiles, each the median of its rounds."""
        rounds = [raw["quantiles_us"] for raw in self.raw.get(key, []) if raw.get("quantiles_us")]
        return [statistics.median(column) for column in zip(*rounds)] if rounds else None
