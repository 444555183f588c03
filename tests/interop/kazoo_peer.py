"""kazoo's locks behind a line protocol; tests/interop/peer.hpp says what it is.

    python3 kazoo_peer.py FOLDER_OF_LATCHKEY_KAZOO

Stock kazoo's kinds begin with "stock-"; the others are those of interop/kazoo.
"""

import logging
import os
import queue
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock, ReadLock, Semaphore, WriteLock

sys.path.insert(0, sys.argv[1])
import latchkey_kazoo  # noqa: E402

KINDS = {
    "mutex": latchkey_kazoo.Lock,
    "read": latchkey_kazoo.ReadLock,
    "write": latchkey_kazoo.WriteLock,
    "stock-mutex": Lock,
    "stock-read": ReadLock,
    "stock-write": WriteLock,
    "latch": lambda client, path, who: latchkey_kazoo.Election(client, path, who).lock,
}

speaking = threading.Lock()


def say(who, what):
    with speaking:
        print(who, what, flush=True)


class Section:
    """Tells when those who must not be inside at once are; the rules are section.hpp's."""

    def __init__(self, folder, who, kind):
        self.folder = folder
        self.who = who
        self.kind = "write" if kind.endswith("mutex") else kind.replace("stock-", "")
        self.mark = os.path.join(folder, self.kind + "-" + who)

    def enter(self, node):
        os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        self.note("enter", node)
        others = [name for name in os.listdir(self.folder)
                  if name not in ("log", os.path.basename(self.mark))]
        if self.kind == "read":
            others = [name for name in others if name.startswith("write-")]
        if others:
            self.note("CONFLICT", node)

    def leave(self, node):
        self.note("leave", node)
        os.unlink(self.mark)

    def note(self, what, node):
        line = "%s %s %s %d\n" % (what, self.who, node, time.monotonic_ns())
        log = os.open(os.path.join(self.folder, "log"), os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        try:
            os.write(log, line.encode())
        finally:
            os.close(log)


class Slot:
    """One thread that takes locks, one at a time, and carries out its orders in turn."""

    def __init__(self, name, client):
        self.name = name
        self.client = client
        self.orders = queue.Queue()
        self.held = None
        self.stopped = False
        threading.Thread(target=self.run, name=name, daemon=True).start()

    def run(self):
        while not self.stopped:
            try:
                answer = self.carry_out(*self.orders.get())
            except Exception as error:  # Whatever it is, the test wants to know.
                answer = "failed: %r" % error
            if not self.stopped:
                say(self.name, answer)

    def carry_out(self, order, *words):
        if order == "unlock":
            self.held.release()
            return "released"
        if order == "again":
            return "held " + self.node() if self.held.acquire() else "busy"
        if order == "contenders":
            return "contenders %d" % len(latchkey_kazoo.Lock(self.client, words[0]).contenders())
        if order == "load":
            return self.load(*words)
        if order == "stock-semaphore":
            self.held = Semaphore(self.client, words[0], max_leases=int(words[1]))
            self.held.acquire()
            return "held " + self.held.create_path
        if order == "latch":
            election = latchkey_kazoo.Election(self.client, *words)
            self.held = election.lock
            election.run(self.lead)
            return "released"
        blocking = not order.startswith("try-")
        self.held = KINDS[order.replace("try-", "")](self.client, words[0])
        return "held " + self.node() if self.held.acquire(blocking=blocking) else "busy"

    def lead(self):
        say(self.name, "held " + self.node())
        self.orders.get()  # "unlock"

    def node(self):
        return self.held.path + "/" + self.held.node

    def load(self, folder, count, kind, *words):
        section = Section(folder, self.name, kind)
        for _ in range(int(count)):
            self.held = KINDS[kind](self.client, *words)
            self.held.acquire()
            section.enter(self.node())
            time.sleep(0.001)
            section.leave(self.node())
            self.held.release()
        return "done"


class Peer:
    def __init__(self):
        self.clients = {}
        self.slots = {}

    def handle(self, who, order, *words):
        if "." in who:
            if who not in self.slots:
                self.slots[who] = Slot(who, self.clients[who.split(".")[0]])
            self.slots[who].orders.put((order, *words))
        elif order == "connect":
            client = KazooClient(words[0], timeout=int(words[1]) / 1000)
            client.start(timeout=20)
            self.clients[who] = client
            say(who, "connected")
        elif order == "close":
            for name in [name for name in self.slots if name.startswith(who + ".")]:
                self.slots.pop(name).stopped = True
            client = self.clients.pop(who)
            client.stop()
            client.close()
            say(who, "closed")
        else:
            say(who, "failed: what is %s?" % order)


def main():
    # What goes wrong comes back as an answer; the log would only repeat it.
    logging.disable(logging.CRITICAL)
    peer = Peer()
    for line in sys.stdin:
        peer.handle(*line.split())


main()
