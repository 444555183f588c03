"""The field: which services and contestants there are, and how one contestant is run once."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import shutil
import subprocess
import threading

import services
from services import Trouble

PATIENCE_S = 180
GOODBYE_S = 5


@dataclasses.dataclass(frozen=True)
class Entry:
    """One contestant on one service in one workload: a row of the table."""

    workload: str
    contestant: str
    service: str
    variant: str = ""
    kind: str = "pairs"
    options: tuple[tuple[str, object], ...] = ()
    counted: bool = False

    @property
    def key(self) -> str:
        return "/".join(filter(None, (self.workload, self.contestant, self.service, self.variant)))


@dataclasses.dataclass(frozen=True)
class Pace:
    """How long and how often things are measured."""

    seconds: float
    warmup: float
    java_warmup: float
    rounds: int
    quick: bool


class Field:
    """Starts services when they are first needed; stops them all in the end."""

    def __init__(self, build: pathlib.Path, folder: pathlib.Path, command: pathlib.Path):
        self.build = build
        self.folder = folder
        self.command = command
        self.runs = 0
        etcd, redis = find_etcd(build), shutil.which("redis-check-rdb")
        makers = {
            "apache": lambda: services.Apache("apache", folder),
            "apache3": lambda: services.Apache("apache3", folder, 3),
            "apache5": lambda: services.Apache("apache5", folder, 5),
            "embedded": lambda: services.Embedded("embedded", folder, command),
            "memory": lambda: services.Embedded("memory", folder, command, durable=False),
            "etcd": etcd and (lambda: services.Etcd("etcd", folder, etcd)),
            "redis": redis and (lambda: services.Redis("redis", folder, redis)),
        }
        self.makers = {name: make for name, make in makers.items() if make}
        self.contestants = self.find_contestants()
        self.started: dict[str, services.Service] = {}

    def find_contestants(self) -> dict[str, list[str]]:
        here = pathlib.Path(__file__).parent / "contestant"
        places = {
            "latchkey": [self.build / "bench/latchkey_contestant"],
            "bare": [self.build / "bench/latchkey_bare_contestant"],
            "c": [self.build / "bench/latchkey_c_client_contestant"],
            "redis": [self.build / "bench/latchkey_redis_contestant"],
            "go": [self.build / "bench/go_zookeeper"],
            "etcd": [self.build / "bench/go_etcd"],
        }
        found = {name: [str(word) for word in words] for name, words in places.items()
                 if words[0].exists()}
        if (self.build / "bench/curator").exists():
            jars = "/usr/share/java/curator-recipes.jar:/usr/share/java/slf4j-nop.jar"
            # Small stacks: a thousand sessions have several thousand threads.
            found["curator"] = ["java", "-Xss256k", "-cp", f"{self.build}/bench/curator:{jars}",
                                "latchkey.bench.Contestant"]
        # Debian's Python has kazoo, another one further ahead in the path may not.
        python = "/usr/bin/python3"
        if subprocess.run([python, "-c", "import kazoo"], capture_output=True,
                          check=False).returncode == 0:
            found["kazoo"] = [python, str(here / "kazoo_contestant.py")]
        return found

    def has(self, entry: Entry) -> bool:
        return entry.contestant in self.contestants and entry.service in self.makers

    def service(self, name: str, warmup: float = 0) -> services.Service:
        """A Java server compiles itself at work; the first contestant must not pay for that."""
        if name not in self.started:
            service = self.makers[name]()
            self.started[name] = service
            service.start()
            if name.startswith("apache") and warmup:
                crowd = Entry("warm-up", "bare", name, options=(("sessions", 8), ("workers", 8)))
                self.run(crowd, Pace(0.1, warmup, warmup, 1, False))
        return self.started[name]

    def stop(self, name: str):
        if name in self.started:
            self.started.pop(name).wipe()

    def stop_all(self):
        for name in list(self.started):
            self.stop(name)

    def path(self) -> str:
        """Nobody has been there before."""
        self.runs += 1
        return f"/bench/{self.runs}"

    def run(self, entry: Entry, pace: Pace) -> dict:
        """One contestant once, with the server's processor time and the traffic beside it."""
        service = self.service(entry.service)
        proxy = services.Proxy(self.build / "bench/latchkey_counting_proxy",
                               f"127.0.0.1:{service.ports[0]}") if entry.counted else None
        try:
            return self.watch(entry, pace, service, proxy)
        finally:
            if proxy:
                proxy.stop()

    def watch(self, entry: Entry, pace: Pace, service, proxy) -> dict:
        if entry.kind == "drain":
            # Sessions of whoever ran before may still be ending.
            services.wait_until(lambda: service.ephemerals() == 0, "an empty server")
        run = Run(self, entry, pace, proxy.connect if proxy else service.connect)
        try:
            run.wait_for_begin()
            processor = service.processor_s()
            traffic = proxy.counters() if proxy else {}
            if entry.kind == "drain":
                wanted = 1 + dict(entry.options)["waiters"]
                services.wait_until(lambda: service.ephemerals() >= wanted, "waiters in the queue",
                                    PATIENCE_S)
            run.go()
            result = run.result()
            if entry.kind != "hold":  # Its locks were taken before "begin".
                result["server_cpu_s"] = service.processor_s() - processor
            if proxy:
                after = proxy.counters()
                result.update({name: after[name] - traffic[name] for name in traffic})
            return result
        finally:
            run.end()


class Run:
    """A contestant's process: says begin, then one line of JSON."""

    def __init__(self, field: Field, entry: Entry, pace: Pace, connect: str,
                 path: str | None = None):
        self.entry = entry
        warmup = pace.java_warmup if entry.contestant == "curator" else pace.warmup
        words = {"workload": entry.kind, "connect": connect, "path": path or field.path(),
                 "seconds": pace.seconds, "warmup": warmup, **dict(entry.options)}
        argv = list(field.contestants[entry.contestant])
        for name, value in words.items():
            argv += [f"--{name}", str(value)]
        self.is_through = False
        self.errors = field.folder / "contestant.log"
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=errors, text=True)
        self.timer = threading.Timer(PATIENCE_S, self.process.kill)
        self.timer.start()

    def line(self) -> str:
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            raise Trouble(f"{self.entry.key} ended with status {self.process.returncode}:\n"
                          + self.errors.read_text()[-2000:])
        return line

    def wait_for_begin(self):
        if (line := self.line()) != "begin\n":
            raise Trouble(f"{self.entry.key} said {line!r} in place of begin")

    def go(self):
        try:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # line() will say what happened.

    def findings(self) -> dict:
        found = json.loads(self.line())
        self.is_through = True
        return found

    def result(self) -> dict:
        result = self.findings()
        if result["violations"]:
            raise Trouble(f"{self.entry.key}: {result['violations']} violations of exclusion, "
                          "order or tokens")
        return result

    def end(self):
        self.timer.cancel()
        if self.is_through:
            # Whoever has said all ends its sessions itself; a killed one's would outlast it.
            try:
                self.process.wait(GOODBYE_S)
            except subprocess.TimeoutExpired:
                pass
        self.process.kill()
        self.process.wait()


def find_etcd(build: pathlib.Path) -> str | None:
    unpacked = build / "bench/etcd/usr/bin/etcd"
    return str(unpacked) if unpacked.exists() else shutil.which("etcd")
