"""Which test case belongs to which command: a line for each, "tier label program case".

    python3 tests/tiers.py BUILD             every case of a build folder that ctest knows
    python3 tests/tiers.py BUILD BEFORE      also compares with such a list of another commit:
                                             what is missing, and what is new

The tier is test (`./dev test`) or verify (`./dev verify`).
"""

import fnmatch
import json
import os
import subprocess
import sys

FILTER = "--gtest_filter="


def cases_of(program: str) -> list[str]:
    """Every case of a GoogleTest program, as "Suite.Case"."""
    listing = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True,
                             check=True).stdout
    cases, suite = [], ""
    for line in listing.splitlines():
        name = line.split("#")[0].rstrip()
        if line.startswith(" "):
            cases.append(suite + name.strip())
        elif name.endswith("."):
            suite = name
    return cases


def tiers(build: str) -> list[str]:
    answer = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"],
                            capture_output=True, text=True, check=True).stdout
    lines = set()
    cases: dict[str, list[str]] = {}
    for test in json.loads(answer)["tests"]:
        properties = {one["name"]: one["value"] for one in test.get("properties", [])}
        label, *marks = properties.get("LABELS", ["-"])
        tier = marks[0] if marks else "test"
        words = test.get("command", ["-"])
        wanted = [word.removeprefix(FILTER) for word in words if word.startswith(FILTER)]
        if not wanted:
            lines.add(f"{tier} {label} ctest {test['name']}")
            continue
        if words[0] not in cases:
            cases[words[0]] = cases_of(words[0])
        program = os.path.basename(words[0])
        for case in fnmatch.filter(cases[words[0]], wanted[0]):
            lines.add(f"{tier} {label} {program} {case}")
    return sorted(lines)


def compare(now: list[str], before: list[str]) -> bool:
    """The tier and the program may differ; the case must not be gone."""
    names_now = {line.split()[3] for line in now}
    names_before = {line.split()[3] for line in before}
    for name in sorted(names_before - names_now):
        print(f"missing: {name}")
    for name in sorted(names_now - names_before):
        print(f"new: {name}")
    return names_before <= names_now


def main() -> int:
    if len(sys.argv) not in (2, 3):
        print(__doc__)
        return 2
    now = tiers(sys.argv[1])
    if len(sys.argv) == 2:
        print("\n".join(now))
        return 0
    with open(sys.argv[2], encoding="utf-8") as file:
        before = file.read().splitlines()
    kinds = [line.split()[0] for line in now]
    print(f"{len(before)} before, {len(now)} now: "
          + ", ".join(f"{kinds.count(tier)} {tier}" for tier in sorted(set(kinds))))
    return 0 if compare(now, before) else 1


if __name__ == "__main__":
    sys.exit(main())
