"""The servers of the benchmark: started on loopback, asked for their processor time and memory."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import socket
import subprocess
import time

JARS = ("zookeeper", "slf4j-simple", "netty-codec", "netty-transport-native-unix-common")
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")

_next_port = 21_000


class Trouble(Exception):
    """Something did not start, did not end, or said something it should not."""


def free_port() -> int:
    """A port below those the kernel gives to outgoing connections, never the same one twice."""
    global _next_port
    while True:
        _next_port += 1
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", _next_port))
                return _next_port
            except OSError:
                continue


def ask_word(port: int, word: str) -> str:
    """The answer to one of ZooKeeper's four-letter words, or nothing."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(word.encode())
            answer = b""
            while piece := connection.recv(65_536):
                answer += piece
            return answer.decode()
    except OSError:
        return ""


def processor_s(pid: int) -> float:
    """User and system time that a process has used up to now."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


def on_processor_ns(pid: int) -> int:
    """The same, to the nanosecond and for all its threads: an idle server uses less than a tick."""
    return sum(int(task.read_text().split()[0])
               for task in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"))


def resident_mb(pid: int) -> float:
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise Trouble(f"no VmRSS of {pid}")


def wait_until(condition, what: str, seconds: float = 60, pause: float = 0.005):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Trouble(f"waited {seconds:.0f} s in vain: {what}")
        time.sleep(pause)


class Service:
    """One service, of one or more processes. `connect` is what a client is told."""

    durable = True

    def __init__(self, name: str, folder: pathlib.Path):
        self.name = name
        self.folder = folder / name
        self.processes: list[subprocess.Popen] = []
        self.ports: list[int] = [free_port()]

    @property
    def connect(self) -> str:
        return f"127.0.0.1:{self.ports[0]}"

    @property
    def running(self) -> bool:
        return bool(self.processes)

    def processor_s(self) -> float:
        return sum(processor_s(process.pid) for process in self.processes)

    def on_processor_ns(self) -> int:
        return sum(on_processor_ns(process.pid) for process in self.processes)

    def resident_mb(self) -> float:
        return sum(resident_mb(process.pid) for process in self.processes)

    def ephemerals(self) -> int:
        """How many there are, by the server's own count; one that leads knows best."""
        counts = [0]
        for port in self.ports:
            for line in ask_word(port, "mntr").splitlines():
                if line.startswith("zk_ephemerals_count"):
                    counts.append(int(line.split()[1]))
        return max(counts)

    def start(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.launch()
        wait_until(self.serving, f"{self.name} does not serve; see {self.folder}/log")

    def spawn(self, argv: list[str], folder: pathlib.Path | None = None, **options):
        folder = folder or self.folder
        folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / "log", "ab") as log:
            self.processes.append(subprocess.Popen(
                argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **options))

    def stop(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        self.processes = []

    def wipe(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def launch(self):
        raise NotImplementedError

    def serving(self) -> bool:
        raise NotImplementedError


class Apache(Service):
    """Apache ZooKeeper as its own script starts it: durable, default collector and compiler."""

    def __init__(self, name: str, folder: pathlib.Path, members: int = 1):
        super().__init__(name, folder)
        self.ports = [free_port() for _ in range(members)]
        self.quorum = [(free_port(), free_port()) for _ in range(members)]

    def configuration(self, number: int) -> str:
        lines = [
            f"dataDir={self.folder}/{number}/data", f"clientPort={self.ports[number]}",
            "clientPortAddress=127.0.0.1", "tickTime=2000", "initLimit=10", "syncLimit=5",
            "maxClientCnxns=0", "admin.enableServer=false", "4lw.commands.whitelist=*"]
        if len(self.ports) > 1:
            lines += [f"server.{i + 1}=127.0.0.1:{peer}:{election}"
                      for i, (peer, election) in enumerate(self.quorum)]
        return "\n".join(lines) + "\n"

    def launch(self):
        jars = ":".join(f"/usr/share/java/{jar}.jar" for jar in JARS)
        for number in range(len(self.ports)):
            folder = self.folder / str(number)
            (folder / "data").mkdir(parents=True, exist_ok=True)
            (folder / "data" / "myid").write_text(f"{number + 1}\n")
            (folder / "zoo.cfg").write_text(self.configuration(number))
            self.spawn(["java", "-Xmx1000m", "-Dzookeeper.jmx.log4j.disable=true",
                        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", jars,
                        "org.apache.zookeeper.server.quorum.QuorumPeerMain", "zoo.cfg"], folder)

    def serving(self) -> bool:
        return all("Mode: " in ask_word(port, "srvr") for port in self.ports)

    @property
    def connect(self) -> str:
        """In an ensemble the same follower for all: who happens to find the leader is ahead."""
        follower = (port for port in self.ports if "Mode: follower" in ask_word(port, "srvr"))
        return f"127.0.0.1:{next(follower, self.ports[0])}"


class Embedded(Service):
    """`latchkey serve`: durable, or in memory."""

    def __init__(self, name: str, folder: pathlib.Path, command: pathlib.Path,
                 durable=True):
        super().__init__(name, folder)
        self.command = command
        self.durable = durable

    @property
    def unix_path(self) -> str:
        return f"{self.folder}/socket"

    def launch(self):
        where = ["--data", str(self.folder / "data")] if self.durable else ["--memory"]
        self.spawn([str(self.command), "serve", *where, "--listen", self.connect,
                    "--unix", self.unix_path, "--max-connections-per-address", "100000",
                    "--max-connections", "100000", "--words", "all"])

    def serving(self) -> bool:
        return ask_word(self.ports[0], "ruok") == "imok"


class Etcd(Service):
    """One etcd with its defaults, which are durable."""

    def __init__(self, name: str, folder: pathlib.Path, command: pathlib.Path):
        super().__init__(name, folder)
        self.command = command
        self.peer_port = free_port()

    def launch(self):
        here = f"http://127.0.0.1:{self.ports[0]}"
        peers = f"http://127.0.0.1:{self.peer_port}"
        self.spawn([str(self.command), "--data-dir", str(self.folder / "data"),
                    "--listen-client-urls", here, "--advertise-client-urls", here,
                    "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
                    "--initial-cluster", f"default={peers}", "--logger", "zap",
                    "--log-level", "error"])

    def serving(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.ports[0]), timeout=2) as connection:
                connection.sendall(b"GET /health HTTP/1.0\r\n\r\n")
                return b'"true"' in connection.recv(65_536)
        except OSError:
            return False


class Redis(Service):
    """Redis with every write synced before it is answered, and no snapshots."""

    def __init__(self, name: str, folder: pathlib.Path, command: pathlib.Path):
        super().__init__(name, folder)
        self.command = command

    def launch(self):
        # Debian's redis-tools has the server under another name; it looks at what it is called.
        self.spawn(["redis-server", "--port", str(self.ports[0]), "--bind", "127.0.0.1",
                    "--dir", str(self.folder), "--appendonly", "yes", "--appendfsync", "always",
                    "--save", ""], executable=str(self.command))

    def serving(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.ports[0]), timeout=2) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(64).startswith(b"+PONG")
        except OSError:
            return False


class Proxy:
    """Counts what passes between clients and one server."""

    def __init__(self, command: pathlib.Path, server: str):
        self.connect = f"127.0.0.1:{free_port()}"
        self.process = subprocess.Popen(
            [str(command), self.connect, server], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True)
        if self.process.stdout.readline() != "begin\n":
            raise Trouble("the counting proxy does not start")

    def counters(self) -> dict:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
