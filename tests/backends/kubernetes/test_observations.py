"""What a RayJob and its pods say, in one line."""

import pytest

from adaexplore.backends.kubernetes import observations
from adaexplore.backends.kubernetes.observations import Seen


def pod(name="head", **status):
    return {"metadata": {"name": name}, "status": {"phase": "Pending", **status}}


def waiting(reason, message=""):
    return {"containerStatuses": [{"state": {"waiting": {"reason": reason, "message": message}}}]}


def event(kind, name, reason, message):
    where = {"kind": kind, "name": name}
    return {"involvedObject": where, "reason": reason, "message": message}


def rayjob(**status):
    return {"metadata": {"name": "sweep-1"}, "status": status}


UNPLACED = {
    "conditions": [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/3 nodes",
        }
    ]
}


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (waiting("ImagePullBackOff", "no such image"), "waits: ImagePullBackOff (no such image)"),
        (
            waiting("CreateContainerConfigError", "no secret"),
            "CreateContainerConfigError (no secret)",
        ),
        (UNPLACED, "is not placed: Unschedulable (0/3 nodes)"),
        ({"phase": "Failed", "reason": "Evicted", "message": "disk"}, "has ended: Evicted (disk)"),
        (
            {
                "containerStatuses": [
                    {"state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}
                ]
            },
            "want of memory",
        ),
    ],
)
def test_what_keeps_a_pod_from_running_is_told(status, told):
    pods = [pod("worker", phase="Running"), pod("head", **status)]
    assert told in (observations.trouble(pods, []) or "")
    assert "pod head" in (observations.trouble(pods, []) or "")


@pytest.mark.parametrize(
    "status", [{"phase": "Running"}, waiting("ContainerCreating"), waiting("PodInitializing")]
)
def test_what_passes_by_itself_is_no_trouble(status):
    assert observations.trouble([pod(**status)], []) is None


def test_a_quota_that_is_used_up_shows_in_events_alone():
    told = 'pods "x" is forbidden: exceeded quota: small'
    found = observations.trouble([], [event("RayCluster", "sweep-1-abc", "FailedCreate", told)])
    assert f"raycluster sweep-1-abc: quota: {told}" == found


def test_events_of_pods_that_are_gone_say_nothing():
    old = [event("Pod", "gone", "FailedMount", "no secret")]
    assert observations.trouble([pod("head")], old) is None


def test_the_worst_comes_first_and_the_others_are_counted():
    pods = [pod("a", **UNPLACED), pod("b", **UNPLACED)]
    line = observations.line(
        observations.seen(rayjob(jobDeploymentStatus="Initializing")), pods, []
    )
    assert "Initializing; pod a is not placed: Unschedulable (0/3 nodes) (and 1 more pods)" == line


MESSAGE = (
    "Job entrypoint command failed with exit code 2, last available logs (truncated to 20,000 chars):\n"
    "sweep smoke\nerror: s3://b/k: the image is not what was launched\n"
)


def test_how_a_driver_ended_is_read_from_the_status():
    failed = rayjob(
        jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed", message=MESSAGE
    )
    one = observations.seen(failed)
    assert (True, False, 2) == (one.over, one.succeeded, one.exit_code)
    assert "AppFailed: error: s3://b/k: the image is not what was launched" == one.why


@pytest.mark.parametrize(
    ("status", "over", "succeeded"),
    [
        ({}, False, False),
        ({"jobDeploymentStatus": "Running", "jobStatus": "SUCCEEDED"}, False, False),
        ({"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}, True, True),
        ({"jobDeploymentStatus": "Complete", "jobStatus": "STOPPED"}, True, False),
        ({"jobDeploymentStatus": "Retrying", "jobStatus": "FAILED", "failed": 1}, False, False),
        ({"jobDeploymentStatus": "ValidationFailed"}, True, False),
        ({"jobDeploymentStatus": "Suspended"}, False, False),
    ],
)
def test_only_the_operators_last_words_end_a_sweep(status, over, succeeded):
    one = observations.seen(rayjob(**status))
    assert (over, succeeded) == (one.over, one.succeeded)


def test_a_deleted_rayjob_is_over_without_success():
    one = observations.gone("sweep-1")
    assert (True, False) == (one.over, one.succeeded)
    assert isinstance(one, Seen)
