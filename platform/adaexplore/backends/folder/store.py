"""The folder store: plain files under one folder.

Objects are written to a temporary file and renamed into place, so a reader never sees half of one and
a crash leaves the old or the new. What a writer alone owns, journals above all, is made durable by its
log (`log.py`), on which the writer holds a lock for as long as its process lives: the system frees it
when the process dies, however it dies. Everything else is synced by itself.
"""

import fcntl
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from adaexplore.backends.folder.faults import store_error
from adaexplore.backends.folder.log import Append, CommitLog, failed, place, recover, write_all
from adaexplore.errors import StoreError

T = TypeVar("T")
WRITERS: Final = "writers"
"""Where writers keep their logs."""


class FolderStore:
    """Objects as files below a root folder."""

    near: bool = True
    at_once: int = 8

    def __init__(self, root: Path) -> None:
        """Use a folder, made if it is not there.

        Raises:
            StoreError: The folder cannot be made or written.
        """
        self.root = root
        self.writer = uuid.uuid4().hex[:12]
        self._log: CommitLog | None = None
        self._opening = threading.Lock()
        self._closed = False
        self._guard(root, lambda: root.mkdir(parents=True, exist_ok=True))
        for log in sorted((root / WRITERS).glob("[!.]*")):
            self._gone(log)

    def put(self, key: str, data: bytes) -> None:
        """Write an object whole; durable when this returns."""
        self.put_all({key: data}).result()

    def put_all(self, objects: Mapping[str, bytes]) -> "Future[None]":
        """Write objects whole, one after the other; all are durable when the future is done."""
        done: Future[None] = Future()
        done.set_result(None)
        for key, data in objects.items():
            done = self._placed(key, data) or done  # the log keeps their order
        return done

    def _placed(self, key: str, data: bytes) -> "Future[None] | None":
        """Write an object; None if it is durable already, else the future that is done when it is."""
        path = self._path(key)
        owned = f"-{self.writer}/" in key
        self._guard(path, lambda: place(path, data, synced=not owned))
        if not owned:
            return None
        return self._own_log().append(Append(key, 0, data))

    def get(self, key: str) -> bytes | None:
        """The object's bytes, or None."""
        path = self._path(key)

        def read() -> bytes | None:
            try:
                return path.read_bytes()
            except FileNotFoundError:
                return None

        return self._guard(path, read)

    def keys(self, prefix: str) -> list[str]:
        """All keys below a prefix, sorted; temporary files are not keys."""
        start = f"{self.root}/{prefix}"
        return self._guard(Path(start), lambda: sorted(_below(start, prefix)))

    def create(self, key: str, data: bytes) -> "FileAppender | None":
        """Start a growing file; None if it exists."""
        path = self._path(key)
        log = self._own_log()

        def start() -> "FileAppender | None":
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
            except FileExistsError:
                return None
            appender = FileAppender(path, handle, key, log)
            begun = appender.append(data, urgent=False)  # durable before whatever is appended next
            if begun.done():  # it was not written
                begun.result()
            return appender

        return self._guard(path, start)

    def locate(self, key: str) -> str:
        """The file's path."""
        return str(self._path(key))

    def alive(self, writer: str) -> bool:
        """Whether a writer still holds the lock on its log; what a dead one leaves is recovered."""
        return not self._gone(self._path(f"{WRITERS}/{writer}"))

    def close(self) -> None:
        """Stop being a writer."""
        with self._opening:
            self._closed = True
            if self._log is not None:
                self._log.close()
                self._log = None

    def _gone(self, log: Path) -> bool:
        return self._guard(log, lambda: recover(self.root, log))

    def _own_log(self) -> CommitLog:
        """The log of this writer, there before anything is created in its name."""
        with self._opening:
            if self._closed:
                raise StoreError(f"{self.root}: the writer {self.writer} has been closed")
            if self._log is None:
                path = self._path(f"{WRITERS}/{self.writer}")
                self._log = self._guard(path, lambda: CommitLog(self.root, path))
            return self._log

    @contextmanager
    def locked(self, key: str) -> Iterator[None]:
        """Hold a lock for as long as this process lives; the system frees it when the process dies.

        Raises:
            StoreError: Another process holds it.
        """
        path = self._path(key)
        self._guard(path, lambda: path.parent.mkdir(parents=True, exist_ok=True))
        with self._guard(path, lambda: path.open("a+")) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                holder = file.read().strip() or "unknown"
                raise StoreError(
                    f"{path}: this sweep is being run by process {holder}: wait for it, stop it, or "
                    "launch under another name=..."
                ) from None
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    def _path(self, key: str) -> Path:
        return self.root / key

    def _guard(self, path: Path, act: Callable[[], T]) -> T:
        try:
            return act()
        except OSError as error:
            raise store_error(path, error) from error


class FileAppender:
    """A file that grows through its writer's log."""

    def __init__(self, path: Path, handle: int, key: str, log: CommitLog) -> None:
        """Take over an open, empty file."""
        self._path, self._handle, self._key, self._log = path, handle, key, log
        self._size = 0
        self._fault: OSError | None = None

    def append(self, data: bytes, *, urgent: bool = True) -> "Future[None]":
        """Add bytes; a short write is an error, and its torn line is found on reading."""
        try:
            if self._fault is not None:  # behind half a line a whole one would be damage
                raise self._fault
            write_all(self._handle, data, self._size)
        except OSError as error:
            self._fault = error
            return failed(store_error(self._path, error))
        done = self._log.append(Append(self._key, self._size, data, urgent))
        self._size += len(data)
        return done

    def cut(self) -> None:
        """Nothing to do: a file has no parts."""

    def close(self) -> None:
        """Close the file; what was appended is in the log until that is emptied."""
        with suppress(OSError):
            os.close(self._handle)


def _below(folder: str, prefix: str) -> Iterator[str]:
    """Keys below a folder and its prefix, both with a slash at the end; none if it is not there."""
    try:
        entries = os.scandir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    with entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _below(f"{entry.path}/", f"{prefix}{entry.name}/")
            elif not entry.name.startswith("."):
                yield f"{prefix}{entry.name}"
