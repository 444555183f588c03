"""Types the commands of a tour into ZooKeeper's own command line clients, against one server.

    python3 shell_tour.py zkcli|cli_mt HOST:PORT TOUR

A tour is a transcript: "> " and a command, then what it prints, then "~ " and an event for each
that its watches are told. What this program prints is such a transcript again, so the two must be
equal. It waits for as many events as the tour wants: they come from another thread, and may be in
time for the command or not. The last command is quit, the last line what the client returned. $HOST
stands for the server.

Ids are numbered as they appear, #1, #2, ... so that equal ones stay equal; times are left out, and
lines whose order no server promises are sorted.
"""

import itertools
import os
import queue
import re
import subprocess
import sys
import threading

PATIENCE = 60  # Seconds; only a hang reaches it.

JAVA_FLAGS = "-Xshare:auto -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -Xmx128m"


class ZkCli:
    """zkCli.sh, the Java client."""

    separator = "printwatches"  # Works without a connection too.
    separator_answer = re.compile(r"printwatches is on")
    event = re.compile(r"WatchedEvent (state:.*)")
    noise = re.compile(r"SLF4J: |WATCHER::|Connecting|Welcome|JLine|Not connected|$")
    identity = re.compile(r"(?<=Zxid = )0x\w+|(?<=ephemeralOwner = )0x\w+")
    unordered = re.compile(r"(digest|ip): ")  # What whoami says.
    time = re.compile(r"(?<=[cm]time = ).*|(?<=CLI version: ).*")

    @staticmethod
    def command(host):
        return ["/usr/share/zookeeper/bin/zkCli.sh", "-server", host]


class CliMt:
    """cli_mt, the client of the C library."""

    separator = "sync /zookeeper/quota"
    separator_answer = re.compile(r"\tname = /zookeeper/quota")
    event = re.compile(r"Watcher (.*)")
    noise = re.compile(r"\[/zookeeper/quota\]: rc = 0|time = |.*:ZOO_[A-Z]+@|Got a new|$")
    identity = re.compile(r"(?<=zxid=)\w+|(?<=ephemeralOwner = )\w+")
    unordered = re.compile(r"  [^= ]+$")  # Names of children.
    time = re.compile(r"(?<=ctime = ).*|(?<=mtime=).*")

    @staticmethod
    def command(host):
        return ["/usr/lib/zookeeper/bin/cli_mt", "--host", host]


class Shell:
    def __init__(self, kind, host):
        self.kind = kind
        self.host = host
        self.names = {}
        environment = dict(os.environ, CLIENT_JVMFLAGS=JAVA_FLAGS, TZ="UTC")
        self.process = subprocess.Popen(kind.command(host), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        env=environment, encoding="utf-8")
        self.lines = queue.Queue()
        threading.Thread(target=self.collect, daemon=True).start()

    def collect(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip())
        self.lines.put(None)

    def rename(self, match):
        name = match.group()
        if int(name, 16) == 0:
            return "0"
        return self.names.setdefault(name, "#%d" % (len(self.names) + 1))

    def type(self, line):
        self.process.stdin.write(line.replace("$HOST", self.host) + "\n")
        self.process.stdin.flush()

    def listen(self, until):
        """What is printed until the condition on (answered, events) holds, and the events."""
        said, told, answered = [], [], False
        while not until(answered, told):
            line = self.lines.get(timeout=PATIENCE)
            if line is None:
                raise EOFError("the client has ended")
            if self.kind.separator_answer.match(line):
                answered = True
            elif self.kind.event.match(line):
                told.append("~ " + self.kind.event.match(line).group(1))
            elif not self.kind.noise.match(line):
                line = line.replace(self.host, "$HOST").expandtabs(2)
                said.append(self.kind.time.sub("?", self.kind.identity.sub(self.rename, line)))
        return said, told

    def is_unordered(self, line):
        return self.kind.unordered.match(line) is not None

    def run(self, command, events_wanted):
        self.type(command)
        self.type(self.kind.separator)
        said, told = self.listen(
            lambda answered, told: answered and len(told) >= events_wanted)
        sorted_said = []
        for unordered, lines in itertools.groupby(said, self.is_unordered):
            sorted_said += sorted(lines) if unordered else lines
        return ["> " + command] + sorted_said + told

    def end(self):
        self.type("quit")
        self.process.stdin.close()
        return self.process.wait(PATIENCE)


def main():
    kind = {"zkcli": ZkCli, "cli_mt": CliMt}[sys.argv[1]]
    with open(sys.argv[3], encoding="utf-8") as file:
        tour = file.read()
    greeting, *steps = re.split("^> ", tour, flags=re.MULTILINE)
    shell = Shell(kind, sys.argv[2])
    # Before it is connected, what the two threads of the client print could mix.
    said, told = shell.listen(lambda _, told: len(told) >= len(re.findall("^~ ", greeting, re.M)))
    print("\n".join(said + told), flush=True)
    for step in steps:
        command, *answer = step.splitlines()
        if command == "quit":
            break
        wanted = sum(line.startswith("~ ") for line in answer)
        print("\n".join(shell.run(command, wanted)), flush=True)
    print("> quit\n%d" % shell.end())


main()
