"""The folder store: plain files under one folder.

Objects are written to a temporary file, synced and renamed into place, so a reader never sees half
of one and a crash leaves the old or the new. Journals are appended to and synced line by line.
"""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from adaexplore.errors import StoreError

T = TypeVar("T")
_MENDS = {
    errno.ENOSPC: "free some space and launch again: nothing that was acknowledged is lost",
    errno.EDQUOT: "free some of the quota and launch again: nothing that was acknowledged is lost",
    errno.EFBIG: "raise the file size limit and launch again: nothing that was acknowledged is lost",
    errno.ENOENT: "choose another folder with {option}",
    errno.EROFS: "choose another folder with {option}",
    errno.EACCES: "choose another folder with {option}, or give yourself write access",
    errno.EPERM: "choose another folder with {option}, or give yourself write access",
    errno.ENOTDIR: "choose another folder with {option}: a part of the path is a file",
    errno.EEXIST: "choose another folder with {option}: a part of the path is a file",
}


class FolderStore:
    """Objects as files below a root folder."""

    def __init__(self, root: Path) -> None:
        """Use a folder, made if it is not there.

        Raises:
            StoreError: The folder cannot be made or written.
        """
        self.root = root
        self._guard(root, lambda: root.mkdir(parents=True, exist_ok=True))

    def put(self, key: str, data: bytes) -> None:
        """Write an object whole, synced before it takes its name."""
        path = self._path(key)
        self._guard(path, lambda: _replace(path, data))

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
        start = self._path(prefix)
        found = []
        for folder, _, names in os.walk(start):
            below = Path(folder).relative_to(self.root).as_posix()
            found += [f"{below}/{name}" for name in names if not name.startswith(".")]
        return sorted(found)

    def create(self, key: str, data: bytes) -> "FileAppender | None":
        """Start a growing file; None if it exists."""
        path = self._path(key)

        def start() -> "FileAppender | None":
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND, 0o644)
            except FileExistsError:
                return None
            appender = FileAppender(path, handle)
            appender.append(data)
            _sync_folder(path.parent)
            return appender

        return self._guard(path, start)

    def locate(self, key: str) -> str:
        """The file's path."""
        return str(self._path(key))

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
    """A file that grows, synced with every append."""

    def __init__(self, path: Path, handle: int) -> None:
        """Take over an open file."""
        self._path = path
        self._handle = handle

    def append(self, data: bytes) -> None:
        """Append and sync; a short write is an error, and its torn line is found on reading."""
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._handle, view) :]
            os.fdatasync(self._handle)
        except OSError as error:
            raise store_error(self._path, error) from error

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):
            os.close(self._handle)


def store_error(path: Path, error: OSError, *, option: str = "runs_dir=...") -> StoreError:
    """What a user is told of a file system fault: where, what, and how to mend it.

    Args:
        path: What could not be read or written.
        error: The fault.
        option: What the user gives to choose another folder.
    """
    mend = _MENDS.get(error.errno or 0, "mend the file system and launch again")
    return StoreError(f"{path}: {error.strerror or error}; {mend.format(option=option)}")


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}.{os.getpid()}"
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
