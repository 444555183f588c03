"""Plots as SVG, by hand: lines over two logarithmic axes."""

from __future__ import annotations

import dataclasses
import math
import pathlib
from typing import Callable
from xml.sax.saxutils import escape

from results import QUANTILES, Results
from workloads import CONTENDERS, DEPTHS

WIDTH, HEIGHT = 890, 440
LEFT, RIGHT, TOP, BOTTOM = 76, 266, 44, 56
# Told apart in print and by most colour-blind readers; ours is always the first and the widest.
COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#555555", "#999999",
           "#882255", "#117733", "#332288", "#000000")


@dataclasses.dataclass(frozen=True)
class Line:
    name: str
    points: list[tuple[float, float]]


def label(value: float) -> str:
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


@dataclasses.dataclass(frozen=True)
class Axis:
    """Logarithmic."""

    title: str
    low: float
    high: float
    ticks: list[float]
    names: Callable[[float], str] = label

    def place(self, value: float) -> float:
        """0 to 1."""
        low, high = math.log10(self.low), math.log10(self.high)
        return (math.log10(max(value, self.low)) - low) / (high - low)


def decades(title: str, values: list[float]) -> Axis:
    """A logarithmic axis around all values, with ticks at 1, 2 and 5 where there is room."""
    low = 10 ** math.floor(math.log10(min(values)))
    high = 10 ** math.ceil(math.log10(max(values) * 1.001))
    steps = (1, 2, 5) if high / low <= 1e3 else (1,)
    ticks = [step * 10.0 ** power
             for power in range(round(math.log10(low)), round(math.log10(high)) + 1)
             for step in steps]
    return Axis(title, low, high, [tick for tick in ticks if low <= tick <= high])


def nines() -> Axis:
    """For one divided by the share that took longer: as much room for each further nine."""
    return Axis("percent of pairs that took at most", 1, 1000, [1, 2, 4, 10, 100, 1000],
                lambda value: f"{100 - 100 / value:g}")


def text(x: float, y: float, words: str, anchor: str = "middle", extra: str = "") -> str:
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {extra}>{escape(words)}</text>')


def frame(title: str, across: Axis, up: Axis) -> list[str]:
    right, floor = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = [text(LEFT, 24, title, "start", 'font-weight="bold" font-size="15"'),
             text((LEFT + right) / 2, HEIGHT - 12, across.title),
             text(18, (TOP + floor) / 2, up.title,
                  extra=f'transform="rotate(-90 18 {(TOP + floor) / 2:.0f})"')]
    for tick in across.ticks:
        x = LEFT + across.place(tick) * (right - LEFT)
        parts += [f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{floor}" stroke="#ddd"/>',
                  text(x, floor + 18, across.names(tick))]
    for tick in up.ticks:
        y = floor - up.place(tick) * (floor - TOP)
        parts += [f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#ddd"/>',
                  text(LEFT - 8, y + 4, up.names(tick), "end")]
    return parts


def curve(number: int, line: Line, across: Axis, up: Axis) -> list[str]:
    right, floor = WIDTH - RIGHT, HEIGHT - BOTTOM
    colour = COLOURS[number % len(COLOURS)]
    width = 3 if line.name.startswith("latchkey") else 1.5
    dash = "" if number < len(COLOURS) else ' stroke-dasharray="5 3"'
    places = [(LEFT + across.place(x) * (right - LEFT), floor - up.place(y) * (floor - TOP))
              for x, y in line.points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    key = TOP + 10 + 20 * number
    parts = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"'
             f'{dash}/>',
             f'<line x1="{right + 14}" y1="{key}" x2="{right + 38}" y2="{key}" stroke="{colour}" '
             f'stroke-width="{width}"{dash}/>',
             text(right + 44, key + 4, line.name, "start")]
    if len(places) <= 8:
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
    return parts


def draw(title: str, across: Axis, up: Axis, lines: list[Line]) -> str:
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
             f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', *frame(title, across, up)]
    for number, line in enumerate(lines):
        parts += curve(number, line, across, up)
    return "\n".join([*parts, "</svg>\n"])


def name_of(key: str) -> str:
    return ", ".join(key.split("/")[1:])


ENSEMBLES = ("apache3", "apache5")


def latencies(results: Results, workload: str, title: str, ensembles: bool = False) -> str | None:
    """Which part of the pairs took at most how long; of single servers, or of ensembles."""
    lines = []
    for key in results.raw:
        found = results.quantiles(key)
        # Variants belong to other plots, but for the floor.
        if key.count("/") != 2 and not key.endswith("/one transaction"):
            continue
        if not key.startswith(workload + "/") or not found:
            continue
        if ensembles != (key.split("/")[2] in ENSEMBLES):
            continue
        lines.append(Line(name_of(key), [(max(each, 1), 1000 / (1000 - point))
                                         for each, point in zip(found, QUANTILES) if point < 1000]))
    if not lines:
        return None
    across = decades("microseconds for one pair", [x for line in lines for x, _ in line.points])
    return draw(title, across, nines(), lines)


def series(results: Results, measure: str, keys: dict[str, list[tuple[float, str]]]) -> list[Line]:
    lines = []
    for name, steps in keys.items():
        points = [(size, results.median(key, measure)) for size, key in steps]
        there = [(size, value) for size, value in points if value]
        if len(there) > 1:
            lines.append(Line(name, there))
    return lines


def by_size(results: Results, title: str, across: str, up: str, measure: str,
            keys: dict[str, list[tuple[float, str]]]) -> str | None:
    lines = series(results, measure, keys)
    if not lines:
        return None
    points = [point for line in lines for point in line.points]
    return draw(title, decades(across, [x for x, _ in points]),
                decades(up, [y for _, y in points]), lines)


def contender_keys() -> dict[str, list[tuple[float, str]]]:
    whose = (("latchkey", "apache"), ("latchkey", "embedded"), ("curator", "apache"),
             ("go", "apache"), ("redis", "redis"))
    return {f"{who}, {where}": [
        (n, f"W3/{who}/{where}" + ("" if n == 8 else f"/{n} sessions")) for n in CONTENDERS]
        for who, where in whose}


def depth_keys() -> dict[str, list[tuple[float, str]]]:
    return {f"{who}, {kind}": [(n, f"W4/{who}/apache/{kind}, N = {n}") for n in DEPTHS]
            for who in ("latchkey", "curator") for kind in ("one session", "N sessions")}


def client_keys() -> dict[str, list[tuple[float, str]]]:
    return {where: [(n, f"S1/bare/{where}/{n} clients") for n in (1, 8, 64, 512)]
            for where in ("embedded", "memory", "apache")}


def draw_all(results: Results, folder: pathlib.Path) -> list[str]:
    """Writes every plot for which there are figures; returns their names."""
    plots = {
        "w1_latency.svg": latencies(results, "W1", "W1: uncontended lock and unlock"),
        "w1_ensembles.svg": latencies(results, "W1", "W1: the same on three and five servers",
                                      True),
        "w2_latency.svg": latencies(results, "W2", "W2: 64 workers on one session, own locks"),
        "w3_latency.svg": latencies(results, "W3", "W3: 8 sessions on one lock"),
        "w3_contenders.svg": by_size(
            results, "W3: throughput of one lock by number of sessions", "sessions", "pairs/s",
            "per_s", contender_keys()),
        "w4_bytes.svg": by_size(results, "W4: bytes for each lock by depth of the queue",
                                "waiters", "bytes for each lock", "bytes", depth_keys()),
        "w4_requests.svg": by_size(results, "W4: requests for each lock by depth of the queue",
                                   "waiters", "requests for each lock", "requests", depth_keys()),
        "s1_throughput.svg": by_size(results, "S1: pairs/s of a server by number of clients",
                                     "clients", "pairs/s", "per_s", client_keys()),
        "s1_latency.svg": by_size(results, "S1: 99th percentile by number of clients", "clients",
                                  "microseconds", "p99_us", client_keys()),
    }
    written = []
    for name, plot in plots.items():
        if plot:
            (folder / name).write_text(plot)
            written.append(name)
    return written
