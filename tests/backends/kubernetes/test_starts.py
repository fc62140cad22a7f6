"""What the objects of a model server say: told apart by cause, with the line that a person needs."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.backends.kubernetes import starts
from adaexplore.backends.kubernetes.causes import (
    UNCOUNTED,
    Cause,
    Fault,
    Stage,
    Tries,
    Waiting,
    understood,
)
from adaexplore.backends.kubernetes.limits import DULL_S, Limits
from adaexplore.experiments.serving import KubernetesServing, ServingConfig

NOW_S = 1_800_000_000.0
JOB = {"metadata": {"name": "j", "uid": "job"}, "spec": {}}
SCHEDULED = {"type": "PodScheduled", "status": "True"}


def when(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(NOW_S + seconds))


def pod(name="p", node="n", made=0, ending=None, **status):
    metadata = {
        "name": name, "uid": name, "creationTimestamp": when(made),
        "ownerReferences": [{"uid": "job"}],
    }  # fmt: skip
    if ending is not None:
        metadata["deletionTimestamp"] = when(ending)
    return {
        "metadata": metadata, "spec": {"nodeName": node} if node else {},
        "status": {"phase": "Pending", **status},
    }  # fmt: skip


def waiting(reason, message=""):
    state = {"waiting": {"reason": reason, "message": message}}
    return pod(containerStatuses=[{"state": state}])


def terminated(code, reason="Error", **status):
    state = {"terminated": {"exitCode": code, "reason": reason}}
    return pod(phase="Failed", containerStatuses=[{"state": state}], **status)


def running(ready, **rest):
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    states = [{"state": {"running": {}}}]
    return pod(phase="Running", containerStatuses=states, conditions=conditions, **rest)


def unplaced(message, reason="Unschedulable"):
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return pod(node="", conditions=[condition])


def condition(kind, **rest):
    return {**JOB, "status": {"conditions": [{"type": kind, "status": "True", **rest}]}}


def event(reason, message, uid="job"):
    return {"reason": reason, "message": message, "involvedObject": {"uid": uid}}


GPU = "requests.nvidia.com/gpu"
QUOTA = f"exceeded quota: q, requested: {GPU}={{}}, used: {GPU}={{}}, limited: {GPU}=4"
TARGET = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
KUBELET = [{"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}]
NOBODY = "Back-off pulling image"
MANIFEST = "manifest unknown: manifest unknown"
RIGHTS = "pull access denied, unauthorized"
FULL = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
NO_CLAIM = 'persistentvolumeclaim "w" not found'
STARTUP = "Container server failed startup probe"
FORBIDDEN = 'violates PodSecurity "restricted:latest"'
WELL = [{"state": {"terminated": {"exitCode": 0}}}]
ENDING = {"name": "j", "uid": "job", "deletionTimestamp": when(0)}


def failed(reason, message):
    return pod(phase="Failed", reason=reason, message=message)


def refused(message):
    return [event("FailedCreate", message)]


WITHOUT_POD = {
    "no pod yet": ([], Stage.PLACING, "its Job makes a pod"),
    "no quota now": (refused(QUOTA.format(2, 3)), Stage.PLACING, "used requests.nvidia.com/gpu=3"),
    "quota too small": (refused(QUOTA.format(8, 0)), Cause.CONFIG, "below one server"),
    "no account": (refused('serviceaccount "x" not found'), Cause.CONFIG, "serviceaccount"),
    "not allowed": (refused(FORBIDDEN), Cause.CONFIG, "violates"),
    "refused for a while": (refused("etcdserver: timeout"), Stage.PLACING, "etcdserver"),
}
WITH_POD = {
    "gated": (unplaced("by kueue", "SchedulingGated"), Stage.QUEUED, "by kueue"),
    "no node": (unplaced(FULL), Stage.PLACING, "Insufficient"),
    "no claim": (unplaced(NO_CLAIM), Cause.CONFIG, "persistentvolumeclaim"),
    "not looked at": (pod(node=""), Stage.PLACING, "has not looked"),
    "pulls": (waiting("ContainerCreating"), Stage.PULLING, "gets the image"),
    "pull failed": (waiting("ErrImagePull", "TLS timeout"), Stage.PULLING, "TLS timeout"),
    "pull backs off": (waiting("ImagePullBackOff", NOBODY), Stage.PULLING, "Back-off"),
    "no such image": (waiting("ErrImagePull", MANIFEST), Cause.IMAGE, "manifest unknown"),
    "no right to it": (waiting("ErrImagePull", RIGHTS), Cause.IMAGE, "unauthorized"),
    "bad name": (waiting("InvalidImageName", "couldn't parse"), Cause.IMAGE, "couldn't parse"),
    "no secret": (waiting("CreateContainerConfigError", 'secret "s"'), Cause.CONFIG, 'secret "s"'),
    "no command": (waiting("CreateContainerError", "no command"), Cause.CONFIG, "no command"),
    "starts": (running(False), Stage.STARTING, "starts"),
    "ready": (running(True), Stage.READY, ""),
    "evicted": (failed("Evicted", "low on disk"), Cause.EVICTED, "low on disk"),
    "evicted, newer": (terminated(137, conditions=KUBELET), Cause.EVICTED, "evicted"),
    "preempted": (terminated(137, conditions=TARGET), Cause.DISRUPTED, "PreemptionByScheduler"),
    "shut down": (failed("Terminated", "node shutdown"), Cause.DISRUPTED, "node shutdown"),
    "not free": (
        failed("UnexpectedAdmissionError", "Allocate failed"),
        Cause.DISRUPTED,
        "Allocate",
    ),
    "restarted": (terminated(137, "ContainerStatusUnknown"), Cause.DISRUPTED, "StatusUnknown"),
    "out of memory": (terminated(137, "OOMKilled"), Cause.MEMORY, "OOMKilled"),
    "no program": (terminated(128, "StartError"), Cause.CONFIG, "cannot be run"),
    "crashed": (terminated(1), Cause.ENGINE, "code 1"),
    "ended well": (pod(phase="Succeeded", containerStatuses=WELL), Cause.ENGINE, "code 0"),
    "drained": (running(True, ending=5), Stage.PLACING, "was taken away"),
    "lost": (running(True, ending=-starts.SLACK_S - 1), Cause.LOST, "is it lost?"),
}
WITH_EVENT = {
    "mounts": (waiting("x"), event("FailedMount", "no volume", "p"), Stage.PULLING, "no volume"),
    "start too long": (terminated(137), event("Killing", STARTUP, "p"), Cause.ENGINE, "start_limit_s"),
}  # fmt: skip
JOBS = {
    "suspended": ({**JOB, "spec": {"suspend": True}}, Stage.QUEUED, "queue"),
    "suspended again": (condition("Suspended"), Stage.QUEUED, "queue"),
    "too old": (condition("Failed", reason="DeadlineExceeded"), Cause.DEADLINE, "Deadline"),
    "deleted": (None, Cause.GONE, "deleted"),
    "being deleted": ({**JOB, "metadata": ENDING}, Cause.GONE, "deleted"),
}
LOOKS = {
    **{name: (JOB, [], events, *rest) for name, (events, *rest) in WITHOUT_POD.items()},
    **{name: (JOB, [one], [], *rest) for name, (one, *rest) in WITH_POD.items()},
    **{name: (JOB, [one], [told], *rest) for name, (one, told, *rest) in WITH_EVENT.items()},
    **{name: (job, [], [], *rest) for name, (job, *rest) in JOBS.items()},
}


@pytest.mark.parametrize("name", LOOKS)
def test_each_state_is_told_apart(name):
    job, pods, events, expected, words = LOOKS[name]
    found = starts.look(job, pods, events, NOW_S)
    assert expected == (found.stage if isinstance(found, Waiting) else found.cause)
    assert words in found.why
    assert "\n" not in found.why


def test_the_newest_pod_that_stays_decides():
    """Neither a predecessor that is taken away, nor a stranger with the same labels."""
    stranger = running(True, made=9)
    stranger["metadata"]["ownerReferences"] = [{"uid": "another"}]
    older = running(True, made=0, ending=5)
    newest = running(False, name="new", made=5)
    found = starts.look(JOB, [newest, stranger, older], [], NOW_S)
    assert (Stage.STARTING, newest) == (found.stage, found.pod)


def test_an_end_is_not_overlooked_because_the_job_was_quick_to_make_another_pod():
    """Else a server that crashes again and again would seem to be taken away each time."""
    found = starts.look(JOB, [terminated(1), running(True, name="new", made=5)], [], NOW_S)
    assert (Cause.ENGINE, "p") == (found.cause, found.pod)


@pytest.mark.parametrize(
    ("code", "log", "cause", "words"),
    [
        (1, "ValueError: Free memory on device (1/80 GiB) is less than desired", Cause.DEVICE, "Free memory"),
        (1, "ValueError: No available memory for the cache blocks", Cause.ENGINE, "out of GPU memory"),
        (2, "error: unrecognized arguments: --no", Cause.ENGINE, "refuses its configuration"),
        (137, "", Cause.MEMORY, "want of host memory"),
    ],
)  # fmt: skip
def test_the_engines_log_decides_what_its_end_means(code, log, cause, words):
    found = understood(Fault(cause=Cause.ENGINE, why="ended", pod="p", code=code), log)
    assert cause == found.cause
    assert words in found.why


def test_what_a_start_can_mend_is_tried_again_and_nothing_else():
    """At the start: memory and a held GPU once; what the cluster takes away, always."""
    once, always = [Cause.MEMORY, Cause.DEVICE], UNCOUNTED
    for cause in Cause:
        tries = Tries(2)
        given_again = [tries.again(cause, was_ready=False) for _ in range(4)]
        if cause in always:
            assert [True] * 4 == given_again
        elif cause in once:
            assert [True, False, False, False] == given_again
        elif cause in (Cause.EVICTED, Cause.GONE, Cause.DEADLINE):
            assert [True, True, False, False] == given_again
        else:
            assert [False] * 4 == given_again


@given(st.lists(st.sampled_from(list(Cause))), st.integers(0, 3))
def test_a_server_that_was_ready_has_its_restarts_and_disruptions_count_for_nothing(
    causes, restarts
):
    tries, used = Tries(restarts), 0
    for cause in causes:
        if cause in UNCOUNTED:
            expected = True
        elif cause in (Cause.CONFIG, Cause.IMAGE):
            expected = False
        else:
            used += 1
            expected = used <= restarts
        assert expected == tries.again(cause, was_ready=True)


def test_a_cluster_that_disrupts_again_and_again_is_given_ever_more_time():
    tries, pauses = Tries(0), []
    for _ in range(8):
        tries.again(Cause.DISRUPTED, was_ready=False)
        pauses.append(tries.pause_s())
    assert [0, 4, 8, 16, 32, 60, 60, 60] == pauses
    tries.ready()
    assert 0 == tries.pause_s()


# -- waiting ---------------------------------------------------------------------------------------


def limits(**pods):
    made = KubernetesServing(
        **{"image": "e:1", "unschedulable_limit_s": 10, "image_pull_limit_s": 5, **pods}
    )
    return Limits(config=ServingConfig(kind="kubernetes", ready_timeout_s=20, kubernetes=made))


PLACING = Waiting(stage=Stage.PLACING, why="no node")
QUEUED = Waiting(stage=Stage.QUEUED, why="queue")
PULLING = Waiting(stage=Stage.PULLING, why="pull", failing=True)
STARTING = Waiting(stage=Stage.STARTING, why="starts", pod=pod())


def test_a_queue_may_take_as_long_as_it_takes():
    assert limits().spent(QUEUED, 10**6, others=False) is None


def test_no_place_is_waited_for_so_long_and_while_others_of_ours_hold_places_for_ever():
    waits = limits()
    assert waits.spent(PLACING, 10**6, others=True) is None
    assert waits.spent(PLACING, 10, others=False) is None
    assert "unschedulable_limit_s" in waits.spent(PLACING, 0.1, others=False).why
    assert waits.spent(STARTING, 0, others=False) is None
    assert waits.spent(PLACING, 10, others=False) is None  # placed meanwhile: counted anew


def test_pulling_and_starting_have_their_limits():
    waits = limits()
    assert waits.spent(PULLING, 5, others=False) is None
    fault = waits.spent(PULLING, 0.1, others=False)
    assert (Cause.IMAGE, True) == (fault.cause, "image_pull_limit_s" in fault.why)
    waits = limits()
    assert waits.spent(STARTING, 20, others=False) is None
    fault = waits.spent(STARTING, 0.1, others=False)
    assert (Cause.ENGINE, "p") == (fault.cause, fault.pod)


def test_a_job_that_waits_for_quota_is_made_anew_now_and_then():
    """Its controller would ask again only after minutes."""
    waits, refused = limits(), Waiting(stage=Stage.PLACING, why="quota", refused=True)
    waits.spent(refused, DULL_S, others=True)
    assert not waits.dull()
    waits.spent(refused, 0.1, others=True)
    assert [True, False] == [waits.dull(), waits.dull()]
    waits.spent(refused, DULL_S, others=True)
    waits.spent(PLACING, DULL_S, others=True)
    assert not waits.dull()
