"""What a kubelet says of a pod. Pure: from the states of its containers to the status.

Source: Kubernetes documentation, "Pod Lifecycle".
"""

import time
from calendar import timegm
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from k8s.testbed.api import Json

OURS: Final = ("Initialized", "ContainersReady", "Ready")
PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"


@dataclass(slots=True, kw_only=True)
class View:
    """One container, as its status shows it."""

    name: str
    image: str
    state: Json = field(default_factory=lambda: waiting("ContainerCreating"))
    last: Json = field(default_factory=dict)
    restarts: int = 0
    ready: bool = False
    started: bool = False
    finished: bool = False
    """It has ended and is not started again."""

    @property
    def code(self) -> int | None:
        """The exit code of a finished one."""
        return self.state["terminated"]["exitCode"] if self.finished else None


def waiting(reason: str, message: str = "") -> Json:
    """The state of a container that does not run yet."""
    return {"waiting": {"reason": reason} | ({"message": message} if message else {})}


def running(since: float) -> Json:
    """The state of one that runs."""
    return {"running": {"startedAt": stamp(since)}}


def terminated(code: int, reason: str, since: float, message: str = "") -> Json:
    """The state of one that has ended now."""
    state: Json = {
        "exitCode": code,
        "reason": reason,
        "startedAt": stamp(since),
        "finishedAt": stamp(time.time()),
    }
    return {"terminated": state | ({"message": message} if message else {})}


def phase(inits: Iterable[View], mains: Sequence[View]) -> str:
    """The pod's phase."""
    inits = list(inits)
    if any(view.finished and view.code != 0 for view in inits):
        return FAILED
    if not all(view.finished for view in inits):
        return PENDING
    if all(view.finished for view in mains):
        return SUCCEEDED if all(view.code == 0 for view in mains) else FAILED
    never_ran = ("waiting" in view.state and not view.last for view in mains)
    return PENDING if any(never_ran) else RUNNING


def status(
    pod: Json, inits: Sequence[View], mains: Sequence[View], *, address: str, host: str
) -> Json:
    """The whole status, to be merged into the pod's."""
    now = phase(inits, mains)
    ready = now == RUNNING and all(view.ready for view in mains)
    done = all(view.finished and view.code == 0 for view in inits)
    old = pod.get("status", {})
    found: Json = {
        "phase": now,
        "hostIP": host,
        "startTime": old.get("startTime") or stamp(time.time()),
        "conditions": conditions(old.get("conditions", []), (done, ready, ready), now),
        "containerStatuses": [_shown(view) for view in mains],
    }
    if inits:
        found["initContainerStatuses"] = [_shown(view) for view in inits]
    if address:
        found |= {"podIP": address, "podIPs": [{"ip": address}]}
    return found


def conditions(old: Iterable[Json], values: Sequence[bool], now: str) -> list[Json]:
    """The pod's conditions: ours as they are now, those of others untouched."""
    before = {condition["type"]: condition for condition in old}
    for kind, value in zip(OURS, values, strict=True):
        word = "True" if value else "False"
        reason = (
            {}
            if value
            else {"reason": "PodCompleted" if now == SUCCEEDED else "ContainersNotReady"}
        )
        was = before.get(kind)
        changed = was["lastTransitionTime"] if was and was["status"] == word else stamp(time.time())
        before[kind] = {"type": kind, "status": word, "lastTransitionTime": changed, **reason}
    return list(before.values())


def stamp(seconds: float) -> str:
    """A time as the API server writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def seconds(text: str) -> float:
    """Seconds since 1970 of a time as the API server writes it."""
    return timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))


def _shown(view: View) -> Json:
    return {
        "name": view.name,
        "image": view.image,
        "imageID": f"testbed://{view.image}",
        "containerID": f"testbed://{view.name}-{view.restarts}",
        "state": view.state,
        "lastState": view.last,
        "restartCount": view.restarts,
        "ready": view.ready,
        "started": view.started,
    }
