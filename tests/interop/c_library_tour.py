"""What cli_mt does not reach of ZooKeeper's C library, against one server.

    python3 c_library_tour.py HOST:PORT

ACLs, transactions, removing watches, a connection that breaks with watches on it, a session taken
up by its id. The library is called where it lies; as in kazoo_tour.py, each step checks its result
and prints a line without ids and times.
"""

import ctypes
import os
import queue
import socket
import stat
import subprocess
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_void_p

ROOT = b"/c-tour"
PATIENCE = 30  # Seconds; only a hang reaches it.
CREATE, DELETE, SET, CHECK = 1, 2, 5, 13  # The types of zoo_op_t.
EVENTS = {1: "created", 2: "deleted", 3: "changed", 4: "child", -1: "session"}
STATES = {1: "connecting", 3: "connected", -112: "expired", -113: "no auth", 999: "not connected"}


class Id(ctypes.Structure):
    _fields_ = [("scheme", c_char_p), ("id", c_char_p)]


class Acl(ctypes.Structure):
    _fields_ = [("perms", c_int32), ("id", Id)]


class Acls(ctypes.Structure):
    _fields_ = [("count", c_int32), ("data", POINTER(Acl))]


class Stat(ctypes.Structure):
    _fields_ = [("czxid", c_int64), ("mzxid", c_int64), ("ctime", c_int64), ("mtime", c_int64),
                ("version", c_int32), ("cversion", c_int32), ("aversion", c_int32),
                ("ephemeralOwner", c_int64), ("dataLength", c_int32), ("numChildren", c_int32),
                ("pzxid", c_int64)]


class ClientId(ctypes.Structure):
    _fields_ = [("id", c_int64), ("password", ctypes.c_ubyte * 16)]


class CreateOp(ctypes.Structure):
    _fields_ = [("path", c_char_p), ("data", c_char_p), ("datalen", c_int), ("buf", c_void_p),
                ("buflen", c_int), ("acl", POINTER(Acls)), ("flags", c_int), ("ttl", c_int64)]


class VersionOp(ctypes.Structure):
    _fields_ = [("path", c_char_p), ("version", c_int)]


class SetOp(ctypes.Structure):
    _fields_ = [("path", c_char_p), ("data", c_char_p), ("datalen", c_int), ("version", c_int),
                ("stat", POINTER(Stat))]


class AnyOp(ctypes.Union):
    _fields_ = [("create", CreateOp), ("version", VersionOp), ("set", SetOp)]


class Op(ctypes.Structure):
    _fields_ = [("type", c_int), ("of", AnyOp)]


class OpResult(ctypes.Structure):
    _fields_ = [("err", c_int), ("value", c_char_p), ("valuelen", c_int), ("stat", POINTER(Stat))]


WATCHER = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_int, c_char_p, c_void_p)
DONE = ctypes.CFUNCTYPE(None, c_int, c_void_p)

zoo = ctypes.CDLL("libzookeeper_mt.so.2")
zoo.zookeeper_init.restype = c_void_p
zoo.zookeeper_init.argtypes = [c_char_p, WATCHER, c_int, POINTER(ClientId), c_void_p, c_int]
zoo.zoo_client_id.restype = POINTER(ClientId)
zoo.zoo_set_debug_level(0)
OPEN = Acls.in_dll(zoo, "ZOO_OPEN_ACL_UNSAFE")
CREATOR = Acls.in_dll(zoo, "ZOO_CREATOR_ALL_ACL")
READ = Acls.in_dll(zoo, "ZOO_READ_ACL_UNSAFE")


def check(what, got, wanted):
    if got != wanted:
        raise AssertionError("%s: wanted %r, got %r" % (what, wanted, got))
    print("%s: %r" % (what, got), flush=True)


class Handle:
    """A session of the library's. What its watches and its own watcher are told comes in order."""

    def __init__(self, host, client_id=None):
        self.told = queue.Queue()
        self.watcher = WATCHER(self.on_event)
        self.host = host.encode()
        self.pointer = c_void_p(zoo.zookeeper_init(self.host, self.watcher, 20_000,
                                                   client_id and byref(client_id), None, 0))
        check("connected", self.next(), "session connected")

    def on_event(self, _, kind, state, path, __):
        what = path.decode() if path else STATES.get(state, state)
        self.told.put("%s %s" % (EVENTS.get(kind, kind), what))

    def next(self):
        return self.told.get(timeout=PATIENCE)

    def __getattr__(self, name):
        return lambda *args: getattr(zoo, "zoo_" + name)(self.pointer, *args)

    def id(self):
        found = zoo.zoo_client_id(self.pointer).contents
        return ClientId.from_buffer_copy(found)

    def make(self, path, data=b"", acl=OPEN, mode=0):
        return self.create(path, data, len(data), byref(acl), mode, None, 0)

    def read(self, path, watcher=None):
        """(error, data, version), with a watch on demand."""
        data, size, found = ctypes.create_string_buffer(64), c_int(64), Stat()
        error = self.wget(path, watcher, None, data, byref(size), byref(found))
        return error, data.raw[:max(size.value, 0)] if not error else b"", found.version

    def auth(self, scheme, name):
        done = queue.Queue()
        self.completion = DONE(lambda error, _: done.put(error))  # The library may keep it.
        self.add_auth(scheme, name, len(name), self.completion, None)
        return done.get(timeout=PATIENCE)

    def multi_of(self, *ops):
        results = (OpResult * len(ops))()
        error = self.multi(len(ops), (Op * len(ops))(*ops), results)
        return error, [result.err for result in results]

    def close(self):
        return zoo.zookeeper_close(self.pointer)


def create_op(path, data=b""):
    return Op(CREATE, AnyOp(create=CreateOp(path, data, len(data), None, 0,
                                            ctypes.pointer(OPEN), 0, -1)))


def access(zk, other):
    path = ROOT + b"/guarded"
    check("create for us before we are somebody", zk.make(path, b"", CREATOR), -114)
    check("add_auth", zk.auth(b"digest", b"ann:secret"), 0)
    check("create for us", zk.make(path, b"mine", CREATOR), 0)
    check("others do not read", other.read(path), (-102, b"", 0))
    acls, found = Acls(), Stat()
    check("get_acl", zk.get_acl(path, byref(acls), byref(found)), 0)
    check("an entry", (acls.count, acls.data[0].perms, acls.data[0].id.scheme),
          (1, 31, b"digest"))
    check("set_acl of an old version", zk.set_acl(path, 5, byref(READ)), -103)
    check("set_acl", zk.set_acl(path, 0, byref(READ)), 0)
    check("others read", other.read(path), (0, b"mine", 0))
    check("nobody writes", zk.set(path, b"", 0, -1), -102)


def transactions(zk):
    path, found = ROOT + b"/tx", Stat()
    written = SetOp(path, b"12", 2, 0, ctypes.pointer(found))
    check("multi", zk.multi_of(create_op(path, b"1"), create_op(path + b"/a"),
                               Op(SET, AnyOp(set=written)),
                               Op(CHECK, AnyOp(version=VersionOp(path, 1))),
                               Op(DELETE, AnyOp(version=VersionOp(path + b"/a", -1)))),
          (0, [0, 0, 0, 0, 0]))
    check("multi, a stat", (found.version, found.cversion, found.numChildren), (1, 1, 1))
    check("multi that fails", zk.multi_of(create_op(path + b"/b"),
                                          Op(CHECK, AnyOp(version=VersionOp(path, 7))),
                                          Op(DELETE, AnyOp(version=VersionOp(path, -1)))),
          (-103, [0, -103, -2]))
    check("and leaves nothing", zk.read(path + b"/b")[0], -101)


def watching(zk, other):
    path = ROOT + b"/watched"
    zk.make(path, b"1")
    zk.read(path, zk.watcher)
    check("remove_watches", zk.remove_watches(path, 2, zk.watcher, None, 0), 0)
    check("remove_watches again", zk.remove_watches(path, 2, zk.watcher, None, 0), -121)
    other.set(path, b"2", 1, -1)
    check("a watch", zk.read(path, zk.watcher), (0, b"2", 1))
    check("another", zk.wexists(ROOT + b"/coming", zk.watcher, None, byref(Stat())), -101)
    before = zk.id().id
    break_connections()
    for handle in (zk, other):
        check("a broken connection", [handle.next(), handle.next()],
              ["session connecting", "session connected"])
    check("the same session", zk.id().id == before, True)
    other.set(path, b"3", 1, -1)
    check("the watch is still there", zk.next(), "changed /c-tour/watched")
    other.make(ROOT + b"/coming")
    check("and the other", zk.next(), "created /c-tour/coming")


def break_connections():
    """As a network would. The library does not give its sockets away: all we have are taken."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                with socket.socket(fileno=os.dup(int(name))) as ours:
                    ours.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # No connection, or the folder itself, which is closed by now.


def ghost(host):
    """Opens a session, leaves an ephemeral, and ends without a word."""
    zk = Handle(host)
    zk.make(ROOT + b"/ghost", b"", OPEN, 1)
    print(zk.id().id, bytes(zk.id().password).hex(), flush=True)
    os._exit(0)


def sessions_by_name(host, zk):
    output = subprocess.run([sys.executable, "-B", __file__, host, "ghost"], check=True,
                            capture_output=True, encoding="utf-8").stdout
    session, password = output.splitlines()[-1].split()
    heir = Handle(host, ClientId(int(session), (ctypes.c_ubyte * 16)(*bytes.fromhex(password))))
    check("a session by its id and password", heir.id().id == int(session), True)
    check("owns what it owned", heir.read(ROOT + b"/ghost")[0], 0)
    check("close", heir.close(), 0)
    check("and it is gone", zk.read(ROOT + b"/ghost")[0], -101)


def main(host):
    zk, other = Handle(host), Handle(host)
    check("create", zk.make(ROOT), 0)
    access(zk, other)
    transactions(zk)
    watching(zk, other)
    sessions_by_name(host, zk)
    check("an unknown scheme", other.auth(b"no-such", b"x"), -115)
    check("ends the session", other.next(), "session no auth")
    other.close()
    zk.close()


if sys.argv[2:] == ["ghost"]:
    ghost(sys.argv[1])
else:
    main(sys.argv[1])
