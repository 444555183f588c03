"""kazoo's locks in one queue with Latchkey, Apache Curator and go-zookeeper.

    from latchkey_kazoo import Lock

    lock = Lock(client, "/locks/invoices", "nightly run")
    with lock:
        ...

Use these classes in place of client.Lock, client.WriteLock, client.ReadLock and client.Election;
they are kazoo's own with other node names. README.md beside this file says what they see and what
they do not change.
"""

import re
import uuid

from kazoo.exceptions import NoNodeError
from kazoo.recipe import election, lock
from kazoo.retry import ForceRetryError

if not hasattr(lock.Lock, "_get_predecessor"):
    # Another kazoo would never call ours, and so let two in at once.
    raise ImportError("latchkey_kazoo needs kazoo 2.8 or later")

# What stands right before the number: of those who want to be alone, and of readers. The last of
# each is stock kazoo's, the others are Curator's and Latchkey's.
_ALONE = ["lock-", "latch-", "__WRIT__", "__lock__"]
_READERS = ["__READ__", "__rlock__"]


class _OneQueue(object):
    """Reads the entries of all dialects and orders them by number alone."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # A server prints its 32-bit counter with "%010d": a negative number may be ten or eleven
        # characters wide. kazoo's own pattern overlooks the first kind.
        tags = "|".join(re.escape(tag) for tag in sorted(self._exclude_names))
        self._contenders_re = re.compile(r"(?:%s)(-[0-9]{9,10}|[0-9]{10})$" % tags)

    def _get_predecessor(self, node):
        """The nearest entry ahead that this lock has to wait for, or None.

        Unlike kazoo 2.8's own it never names an entry behind `node`: a reader would wait for a
        writer that waits for the reader.
        """
        mine = int(node[len(self.prefix):])
        children = self.client.get_children(self.path)
        if node not in children:
            raise ForceRetryError()  # It went with its session: queue again.
        nearest, predecessor = None, None
        for child in children:
            match = self._contenders_re.search(child)
            if match is None or child == node:
                continue
            distance = _distance(int(match.group(1)), mine)
            if distance > 0 and (nearest is None or distance < nearest):
                nearest, predecessor = distance, child
        return predecessor

    def _inner_acquire(self, *args, **kwargs):
        try:
            return super()._inner_acquire(*args, **kwargs)
        except NoNodeError:
            # Latchkey and Curator make directories that the server removes when they are empty.
            self.assured_path = False
            raise ForceRetryError()


def _distance(earlier, later):
    """How many numbers lie between, on a counter that wraps; negative if the order is reversed."""
    return (later - earlier + 2**31) % 2**32 - 2**31


class Lock(_OneQueue, lock.Lock):
    """kazoo.recipe.lock.Lock, named `<hex>-lock-N`."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = _ALONE + _READERS


class WriteLock(_OneQueue, lock.WriteLock):
    """kazoo.recipe.lock.WriteLock, named `<hex>-__WRIT__N`."""

    _NODE_NAME = "-__WRIT__"
    _EXCLUDE_NAMES = _ALONE + _READERS


class ReadLock(_OneQueue, lock.ReadLock):
    """kazoo.recipe.lock.ReadLock, named `<hex>-__READ__N`."""

    _NODE_NAME = "-__READ__"
    _EXCLUDE_NAMES = _ALONE


class _Latch(_OneQueue, lock.Lock):
    _NODE_NAME = "-latch-"
    _EXCLUDE_NAMES = _ALONE + _READERS

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # In an election Latchkey counts nothing but Curator's full form.
        self.prefix = "_c_%s%s" % (uuid.uuid4(), self._NODE_NAME)
        self.create_path = self.path + "/" + self.prefix


class Election(election.Election):
    """kazoo.recipe.election.Election, named `_c_<uuid>-latch-N` as Curator's LeaderLatch."""

    def __init__(self, client, path, identifier=None):
        self.lock = _Latch(client, path, identifier)
