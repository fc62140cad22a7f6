"""One test bed for all tests of a session, and a namespace for each test."""

import itertools
from pathlib import Path

import pytest
from k8s.testbed import images
from k8s.testbed.api import path
from k8s.testbed.beds import CHECKOUT, Bed
from k8s.testbed.kubelet import Node

from halves import longest_first
from rooms import Room, eventually

GONE_S = 240.0
HERE = Path(__file__).parent
NUMBERS = itertools.count()
ONLY_ASKED = {"key": "only-asked", "value": "true", "effect": "NoSchedule"}


def pytest_collection_modifyitems(items):
    """Those with a real Ray begin."""
    longest_first(items, HERE, ["test_rayjobs"])


@pytest.fixture(scope="session")
def bed(tmp_path_factory):
    """A GPU node, an ordinary one, and two that only pods that say so are put on."""
    python = images.this_python(CHECKOUT)
    slow = images.Image(
        folders=python.folders, needs=python.needs, environment=python.environment, pull_s=2.0
    )
    server = images.Image(
        folders=python.folders,
        needs=python.needs,
        environment=python.environment,
        entrypoint=("python", "-m", "http.server"),
    )
    doomed = {"taints": (ONLY_ASKED,), "labels": {"doomed": "true"}}
    nodes = [
        Node(name="gpu-0", gpus=2),
        Node(name="cpu-0"),
        Node(name="doomed-0", **doomed),
        Node(name="doomed-1", **doomed),
    ]
    table = {"python": python, "slow": slow, "server": server}
    folder = tmp_path_factory.mktemp("bed")
    with Bed(folder, nodes=nodes, table=table, users=["alice"]) as made:
        made.start_operator()
        yield made


@pytest.fixture
def room(bed):
    """A namespace of the test's own; every pod in it ends with the test, or the test fails."""
    name = bed.namespace(f"test-{next(NUMBERS)}")
    yield Room(bed, name)
    bed.admin.delete(path("Namespace", name=name))
    for pod in bed.admin.items(path("Pod", name)):
        bed.admin.delete(path("Pod", name, pod["metadata"]["name"]), gracePeriodSeconds=1)
    eventually(lambda: not bed.admin.items(path("Pod", name)), GONE_S)
