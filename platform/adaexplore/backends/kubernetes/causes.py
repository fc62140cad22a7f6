"""How far a model server is, why it has failed, and whether it is then started again. Pure.

Waiting and failing look alike in a cluster, and each cause asks for something else: to wait as long as a
queue takes, to wait for a limited time, to try once more, or to give up at once.
"""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from adaexplore.models.engines import reasons

Json = dict[str, Any]
LONGEST_PAUSE_S: Final = 60.0
_HELD: Final = re.compile(r"Free memory on device")


class Stage(Enum):
    """How far a server is."""

    QUEUED = "queued"
    """Suspended or gated: a queue or a person decides."""
    PLACING = "placing"
    """No node, or no quota, has room for it."""
    PULLING = "pulling"
    """On a node; no container yet."""
    STARTING = "starting"
    """Its container runs."""
    READY = "ready"


class Cause(Enum):
    """Why a server has failed; `Tries` says what follows."""

    CONFIG = "configuration"
    IMAGE = "image"
    ENGINE = "engine"
    """It ended by itself, or was found stuck."""
    MEMORY = "memory"
    DEVICE = "device"
    """Somebody still holds the GPU's memory."""
    DEADLINE = "deadline"
    EVICTED = "evicted"
    GONE = "gone"
    """Its Job was deleted by somebody."""
    DISRUPTED = "disrupted"
    """Preempted, or ended or refused by its node, for no fault of its own."""
    LOST = "lost"
    """Its node answers no more, and may hold it for long."""
    TAKEN = "taken"
    """Its pod was deleted, by a drain or a queue; its Job makes another one."""


UNCOUNTED: Final = (Cause.DISRUPTED, Cause.LOST, Cause.TAKEN)
"""What the cluster takes away is nobody's fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Not ready yet, or ready."""

    stage: Stage
    why: str = ""
    failing: bool = False
    """Whether something is wrong that may pass: an image that could not be pulled."""
    refused: bool = False
    """Whether its pod is not even made: there is no quota for it."""
    pod: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Failed."""

    cause: Cause
    why: str
    pod: str | None = None
    """Whose log may say more."""
    code: int | None = None
    """With which its container ended."""


Look = Waiting | Fault


class FailedError(Exception):
    """A start, or a server that was ready, has failed."""

    def __init__(self, fault: Fault) -> None:
        """Keep the fault."""
        super().__init__(fault.why)
        self.fault = fault


def understood(fault: Fault, log: str) -> Fault:
    """A fault of the engine with what its log says, which may change the cause."""
    if fault.cause is not Cause.ENGINE or fault.pod is None:
        return fault
    why = f"{fault.why}: {reasons.explain(fault.code, log)}"
    cause = Cause.ENGINE
    if _HELD.search(log):
        cause = Cause.DEVICE
    elif fault.code == reasons.KILLED:
        cause = Cause.MEMORY
    return Fault(cause=cause, why=why, pod=fault.pod, code=fault.code)


class Tries:
    """How often a server is started again, by the cause of its end.

    What the cluster takes away counts for nothing, but a cluster that does so again and again is given
    ever more time; what a new start cannot mend is not started again. A start that ends for want of
    memory is tried once more.
    """

    def __init__(self, restarts: int) -> None:
        """Allow so many restarts of a server that was ready, or that was evicted or deleted."""
        self._left = {
            Cause.ENGINE: 0,
            Cause.MEMORY: 1,
            Cause.DEVICE: 1,
        }
        self.restarts = restarts
        self.used = 0
        self._disrupted = 0

    def ready(self) -> None:
        """Note that the server has become ready."""
        self._disrupted = 0

    def pause_s(self) -> float:
        """How long to wait before the next start: not at all after a first disruption."""
        return 0.0 if self._disrupted < 2 else min(2.0**self._disrupted, LONGEST_PAUSE_S)

    def again(self, cause: Cause, *, was_ready: bool) -> bool:
        """Whether there is another start after this end; notes it."""
        if cause in UNCOUNTED:
            self._disrupted += cause is not Cause.TAKEN
            return True
        if cause in (Cause.CONFIG, Cause.IMAGE):
            return False
        if was_ready or cause in (Cause.EVICTED, Cause.GONE, Cause.DEADLINE):
            self.used += 1
            return self.used <= self.restarts
        self._left[cause] -= 1
        return self._left[cause] >= 0
