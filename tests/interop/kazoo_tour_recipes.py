"""The recipes of kazoo_tour.py: all that kazoo.recipe has."""

import datetime
import importlib
import inspect
import pkgutil
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import kazoo.recipe
from kazoo.recipe.cache import TreeCache, TreeEvent
from kazoo.recipe.watchers import PatientChildrenWatch

PATIENCE = 30  # Seconds; only a hang reaches it.
CLASSES = [
    "Barrier", "BaseParty", "BaseQueue", "ChildrenWatch", "Counter", "DataWatch", "DoubleBarrier",
    "Election", "Lock", "LockingQueue", "MultiNonBlockingLease", "NodeData", "NonBlockingLease",
    "PartitionState", "Party", "PatientChildrenWatch", "Queue", "ReadLock", "Semaphore",
    "SetPartitioner", "ShallowParty", "TreeCache", "TreeEvent", "TreeNode", "WriteLock",
]


def until(condition):
    """Asks again and again; each question is a round trip, which is pause enough."""
    done = threading.Event()
    timer = threading.Timer(PATIENCE, done.set)
    timer.start()
    try:
        while not condition():
            if done.is_set():
                raise AssertionError("it does not come true")
    finally:
        timer.cancel()


class Tour:
    def __init__(self, check, refused, root, zk, other):
        self.check = check
        self.refused = refused
        self.root = root
        self.zk = zk
        self.other = other
        self.pool = ThreadPoolExecutor(4)

    def beside(self, call, *args, **kwargs):
        return self.pool.submit(call, *args, **kwargs)

    def lock(self):
        path = self.root + "/lock"
        mine, theirs = self.zk.Lock(path, "mine"), self.other.Lock(path, "theirs")
        self.check("Lock.acquire", mine.acquire(timeout=PATIENCE), True)
        self.check("Lock that is held", theirs.acquire(blocking=False), False)
        self.refused("Lock with a time-out", "LockTimeout", theirs.acquire, timeout=0.1)
        waiting = self.beside(theirs.acquire)
        until(lambda: len(mine.contenders()) == 2)
        self.check("Lock.contenders", mine.contenders(), ["mine", "theirs"])
        self.check("Lock.release", mine.release(), True)
        self.check("Lock of the next in line", waiting.result(PATIENCE), True)
        cancelled = self.beside(mine.acquire)
        until(lambda: len(theirs.contenders()) == 2)
        mine.cancel()
        self.refused("Lock.cancel", "CancelledError", cancelled.result, PATIENCE)
        theirs.release()
        with self.zk.Lock(path, "with"):
            self.check("Lock in a with", theirs.contenders(), ["with"])
        self.check("Lock leaves nothing", self.zk.get_children(path), [])

    def read_write(self):
        path = self.root + "/rw"
        reader, second = self.zk.ReadLock(path, "r1"), self.other.ReadLock(path, "r2")
        writer = self.other.WriteLock(path, "w")
        self.check("ReadLock", (reader.acquire(), second.acquire()), (True, True))
        self.check("WriteLock while there are readers", writer.acquire(blocking=False), False)
        reader.release()
        second.release()
        self.check("WriteLock", writer.acquire(), True)
        self.check("ReadLock while there is a writer", reader.acquire(blocking=False), False)
        self.check("WriteLock.contenders", writer.contenders(), ["w"])
        writer.release()

    def semaphore(self):
        path = self.root + "/semaphore"
        first, second = self.zk.Semaphore(path, "1", 2), self.other.Semaphore(path, "2", 2)
        third = self.zk.Semaphore(path, "3", 2)
        self.check("Semaphore", (first.acquire(), second.acquire()), (True, True))
        self.check("Semaphore that is full", third.acquire(blocking=False), False)
        self.check("Semaphore.lease_holders", sorted(first.lease_holders()), ["1", "2"])
        waiting = self.beside(third.acquire)
        self.check("Semaphore.release", first.release(), True)
        self.check("Semaphore with room again", waiting.result(PATIENCE), True)
        self.refused("Semaphore of another size", "ValueError",
                     self.other.Semaphore(path, "4", 3).acquire, blocking=False)
        second.release()
        third.release()

    def election(self):
        path = self.root + "/election"
        first, second = self.zk.Election(path, "first"), self.other.Election(path, "second")
        leads, resigns = queue.Queue(), threading.Event()

        def lead(who):
            leads.put(who)
            resigns.wait(PATIENCE)

        leader = self.beside(first.run, lead, "first")
        self.check("Election.run", leads.get(timeout=PATIENCE), "first")
        follower = self.beside(second.run, lead, "second")
        until(lambda: len(first.contenders()) == 2)
        self.check("Election.contenders", first.contenders(), ["first", "second"])
        third = self.zk.Election(path, "third")
        cancelled = self.beside(third.run, lead, "third")
        until(lambda: len(first.contenders()) == 3)
        third.cancel()
        self.check("Election.cancel", cancelled.result(PATIENCE), None)
        resigns.set()
        self.check("Election of the next", leads.get(timeout=PATIENCE), "second")
        leader.result(PATIENCE)
        follower.result(PATIENCE)

    def barriers(self):
        path = self.root + "/barrier"
        barrier = self.zk.Barrier(path)
        self.check("Barrier.wait where there is none", barrier.wait(1), True)
        barrier.create()
        self.check("Barrier.wait", barrier.wait(timeout=0.1), False)
        waiting = self.beside(self.other.Barrier(path).wait, PATIENCE)
        self.check("Barrier.remove", barrier.remove(), True)
        self.check("Barrier that went", waiting.result(PATIENCE), True)
        self.check("Barrier.remove again", barrier.remove(), False)

        doubles = [self.zk.DoubleBarrier(path + "2", 2, "a"),
                   self.other.DoubleBarrier(path + "2", 2, "b")]
        for each in [self.beside(double.enter) for double in doubles]:
            each.result(PATIENCE)
        self.check("DoubleBarrier.enter", [double.participating for double in doubles],
                   [True, True])
        for each in [self.beside(double.leave) for double in doubles]:
            each.result(PATIENCE)
        self.check("DoubleBarrier.leave", [double.participating for double in doubles],
                   [False, False])

    def counter(self):
        counter = self.zk.Counter(self.root + "/counter")
        theirs = self.other.Counter(self.root + "/counter")
        counter += 5
        theirs -= 2
        self.check("Counter", (counter.value, theirs.pre_value, theirs.post_value), (3, 5, 3))
        part = self.zk.Counter(self.root + "/float", default=1.5)
        part += 1.25
        self.check("Counter of floats", part.value, 2.75)
        binary = self.zk.Counter(self.root + "/binary", support_curator=True)
        binary += 258
        self.check("Counter as Curator's", self.zk.get(self.root + "/binary")[0],
                   b"\x00\x00\x01\x02")

    def parties(self):
        for kind in ("Party", "ShallowParty"):
            path = self.root + "/" + kind
            first = getattr(self.zk, kind)(path, "ann")
            second = getattr(self.other, kind)(path, "bob")
            first.join()
            second.join()
            second.join()
            self.check(kind, (sorted(name[-3:] for name in self.names(first)), len(second)),
                       (["ann", "bob"], 2))
            self.check(kind + ".leave", (first.leave(), first.leave(), len(second)),
                       (True, False, 1))
            second.leave()

    def names(self, party):
        """A ShallowParty gives the names of its nodes, a Party what is in them."""
        return list(party) if hasattr(party, "__iter__") else self.zk.get_children(party.path)

    def queues(self):
        queue = self.zk.Queue(self.root + "/queue")
        queue.put(b"late", 200)
        queue.put(b"usual")
        queue.put(b"urgent", 1)
        self.check("Queue", (len(queue), queue.get(), queue.get(), queue.get(), queue.get()),
                   (3, b"urgent", b"usual", b"late", None))

        mine = self.zk.LockingQueue(self.root + "/locking")
        theirs = self.other.LockingQueue(self.root + "/locking")
        mine.put(b"one")
        mine.put_all([b"two", b"three"])
        self.check("LockingQueue.get", (mine.get(), theirs.get(), len(mine)), (b"one", b"two", 3))
        self.check("LockingQueue.holds_lock", mine.holds_lock(), True)
        self.check("LockingQueue.release", (mine.release(), mine.holds_lock()), (True, False))
        self.check("LockingQueue.consume", (theirs.consume(), theirs.consume()), (True, False))
        self.check("LockingQueue after a release", theirs.get(), b"one")
        theirs.consume()
        self.check("LockingQueue, the last", (mine.get(), mine.consume()), (b"three", True))
        self.check("LockingQueue that is empty", mine.get(timeout=0.1), None)
        waiting = self.beside(mine.get, PATIENCE)
        theirs.put(b"four")
        self.check("LockingQueue wakes who waits", waiting.result(PATIENCE), b"four")
        mine.consume()

    def partitioner(self):
        path, items = self.root + "/partition", tuple("abcd")
        first = self.zk.SetPartitioner(path, items, identifier="1", time_boundary=0.2,
                                       max_reaction_time=0.1)
        first.wait_for_acquire(PATIENCE)
        self.check("SetPartitioner alone", (first.acquired, sorted(first)), (True, list(items)))
        second = self.other.SetPartitioner(path, items, identifier="2", time_boundary=0.2,
                                           max_reaction_time=0.1)
        until(lambda: self.zk.exists(path) and first.release)
        first.release_set()
        first.wait_for_acquire(PATIENCE)
        second.wait_for_acquire(PATIENCE)
        until(lambda: self.zk.exists(path) and first.acquired and second.acquired)
        self.check("SetPartitioner of two", (len(list(first)), len(list(second)),
                                             sorted(list(first) + list(second))),
                   (2, 2, list(items)))
        first.finish()
        second.finish()
        self.check("SetPartitioner.finish", (first.failed, second.failed), (True, True))

    def leases(self):
        path, hour = self.root + "/lease", datetime.timedelta(hours=1)
        self.check("NonBlockingLease", (bool(self.zk.NonBlockingLease(path, hour, "a")),
                                        bool(self.other.NonBlockingLease(path, hour, "b")),
                                        bool(self.zk.NonBlockingLease(path, hour, "a"))),
                   (True, False, True))
        took = [bool(self.zk.MultiNonBlockingLease(2, path + "s", hour, who)) for who in "abc"]
        self.check("MultiNonBlockingLease", took, [True, True, False])

    def watches(self):
        path, seen = self.root + "/watch", queue.Queue()

        def next_seen():
            return seen.get(timeout=PATIENCE)

        @self.zk.DataWatch(path)
        def data(value, stat, event):
            seen.put((value, stat and stat.version, event and event.type))
            return value != b"enough"

        self.check("DataWatch of nothing", next_seen(), (None, None, None))
        self.other.create(path, b"1")
        self.check("DataWatch, created", next_seen(), (b"1", 0, "CREATED"))
        self.other.set(path, b"2")
        self.check("DataWatch, changed", next_seen(), (b"2", 1, "CHANGED"))
        self.other.delete(path)
        self.check("DataWatch, deleted", next_seen(), (None, None, "DELETED"))
        self.other.create(path, b"enough")
        self.check("DataWatch that ends itself", next_seen(), (b"enough", 0, "CREATED"))

        def children(names, event):
            seen.put((sorted(names), event and event.type))

        self.zk.ChildrenWatch(path, children, send_event=True)
        self.check("ChildrenWatch", next_seen(), ([], None))
        self.other.create(path + "/a")
        self.check("ChildrenWatch, one more", next_seen(), (["a"], "CHILD"))
        patient = PatientChildrenWatch(self.zk, path, time_boundary=0.2).start()
        names, changed = patient.get(timeout=PATIENCE)
        self.check("PatientChildrenWatch", (names, changed.ready()), (["a"], False))
        self.other.create(path + "/b")
        self.check("PatientChildrenWatch, later", changed.get(timeout=PATIENCE) > 0, True)
        self.check("ChildrenWatch, two", next_seen(), (["a", "b"], "CHILD"))

    def tree_cache(self):
        path, seen, faults = self.root + "/tree", queue.Queue(), []
        self.zk.create(path + "/a/b", b"deep", makepath=True)
        cache = TreeCache(self.zk, path)
        cache.listen(seen.put)
        cache.listen_fault(faults.append)
        cache.start()

        def told(kind):
            """Skips to the next event of a kind; the order of reading the tree is nobody's."""
            while True:
                event = seen.get(timeout=PATIENCE)
                if event.event_type == kind:
                    return event.event_data

        told(TreeEvent.INITIALIZED)
        self.check("TreeCache",
                   (cache.get_data(path + "/a/b").data, cache.get_children(path + "/a")),
                   (b"deep", frozenset(["b"])))
        self.other.set(path + "/a/b", b"deeper")
        self.check("TreeCache, updated", told(TreeEvent.NODE_UPDATED).data, b"deeper")
        self.other.create(path + "/c", b"new")
        self.check("TreeCache, added", told(TreeEvent.NODE_ADDED).path, path + "/c")
        self.other.delete(path + "/a/b")
        self.check("TreeCache, removed", told(TreeEvent.NODE_REMOVED).path, path + "/a/b")
        self.check("TreeCache of nothing", cache.get_data(path + "/a/b"), None)
        cache.close()
        self.check("TreeCache faults", faults, [])

    def nothing_is_left_out(self):
        found = set()
        for module in pkgutil.iter_modules(kazoo.recipe.__path__):
            members = vars(importlib.import_module("kazoo.recipe." + module.name)).values()
            found |= {each.__name__ for each in members if inspect.isclass(each)
                      and each.__module__.startswith("kazoo.recipe.")
                      and not each.__name__.startswith("_")}
        self.check("the classes of kazoo.recipe", sorted(found), CLASSES)


def tour(check, refused, root, zk, other):
    zk.ensure_path(root)
    steps = Tour(check, refused, root, zk, other)
    with steps.pool:
        for step in (steps.lock, steps.read_write, steps.semaphore, steps.election, steps.barriers,
                     steps.counter, steps.parties, steps.queues, steps.partitioner, steps.leases,
                     steps.watches, steps.tree_cache, steps.nothing_is_left_out):
            step()
