"""What the objects of a model server say: it waits, it is ready, or it has failed, and of what. Pure.

A pod that cannot be placed, one whose image is missing and one that was preempted are all "not ready":
here they are told apart, with the line that a person needs. An object that was made and is gone is a
cause of its own, and never "not there yet" (skypilot issue 10800).

Source: Kubernetes API concepts (pods, Jobs), messages of kubelet, scheduler and quota admission.
"""

import re
import time
from calendar import timegm
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from adaexplore.backends.kubernetes.causes import Cause, Fault, Json, Look, Stage, Waiting
from adaexplore.backends.kubernetes.manifests import common

SLACK_S: Final = 20.0
"""After the end of its grace period a pod is gone, unless its node is."""
_PULL: Final = ("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable")
_BAD_IMAGE: Final = ("InvalidImageName", "ErrImageNeverPull", "ImageInspectError")
_BAD_CONTAINER: Final = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")
_NO_SUCH_IMAGE: Final = re.compile(
    r"manifest unknown|manifest for .* not found|not found: |: not found|unauthorized|access denied"
    r"|denied: |repository does not exist|invalid reference format|no match for platform",
    re.IGNORECASE,
)
_NEVER_PLACED: Final = re.compile(r'persistentvolumeclaim "[^"]+" not found')
_NEVER_CREATED: Final = re.compile(
    r'serviceaccount "[^"]+" not found|violates PodSecurity|failed quota|is invalid|admission webhook'
    r"|no PriorityClass|denied the request"
)
_KILLED: Final = (128 + 9, 128 + 15)
_QUOTA: Final = re.compile(r"exceeded quota: (\S+), requested: (\S+), used: (\S+), limited: (\S+)")
_AWAY: Final = re.compile(
    r"^(NodeLost|NodeShutdown|Shutdown|Terminated|Preempt\w*|UnexpectedAdmissionError|OutOf\w+\S*"
    r"|NodeAffinity|ContainerStatusUnknown)$"
)


def look(job: Json | None, pods: Iterable[Json], events: Iterable[Json], now_s: float) -> Look:
    """What a Job and its pods say at a time in seconds since 1970.

    Args:
        job: None if there is none of its name.
        pods: All that may be its own.
        events: Of the Job and of its pods, the oldest first.
        now_s: For pods that outlive the end of their grace.
    """
    if job is None or "deletionTimestamp" in job["metadata"]:
        return Fault(cause=Cause.GONE, why="its Job was deleted by somebody")
    if job["spec"].get("suspend") or _condition(job, "Suspended"):
        return Waiting(stage=Stage.QUEUED, why="suspended: waits to be admitted by its queue")
    ours, told = own(job, pods), list(events)
    ending = [pod for pod in ours if "deletionTimestamp" in pod["metadata"]]
    staying = [pod for pod in ours if pod not in ending]
    if over := [pod for pod in staying if _over(pod)]:
        return ended(over[0], told)  # though its Job may have made another pod already
    if staying:
        return _of_living(staying[-1], told)
    if failed := _condition(job, "Failed"):
        cause = Cause.DEADLINE if failed.get("reason") == "DeadlineExceeded" else Cause.ENGINE
        return Fault(cause=cause, why=f"its Job has failed: {_told(failed)}")
    return _of_ending(ending[-1], now_s) if ending else _of_podless(told)


def own(job: Json, pods: Iterable[Json]) -> list[Json]:
    """The pods of a Job, the oldest first."""
    uid = job["metadata"]["uid"]
    found = [
        pod
        for pod in pods
        if any(owner["uid"] == uid for owner in pod["metadata"].get("ownerReferences", []))
    ]
    return sorted(found, key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")))


def ended(pod: Json, events: Sequence[Json] = ()) -> Fault:
    """Why a pod is over; where its container ended by itself, its log has the last word."""
    status, name = pod.get("status", {}), pod["metadata"]["name"]
    node = pod["spec"].get("nodeName", "its node")
    reason = str(status.get("reason", ""))
    target = _condition(pod, "DisruptionTarget")
    said = _told({"reason": reason, "message": status.get("message", "")})
    if reason == "Evicted" or (target or {}).get("reason") == "TerminationByKubelet":
        return Fault(cause=Cause.EVICTED, why=f"evicted by {node}: {said}", pod=name)
    if reason == "DeadlineExceeded":
        return Fault(cause=Cause.DEADLINE, why=f"ended by its deadline: {said}", pod=name)
    if target is not None or _AWAY.match(reason):
        return Fault(
            cause=Cause.DISRUPTED, why=f"taken from {node}: {_told(target or {}) or said}", pod=name
        )
    for container in status.get("containerStatuses") or []:
        if (state := container.get("state", {}).get("terminated")) is not None:
            return _of_container(state, pod, _event(events, pod, ("Killing",)) or "")
    return Fault(
        cause=Cause.DISRUPTED, why=f"ended on {node}: {said or 'no reason is told'}", pod=name
    )


# -- the parts of a look -----------------------------------------------------------------------


def _of_living(pod: Json, events: Sequence[Json]) -> Look:
    status, name = pod.get("status", {}), pod["metadata"]["name"]
    if not pod["spec"].get("nodeName"):
        return _of_unplaced(pod)
    states = [one.get("state", {}) for one in status.get("containerStatuses") or []]
    waiting = next((one["waiting"] for one in states if "waiting" in one), None)
    if waiting is None and states:
        stage = Stage.READY if _condition(pod, "Ready") else Stage.STARTING
        return Waiting(stage=stage, why="its engine starts", pod=pod)
    reason = (waiting or {}).get("reason", "")
    why = _told(waiting or {})
    if reason in _BAD_IMAGE or (reason in _PULL and _NO_SUCH_IMAGE.search(why)):
        return Fault(cause=Cause.IMAGE, why=f"its image cannot be had: {why}", pod=name)
    if reason in _PULL:
        return Waiting(stage=Stage.PULLING, why=f"its image: {why}", failing=True, pod=pod)
    if reason in _BAD_CONTAINER:
        return Fault(cause=Cause.CONFIG, why=f"its container cannot be made: {why}", pod=name)
    mount = _event(events, pod, ("FailedMount", "FailedAttachVolume"))
    return Waiting(stage=Stage.PULLING, why=mount or "its node gets the image", pod=pod)


def _of_unplaced(pod: Json) -> Look:
    placed = _condition(pod, "PodScheduled", "False") or {}
    why = str(placed.get("message") or "the scheduler has not looked at it yet")
    if placed.get("reason") == "SchedulingGated":
        return Waiting(stage=Stage.QUEUED, why=f"held by a queue: {why}", pod=pod)
    if _NEVER_PLACED.search(why):
        return Fault(cause=Cause.CONFIG, why=f"cannot be placed: {why}")
    return Waiting(stage=Stage.PLACING, why=f"no node for it: {why}", pod=pod)


def _of_ending(pod: Json, now_s: float) -> Look:
    name = pod["metadata"]["name"]
    until = _seconds(pod["metadata"]["deletionTimestamp"])  # its grace is in it
    if now_s > until + SLACK_S:
        node = pod["spec"].get("nodeName", "its node")
        return Fault(cause=Cause.LOST, why=f"{node} does not end pod {name}: is it lost?", pod=name)
    return Waiting(stage=Stage.PLACING, why=f"pod {name} was taken away and ends", pod=pod)


def _of_podless(events: Sequence[Json]) -> Look:
    failed = [one for one in events if one.get("reason") == "FailedCreate"]
    if not failed:
        return Waiting(stage=Stage.PLACING, why="its Job makes a pod")
    said = " ".join(str(failed[-1].get("message", "")).split())
    if "exceeded quota" in said:
        return of_quota(said)
    if _NEVER_CREATED.search(said):
        return Fault(cause=Cause.CONFIG, why=f"its pod is refused: {said[:300]}")
    return Waiting(stage=Stage.PLACING, why=f"its pod is refused: {said[:300]}")


def of_quota(said: str) -> Look:
    """What a refusal by quota means: to wait, or never."""
    if (found := _QUOTA.search(said)) is None:
        return Waiting(stage=Stage.PLACING, why=f"waits for quota: {said[:300]}", refused=True)
    name, asked, used, limit = found.groups()
    wanted, most = _amounts(asked), _amounts(limit)
    over = [key for key, amount in wanted.items() if key in most and amount > most[key]]
    if over:
        return Fault(
            cause=Cause.CONFIG,
            why=f"quota {name} is below one server: it asks for {asked}, the quota is {limit}; raise "
            "the quota, or lower hosting.tensor_parallel or serving.kubernetes' sizes",
        )
    why = f"waits for quota {name}: asks for {asked}, used {used} of {limit}"
    return Waiting(stage=Stage.PLACING, why=why, refused=True)


def _of_container(state: Mapping[str, Any], pod: Json, killing: str) -> Fault:
    """Why a container has ended; `killing` is what its node said when it did that."""
    reason, code = str(state.get("reason", "")), int(state.get("exitCode", 0))
    name, cause, why = pod["metadata"]["name"], Cause.ENGINE, f"ended with code {code}"
    if reason == "OOMKilled":
        cause = Cause.MEMORY
        why = "killed for want of host memory (OOMKilled); raise serving.kubernetes.memory"
    elif _AWAY.match(reason):
        cause, why = Cause.DISRUPTED, f"lost by {pod['spec'].get('nodeName', 'its node')}: {reason}"
    elif reason in ("ContainerCannotRun", "StartError"):
        cause, why = Cause.CONFIG, f"its program cannot be run: {_told(state)}"
    elif code in _KILLED and "probe" in killing:
        short = "; raise serving.kubernetes.start_limit_s" if "startup" in killing.lower() else ""
        return Fault(cause=cause, why=f"its node ended it ({killing}){short}", pod=name)
    return Fault(cause=cause, why=why, pod=name, code=code)


def _over(pod: Json) -> bool:
    return pod.get("status", {}).get("phase") in ("Failed", "Succeeded")


def _condition(document: Json, kind: str, value: str = "True") -> Json | None:
    for one in document.get("status", {}).get("conditions") or []:
        if one["type"] == kind and one["status"] == value:
            return dict(one)
    return None


def _event(events: Sequence[Json], pod: Json, kinds: Sequence[str]) -> str | None:
    """The last thing told of a pod, of some kinds."""
    uid = pod["metadata"]["uid"]
    for event in reversed(events):
        if event.get("reason") in kinds and event["involvedObject"].get("uid") == uid:
            return _told(event)
    return None


def _told(document: Mapping[str, Any]) -> str:
    message = " ".join(str(document.get("message") or "").split())[:300]
    return ": ".join(part for part in (str(document.get("reason") or ""), message) if part)


def _amounts(text: str) -> dict[str, float]:
    pairs = (part.partition("=") for part in text.split(",") if "=" in part)
    return {name: common.number(amount) for name, _, amount in pairs}


def _seconds(stamp: str) -> float:
    return timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ"))
