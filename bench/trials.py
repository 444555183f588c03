"""Workloads that are more than one contestant on one service: take-over, footprint, start, run."""

from __future__ import annotations

import pathlib
import random
import shutil
import subprocess
import time

import services
from field import Entry, Field, Pace, Run
from results import Results, measures
from workloads import options

TIMEOUT_MS = 4_000
# For what is killed at any time between two heartbeats, and not always right after one.
LUCK = random.Random("W7")


# ---- W7 -----------------------------------------------------------------------------------------

def take_over(field: Field, pace: Pace, results: Results):
    """A holder is killed; when does the next one have the lock?"""
    for where, link in (("embedded", "unix"), ("embedded", "tcp"), ("apache", "tcp")):
        service = field.service(where)
        proxy = None
        connect = f"unix:{service.unix_path}" if link == "unix" else None
        if connect is None:
            proxy = services.Proxy(field.build / "bench/latchkey_counting_proxy",
                                   f"127.0.0.1:{service.ports[0]}")
            connect = proxy.connect
        try:
            results.add(f"W7/latchkey/{where}/{link}", one_take_over(
                field, pace, service, connect, proxy))
        finally:
            if proxy:
                proxy.stop()


def one_take_over(field: Field, pace: Pace, service, connect: str, proxy) -> dict:
    path = field.path()
    # Whoever ended before may have left something that goes with its session.
    services.wait_until(lambda: service.ephemerals() == 0, "an empty server")
    words = options(timeout_ms=TIMEOUT_MS)
    holder = Run(field, Entry("W7", "latchkey", service.name, "holder", "hold", words), pace,
                 connect, path)
    taker = None
    try:
        holder.wait_for_begin()
        # The one that waits is not seen by the proxy, which times the holder's last byte.
        taker = Run(field, Entry("W7", "latchkey", service.name, "taker", "take-over", words), pace,
                    service.connect, path)
        taker.wait_for_begin()
        services.wait_until(lambda: service.ephemerals() == 2, "two in the queue")
        time.sleep(LUCK.uniform(0, TIMEOUT_MS / 3e3))
        killed = time.monotonic()
        holder.process.kill()
        granted = taker.result()["granted_at"]
        found = {"take_over_ms": (granted - killed) * 1e3}
        if proxy:
            found["since_last_ms"] = (granted - proxy.counters()["last_up"]) * 1e3
            found["late_ms"] = found["since_last_ms"] - TIMEOUT_MS
        return found
    finally:
        holder.end()
        if taker:
            taker.end()


# ---- S2 and S3 ----------------------------------------------------------------------------------

def fresh(field: Field, kind: str) -> services.Service:
    if kind == "apache":
        return services.Apache("fresh-apache", field.folder)
    return services.Embedded(f"fresh-{kind}", field.folder, field.command, kind == "embedded")


def start_ms(service: services.Service) -> float:
    """From the start of the process to the first answer, as a client that cannot wait sees it."""
    service.folder.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    service.launch()
    services.wait_until(service.serving, f"{service.name} to serve", pause=0)
    return (time.monotonic() - begin) * 1e3


def idle_cpu_ms(service: services.Service, seconds: float) -> float:
    """Milliseconds of the processor that it uses in a second with nobody there."""
    before = service.on_processor_ns()
    time.sleep(seconds)
    return (service.on_processor_ns() - before) / 1e6 / seconds


def fill(field: Field, pace: Pace, service, **words) -> Run:
    run = Run(field, Entry("S2", "bare", service.name, "", "fill", options(**words)), pace,
              service.connect)
    run.wait_for_begin()
    return run


def footprint(field: Field, pace: Pace, results: Results):
    """Memory by nodes, by sessions and with both, and what an idle server uses of the processor."""
    steps = [{}, {"nodes": 10_000}, {"idle": 1_000}]
    if not pace.quick:
        steps += [{"nodes": 100_000}, {"idle": 10_000}]
    both = [] if pace.quick else [{"nodes": 100_000, "idle": 10_000}]
    for kind in ("embedded", "memory", "apache"):
        for step in steps if kind == "apache" else (*steps, *both):
            service = fresh(field, kind)
            try:
                results.add(f"S3/{kind}/empty", {"start_ms": start_ms(service)})
                results.add(f"S2/{kind}/{label(step)}", one_footprint(field, pace, service, step))
            finally:
                service.wipe()


def label(step: dict) -> str:
    names = {"nodes": "nodes", "idle": "sessions", "pairs": "pairs"}
    return ", ".join(f"{count} {names[what]}" for what, count in step.items()) or "idle"


def one_footprint(field: Field, pace: Pace, service: services.Service, step: dict) -> dict:
    if not step:
        cpu = idle_cpu_ms(service, 3 if pace.quick else 10)
        return {"full_mb": service.resident_mb(), "idle_cpu_ms": cpu}
    empty = service.resident_mb()
    run = fill(field, pace, service, **step)
    try:
        full = service.resident_mb()
        return {"empty_mb": empty, "full_mb": full, "grown_mb": full - empty}
    finally:
        run.end()


def recovery(field: Field, pace: Pace, results: Results):
    """Killed with a journal of some size, and started again: of stored nodes, a thousand in a
    record, and of locks that have come and gone, two records each."""
    few = [{"nodes": 10_000}, {"pairs": 10_000}]
    many = [{"nodes": 100_000}, {"nodes": 300_000}, {"pairs": 100_000}, {"pairs": 500_000}]
    for kind in ("embedded", "apache"):
        for step in few if pace.quick else few + many:
            service = fresh(field, kind)
            try:
                service.start()
                fill(field, pace, service, **step).end()
                service.stop()
                stored = sum(file.stat().st_blocks * 512
                             for file in pathlib.Path(service.folder).rglob("*")
                             if file.is_file() and file.name != "log")
                results.add(f"S3/{kind}/{label(step)}",
                            {"start_ms": start_ms(service), "stored_mb": stored / 2**20})
            finally:
                service.wipe()


# ---- C1 -----------------------------------------------------------------------------------------

def times_ms(argv: list[str], count: int) -> list[float]:
    found = []
    for _ in range(count):
        begin = time.monotonic()
        outcome = subprocess.run(argv, capture_output=True, text=True, check=False)
        if outcome.returncode != 0:
            raise services.Trouble(f"{' '.join(argv)} ended with {outcome.returncode}:\n"
                                   + outcome.stderr)
        found.append((time.monotonic() - begin) * 1e3)
    return sorted(found)


def wrapper(field: Field, pace: Pace, results: Results):
    """The command around /bin/true, beside the wrapper of util-linux that locks a file."""
    count = 20 if pace.quick else 100
    run = [str(field.command), "run"]
    runs = {
        "C1/true": ["/bin/true"],
        "C1/latchkey/embedded/unix": [
            *run, "--connect", f"unix:{field.service('embedded').unix_path}", "bench", "--",
            "/bin/true"],
        "C1/latchkey/embedded/tcp": [
            *run, "--connect", field.service("embedded").connect, "bench", "--", "/bin/true"],
        "C1/latchkey/apache/tcp": [
            *run, "--connect", field.service("apache").connect, "bench", "--", "/bin/true"],
    }
    if shutil.which("flock"):
        runs["C1/flock"] = ["flock", str(field.folder / "flock"), "/bin/true"]
    for key, argv in runs.items():
        found = times_ms(argv, count)
        results.add(key, {"p50_ms": found[len(found) // 2],
                          "p99_ms": found[len(found) * 99 // 100]})
    # Two writes, one after the other: what the service itself takes over each.
    pair = field.run(Entry("C1", "bare", "embedded"), pace)
    results.add("C1/bare/embedded", {"p50_ms": measures(pair)["p50_us"] / 1e3,
                                     "p99_ms": measures(pair)["p99_us"] / 1e3})


TRIALS = {"W7": take_over, "S2": footprint, "S3": recovery, "C1": wrapper}
