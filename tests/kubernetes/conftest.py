"""One test bed for all tests of a session, with a bucket that pods reach, and a room for each test."""

import itertools
from pathlib import Path

import pytest
from k8s.testbed import images
from k8s.testbed.api import path
from k8s.testbed.beds import CHECKOUT, Bed
from k8s.testbed.kubelet import Node

import clustered
import model_pods
from clustered import BUCKET, KEY, SECRET, Site
from halves import longest_first
from rooms import Room, eventually
from weed import Weed

GONE_S = 240.0
HERE = Path(__file__).parent
NUMBERS = itertools.count()
ONLY_ASKED = {"key": "only-asked", "value": "true", "effect": "NoSchedule"}
LONG = [
    "everything_that_dies", "a_real_engine_in_a_pod", "is_left_joined", "that_is_evicted_is_replaced",
    "a_deleted_job", "on_a_lost_node", "api_server_may_be_away",
    "an_evicted_server_and_a_drained_one", "take_turns", "no_cluster_at_all", "two_drivers",
    "without_kuberay",
]  # fmt: skip
"""Parts of the names of tests of ten seconds and more, the longest first."""


def pytest_collection_modifyitems(items):
    """The longest begin."""
    longest_first(items, HERE, LONG)


@pytest.fixture(scope="session")
def source(tmp_path_factory):
    """A copy of what the image holds, which launches use as well."""
    return clustered.copied(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="session")
def bed(tmp_path_factory, source):
    """A GPU node, one that only those who ask for it are put on, two ordinary ones, and the operator."""
    pytest.importorskip("ray")
    pytest.importorskip("kubernetes")
    engine = model_pods.ENGINE.partition(":")[0]
    table = {
        clustered.IMAGE.partition("@")[0]: clustered.image(source),
        engine: images.this_python(CHECKOUT),
        **clustered.engine_images(),
    }
    nodes = [
        Node(name="gpu-0", gpus=2, labels={"nvidia.com/gpu.product": "TEST-GPU"}),
        Node(name="doomed-0", gpus=8, labels={"doomed": "true"}, taints=(ONLY_ASKED,)),
        Node(name="cpu-0"),
        Node(name="cpu-1"),
    ]
    with Bed(tmp_path_factory.mktemp("bed"), nodes=nodes, table=table, users=["alice"]) as made:
        made.start_operator()
        yield made


@pytest.fixture(scope="session")
def bucket(bed, tmp_path_factory):
    """Address of a bucket's service on the bridge, where pods reach it."""
    service = Weed(tmp_path_factory.mktemp("weed"), {KEY: SECRET}, bed.bridge.address)
    found = clustered.client(service.endpoint)
    found.create_bucket(Bucket=BUCKET)
    found.close()
    yield service.endpoint
    service.kill()


@pytest.fixture
def room(bed):
    """A namespace of the test's own, furnished; every pod in it ends with the test, or the test fails."""
    name = bed.namespace(f"test-{next(NUMBERS)}")
    made = Room(bed, name)
    clustered.furnish(made)
    yield made
    for kind in ("RayJob", "Job"):
        for one in bed.admin.items(path(kind, name)):
            bed.admin.delete(path(kind, name, one["metadata"]["name"]))
    bed.admin.delete(path("Namespace", name=name))
    for pod in bed.admin.items(path("Pod", name)):
        bed.admin.delete(path("Pod", name, pod["metadata"]["name"]), gracePeriodSeconds=1)
    eventually(lambda: not bed.admin.items(path("Pod", name)), GONE_S)


@pytest.fixture
def site(bed, room, source, bucket, tmp_path):
    """Where the test launches."""
    made = Site(
        room=room, bed=bed, source=source, endpoint=bucket, prefix=room.name, folder=tmp_path,
        kubeconfig=bed.kubeconfig(),
    )  # fmt: skip
    yield made
    made.bucket.close()
