"""The operator stand-in: a real Ray cluster in pods, and the ends that a RayJob can have."""

import pytest

from rooms import container, eventually

pytestmark = pytest.mark.cluster

MINUTES_S = 900.0
NODES = (
    "import ray, time; ray.init(log_to_driver=False); "
    "print('names', sorted({node['NodeManagerHostname'] for node in ray.nodes() if node['Alive']})); "
    "print('cpus', int(ray.cluster_resources()['CPU']))"
)


@pytest.fixture(autouse=True, scope="module")
def installed():
    """These tests run Ray itself."""
    pytest.importorskip("ray")


def rayjob(room, name, entrypoint, workers=0, **spec):
    resources = {
        "limits": {"cpu": "1", "memory": "3Gi"},
        "requests": {"cpu": "100m", "memory": "128Mi"},
    }
    main = {**container(resources=resources), "name": "ray"}
    store = {"object-store-memory": "80000000"}

    def group(**more):
        params = {**store, **more.pop("rayStartParams", {})}
        pod = {"containers": [main], "terminationGracePeriodSeconds": 2}
        return {"rayStartParams": params, "template": {"spec": pod}, **more}

    cluster = {
        "authOptions": {"mode": "token"},
        "headGroupSpec": group(rayStartParams={"num-cpus": "0"}),
        "workerGroupSpecs": [
            group(groupName="cpu", replicas=workers, minReplicas=workers, maxReplicas=workers)
        ]
        if workers
        else [],
    }
    rest = {"shutdownAfterJobFinishes": True, "entrypoint": entrypoint, **spec}
    return room.make("RayJob", name, "ray.io/v1", spec={"rayClusterSpec": cluster, **rest})


def states(room, name, last, seconds=MINUTES_S):
    """The pairs (jobDeploymentStatus, jobStatus) of a RayJob in order, up to a state; its status."""
    seen = []

    def done(job):
        status = job.get("status", {})
        pair = (status.get("jobDeploymentStatus", ""), status.get("jobStatus", ""))
        if pair not in seen:
            seen.append(pair)
        return pair[0] == last

    job = room.wait("RayJob", name, done, seconds, last)
    return seen, job["status"]


def test_two_workers_join_the_head_and_the_job_succeeds(room):
    """Then the cluster goes, and the RayJob and its submitter's log stay."""
    rayjob(room, "good", f'python -c "{NODES}"', workers=2)
    running = lambda job: job.get("status", {}).get("jobDeploymentStatus") == "Running"  # noqa: E731
    status = room.wait("RayJob", "good", running, MINUTES_S)["status"]
    cluster = status["rayClusterName"]
    pods = room.pods(**{"ray.io/cluster": cluster})
    names = {pod["metadata"]["name"] for pod in pods}
    assert ["head", "worker", "worker"] == sorted(
        pod["metadata"]["labels"]["ray.io/node-type"] for pod in pods
    )

    seen, status = states(room, "good", "Complete")

    assert ("Complete", "SUCCEEDED") == seen[-1]
    (submitter,) = [  # one that could not submit is followed by another
        pod for pod in room.pods(**{"job-name": "good"}) if pod["status"]["phase"] == "Succeeded"
    ]
    log = room.log(submitter["metadata"]["name"], "ray-job-submitter")
    assert f"names {sorted(names)}" in log
    assert "cpus 2" in log
    room.wait("RayCluster", cluster, lambda one: one is None, what="the cluster's end")
    eventually(lambda: not room.pods(**{"ray.io/cluster": cluster}))
    assert 1 == room.admin.get(room.path("RayJob", "good"))["status"]["succeeded"]


def test_a_failing_job_is_tried_again_on_a_new_cluster_and_then_fails(room):
    """BackoffLimit counts clusters; the reason is the program's."""
    rayjob(room, "bad", 'python -c "raise SystemExit(7)"', backoffLimit=1)
    seen, status = states(room, "bad", "Retrying")
    assert ("Running", "FAILED") in seen or ("Retrying", "FAILED") in seen
    first = status["rayClusterName"]

    seen, status = states(room, "bad", "Failed")

    assert ("Failed", "FAILED") == seen[-1]
    assert ("AppFailed", 2) == (status["reason"], status["failed"])
    assert first != status["rayClusterName"]
    assert "exit code 7" in status["message"]


def test_a_job_past_its_deadline_is_ended_with_all_its_pods(room):
    """And not tried again."""
    rayjob(room, "late", "sleep 600", activeDeadlineSeconds=600, backoffLimit=3)
    runs = lambda job: job.get("status", {}).get("jobStatus") == "RUNNING"  # noqa: E731
    room.wait("RayJob", "late", runs, MINUTES_S)
    room.admin.patch(room.path("RayJob", "late"), {"spec": {"activeDeadlineSeconds": 1}})

    _, status = states(room, "late", "Failed")

    assert "DeadlineExceeded" == status["reason"]
    eventually(lambda: not room.pods(**{"ray.io/cluster": status["rayClusterName"]}))


def test_a_suspended_job_has_no_pods_until_it_is_resumed(room):
    """Suspended while it initialises; resumed, it has another cluster."""
    rayjob(room, "held", "true", suspend=True)
    _, status = states(room, "held", "Suspended")
    assert "rayClusterName" not in status
    assert [] == room.pods()
    room.admin.patch(room.path("RayJob", "held"), {"spec": {"suspend": False}})
    eventually(lambda: room.pods(**{"ray.io/node-type": "head"}))
    room.admin.delete(room.path("RayJob", "held"), propagationPolicy="Foreground")
    room.wait("RayJob", "held", lambda one: one is None, what="its end")
    eventually(lambda: not room.pods())


def test_a_job_that_cannot_get_its_pods_ends_before_it_runs(room):
    """preRunningDeadlineSeconds, while the head waits for a node."""
    entry = rayjob(room, "wide", "true", preRunningDeadlineSeconds=3, suspend=True)
    spec = entry["spec"]["rayClusterSpec"]
    spec["headGroupSpec"]["template"]["spec"]["nodeSelector"] = {"nowhere": "true"}
    change = {"spec": {"suspend": False, "rayClusterSpec": spec}}
    states(room, "wide", "Suspended")
    room.admin.patch(room.path("RayJob", "wide"), change)
    _, status = states(room, "wide", "Failed")
    assert "PreRunningDeadlineExceeded" == status["reason"]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"ttlSecondsAfterFinished": 5, "shutdownAfterJobFinishes": False}, "needs shutdown"),
        ({"submissionMode": "HTTPMode"}, "HTTPMode"),
        ({"backoffLimit": -1}, "negative"),
    ],
)
def test_what_the_operator_refuses_is_said_in_the_status(room, spec, said):
    """Before anything is made."""
    rayjob(room, "odd", "true", **spec)
    _, status = states(room, "odd", "ValidationFailed")
    assert said in status["message"]
    assert [] == room.pods()
