"""Processes that outlive the command that started them, and are still known for what they are.

A file `NAME.pid` keeps id, start time and boot of what was started; an id that meanwhile belongs to
another process is therefore never taken for ours. Whatever a service starts is found through the
tree of parents, through a marker in the environment and, where both fail (PostgreSQL overwrites its
environment and its orphans change their parent), through the folder that it works in.

Output goes into a file, never into a pipe that nobody would read. Source: proc(5).
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from adaexplore.backends.vllm import procfs
from adaexplore.backends.vllm.procfs import Process
from stack.layout import StackError

MARKER: Final = "ADAEXPLORE_STACK"
"""Environment variable by which processes of a service are recognised: its folder."""
POLL_S: Final = 0.05
KILLED_S: Final = 15.0
"""How long the system may take to end what was killed."""
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An unprivileged user, for a service that refuses to run as root."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What is run."""

    words: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    """Beside the few variables that every program needs; nothing else is inherited."""
    folder: Path
    """Working folder."""
    account: Account | None = None
    handles: tuple[int, ...] = ()
    """Open files that it inherits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where one service keeps what the system has to know of it."""

    name: str
    home: Path
    """Its data, and nobody else's."""
    log: Path
    pid_file: Path
    program: str
    """Name of its program, as the system shows it for processes in `home`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One start of a service."""

    root: Process
    log_start: int
    """Size of the log before it, in bytes."""


class Children:
    """What this process started: collected when it ends, so that nothing stays behind as a zombie."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, site: Site, command: Command) -> Start:
        """Start a service in a session of its own, and write down which process it is.

        Raises:
            StackError: The program cannot be run.
        """
        site.log.parent.mkdir(parents=True, exist_ok=True)
        with site.log.open("ab") as output:
            size = output.tell()
            try:
                child = subprocess.Popen(  # noqa: S603 (the words of our services, no shell)
                    command.words,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    **options(command, {MARKER: str(site.home)}),
                    start_new_session=True,
                )
            except OSError as error:
                raise StackError(
                    f"{site.name}: cannot run {command.words[0]}: {error.strerror}"
                ) from None
        self._started.append(child)
        root = procfs.read(child.pid) or Process(pid=child.pid, parent=os.getpid(), started=-1)
        document = {"pid": root.pid, "started": root.started, "boot": _boot()}
        site.pid_file.write_text(json.dumps(document) + "\n")
        return Start(root=root, log_start=size)

    def collect(self) -> None:
        """Forget those that have ended."""
        self._started = [child for child in self._started if child.poll() is None]


def options(command: Command, more: dict[str, str]) -> dict[str, Any]:
    """How a command is run, for `subprocess`."""
    account = command.account
    who = {} if account is None else {"user": account.uid, "group": account.gid, "extra_groups": []}
    few = {name: os.environ[name] for name in ("PATH", "LANG", "TZ") if name in os.environ}
    return {
        "cwd": command.folder,
        "env": {**few, "HOME": str(command.folder), **command.environment, **more},
        "pass_fds": command.handles,
        **who,
    }


def running(site: Site) -> Process | None:
    """The process that was started last, if it still runs."""
    try:
        document = json.loads(site.pid_file.read_text())
        pid, started, boot = document["pid"], document["started"], document["boot"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    process = procfs.read(pid)
    same = process is not None and process.started == started and boot == _boot()
    return process if same else None


def members(site: Site) -> list[Process]:
    """Every process of a service, whoever started it and whatever became of its parents."""
    root = running(site)
    found = [] if root is None else procfs.tree(root.pid)
    found += procfs.marked(f"{MARKER}={site.home}")
    found += [process for process in procfs.everything() if _works_in(site, process.pid)]
    return list({process.pid: process for process in found}.values())


def stop(site: Site, children: Children, *, number: signal.Signals, grace_s: float) -> bool:
    """Ask a service to end, wait, kill what is left; whether it ended by itself.

    Raises:
        StackError: Something cannot be killed; names the process ids.
    """
    before, root = members(site), running(site)
    if root is not None:
        with suppress(ProcessLookupError):
            os.kill(root.pid, number)
        polite = wait(lambda: not _left(before), grace_s, children)
    else:
        polite = not before
    end(site, children)
    site.pid_file.unlink(missing_ok=True)
    return polite


def end(site: Site, children: Children) -> None:
    """Kill every process of a service, and wait until the system has none of them left.

    Raises:
        StackError: Something cannot be killed; names the process ids.
    """
    known = {process.pid: process for process in members(site)}

    def gone() -> bool:
        known.update((process.pid, process) for process in members(site))
        procfs.kill(known.values())
        # What was born while these were looked for is seen when its parents have gone.
        return not _left(known.values()) and not members(site)

    if not wait(gone, KILLED_S, children):
        pids = ", ".join(str(process.pid) for process in _left(known.values()))
        raise StackError(
            f"{site.name}: processes {pids} do not end although they were killed; end them by hand "
            "(they may belong to another user)"
        )


def wait(done: Callable[[], bool], seconds: float, children: Children) -> bool:
    """Whether something came true in time."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    children.collect()
    return True


def _left(processes: Iterable[Process]) -> list[Process]:
    """Those of which anything is left: when the first thread has ended, others may still hold files."""
    return [
        process for process in processes if procfs.remaining([process]) or _threads(process) > 1
    ]


def _threads(process: Process) -> int:
    """How many threads an ended process still has, itself included; 0 once it is collected."""
    if procfs.read(process.pid) is not None:
        return 0  # the id belongs to another process by now
    try:
        return len(list((procfs.PROC / str(process.pid) / "task").iterdir()))
    except OSError:
        return 0


def _works_in(site: Site, pid: int) -> bool:
    try:
        program = (procfs.PROC / str(pid) / "exe").readlink().name
        folder = (procfs.PROC / str(pid) / "cwd").readlink()
    except OSError:
        return False
    return program == site.program and folder.is_relative_to(site.home)


def _boot() -> str:
    return _BOOT.read_text().strip()
