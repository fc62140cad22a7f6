"""One run of a container as a process, and commands inside it.

The launcher is our child; the container's own process is the launcher's, first in a process namespace
of its own. So killing the launcher ends everything that the container started.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adaexplore.backends.vllm import procfs
from k8s.testbed.api import Json

LAUNCHER: Final = Path(__file__).with_name("launcher.py")
STARTED_S: Final = 20.0
"""Until the launcher has forked; it takes milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is run, and where."""

    words: list[str]
    environment: dict[str, str]
    folder: str
    mounts: list[Json]
    sandbox: int
    """The process that holds the pod's namespaces."""
    home: Path
    """The container's folder on this machine."""
    log: Path


class Run:
    """A started container."""

    def __init__(self, plan: Plan) -> None:
        """Start it."""
        self.plan = plan
        self.started = time.time()
        self._pid_file = plan.home / "pid"
        self._pid_file.unlink(missing_ok=True)
        root = plan.home / "root"
        root.mkdir(exist_ok=True)
        with plan.log.open("ab") as log:
            self._launcher = _launch("run", self._spec(root), log.fileno())

    def poll(self) -> int | None:
        """Its exit code, 128 + signal when it was killed; None while it runs."""
        code = self._launcher.poll()
        return code if code is None or code >= 0 else 128 - code

    def terminate(self) -> None:
        """SIGTERM to the container's first process, once it is there to be told."""
        if self.pid() is not None:
            self._launcher.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to all of it."""
        pid = self.pid()
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        else:
            self._launcher.kill()

    def pid(self) -> int | None:
        """Its first process, as this process namespace numbers it; None before and after."""
        if self._launcher.poll() is not None:
            return None
        deadline = time.monotonic() + STARTED_S
        while not self._pid_file.exists():
            if self._launcher.poll() is not None or time.monotonic() > deadline:
                return None
            time.sleep(0.01)
        return int(self._pid_file.read_text())

    def memory(self) -> int:
        """Bytes that its processes hold for themselves, shared and file pages left out."""
        pid = self.pid()
        return sum(_anonymous(one) for one in _below(pid)) if pid is not None else 0

    def execute(self, words: list[str], timeout_s: float) -> tuple[int, str]:
        """Exit code and output of a command inside; (124, "") when it took too long."""
        pid = self.pid()
        if pid is None:
            return 126, "the container does not run"
        plan = self.plan
        spec = {
            "pid": pid,
            "words": words,
            "environment": plan.environment,
            "folder": plan.folder,
        }
        child = _launch("exec", spec, subprocess.PIPE)
        try:
            output, _ = child.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            return 124, ""
        return child.returncode, output.decode(errors="replace")

    def _spec(self, root: Path) -> Json:
        plan = self.plan
        return {
            "sandbox": plan.sandbox,
            "root": str(root),
            "pid_file": str(self._pid_file),
            "mounts": plan.mounts,
            "words": plan.words,
            "environment": plan.environment,
            "folder": plan.folder,
        }


class Sandbox:
    """The process that holds a pod's network, name and IPC while the pod lives."""

    def __init__(self, hostname: str) -> None:
        """Start it, and wait until its namespaces are there."""
        words = [sys.executable, "-I", "-S", str(LAUNCHER), "pause", hostname]
        self._child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._child.stdout is not None  # noqa: S101 (it is a pipe)
        self.ready = self._child.stdout.readline() == b"ready\n"
        self.pid = self._child.pid

    def close(self) -> None:
        """End it."""
        self._child.kill()
        self._child.communicate()


def _launch(mode: str, spec: Json, output: int) -> subprocess.Popen[bytes]:
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", str(LAUNCHER), mode],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert child.stdin is not None  # noqa: S101 (it is a pipe)
    with suppress(BrokenPipeError):
        child.stdin.write(json.dumps(spec).encode())
        child.stdin.close()
    child.stdin = None
    return child


def _below(root: int) -> Iterator[int]:
    for process in procfs.tree(root):
        yield process.pid


def _anonymous(pid: int) -> int:
    with suppress(OSError, ValueError, IndexError):
        for line in (procfs.PROC / str(pid) / "status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    return 0
