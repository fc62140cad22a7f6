"""The write-ahead log of one writer: many journals grow with one sync.

Hundreds of episodes wait for their replies to be durable at any time, and to sync each journal by
itself costs more than everything else that a call needs. So an append is written to its journal at
once, and a thread takes all that wait, writes them to one log, syncs the log, and acknowledges them
together: two system calls a batch, since each lets a busy interpreter take the thread's turn. After a
crash of the process the journals are whole as they are; after one of the machine, whoever opens the
store next writes what the log holds into them again. A log is emptied when its journals are synced.

Form: one line `offset length crc32 key`, then the bytes, again and again; the first entry that does
not check was never acknowledged, and ends the log.
"""

import fcntl
import os
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zlib import crc32

from adaexplore.backends.folder.faults import store_error

GATHER_S: Final = 0.002
"""How long the first append of a batch waits for others: far below any model's latency, and fewer syncs
cost the client less."""
CHECKPOINT_BYTES: Final = 16 << 20
"""A log that is longer is emptied."""


@dataclass(frozen=True, slots=True)
class Append:
    """Bytes that stand at the end of a journal and are not durable yet."""

    key: str
    offset: int
    data: bytes
    done: "Future[None]"

    def entry(self) -> bytes:
        """The append as it stands in the log."""
        head = f"{self.offset} {len(self.data)} {crc32(self.data)} {self.key}\n"
        return head.encode() + self.data


class CommitLog:
    """The log of a living writer; it holds a lock for as long as its process lives."""

    def __init__(self, path: Path) -> None:
        """Make the log and take its lock.

        Raises:
            OSError: It cannot be made.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o644)
        fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        sync_folder(path.parent)
        self._journals: set[int] = set()
        self._syncing = threading.Lock()
        self._waiting: queue.SimpleQueue[Append | None] = queue.SimpleQueue()
        self._size = 0
        self._fault: OSError | None = None
        self._thread = threading.Thread(target=self._work, name="journal log", daemon=True)
        self._thread.start()

    def append(self, append: Append) -> None:
        """Make bytes durable that a journal holds; their future is done when they are."""
        self._waiting.put(append)

    def opened(self, handle: int) -> None:
        """A journal will grow."""
        with self._syncing:
            self._journals.add(handle)

    def closed(self, handle: int) -> None:
        """A journal is synced and grows no more; it may be closed when this returns."""
        with self._syncing:
            self._journals.discard(handle)

    def close(self) -> None:
        """Stop, and remove the log, unless a journal could not be synced and still needs it."""
        self._waiting.put(None)
        self._thread.join()
        if self._fault is None and not self._journals:
            self._path.unlink(missing_ok=True)
        os.close(self._handle)

    def _work(self) -> None:
        while (first := self._waiting.get()) is not None:
            time.sleep(GATHER_S)
            batch = [first]
            while not self._waiting.empty():
                if (more := self._waiting.get()) is None:
                    self._commit(batch)
                    return
                batch.append(more)
            self._commit(batch)

    def _commit(self, batch: Sequence[Append]) -> None:
        """Make appends durable together, or fail them together; after a fault nothing is."""
        try:
            if self._fault is not None:
                raise self._fault
            entries = b"".join([append.entry() for append in batch])
            write_all(self._handle, entries)
            os.fdatasync(self._handle)
            self._size += len(entries)
            if self._size > CHECKPOINT_BYTES:
                self._checkpoint()
        except OSError as error:
            self._fault = error
            for append in batch:
                append.done.set_exception(store_error(self._path, error))
        else:
            for append in batch:
                append.done.set_result(None)

    def _checkpoint(self) -> None:
        with self._syncing:
            for handle in self._journals:
                os.fdatasync(handle)
        os.ftruncate(self._handle, 0)
        self._size = 0


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
        for key, offset, data in _entries(log.read_bytes()):
            _write_again(root / key, offset, data)
        log.unlink(missing_ok=True)
        return True
    finally:
        os.close(handle)


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
    """Let a journal hold these bytes there; a journal that somebody has removed stays away."""
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return
    try:
        if os.pread(handle, len(data), offset) != data:
            os.pwrite(handle, data, offset)
            os.fsync(handle)
    finally:
        os.close(handle)


def write_all(handle: int, data: bytes) -> None:
    """Write all of it; OSError if the file cannot take it."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def sync_folder(folder: Path) -> None:
    """Make a folder's new names durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
