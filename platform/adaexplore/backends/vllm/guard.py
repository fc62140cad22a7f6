"""The guard: a small process between the launcher and a model server, so that neither outlives us.

A launcher that is killed cannot clean up, and an engine that forks helpers into sessions of their
own leaves them behind when it dies. So the server is started by this guard, which
- holds the reading end of a pipe whose writing end only the launcher has: end of file means that
  the launcher is gone, or asks for a stop; the byte `k` asks for one without grace;
- is the *subreaper* of everything below it (prctl(2)): whatever loses its parent becomes the guard's
  child, so the walk over /proc finds it whatever session or group it moved to;
- leaves only when nothing is left below it, with the server's exit code (128 + signal when killed).

It is run as a file by `python -I -S`, imports only the standard library, and needs Linux.

    guard.py GRACE_SECONDS LAUNCHER_PID WORD [WORD ...]
"""

import ctypes
import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
TICK_S = 0.2
KILL_NOW = b"k"
NOT_STARTED = 127
"""Exit code when the first word cannot be run, as shells have it."""


def main(arguments: list[str]) -> int:
    """Start the server, hold it, and end it with everything below it; its exit code."""
    grace_s, launcher, words = float(arguments[0]), int(arguments[1]), arguments[2:]
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the pipe is the one way to ask for a stop
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    server = _start(words)
    code, asked = _hold(server, launcher)
    if code is None:
        code = _terminate(server, 0.0 if asked == KILL_NOW else grace_s)
    _clear()
    return code


def _start(words: list[str]) -> int:
    """Process id of the server, leader of a session of its own."""
    guard = os.getpid()
    if child := os.fork():
        return child
    os.setsid()
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)  # the pipe belongs to the guard alone
    try:
        if os.getppid() == guard:
            os.execvp(words[0], words)  # noqa: S606 (the user's own words)
    except OSError as error:
        print(f"guard: cannot run {words[0]}: {error.strerror}", file=sys.stderr, flush=True)
    os._exit(NOT_STARTED)


def _hold(server: int, launcher: int) -> tuple[int | None, bytes]:
    """Wait for the server's end (its code) or for the launcher's word (what it wrote)."""
    while True:
        ready, _, _ = select.select([0], [], [], TICK_S)
        if ready:
            return None, os.read(0, 1)
        if os.getppid() != launcher:  # its pipe may live on in a process that it forked
            return None, b""
        if (code := _reap(server)) is not None:
            return code, b""


def _terminate(server: int, grace_s: float) -> int:
    """End the server's group: politely, then not; its exit code."""
    deadline = time.monotonic() + grace_s
    if grace_s:
        _signal_group(server, signal.SIGTERM)
    while time.monotonic() < deadline:
        if (code := _reap(server)) is not None:
            return code
        time.sleep(TICK_S / 4)
    _signal_group(server, signal.SIGKILL)
    while (code := _reap(server)) is None:
        time.sleep(TICK_S / 4)
    return code


def _clear() -> None:
    """Kill whatever is left below us until nothing is."""
    while below := _below(os.getpid()):
        for pid in below:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _reap(0)
        time.sleep(TICK_S / 10)


def _reap(server: int) -> int | None:
    """Collect what has ended; the server's code if it is among them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == server:
            code = os.waitstatus_to_exitcode(status)
            found = code if code >= 0 else 128 - code


def _below(root: int) -> list[int]:
    """Every process below a process, whatever its session."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = path.read_bytes().rpartition(b")")[2].split()  # the name may be any bytes
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(int(after_name[1]), []).append(int(path.parent.name))
    found = list(children.get(root, []))
    for pid in found:
        found += children.get(pid, [])
    return found


def _signal_group(leader: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(leader, number)


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value})")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
