"""Runs the models through spin: as they are, with each rule removed, and with each witness.

    python3 models/check.py               all models
    python3 models/check.py lease         one
    python3 models/check.py lease NO_TICK_DOUBT    one run, with the way to the error

One line for each run: model, what was changed, what is expected, what was found, states, seconds.
A claim is an assert that says what it claims: `assert(...)  /* claim: no orphan */`. A removed rule
has to break the claim that is named here, and is searched for that one alone: of several claims
that it breaks the search would otherwise name the first. Every claim has to be broken by some
rule's removal, for one that nothing can break says nothing.
The exit status is 0 if every run found what it should.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent

PASS = "pass"
REACHED = "reached"


class Run(NamedTuple):
    switches: tuple[str, ...]
    expected: str   # PASS, REACHED, or the claim that has to break


def passes(*switches: str) -> list[Run]:
    """Each, "A B" being two switches at once, must leave the claims true."""
    return [Run(tuple(one.split()), PASS) for one in switches]


def breaks(claim: str, *switches: str) -> list[Run]:
    """Each must break the claim: a rule that can go unnoticed is a rule the model does not show."""
    return [Run(tuple(one.split()), claim) for one in switches]


def reaches(*states: str) -> list[Run]:
    """Each state must be reachable, or the claims would hold of nothing."""
    return [Run((f"REACH={one}",), REACHED) for one in states]


MODELS = {
    "acquire":
        passes("", "NO_TWIN_RULE", "CLIENTS=3 FAULTS=1", "FAULTS=3") +
        breaks("nobody waits in vain", "NO_SYNC", "NO_SEARCH", "CANCEL_FORGETS") +
        breaks("no self-wait", "NO_SYNC NO_TWIN_RULE") +
        breaks("it is there", "NO_OWNER_CHECK", "NO_PROOF") +
        breaks("it is ours", "NO_OWNER_CHECK") +
        breaks("it is first", "NO_RECHECK CLIENTS=3 FAULTS=1") +
        breaks("one holder", "NO_RECHECK CLIENTS=3 FAULTS=1") +
        breaks("no orphan", "NO_DEBT", "NO_SESSION_MOVED", "NO_ZXID_CHECK") +
        reaches("ADOPTION", "GRANT_AFTER_A_WAIT", "GRANT_IN_SECOND_SESSION", "STRANGER_AHEAD",
                "REFUSED_PROOF", "DELETE_REPEATED", "LATE_CREATE_REFUSED"),
    "lease":
        passes("", "WRITE_HEARTBEAT LINGER=9", "JITTER") +
        breaks("no belief after expiry", "READ_HEARTBEAT", "RECEIVE_TIME", "NO_TICK_DOUBT",
               "NO_BEAT_DOUBT", "NO_PAUSE_DOUBT", "JITTER OWN_TRIP", "LINGER=9") +
        reaches("EXPIRED_WHILE_ATTACHED", "HELD_TO_THE_END", "PROOF_BY_DEPOSED_LEADER",
                "PROOF_AFTER_A_STOP", "LITTLE_TO_SPARE"),
    "admission":
        passes("", "RELIST") +
        breaks("nothing ahead excludes it", "ONLY_NEIGHBOUR", "READERS_PASS",
               "EVENT_IS_DELETION") +
        breaks("a writer is alone", "ONLY_NEIGHBOUR") +
        breaks("no writer holds", "ONLY_NEIGHBOUR") +
        breaks("nobody sleeps for ever", "ANY_WRITER", "WATCH_ABSENT") +
        reaches("SHORTCUT_AFTER_A_WAIT", "READERS_TOGETHER", "CROWD_IN_FRONT",
                "MIDDLE_LEFT_FIRST"),
    "permits":
        passes("", "RESIZES=2 FAULTS=1") +
        breaks("enough at some moment", "COUNT_FIRST", "SIZE_FIRST") +
        breaks("no more than there ever were", "COUNT_FIRST") +
        breaks("in the order of arrival", "NO_QUEUE") +
        breaks("no permit is idle", "COUNT_ALL", "WATCH_ONE", "NO_SIZE_WATCH", "NO_SECOND_LOOK") +
        breaks("no deadlock", "COUNT_ALL", "ONE_BY_ONE") +
        reaches("WAIT_FOR_TWO", "HELD_BEYOND_THE_SIZE", "WOKEN_BY_THE_SIZE", "ROBBED_AND_HELD",
                "OLDER_LEFT_FIRST"),
    "commit":
        passes("") +
        breaks("durable", "DIRTY_READ", "REPLY_AT_ONCE", "STORED_EARLY", "GATHERED_COUNTS") +
        breaks("G2, own writes", "READ_OVERTAKES") +
        breaks("G3, never back", "REFUSE_AT_ONCE", "EVENT_AT_ONCE") +
        breaks("G4, events first", "EVENT_AFTER_REPLY") +
        reaches("LOST_WRITE", "UNTOLD_WRITE", "DEFERRED_READ", "FIRED_WATCH",
                "READ_PASSES_WRITE"),
}

# A search that was cut short has shown nothing, whatever it says about errors.
CUT_SHORT = ("max search depth too small", "out of memory", "memory limit", "Search not completed")


class Found(NamedTuple):
    what: str       # PASS, REACHED, the claim that broke, or why none can be said
    states: int
    seconds: float
    story: str      # what happened on the way to the error


CLAIM = re.compile(r"/\* claim: (.*?) \*/")


def text_of(model: str) -> str:
    return (HERE / f"{model}.pml").read_text()


def only(claim: str, text: str) -> str:
    """The same model, in which nothing but this is claimed."""
    def silence(line: str) -> str:
        found = CLAIM.search(line)
        return line.replace("assert(", "(1 || ") if found and found[1] != claim else line
    return "\n".join(silence(line) for line in text.splitlines()) + "\n"


def search(model: str, switches: tuple[str, ...], optimise: str, claim: str | None = None) -> Found:
    """Builds the searcher for one variant of a model and runs it; `claim`: for this one alone."""
    text = only(claim, text_of(model)) if claim else text_of(model)
    flags = [f"-D{switch}" for switch in switches]
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, f"{model}.pml")
        source.write_text(text)

        def call(*command: str) -> str:
            done = subprocess.run(command, cwd=folder, text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            return done.stdout

        began = time.monotonic()
        said = call("spin", "-a", *flags, str(source))
        if "rror" not in said:
            said += call("gcc", optimise, "-w", "-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=1400",
                         "-o", "pan", "pan.c")
        if not pathlib.Path(folder, "pan").exists():
            return Found(f"does not compile: {said.strip()}", 0, 0.0, "")
        said = call("./pan", "-m100000", "-n")
        seconds = time.monotonic() - began
        story = ""
        trail = pathlib.Path(folder, f"{model}.pml.trail")
        if trail.exists():
            story = call("spin", "-t", "-k", str(trail), *flags, str(source))
    states = number(r"(\d+) states, stored", said)
    return Found(verdict(said, story, text), states, seconds, story)


def verdict(said: str, story: str, model: str) -> str:
    errors = re.search(r"errors: (\d+)", said)
    if errors and int(errors[1]) > 0:
        line = number(r"\.pml:(\d+), Error: assertion violated", story)
        text = model.splitlines()[line - 1] if line else ""
        if "reached(" in text:
            return REACHED
        claim = CLAIM.search(text)
        return claim[1] if claim else f"an error that is no broken claim: line {line} {text}"
    for reason in CUT_SHORT:
        if reason in said:
            return f"nothing: {reason}"
    return PASS if errors else "nothing: the search said nothing"


def number(pattern: str, text: str) -> int:
    match = re.search(pattern, text)
    return int(match[1]) if match else 0


def check(model: str, run: Run) -> bool:
    # An error is found early, so its search is over before an optimising compiler would be.
    claim = None if run.expected in (PASS, REACHED) else run.expected
    found = search(model, run.switches, "-O1" if run.expected == PASS else "-O0", claim)
    good = found.what == run.expected
    name = " ".join(run.switches) or "as it is"
    print(f"{'ok  ' if good else 'FAIL'} {model:9} {name:31} expected {run.expected:5}  "
          f"found {found.what:5} {found.states:9} states {found.seconds:6.1f} s", flush=True)
    if not good:
        print(found.story)
    return good


def check_claims(model: str) -> list[bool]:
    """One False for each claim that no removed rule has to break, and each that is not there."""
    there = set(CLAIM.findall(text_of(model)))
    broken = {run.expected for run in MODELS[model]} - {PASS, REACHED}
    for claim in sorted(there ^ broken):
        print(f"FAIL {model:9} claim: {claim}: " +
              ("no removed rule has to break it" if claim in there else "the model has none"))
    return [False for _ in there ^ broken]


def main(arguments: list[str]) -> int:
    models = arguments[:1] or list(MODELS)
    unknown = [model for model in models if model not in MODELS]
    if unknown:
        print(f"no model {unknown[0]}; there are: {', '.join(MODELS)}", file=sys.stderr)
        return 2
    if len(arguments) > 1:
        found = search(models[0], tuple(arguments[1:]), "-O1")
        print(f"{found.story}{found.what}, {found.states} states, {found.seconds:.1f} s")
        return 0
    results = [good for model in models for good in check_claims(model)]
    results += [check(model, run) for model in models for run in MODELS[model]]
    print(f"{results.count(True)} as expected, {results.count(False)} not")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
