"""The table, the goals and the JSON."""

from __future__ import annotations

import json
import os
import pathlib
import platform
import subprocess
import time

from field import find_etcd
from goals import GOALS
from results import QUANTILES, Results, measures

# What a row shows, and in which workloads.
COLUMNS = (
    ("per_s", "ops/s", "{:,.0f}"), ("p50_us", "p50 us", "{:,.0f}"), ("p99_us", "p99 us", "{:,.0f}"),
    ("cpu_us", "client CPU us", "{:,.1f}"), ("server_cpu_us", "server CPU us", "{:,.1f}"),
    ("rss_mb", "client MB", "{:,.1f}"), ("requests", "requests", "{:,.2f}"),
    ("bytes", "bytes", "{:,.0f}"), ("events", "events", "{:,.2f}"),
    ("take_over_ms", "take-over ms", "{:,.0f}"), ("since_last_ms", "since last byte ms", "{:,.0f}"),
    ("start_ms", "start ms", "{:,.1f}"), ("stored_mb", "stored MB", "{:,.1f}"),
    ("full_mb", "server MB", "{:,.1f}"), ("grown_mb", "grown MB", "{:,.1f}"),
    ("idle_cpu_ms", "idle CPU ms/s", "{:,.3f}"),
    ("p50_ms", "p50 ms", "{:,.2f}"), ("p99_ms", "p99 ms", "{:,.2f}"),
)

# What rows are compared by, where it is not the first column.
LEADS = {"W4": "bytes", "W7": "since_last_ms", "W8": "rss_mb", "S2": "full_mb"}

PEER_PACKAGES = (
    "libzookeeper-java", "libcurator-recipes-java", "openjdk-17-jre-headless", "python3-kazoo",
    "libzookeeper-mt2", "golang-github-samuel-go-zookeeper-dev", "golang-etcd-server-dev",
    "golang-go", "redis-tools")

TITLES = {
    "W1": "uncontended, one session, one thread",
    "W2": "64 workers on one session, each its own lock",
    "W3": "8 sessions on one lock",
    "W4": "N waiters on one lock: drained; all figures for each lock",
    "W5": "8 threads of one process on one lock",
    "W6": "read-write, 90 % reads, 8 sessions",
    "W7": "holder killed, session time-out 4 s",
    "W8": "memory with 1,000 held locks",
    "S1": "server under bare clients",
    "S2": "server memory, and an idle server's processor time",
    "S3": "server start and recovery",
    "C1": "latchkey run, start to finish",
}


def cell(results: Results, key: str, measure: str, form: str) -> str:
    middle = results.median(key, measure)
    if middle is None:
        return ""
    low, high = results.spread(key, measure)
    if low == high:
        return form.format(middle)
    return f"{form.format(middle)} ({form.format(low)} to {form.format(high)})"


def section(results: Results, workload: str) -> list[str]:
    keys = [key for key in results.raw if key.split("/")[0] == workload]
    if not keys:
        return []
    columns = [column for column in COLUMNS
               if any(results.median(key, column[0]) is not None for key in keys)]
    lead = LEADS.get(workload, columns[0][0])
    first = results.median(keys[0], lead)
    lines = [f"### {workload}: {TITLES[workload]}", "",
             "| | " + " | ".join(title for _, title, _ in columns) + " | by the first |",
             "|---" * (len(columns) + 2) + "|"]
    for key in keys:
        mine = results.median(key, lead)
        ratio = f"{mine / first:.2f}" if mine is not None and first else ""
        cells = " | ".join(cell(results, key, name, form) for name, _, form in columns)
        lines.append(f"| {key.partition('/')[2].replace('/', ', ')} | {cells} | {ratio} |")
    return lines + [""]


def goal_lines(results: Results) -> list[str]:
    lines = ["### Goals", "", "| what | against | goal | measured | |", "|---|---|---|---|---|"]
    asked_for = {key.split("/")[0] for key in results.raw}
    for goal in GOALS:
        value, verdict = goal.judge(results)
        if value is None and not any(workload in goal.what for workload in asked_for):
            continue
        shown = "" if value is None else f"{value:,.2f}"
        side = "at most" if goal.at_most else "at least"
        lines.append(f"| {goal.what} | {goal.against} | {side} {goal.limit:g} | {shown} "
                     f"| {verdict} |")
    return lines + [""]


def table(results: Results) -> str:
    lines = []
    for workload in TITLES:
        lines += section(results, workload)
    return "\n".join(lines + goal_lines(results))


def machine() -> dict:
    model = "unknown"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(": ")[2]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"processor": model, "cores": os.cpu_count(), "memory_gib": round(memory / 2**30),
            "kernel": platform.release(),
            "system": platform.freedesktop_os_release()["PRETTY_NAME"], "load": os.getloadavg()}


def said(*argv: str) -> str:
    """What a program prints, or nothing if it cannot."""
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def versions(build: pathlib.Path) -> dict[str, str]:
    """Our own commit, and Debian's versions of the peers and of what they run on."""
    found = {"latchkey": said("git", "describe", "--always", "--dirty", "--abbrev=12")}
    form = "${db:Status-Abbrev}${Package} ${Version}\n"
    for line in said("dpkg-query", "-W", "-f", form, *PEER_PACKAGES).splitlines():
        status, _, rest = line.partition(" ")
        if status == "ii":
            name, _, version = rest.strip().partition(" ")
            found[name] = version
    # Only unpacked, so dpkg does not know it.
    if etcd := find_etcd(build):
        about = said(etcd, "--version").splitlines()
        found["etcd-server"] = about[0].rpartition(" ")[2] if about else "unknown"
    return found


def heading(about: dict, versions_found: dict[str, str], pace: dict) -> str:
    commit = versions_found.get("latchkey") or "unknown"
    peers = ", ".join(f"{name} {version}" for name, version in versions_found.items()
                      if name != "latchkey")
    return (f"Commit {commit}, {pace['rounds']} rounds of {pace['seconds']:g} s. "
            f"{about['cores']} cores of {about['processor']}, {about['memory_gib']} GiB, "
            f"{about['system']}, Linux {about['kernel']}; load before: {about['load'][0]:.2f}. "
            f"Peers: {peers}.\n")


def write_json(results: Results, pace: dict, before: dict, about: dict[str, str],
               target: pathlib.Path):
    goals = []
    for goal in GOALS:
        value, verdict = goal.judge(results)
        goals.append({"what": goal.what, "against": goal.against, "limit": goal.limit,
                      "at_most": goal.at_most, "value": value, "verdict": verdict})
    target.write_text(json.dumps({
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine_before": before, "machine_after": machine(), "versions": about,
        "pace": pace, "quantiles_per_mille": QUANTILES, "goals": goals,
        "measures": {key: [measures(raw) for raw in rounds]
                     for key, rounds in results.raw.items()},
        "rounds": results.raw,
    }, indent=1))


def read_json(source: pathlib.Path) -> dict:
    return json.loads(source.read_text())
