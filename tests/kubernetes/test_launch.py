"""`launch backend=kubernetes`: the tables of `backend=local`, whoever watches and whatever dies."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest

import clustered
from adaexplore.backends.vllm import procfs
from clustered import pods
from forwarding import Forward

pytestmark = pytest.mark.cluster

SMOKE = ["+grid=smoke", "name=smoke"]
STORM = [
    "+grid=main", "name=storm", "models=[slow,random]", "settings=[default,stationary]",
    "dataset=lite", "dataset.limit=16", "protocol.batches=2", "backend.concurrency=1", "report=false",
]  # fmt: skip
SLOW = [
    "+backend.ray.batch=1", "backend.kubernetes.submitter_backoff_limit=20",
    # A node that is told to end waits for its actors, which never rest: half a minute, unless told otherwise.
    "+backend.kubernetes.env.RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S='1'",
    # A worker asks once a minute, unless told otherwise, whether the head still is the one that it knows.
    "+backend.kubernetes.env.RAY_raylet_liveness_self_check_interval_ms='2000'",
]  # fmt: skip
STEP = 24
"""Completions for two of the model's 32 episode runs, of five to seven each, and for some that are lost.

Five steps, and the 16 completions before the first, are less than the 160 that all runs need at least:
the sweep cannot be over before the end.
"""


def local(source, folder, words):
    """Tables of a grid that one process has played."""
    name = next(word for word in words if word.startswith("name=")).removeprefix("name=")
    words = [word for word in words if not word.startswith(("backend.", "+backend."))]
    subprocess.run(
        [sys.executable, "-m", "adaexplore.launch", *words, "tracking=none"], cwd=folder, check=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(source / "platform")}, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    tables = folder / "runs" / "sweeps" / name / "tables"
    return {found.name: found.read_bytes() for found in tables.iterdir()}


def test_a_launch_is_left_joined_and_ends_with_the_tables_of_a_local_run(site, source, tmp_path):
    """The laptop has another address of the store than the pods; Ctrl-C leaves, the same words return.

    No pod is made before both have been there. Then nothing is left but the RayJob that has ended, and
    `cancel` takes that away too.
    """
    none = site.room.make("ResourceQuota", "none", spec={"hard": {"pods": "0"}})
    host, _, port = site.endpoint.removeprefix("http://").partition(":")
    with closing(Forward(host, int(port))) as forward:
        own = [f"store.endpoint={forward.url}", f"store.endpoint_in_cluster={site.endpoint}"]
        first = site.begun(*SMOKE, override=own)
        first.until(lambda: "Ctrl-C stops watching" in first.said)
        assert 3 == first.interrupt()
        assert "not watching any more: sweep smoke goes on" in first.said
        assert "adaexplore cancel smoke" in first.said

        status = json.loads(site.command("status", "smoke", "--json", *site.store).stdout)
        assert {"missing": 2} == status["cells"][0]["runs"]
        second = site.front_door(*SMOKE, override=own)
        second.until(lambda: "plays this sweep already: watching it" in second.said)
        site.room.admin.delete(site.room.path("ResourceQuota", none["metadata"]["name"]))
        with ThreadPoolExecutor() as beside:  # while pods start
            expected = beside.submit(local, source, tmp_path, SMOKE)
            assert 0 == second.ended(), second.said

    assert "Main table" in second.said
    assert expected.result() == site.tables("smoke")
    assert 1 == len(site.rayjobs())
    logs = site.command("logs", "smoke", *site.store)
    assert "1, of 2 episodes each" in logs.stdout
    site.require_clean()
    done = site.command("cancel", "smoke", *site.store)
    assert (0, "") == (done.returncode, done.stderr)
    assert [] == site.left(finished=False)
    assert 0 == site.launch(*SMOKE).returncode, "everything is finished: nothing is sent anywhere"
    assert [] == site.rayjobs()


def test_an_image_that_cannot_be_pulled_is_told_and_cancelled(site):
    """The launch that watches says why it waits, and that somebody has deleted the RayJob."""
    begun = site.begun(*SMOKE, override=["backend.kubernetes.image=registry.example/none:1"])
    begun.until(lambda: "ImagePullBackOff" in begun.said or "ErrImagePull" in begun.said)
    assert "registry.example/none:1" in begun.said
    done = site.command("cancel", "smoke", *site.store)
    assert 0 == done.returncode, done.stderr
    assert [] == site.left(finished=False)
    assert 4 == begun.ended()
    assert "somebody has deleted it" in begun.said


@pytest.fixture
def slow(site):
    """A model beside the cluster whose replies are metered, so that a sweep cannot be over too soon."""
    with clustered.standin(site.bed.bridge.address, "metered") as url:
        path = site.folder / "conf" / "model" / "slow.yaml"
        path.parent.mkdir(parents=True)
        document = {
            "kind": "openai_compatible", "provider": "test", "model": "some/model",
            "route": {"base_url": url}, "patience": {"backoff_cap_s": 1, "attempts": 100},
        }  # fmt: skip
        path.write_text(json.dumps(document))
        yield url


def test_a_sweep_goes_through_everything_that_dies(site, source, slow):
    """The API server is away, the driver is killed, the job is held, the head and a node are lost.

    Each time the sweep goes on where it was; the tables are those of an undisturbed run.
    """
    launch = site.begun(*STORM, *SLOW)

    def further():
        wanted = site.results() + 2
        clustered.allow(slow, STEP)
        launch.until(lambda: site.results() >= wanted)

    further()
    with kept_clusters(site):  # so that it is seen
        kill_driver(site)
        launch.until(lambda: "a new Ray cluster after 1 failed" in launch.said)
    further()

    hold(site, held=True)
    launch.until(lambda: not pods(site.room, "ray-head"))
    launch.until(lambda: "suspended" in launch.said)
    hold(site, held=False)
    further()

    head = clustered.lone(launch, site.room, "ray-head")
    site.room.admin.delete(site.room.path("Pod", head["metadata"]["name"]), gracePeriodSeconds=0)
    further()

    worker = clustered.lone(launch, site.room, "ray-worker")
    node = worker["spec"]["nodeName"]
    site.bed.plane.stop_api()
    further()
    site.bed.plane.resume_api()
    site.bed.kill_node(node)
    clustered.allow(slow, 1_000_000)
    with ThreadPoolExecutor() as beside:  # while the cluster finds out about the node
        expected = beside.submit(undisturbed, source, site.folder)
        try:
            code = launch.ended()
        finally:
            site.bed.start_node(node)
    assert 0 == code, launch.said
    assert expected.result() == site.tables("storm")
    (rayjob,) = site.rayjobs()
    assert 1 == rayjob["status"]["failed"], "only the driver's death was a failure"
    site.require_clean()
    assert 0 == site.command("cancel", "storm", *site.store).returncode
    assert [] == site.left(finished=False)


def undisturbed(source, folder):
    """Tables of the same sweep on this machine, with a stand-in of its own."""
    with clustered.standin() as url:
        return local(source, folder, [*STORM, f"+profiles.slow.route.base_url={url}"])


@contextmanager
def kept_clusters(site):
    """Meanwhile no Ray cluster of the room goes, though it is asked to."""
    where = [
        site.room.path("RayCluster", one["metadata"]["name"])
        for one in site.room.admin.items(site.room.path("RayCluster"))
    ]
    for one in where:
        site.room.admin.patch(one, {"metadata": {"finalizers": ["adaexplore.dev/kept"]}})
    try:
        yield
    finally:
        for one in where:
            site.room.admin.patch(one, {"metadata": {"finalizers": None}})


def kill_driver(site):
    """SIGKILL for the program on the head, and nothing else."""
    heads = {pod["metadata"]["name"] for pod in pods(site.room, "ray-head")}
    found = [one for one in procfs.everything() if _is_driver(one.pid, heads)]
    assert found
    procfs.kill(found)


def _is_driver(pid, heads):
    try:
        words = (procfs.PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
        environment = (procfs.PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    names = {f"POD_NAME={head}".encode() for head in heads}
    return b"/opt/adaexplore/jobs/run_grid.py" in words[:2] and bool(names & set(environment))


def hold(site, *, held):
    """Suspend the sweep's RayJob, or let it go on, as a queue does."""
    (job,) = site.rayjobs()
    site.room.admin.patch(
        site.room.path("RayJob", job["metadata"]["name"]), {"spec": {"suspend": held}}
    )
