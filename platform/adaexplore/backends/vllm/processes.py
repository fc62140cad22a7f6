"""One run of a server: started under its guard, logged from the first byte, confirmed gone.

The server writes into a file, never into a pipe: a pipe that nobody reads while the server loads
fills up and stops it for good. Stopping is asked by closing the guard's pipe, which cannot fail and
needs no waiting, so even a launcher that is interrupted twice leaves nothing behind; waiting and
looking round afterwards is the second line of defence, for a guard that was itself killed.
"""

import asyncio
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from adaexplore.backends.vllm import guard, procfs
from adaexplore.backends.vllm.procfs import Process
from adaexplore.errors import ServingError

MARKER: Final = "ADAEXPLORE_SERVER"
"""Environment variable by which processes of a server are recognised."""
TAIL_BYTES: Final = 200_000
"""How much of a log is read to find a reason."""
POLL_S: Final = 0.05
PATIENCE_S: Final = 15.0
"""How long the guard, and the system, may take beyond the grace that the server has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What is run: words, environment, and the folder it runs in."""

    words: tuple[str, ...]
    environment: dict[str, str] = field(repr=False)
    """Whole; it may hold a key."""
    folder: Path


@dataclass(slots=True, kw_only=True)
class Run:
    """A server that was started, and everything that it started."""

    guard: "subprocess.Popen[bytes]"
    log: Path
    log_start: int
    """Size of the log before this run, in bytes."""
    marker: str
    grace_s: float
    known: list[Process] = field(default_factory=list)
    """Members seen last; what is left of them is looked for at the end."""

    def exit_code(self) -> int | None:
        """The server's exit code, 128 + signal when killed; None while it runs."""
        code = self.guard.poll()
        return code if code is None or code >= 0 else 128 - code

    def members(self) -> list[Process]:
        """Every process of the run, the guard first."""
        found = {process.pid: process for process in procfs.tree(self.guard.pid)}
        found |= {process.pid: process for process in procfs.marked(self.marker)}
        self.known = list(found.values())
        return self.known

    def output(self) -> str:
        """The end of what this run has written."""
        with self.log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(self.log_start, size - TAIL_BYTES))
            return file.read().decode(errors="replace")

    def ask_to_stop(self, *, at_once: bool) -> None:
        """Tell the guard to end everything: with the server's grace, or at once."""
        if self.guard.stdin is None or self.guard.stdin.closed:
            return
        if at_once:
            with suppress(BrokenPipeError):  # the guard has ended
                self.guard.stdin.write(guard.KILL_NOW)
        self.guard.stdin.close()

    async def stop(self, *, at_once: bool = False) -> None:
        """End the run and wait until nothing of it is left.

        Raises:
            ServingError: Something cannot be killed; names the process ids.
        """
        before = [*self.known, *self.members()]
        self.ask_to_stop(at_once=at_once)
        deadline = time.monotonic() + PATIENCE_S + (0 if at_once else self.grace_s)
        # Nothing but the system tells of a process's end, and only when asked.
        while self.exit_code() is None and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)
        await self._confirm(before)

    async def _confirm(self, before: list[Process]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while left := procfs.remaining([*before, *procfs.marked(self.marker)]):
            procfs.kill(left)
            if time.monotonic() > deadline:
                pids = ", ".join(str(process.pid) for process in left)
                raise ServingError(
                    f"{self.log}: processes {pids} of the server do not end although they were "
                    "killed; end them by hand, or restart the machine, before launching again"
                )
            await asyncio.sleep(POLL_S)
        self.guard.wait()


def start(command: Command, *, log: Path, grace_s: float) -> Run:
    """Start a server under a guard of its own; its output goes into a file, appended.

    Raises:
        ServingError: The machine is not Linux, or the log cannot be written.
    """
    if not sys.platform.startswith("linux"):
        raise ServingError(
            f"expected Linux to start a model server, got {sys.platform}; start the server yourself "
            "and give its address as +profiles.NAME.route.base_url=..."
        )
    marker = f"{MARKER}={os.getpid()}-{time.time_ns()}"
    name, _, value = marker.partition("=")
    words = [sys.executable, "-I", "-S", guard.__file__, str(grace_s), str(os.getpid())]
    try:
        with log.open("ab") as output:
            process = subprocess.Popen(  # noqa: S603 (the user's own words, no shell)
                [*words, *command.words],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                bufsize=0,
                cwd=command.folder,
                env={**command.environment, name: value},
                start_new_session=True,
            )
            size = output.tell()
    except OSError as error:
        raise ServingError(f"{log}: cannot start a server: {error.strerror or error}") from None
    return Run(guard=process, log=log, log_start=size, marker=marker, grace_s=grace_s)
