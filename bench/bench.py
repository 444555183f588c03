"""Runs Latchkey and its peers on the same workloads, interleaved; see docs/benchmarks.md.

    ./dev bench [--quick] [--only W1,W3] [--rounds N]
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import random
import signal
import sys
import tempfile
import time

import plots
import report
from field import Entry, Field, Pace, Run
from results import Results
from services import Trouble
from trials import TRIALS
from workloads import ONE_REQUEST, OPEN_DOOR, RACES

ALL = (*RACES, *TRIALS)
PEERS = {"curator", "kazoo", "c", "go", "etcd", "redis"}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one short round, about two minutes")
    parser.add_argument("--only", default=",".join(ALL), metavar="W1,W3", help="some workloads")
    parser.add_argument("--rounds", type=int, help="how often everything is measured [5, quick 1]")
    parser.add_argument("--contestants", metavar="A,B", help="some contestants")
    parser.add_argument("--again", action="store_true",
                        help="measure nothing, show the last run's table and plots again")
    parser.add_argument("--data", type=pathlib.Path, metavar="DIR",
                        help="where servers keep their data [build/bench]; /dev/shm takes the disk "
                        "out of all figures")
    parser.add_argument("--build", type=pathlib.Path, default="build/release",
                        help=argparse.SUPPRESS)
    parser.add_argument("--out", type=pathlib.Path, default="build/bench", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.only = arguments.only.split(",")
    for name in arguments.only:
        if name not in ALL:
            parser.error(f"no workload {name}: {', '.join(ALL)}")
    if arguments.rounds is not None and arguments.rounds < 1:
        parser.error("--rounds is at least 1")
    return arguments


def pace_of(arguments: argparse.Namespace) -> Pace:
    rounds = arguments.rounds or (1 if arguments.quick else 5)
    if arguments.quick:
        return Pace(seconds=0.5, warmup=0.2, java_warmup=1.2, rounds=rounds, quick=True)
    return Pace(seconds=2, warmup=0.5, java_warmup=4, rounds=rounds, quick=False)


def say(text: str):
    print(text, file=sys.stderr, flush=True)


class Troubles:
    """What went wrong: the rest is measured all the same, but the run has failed."""

    def __init__(self):
        self.count = 0

    def during(self, what: str, action):
        begin = time.monotonic()
        try:
            done = action()
            say(f"{time.monotonic() - begin:6.1f} s  {what}  {done or ''}")
        # A server or a contestant that dies breaks pipes, and leaves half a line of JSON.
        except (Trouble, OSError, ValueError) as trouble:
            say(f"bench: {what}: {trouble}")
            self.count += 1


def race(field: Field, workload: str, pace: Pace, results: Results, wanted: set[str] | None,
         troubles: Troubles):
    """Every round has everybody, in an order of its own."""
    entries = [entry for entry in RACES[workload](pace)
               if field.has(entry) and (not wanted or entry.contestant in wanted)]
    for entry in entries:
        results.raw.setdefault(entry.key, [])
        troubles.during(f"{entry.service} serves", lambda entry=entry: field.service(
            entry.service, 2 * pace.java_warmup).name)
    luck = random.Random(workload)
    def one(entry: Entry) -> str:
        results.add(entry.key, field.run(entry, pace))
        return report.cell(results, entry.key, "per_s", "{:,.0f}/s")

    for number in range(pace.rounds):
        for entry in luck.sample(entries, len(entries)):
            troubles.during(f"round {number + 1}  {entry.key}", lambda entry=entry: one(entry))
    field.stop("apache5")


def prove_judge(field: Field, pace: Pace):
    """Whoever does not keep others out is found out; otherwise no check of this run says much."""
    service = field.service(OPEN_DOOR.service)
    run = Run(field, OPEN_DOOR, dataclasses.replace(pace, seconds=0.1), service.connect)
    try:
        run.wait_for_begin()
        if not run.findings()["violations"]:
            raise Trouble("workers without a lock were not seen beside each other")
    finally:
        run.end()


def prove_count(field: Field, pace: Pace):
    """A client that sends one request for each pair, and hears of no event, is counted so."""
    found = field.run(ONE_REQUEST, dataclasses.replace(pace, seconds=0.2))
    # It goes on while the counters are read: one in twenty too few or too many is no miscount.
    if abs(found["requests"] - found["ops"]) > 2 + found["ops"] / 20 or found["events"] != 0:
        raise Trouble(f"the proxy counted {found['requests']} requests and {found['events']} "
                      f"events in {found['ops']} pairs of one request each")


def measure(field: Field, arguments: argparse.Namespace, pace: Pace, results: Results) -> int:
    wanted = set(arguments.contestants.split(",")) if arguments.contestants else None
    troubles = Troubles()
    troubles.during("the judge finds who has no lock", lambda: prove_judge(field, pace))
    troubles.during("the proxy counts every request", lambda: prove_count(field, pace))
    for workload in ALL:
        if workload not in arguments.only:
            continue
        if workload in RACES:
            race(field, workload, pace, results, wanted, troubles)
            continue
        for number in range(pace.rounds):
            troubles.during(f"round {number + 1}  {workload}",
                            lambda workload=workload: TRIALS[workload](field, pace, results))
    return troubles.count


def show(results: Results, out: pathlib.Path, heading: str):
    print(heading)
    print(report.table(results))
    for name in plots.draw_all(results, out):
        print(out / name)


def main() -> int:
    arguments = parse()
    # Whoever ends us ends the servers as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    results = Results()
    if arguments.again:
        last = report.read_json(arguments.out / "results.json")
        results.raw = last["rounds"]
        show(results, arguments.out,
             report.heading(last["machine_before"], last["versions"], last["pace"]))
        return 0
    pace = pace_of(arguments)
    arguments.out.mkdir(parents=True, exist_ok=True)
    build = arguments.build.resolve()
    before = report.machine()
    # On a real disk: where the build is, not where temporary files are.
    data = (arguments.data or arguments.out).resolve()
    with tempfile.TemporaryDirectory(prefix="latchkey-bench-", dir=data) as folder:
        field = Field(build, pathlib.Path(folder), build / "apps/latchkey/latchkey")
        for name in sorted(PEERS - set(field.contestants)):
            say(f"without {name}: it was not built, or its packages are not there")
        about = report.versions(build)
        try:
            troubles = measure(field, arguments, pace, results)
        finally:
            field.stop_all()
            # Also what there is of a run that was ended.
            report.write_json(results, vars(pace), before, about, arguments.out / "results.json")
    show(results, arguments.out, report.heading(before, about, vars(pace)))
    if troubles:
        say(f"bench: {troubles} runs failed; see above")
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
