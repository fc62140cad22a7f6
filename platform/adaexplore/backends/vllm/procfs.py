"""What the system itself says of processes and sockets: /proc, read without trust in anyone's word.

A process id alone is no identity, since ids are used again; with its start time it is. Engines
rename their processes and overwrite their environment block, so a marker in the environment finds
only some of a server's processes and the tree of parents the others: both are asked.

Source: proc(5).
"""

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
LISTENING: Final = "0A"
"""State of a listening socket in /proc/net/tcp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process, told apart from a later one with the same id."""

    pid: int
    parent: int
    started: int
    """Clock ticks after boot."""


def read(pid: int) -> Process | None:
    """A process as it is now; None if it has ended, even if nobody has collected it yet."""
    try:
        # The name in parentheses may be any bytes.
        stat = (PROC / str(pid) / "stat").read_bytes().decode(errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    if fields[0] in "ZX":
        return None
    return Process(pid=pid, parent=int(fields[1]), started=int(fields[19]))


def everything() -> list[Process]:
    """Every process of the machine that we can see."""
    found = (read(int(path.name)) for path in PROC.iterdir() if path.name.isdigit())
    return [process for process in found if process is not None]


def tree(root: int) -> list[Process]:
    """A process and all below it, whatever their sessions; empty if it has ended."""
    children: dict[int, list[Process]] = {}
    for process in everything():
        children.setdefault(process.parent, []).append(process)
    top = read(root)
    found = [] if top is None else [top]
    for process in found:
        found += children.get(process.pid, [])
    return found


def marked(marker: str) -> list[Process]:
    """Processes that were started with an environment variable, given as NAME=VALUE."""
    wanted = marker.encode()
    return [process for process in everything() if wanted in _environment(process.pid)]


def kill(processes: Iterable[Process]) -> None:
    """Kill processes that still are the ones they were."""
    for process in remaining(processes):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal.SIGKILL)


def remaining(processes: Iterable[Process]) -> list[Process]:
    """Those that are still there; a changed parent does not make another process."""
    pairs = ((process, read(process.pid)) for process in processes)
    return [now for before, now in pairs if now is not None and now.started == before.started]


def listeners(port: int) -> set[str]:
    """Inodes of the sockets that listen on a TCP port."""
    found = set()
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (PROC / "net" / name).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    found.add(fields[9])
    return found


def sockets(processes: Iterable[Process]) -> set[str]:
    """Inodes of the sockets that processes hold."""
    found = set()
    for process in processes:
        with suppress(OSError):
            for handle in (PROC / str(process.pid) / "fd").iterdir():
                found |= _socket(handle)
    return found


def _socket(handle: Path) -> set[str]:
    with suppress(OSError):  # closed in the meantime
        target = str(handle.readlink())
        if target.startswith("socket:["):
            return {target[len("socket:[") : -1]}
    return set()


def _environment(pid: int) -> list[bytes]:
    try:
        return (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []
