"""A store that kills its process at one of its operations: before it, in the middle, or after it.

What is durable changes only through the store, so killing at every operation is killing at every
moment that can matter. In the middle means what a crash leaves: half of the bytes of an append, or a
temporary file that was never renamed.
"""

import os
import signal
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock
from typing import Literal

from adaexplore.backends.folder import FolderStore

Where = Literal["before", "middle", "after"]


@dataclass
class Fuse:
    """Burns down with every operation, in whichever thread."""

    operations: int
    where: Where
    lock: Lock = field(default_factory=Lock)

    def burn(self, act, half=None):
        """Do one operation, or die at it."""
        with self.lock:
            self.operations -= 1
            last = self.operations == 0
        if not last:
            return act()
        if self.where == "middle" and half is not None:
            half()
        if self.where == "after" and isinstance(done := act(), Future):
            done.result()
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("the process is gone")


class DyingStore:
    """Any store, with a fuse in front of what it writes."""

    def __init__(self, inner, fuse):
        self.inner, self.fuse, self.writer = inner, fuse, inner.writer
        self.near, self.at_once = inner.near, inner.at_once

    def put(self, key, data):
        self.fuse.burn(lambda: self.inner.put(key, data), lambda: self.tear(key, data))

    def put_all(self, objects):
        for key, data in objects.items():
            self.put(key, data)
        done = Future()
        done.set_result(None)
        return done

    def tear(self, key, data):
        if isinstance(self.inner, FolderStore):
            path = self.inner.root / key
            path.parent.mkdir(parents=True, exist_ok=True)
            (path.parent / f".{path.name}.{os.getpid()}").write_bytes(data[: len(data) // 2])

    def create(self, key, data):
        appender = self.fuse.burn(
            lambda: self.inner.create(key, data),
            lambda: self.inner.create(key, data[: len(data) // 2]),
        )
        return None if appender is None else DyingAppender(appender, self.fuse)

    def get(self, key):
        return self.inner.get(key)

    def keys(self, prefix):
        return self.inner.keys(prefix)

    def locate(self, key):
        return self.inner.locate(key)

    def alive(self, writer):
        return self.inner.alive(writer)

    def close(self):
        self.inner.close()


class DyingAppender:
    """A growing object that may grow by half a line."""

    def __init__(self, inner, fuse):
        self.inner, self.fuse = inner, fuse

    def append(self, data):
        return self.fuse.burn(
            lambda: self.inner.append(data),
            lambda: self.inner.append(data[: len(data) // 2]).result(),
        )

    def cut(self):
        self.inner.cut()

    def close(self):
        self.fuse.burn(self.inner.close)
