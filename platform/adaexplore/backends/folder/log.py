"""The write-ahead log of one writer: many files are written with one sync.

Hundreds of episodes begin, go on and end at any time, and to sync each of their files by itself costs
more than everything else that a call needs. So what a writer alone owns is written to its file at
once, and a thread takes all that wait, writes them to one log, and acknowledges them together. The log
is opened so that a write is synced when it returns: one system call a batch, since each lets a busy
interpreter take the thread's turn. Zeros are written ahead of it, so that a batch changes nothing of the
file but bytes, which is half the work to sync. After a crash of the process the files are whole as they
are; after one of the machine, whoever opens the store next writes what the log holds into them again. A
log is emptied when its files are synced.

Form: one line `offset length crc32 key`, then the bytes, again and again; the first entry that does
not check, zeros say, was never acknowledged, and ends the log. What stands at offset 0 makes its file.
"""

import fcntl
import os
import queue
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

from adaexplore.backends.folder.faults import store_error
from adaexplore.errors import StoreError

GATHER_S: Final = 0.003
"""How long the first append of a batch waits for others: far below any model's latency, and fewer syncs
cost the client less."""
BATCH_BYTES: Final = 1 << 20
"""A batch of more takes no further append: it is copied while it is written."""
CHECKPOINT_BYTES: Final = 64 << 20
"""A log that is longer is emptied."""
CHECKPOINT_FILES: Final = 4000
"""A log that stands for more files is emptied."""
AHEAD: Final = bytes(1 << 20)
"""The zeros that are written ahead when those before are used up."""
SYNCS_AT_ONCE: Final = 16


class Append(NamedTuple):
    """Bytes that stand in a file and are not durable yet."""

    key: str
    offset: int
    data: bytes
    urgent: bool = True
    """Whether somebody waits for it; what nobody waits for is synced with what comes next."""

    def entry(self) -> bytes:
        """The append as it stands in the log."""
        head = f"{self.offset} {len(self.data)} {crc32(self.data)} {self.key}\n"
        return head.encode() + self.data


class _Batch:
    """Appends that are written together, and become durable at one moment."""

    def __init__(self) -> None:
        self.appends: list[Append] = []
        self.size = 0
        self.urgent = False
        """Whether the thread knows of it."""
        self.done: Future[None] = Future()
        self.done.set_running_or_notify_cancel()  # what is written is written, whoever still waits


class CommitLog:
    """The log of a living writer; it holds a lock for as long as its process lives."""

    def __init__(self, root: Path, path: Path) -> None:
        """Make the log of files below `root`, and take its lock.

        Raises:
            OSError: It cannot be made.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        self._root, self._path = root, path
        hidden = path.parent / f".{path.name}"
        flags = os.O_CREAT | os.O_RDWR | os.O_DSYNC
        self._handle = os.open(hidden, flags, 0o644)
        fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Locked before anybody sees it: a log without a lock is a dead writer's.
        hidden.rename(path)
        sync(path.parent)
        self._unsynced: set[str] = set()
        """Keys of files that only the log makes durable."""
        self._waiting: queue.SimpleQueue[_Batch | None] = queue.SimpleQueue()
        self._open = _Batch()
        """The batch that takes the next append."""
        self._adding = threading.Lock()
        self._ended = False
        self._size = 0
        self._room = 0
        """Bytes of the file; those behind `_size` are zeros."""
        self._fault: OSError | None = None
        self._thread = threading.Thread(target=self._work, name="journal log", daemon=True)
        self._thread.start()

    def append(self, append: Append) -> "Future[None]":
        """Make bytes durable that their file holds; the future, which others share, is done when they are."""
        with self._adding:
            if self._ended:
                return failed(StoreError(f"{self._path}: this writer has been closed"))
            batch = self._open
            batch.appends.append(append)
            batch.size += len(append.data)
            full = batch.size >= BATCH_BYTES
            if not batch.urgent and (append.urgent or full):
                batch.urgent = True
                self._waiting.put(batch)
            if full:
                self._open = _Batch()
            return batch.done

    def close(self) -> None:
        """Commit what waits, and remove the log, unless a file could not be synced and still needs it."""
        with self._adding:
            self._ended = True
            if self._open.appends and not self._open.urgent:
                self._waiting.put(self._open)
            self._waiting.put(None)
        self._thread.join()
        with suppress(OSError):
            if self._fault is None:
                self._checkpoint()
                self._path.unlink(missing_ok=True)
        os.close(self._handle)

    def _work(self) -> None:
        while (batch := self._waiting.get()) is not None:
            if self._open is batch:
                time.sleep(GATHER_S)
            with self._adding:
                if self._open is batch:
                    self._open = _Batch()
            self._commit(batch)

    def _commit(self, batch: _Batch) -> None:
        """Make appends durable together, or fail them together; after a fault nothing is."""
        try:
            if self._fault is not None:
                raise self._fault
            self._write(b"".join([append.entry() for append in batch.appends]))
            self._unsynced.update([append.key for append in batch.appends])
            if self._size > CHECKPOINT_BYTES or len(self._unsynced) > CHECKPOINT_FILES:
                self._checkpoint()
        except OSError as error:
            self._fault = error
            batch.done.set_exception(store_error(self._path, error))
        else:
            batch.done.set_result(None)

    def _write(self, entries: bytes) -> None:
        end = self._size + len(entries)
        if end > self._room:
            entries += AHEAD
            self._room = end + len(AHEAD)
        write_all(self._handle, entries, self._size)
        self._size = end

    def _checkpoint(self) -> None:
        """Sync the files themselves, with the folders that name them, and empty the log."""
        folders = {folder for key in self._unsynced for folder in _folders(key)}
        paths = [f"{self._root}/{name}" for name in self._unsynced | folders]
        shares = [paths[i::SYNCS_AT_ONCE] for i in range(SYNCS_AT_ONCE)]
        with ThreadPoolExecutor(SYNCS_AT_ONCE) as pool:
            list(pool.map(_sync_all, shares))
        self._unsynced.clear()
        os.ftruncate(self._handle, 0)
        self._size = self._room = 0


def failed(error: StoreError) -> "Future[None]":
    """The future of an append that was not made."""
    done: Future[None] = Future()
    done.set_exception(error)
    return done


def recover(root: Path, log: Path) -> bool:
    """Whether the log's writer is gone; then what it acknowledged is in its journals, and it is removed.

    Raises:
        OSError: A journal or the log cannot be read or written.
    """
    try:
        handle = os.open(log, os.O_RDWR)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        if _named(handle, log):  # else another has recovered it since it was opened
            for key, offset, data in _entries(log.read_bytes()):
                _write_again(root / key, offset, data)
            log.unlink()
        return True
    finally:
        os.close(handle)


def _named(handle: int, path: Path) -> bool:
    """Whether an open file still is the one of that name."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _entries(data: bytes) -> Iterator[tuple[str, int, bytes]]:
    """(key, offset, bytes) of what was acknowledged."""
    at = 0
    while (end := data.find(b"\n", at)) >= 0:
        head = data[at:end].split(b" ", 3)
        if len(head) != 4 or not all(number.isdigit() for number in head[:3]):
            return
        offset, length, check = map(int, head[:3])
        body = data[end + 1 : end + 1 + length]
        if len(body) != length or crc32(body) != check:
            return
        yield head[3].decode(), offset, body
        at = end + 1 + length


def _write_again(path: Path, offset: int, data: bytes) -> None:
    """Let a file hold these bytes there; one without its beginning was removed, and stays away."""
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        if offset == 0:
            place(path, data, synced=True)
        return
    try:
        if os.pread(handle, len(data), offset) != data:
            os.pwrite(handle, data, offset)
            os.fsync(handle)
    finally:
        os.close(handle)


def write_all(handle: int, data: bytes, offset: int) -> None:
    """Write all of it there; OSError if the file cannot take it."""
    view = memoryview(data)
    while view:
        written = os.pwrite(handle, view, offset)
        view, offset = view[written:], offset + written


def place(path: Path, data: bytes, *, synced: bool) -> None:
    """Write a file whole: whoever reads it sees the old bytes or the new, after a crash too if synced."""
    temporary = path.parent / f".{path.name}.{uuid.uuid4().hex[:12]}"
    try:
        handle = _made(temporary)
        try:
            write_all(handle, data, 0)
            if synced:
                os.fsync(handle)
        finally:
            os.close(handle)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    if synced:
        sync(path.parent)


def _made(path: Path) -> int:
    """A new file, open; its folder is looked after only if it is missing, for that is rare."""
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
    try:
        return os.open(path, flags, 0o666)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, flags, 0o666)


def _folders(key: str) -> Iterator[str]:
    """The folders that lead to a file, from its own to the root."""
    while key:
        key = key.rpartition("/")[0]
        yield key


def _sync_all(paths: Sequence[str]) -> None:
    for path in paths:
        sync(path)


def sync(path: str | Path) -> None:
    """Make a file's bytes or a folder's names durable; what somebody has removed needs nothing."""
    with suppress(FileNotFoundError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
