"""What a RayJob and its pods say of themselves, in the words that a person who waits needs. Pure.

A cluster tells why something does not begin in four places: the RayJob's status, the pods' conditions,
the states of their containers, and events. Here they become one line, the worst first. Whether a sweep
is over is read from the RayJob's status, how it ended from its reason and message, and from nothing
else: the submitter's own end says nothing about the sweep.

Source: `rayjob_types.go` of KubeRay 1.7 (states and reasons), Kubernetes API concepts (pods).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Json = dict[str, Any]
OVER: Final = ("Complete", "Failed", "ValidationFailed")
"""Deployment states that a RayJob does not leave by itself."""
GONE: Final = "Deleted"
"""State of a RayJob that somebody has deleted."""
_CODE: Final = re.compile(r"failed with exit code (-?\d+)")
_ERROR: Final = re.compile(
    r"^(?:error: .*|interrupted: .*|\w*(?:Error|Exception): .*)$", re.MULTILINE
)
_WAITING: Final = (
    "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
    "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff",
)  # fmt: skip
"""Reasons of a waiting container that do not pass by themselves."""
_TOLD: Final = ("FailedCreate", "FailedMount", "FailedToCreateHeadPod", "FailedToCreateWorkerPod")
"""Reasons of events that say why pods are missing."""
_QUOTA: Final = "exceeded quota"
_LONGEST: Final = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One look at a RayJob."""

    name: str
    deployment: str
    """`jobDeploymentStatus`; empty before the operator has looked at it."""
    job: str = ""
    """`jobStatus`: of the Ray job."""
    reason: str = ""
    message: str = ""
    cluster: str = ""
    """Name of the attempt's RayCluster."""
    failed: int = 0
    """Attempts that have failed."""

    @property
    def over(self) -> bool:
        """Whether nothing more will happen."""
        return self.deployment in (*OVER, GONE)

    @property
    def succeeded(self) -> bool:
        """Whether the driver has ended with 0."""
        return self.deployment == "Complete" and self.job == "SUCCEEDED"

    @property
    def exit_code(self) -> int | None:
        """Of the driver, where Ray has told it."""
        found = _CODE.search(self.message)
        return int(found[1]) if found else None

    @property
    def why(self) -> str:
        """Why it ended so, in one line: the driver's own last error, else the operator's reason."""
        lines = _ERROR.findall(self.message)
        told = lines[-1] if lines else " ".join(self.message.split())
        return ": ".join(filter(None, (self.reason, told[:_LONGEST]))) or "no reason is told"


def seen(document: Json) -> Seen:
    """A RayJob's document as one look."""
    status = document.get("status") or {}
    return Seen(
        name=document["metadata"]["name"],
        deployment=status.get("jobDeploymentStatus") or "",
        job=status.get("jobStatus") or "",
        reason=status.get("reason") or "",
        message=status.get("message") or "",
        cluster=status.get("rayClusterName") or "",
        failed=status.get("failed") or 0,
    )


def gone(name: str) -> Seen:
    """The look at a RayJob that is there no more."""
    return Seen(name=name, deployment=GONE, message="somebody has deleted it")


def line(one: Seen, pods: Sequence[Json], events: Iterable[Json]) -> str:
    """What is going on, in one line without numbers that change all the time."""
    state = one.deployment or "created; the operator has not looked at it yet"
    if one.deployment == "Running" and one.job:
        state = f"the Ray job is {one.job.lower()}"
    elif one.deployment in ("Suspended", "Suspending"):
        state = f"{one.deployment.lower()}: waits to be admitted again (a queue, or spec.suspend)"
    elif one.deployment == "Retrying":
        state = f"a new Ray cluster after {one.failed} failed ({one.why})"
    why = trouble(pods, events)
    return f"{state}; {why}" if why else state


def trouble(pods: Sequence[Json], events: Iterable[Json]) -> str | None:
    """The first thing that keeps pods from running, with its pod; None if nothing does."""
    found = [(pod["metadata"]["name"], told) for pod in pods if (told := _of_pod(pod)) is not None]
    if found:
        name, told = found[0]
        more = f" (and {len(found) - 1} more pods)" if len(found) > 1 else ""
        return f"pod {name} {told}{more}"
    names = {pod["metadata"]["name"] for pod in pods}
    for event in events:
        where = event.get("involvedObject") or event.get("regarding") or {}
        text = " ".join((event.get("message") or event.get("note") or "").split())
        missing = where.get("kind") != "Pod" or where.get("name") in names
        if event.get("reason") in _TOLD and missing:
            short = "quota" if _QUOTA in text else event["reason"]
            return f"{str(where.get('kind', 'object')).lower()} {where.get('name')}: {short}: {text[:_LONGEST]}"
    return None


def _of_pod(pod: Json) -> str | None:
    """Why a pod does not run; None if it does, or will."""
    status = pod.get("status") or {}
    if "deletionTimestamp" in pod["metadata"]:
        return None
    if status.get("phase") == "Failed":
        reason = status.get("reason") or _ended(status) or "failed"
        return f"has ended: {reason}{_because(status.get('message'))}"
    for state in _states(status):
        waiting = state.get("waiting") or {}
        if waiting.get("reason") in _WAITING:
            return f"waits: {waiting['reason']}{_because(waiting.get('message'))}"
        ended = (state.get("terminated") or {}).get("reason")
        if ended == "OOMKilled":
            return (
                "was killed for want of memory (OOMKilled): raise its memory in backend.kubernetes"
            )
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return f"is not placed: {condition.get('reason')}{_because(condition.get('message'))}"
    return None


def _states(status: Mapping[str, Any]) -> Iterable[Json]:
    for kind in ("initContainerStatuses", "containerStatuses"):
        for one in status.get(kind) or ():
            yield one.get("state") or {}


def _ended(status: Mapping[str, Any]) -> str:
    ends = [state["terminated"] for state in _states(status) if state.get("terminated")]
    return next((str(end.get("reason")) for end in ends if end.get("exitCode")), "")


def _because(message: str | None) -> str:
    return f" ({' '.join(message.split())[:_LONGEST]})" if message else ""
