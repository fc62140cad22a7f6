"""Whether a writer still lives, as far as a bucket can tell.

Nothing in a bucket ends with a process. So a writer keeps an object of its own fresh, `writers/NAME`,
four times in each lease; who asks compares its last change with the time in the service's answer:
both are the service's clock, and nobody else's matters. A writer on the same machine and in the same
process namespace is looked up there: a killed one is seen dead at once. Only money rests on the
answer: a wrong one has an episode played twice, or later.
"""

import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final, Self

from adaexplore.backends.s3.calls import Answer, Calls
from adaexplore.errors import StoreError

_PROC: Final = Path("/proc")
_UNCONDITIONAL: Final = frozenset({400, 405, 412, 501})
"""Refusals of a conditional put: 412 by those that have it, the others by those that do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process by everything that tells it from another of the same number."""

    machine: str
    """Boot and process namespace; empty where the system does not say."""
    pid: str
    started: str
    """Ticks from boot to its start."""

    @classmethod
    def own(cls) -> Self:
        """This process."""
        pid = _link("self")
        return cls(machine=_machine(), pid=pid, started=_started(pid) or "")


def key(writer: str) -> str:
    """Key of a writer's object."""
    return f"writers/{writer}"


def alive(calls: Calls, writer: str) -> bool:
    """Whether a writer is still there; StoreError if the service cannot be asked."""
    answer = calls.ask("head_object", key(writer), expected=frozenset({404}))
    if answer.refused:
        return False
    said = answer.body["Metadata"]
    machine = _machine()
    if machine and said.get("machine") == machine:
        return bool(_started(said.get("pid", "")) == said.get("started"))
    return _is_fresh(answer.body)


class Lease:
    """Keeps a writer's object fresh while this process lives."""

    def __init__(self, calls: Calls, writer: str, lease_s: float) -> None:
        """Write nothing yet."""
        self._calls = calls
        self._key = key(writer)
        self._lease_s = lease_s
        self._changing = threading.Lock()
        self._ended: threading.Event | None = None
        self._beating: threading.Thread | None = None
        self.exclusive = False
        """Whether the service refuses a conditional put to a taken key; known after the start."""

    def start(self) -> None:
        """Be alive from now on; again does nothing. StoreError if it cannot be written."""
        with self._changing:
            if self._ended is not None:
                return
            self._renew()
            again = self._renew(IfNoneMatch="*", expected=_UNCONDITIONAL)
            self.exclusive = again.status == 412
            self._ended = threading.Event()
            self._beating = threading.Thread(
                target=self._beat, args=(self._ended,), name="store-lease", daemon=True
            )
            self._beating.start()

    def stop(self) -> None:
        """Be alive no more; where that cannot be written, the lease runs out by itself."""
        with self._changing:
            if self._ended is None or self._beating is None:
                return
            self._ended.set()
            self._beating.join()
            self._ended = self._beating = None
            with suppress(StoreError):
                self._calls.ask("delete_object", self._key, attempts=2)

    def _beat(self, ended: threading.Event) -> None:
        while not ended.wait(self._lease_s / 4):
            with suppress(StoreError):  # the next beat tries again, and whoever writes is told
                self._renew(attempts=1)

    def _renew(self, **parameters: Any) -> Answer:
        said = asdict(Process.own()) | {"lease": str(self._lease_s)}
        return self._calls.ask("put_object", self._key, Body=b"", Metadata=said, **parameters)


def _is_fresh(head: dict[str, Any]) -> bool:
    try:
        now = parsedate_to_datetime(head["ResponseMetadata"]["HTTPHeaders"]["date"])
        lease_s = float(head["Metadata"]["lease"])
    except (KeyError, ValueError):  # the service does not say its time, or the object is not ours
        return False
    changed: datetime = head["LastModified"]
    return (now - changed).total_seconds() < lease_s


def _machine() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
    namespace = _link("self/ns/pid")
    return f"{boot} {namespace}" if namespace else ""


def _link(name: str) -> str:
    try:
        return str((_PROC / name).readlink())
    except OSError:
        return ""


def _started(pid: str) -> str | None:
    """When a process started, in ticks since boot; None if it is gone or waits to be buried."""
    try:
        # The name in parentheses may hold anything, so fields count from its end.
        stat = (_PROC / pid / "stat").read_bytes().decode(errors="replace")
        state, *fields = stat.rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state in ("Z", "X") else fields[18]
