"""Every call of kazoo's client and every recipe it has, against one server.

    python3 kazoo_tour.py HOST:PORT

Each step checks what came back and prints a line without ids and times, so the lines of two servers
that behave alike are the same. The first step that goes wrong ends the tour. At the end it looks
whether a public name of KazooClient was left out.
"""

import logging
import queue
import subprocess
import sys

from kazoo.client import KazooClient, TransactionRequest
from kazoo.exceptions import EXCEPTIONS, ZookeeperError
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.security import ACL, Id, Permissions, make_acl, make_digest_acl, OPEN_ACL_UNSAFE

import kazoo_tour_recipes

ROOT = "/kazoo-tour"
PATIENCE = 30  # Seconds; only a hang reaches it.


def check(what, got, wanted):
    if got != wanted:
        raise AssertionError("%s: wanted %r, got %r" % (what, wanted, got))
    print("%s: %r" % (what, got), flush=True)


def refused(what, error, call, *args, **kwargs):
    """The call fails with just this error."""
    try:
        got = call(*args, **kwargs)
    except Exception as failure:
        check(what, type(failure).__name__, error)
    else:
        raise AssertionError("%s: wanted %s, got %r" % (what, error, got))


class ReconfigDisabledError(ZookeeperError):
    """Younger than this kazoo, whose reader ends for ever at a number it does not know."""


EXCEPTIONS[-123] = ReconfigDisabledError


class Client(KazooClient):
    """Notes which of its names this file uses; what kazoo uses itself does not count."""

    used = set()

    def __getattribute__(self, name):
        if sys._getframe(1).f_code.co_filename == __file__:
            Client.used.add(name)
        return super().__getattribute__(name)


class Events:
    """What a watch or a listener was told, in order."""

    def __init__(self):
        self.queue = queue.Queue()

    def __call__(self, *args):
        self.queue.put(args)

    def next(self):
        return self.queue.get(timeout=PATIENCE)

    def watched(self):
        event, = self.next()
        return "%s %s %s" % (event.type, event.state, event.path)


def shape(stat):
    """A stat without its ids and times."""
    return {
        "version": stat.version, "cversion": stat.cversion, "aversion": stat.aversion,
        "data": stat.dataLength, "children": stat.numChildren,
        "ephemeral": stat.ephemeralOwner != 0,
        "written": stat.mzxid > stat.czxid, "peopled": stat.pzxid > stat.czxid,
    }


def plain(version=0, cversion=0, aversion=0, data=0, children=0, **others):
    return dict({"version": version, "cversion": cversion, "aversion": aversion, "data": data,
                 "children": children, "ephemeral": False, "written": False, "peopled": False},
                **others)


def creating(zk):
    check("ensure_path", zk.ensure_path(ROOT + "/a/b"), ROOT + "/a/b")
    check("ensure_path_async", zk.ensure_path_async(ROOT + "/a/b").get(), True)
    check("create", zk.create(ROOT + "/plain", b"one"), ROOT + "/plain")
    path, stat = zk.create(ROOT + "/with-stat", b"four", include_data=True)
    check("create with its stat", (path, shape(stat)), (ROOT + "/with-stat", plain(data=4)))
    check("create makepath", zk.create(ROOT + "/x/y/z", makepath=True), ROOT + "/x/y/z")
    check("create sequence", zk.create(ROOT + "/seq-", sequence=True), ROOT + "/seq-0000000004")
    check("create sequence in an empty name", zk.create(ROOT + "/x/", sequence=True),
          ROOT + "/x/0000000001")
    check("create ephemeral", zk.create(ROOT + "/eph", ephemeral=True), ROOT + "/eph")
    check("create ephemeral sequence", zk.create(ROOT + "/es-", ephemeral=True, sequence=True),
          ROOT + "/es-0000000006")
    check("create_async", zk.create_async(ROOT + "/async", b"x").get(), ROOT + "/async")
    refused("create what exists", "NodeExistsError", zk.create, ROOT + "/plain")
    refused("create without a parent", "NoNodeError", zk.create, ROOT + "/no/such")
    refused("create under an ephemeral", "NoChildrenForEphemeralsError", zk.create,
            ROOT + "/eph/child")
    refused("create with an empty ACL", "InvalidACLError", zk.create, ROOT + "/bad",
            acl=[ACL(31, Id("no-such-scheme", "x"))])
    refused("create the root", "NodeExistsError", zk.create, "/")


def reading(zk):
    check("exists", shape(zk.exists(ROOT + "/plain")), plain(data=3))
    check("exists of nothing", zk.exists(ROOT + "/nothing"), None)
    check("exists_async", shape(zk.exists_async(ROOT + "/eph").get()), plain(ephemeral=True))
    data, stat = zk.get(ROOT + "/plain")
    check("get", (data, shape(stat)), (b"one", plain(data=3)))
    check("get_async", zk.get_async(ROOT + "/x").get()[0], b"")
    refused("get of nothing", "NoNodeError", zk.get, ROOT + "/nothing")
    check("get_children", sorted(zk.get_children(ROOT)),
          ["a", "async", "eph", "es-0000000006", "plain", "seq-0000000004", "with-stat", "x"])
    names, stat = zk.get_children(ROOT + "/x", include_data=True)
    check("get_children with data", (sorted(names), shape(stat)),
          (["0000000001", "y"], plain(cversion=2, children=2, peopled=True)))
    check("get_children_async", zk.get_children_async(ROOT + "/a").get(), ["b"])
    check("get_children of the root", "zookeeper" in zk.get_children("/"), True)
    check("get_children of /zookeeper", sorted(zk.get_children("/zookeeper")), ["config", "quota"])
    check("sync", zk.sync(ROOT), ROOT)
    check("sync_async", zk.sync_async(ROOT + "/x").get(), ROOT + "/x")


def writing(zk):
    check("set", shape(zk.set(ROOT + "/plain", b"two!")), plain(version=1, data=4, written=True))
    check("set_async", zk.set_async(ROOT + "/plain", b"", version=1).get().version, 2)
    refused("set an old version", "BadVersionError", zk.set, ROOT + "/plain", b"", version=1)
    refused("set nothing", "NoNodeError", zk.set, ROOT + "/nothing", b"")
    refused("delete an old version", "BadVersionError", zk.delete, ROOT + "/plain", version=7)
    refused("delete a parent", "NotEmptyError", zk.delete, ROOT + "/x")
    check("delete", zk.delete(ROOT + "/plain", version=2), True)
    refused("delete again", "NoNodeError", zk.delete, ROOT + "/plain")
    check("delete_async", zk.delete_async(ROOT + "/async").get(), True)
    check("delete recursive", zk.delete(ROOT + "/x", recursive=True), None)
    check("the parent after all this", shape(zk.exists(ROOT)),
          plain(cversion=11, children=5, peopled=True))


def access(zk, hosts):
    path = ROOT + "/guarded"
    check("add_auth", zk.add_auth("digest", "ann:secret"), True)
    check("add_auth_async", zk.add_auth_async("digest", "bob:word").get(), True)
    zk.create(path, b"mine", acl=[make_digest_acl("ann", "secret", all=True)])
    acls, stat = zk.get_acls(path)
    check("get_acls", ([(acl.perms, acl.id.scheme) for acl in acls], stat.aversion),
          ([(Permissions.ALL, "digest")], 0))
    check("get_acls_async", len(zk.get_acls_async(path).get()[0]), 1)
    both = [make_digest_acl("ann", "secret", all=True), make_acl("world", "anyone", read=True)]
    check("set_acls", zk.set_acls(path, both).aversion, 1)
    refused("set_acls of an old version", "BadVersionError", zk.set_acls, path, both, version=0)
    check("set_acls_async", zk.set_acls_async(path, both, version=1).get().aversion, 2)
    zk.create(ROOT + "/auth", acl=[make_acl("auth", "", all=True)])
    check("an ACL for all that we are",
          sorted(acl.id.id.split(":")[0] for acl in zk.get_acls(ROOT + "/auth")[0]),
          ["ann", "bob"])

    other = Client(hosts, auth_data=[("digest", "eve:x")])
    other.start(PATIENCE)
    check("others read", other.get(path)[0], b"mine")
    refused("others do not write", "NoAuthError", other.set, path, b"theirs")
    refused("nor create", "NoAuthError", other.create, path + "/child")
    refused("nor change the ACL", "NoAuthError", other.set_acls, path, OPEN_ACL_UNSAFE)
    refused("nor read what is not for them", "NoAuthError", other.get, ROOT + "/auth")
    check("but they delete by the parent's leave", other.delete(ROOT + "/auth"), True)
    other.stop()
    other.close()

    wrong = Client(hosts)
    wrong.start(PATIENCE)
    refused("add_auth by no scheme", "AuthFailedError", wrong.add_auth, "no-such", "a:b")
    wrong.stop()
    wrong.close()


def transactions(zk):
    path = ROOT + "/tx"
    deal = zk.transaction()
    deal.create(path, b"0")
    deal.create(path + "/s-", ephemeral=True, sequence=True)
    deal.check(path, version=0)
    deal.set_data(path, b"12")
    deal.check(path, version=1)
    deal.create(path + "/gone")
    deal.delete(path + "/gone")
    results = deal.commit()
    check("transaction", [got if isinstance(got, (str, bool)) else shape(got) for got in results],
          [path, path + "/s-0000000000", True,
           plain(version=1, cversion=1, data=2, children=1), True, path + "/gone", True])
    with zk.transaction() as deal:
        deal.set_data(path, b"3", version=1)
    check("transaction in a with", zk.get(path)[0], b"3")
    deal = zk.transaction()
    deal.create(path + "/one")
    deal.check(path, version=99)
    deal.delete(path)
    check("transaction that fails", [type(got).__name__ for got in deal.commit()],
          ["RolledBackError", "BadVersionError", "RuntimeInconsistency"])
    check("leaves nothing behind", zk.exists(path + "/one"), None)
    check("transaction of nothing", zk.transaction().commit_async().get(), [])
    names = sorted(name for name in dir(TransactionRequest) if not name.startswith("_"))
    check("the calls of a transaction", names,
          ["check", "commit", "commit_async", "create", "delete", "set_data"])


def watching(zk):
    path = ROOT + "/watched"
    events = Events()
    check("watch for a node to come", zk.exists(path, watch=events), None)
    zk.create(path, b"1")
    check("it came", events.watched(), "CREATED CONNECTED " + path)
    zk.get(path, watch=events)
    zk.set(path, b"2")
    check("it was written", events.watched(), "CHANGED CONNECTED " + path)
    zk.get_children(path, watch=events)
    zk.create(path + "/child")
    check("it has a child", events.watched(), "CHILD CONNECTED " + path)
    zk.set(path, b"3")
    zk.exists(path, watch=events)
    zk.delete(path, recursive=True)
    check("it is gone", events.watched(), "DELETED CONNECTED " + path)
    check("and nothing else was said", events.queue.empty(), True)


def talking(zk):
    check("command", zk.command(), "imok")
    check("command isro", zk.command(b"isro"), "rw")
    check("command srvr", "Mode: standalone" in zk.command(b"srvr"), True)
    check("server_version", zk.server_version()[:2], (3, 8))
    refused("reconfig", "ReconfigDisabledError", zk.reconfig, "server.2=a:1:2;3", None, None)
    refused("reconfig_async", "ReconfigDisabledError",
            zk.reconfig_async("server.2=a:1:2;3", None, None, -1).get)
    check("the configuration is there", zk.exists("/zookeeper/config") is not None, True)
    refused("but not for everybody to write", "NoAuthError", zk.set, "/zookeeper/config", b"")
    check("retry", zk.retry(zk.exists, ROOT + "/nothing"), None)


def coming_and_going(hosts):
    states = Events()
    zk = Client(hosts + ROOT, timeout=20, read_only=True)
    zk.add_listener(states)
    check("start_async", zk.start_async().wait(PATIENCE), True)
    check("is told", states.next(), (KazooState.CONNECTED,))
    check("connected", zk.connected, True)
    check("client_state", zk.client_state, KeeperState.CONNECTED)
    check("a chroot", (zk.exists("/a") is not None, zk.unchroot(ROOT + "/a")), (True, "/a"))
    zk.create("/mine", ephemeral=True)
    before = zk.client_id
    # As a network would: the socket ends, the session does not.
    zk._connection._socket.shutdown(2)
    check("a lost connection", states.next(), (KazooState.SUSPENDED,))
    check("comes back", states.next(), (KazooState.CONNECTED,))
    check("with the same session", zk.client_id == before, True)
    check("and its ephemeral", zk.exists("/mine") is not None, True)
    zk.set_hosts(hosts + ROOT)
    zk.restart()
    check("restart says lost", states.next(), (KazooState.LOST,))
    check("and connected", states.next(), (KazooState.CONNECTED,))
    check("with another session", zk.client_id == before, False)
    check("without the ephemeral", zk.exists("/mine"), None)
    zk.remove_listener(states)
    zk.stop()
    check("stop", zk.client_state, KeeperState.CLOSED)
    zk.close()
    check("nobody is told who does not listen", states.queue.empty(), True)


# Opens a session, leaves an ephemeral, and ends without a word.
GHOST = """
import os, sys
from kazoo.client import KazooClient
zk = KazooClient(sys.argv[1], timeout=30)
zk.start()
zk.create(sys.argv[2], ephemeral=True)
print("%d %s" % (zk.client_id[0], zk.client_id[1].hex()), flush=True)
os._exit(0)
"""


def sessions_by_name(hosts):
    node = ROOT + "/ghost"
    ghost = subprocess.run([sys.executable, "-c", GHOST, hosts, node], check=True,
                           capture_output=True, encoding="utf-8").stdout.split()
    session, password = int(ghost[0]), bytes.fromhex(ghost[1])

    thief = Client(hosts, client_id=(session, b"not the password"), timeout=20)
    thief.start(PATIENCE)
    check("no session without its password", thief.client_id[0] == session, False)
    check("which harms nothing", thief.exists(node).ephemeralOwner == session, True)
    heir = Client(hosts, client_id=(session, password), timeout=20)
    heir.start(PATIENCE)
    check("a session by its id and password", heir.client_id == (session, password), True)
    check("owns what it owned", heir.exists(node).ephemeralOwner == session, True)
    heir.stop()
    heir.close()
    check("until it is closed", thief.exists(node), None)
    thief.stop()
    thief.close()


def main():
    logging.disable(logging.CRITICAL)
    hosts = sys.argv[1]
    zk = Client(hosts, timeout=20)
    zk.start(timeout=PATIENCE)
    creating(zk)
    reading(zk)
    writing(zk)
    access(zk, hosts)
    transactions(zk)
    watching(zk)
    talking(zk)
    coming_and_going(hosts)
    sessions_by_name(hosts)
    other = KazooClient(hosts, timeout=20)
    other.start(timeout=PATIENCE)
    kazoo_tour_recipes.tour(check, refused, ROOT + "/recipes", zk, other)
    other.stop()
    other.close()
    zk.delete(ROOT, recursive=True)
    zk.stop()
    zk.close()
    left_out = {name for name in dir(KazooClient) if not name.startswith("_")} - Client.used
    check("calls that were left out", sorted(left_out), [])


main()
