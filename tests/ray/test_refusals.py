"""What cannot work on a cluster is said in one line, before the first episode, within seconds."""

import json
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import adaexplore
import rays
from adaexplore.backends.ray import trials
from adaexplore.errors import ClusterError
from adaexplore.experiments.placements import RayConfig

pytestmark = pytest.mark.ray
METADATA = """
import json, sys, ray
from ray._raylet import GcsClient
client = GcsClient(sys.argv[1])
place = (b"CLUSTER_METADATA", b"cluster")
known = json.loads(client.internal_kv_get(*place))
client.internal_kv_put(place[0], json.dumps(known | json.loads(sys.argv[2])).encode(), True, place[1])
print(json.dumps(known))
"""
"""Overwrites what a cluster says of its versions; prints what it said before."""


def refusal(done, code=4):
    """The one line of a launch that was refused before anything was played."""
    assert code == done.returncode, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert 0 == rays.finished()
    return line


@pytest.fixture
def tried(head, monkeypatch):
    """What the trial of an address with the head's environment says."""
    for name, value in head.environment.items():
        monkeypatch.setenv(name, value)

    def attempt(address, **more):
        with pytest.raises(ClusterError) as caught:
            trials.require(RayConfig(address=address, **more))
        return str(caught.value)

    return attempt


def test_an_address_where_nobody_listens(tried):
    assert "expected a Ray head to answer, got Connection refused" in tried("127.0.0.1:1")


def test_an_address_that_does_not_answer_within_ten_seconds(tried):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start_s = time.monotonic()
        told = tried(f"127.0.0.1:{silent.getsockname()[1]}")
    assert "expected a Ray head to answer, got nothing within 10 s" in told
    assert time.monotonic() - start_s < trials.IMPORT_S + 2 * trials.ANSWER_S  # Ray would go on


def test_a_stale_token_is_named_by_its_place(head):
    Path("stale").write_text("7" * 64)
    other = {"RAY_AUTH_TOKEN_PATH": "stale"}
    told = refusal(rays.launch("+grid=smoke", *head.backend(), head=head, **other))
    assert "the cluster refuses the token from stale: it is stale or another cluster's" in told


def test_no_token(tried, head, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "nowhere")
    assert "nowhere: expected the cluster's token, got none" in tried(head.address)


def test_no_authentication_where_there_is_one(tried, head, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    assert "got one with: set backend.ray.auth=token" in tried(head.address, auth="none")


@pytest.mark.parametrize(
    ("said", "shown"),
    [({"ray_version": "2.9.3"}, "got Ray 2.9.3 "), ({"python_version": "3.9.1"}, " Python 3.9.1 ")],
)
def test_another_ray_or_python_on_the_cluster(tried, head, said, shown):
    def tell(document):
        command = [sys.executable, "-c", METADATA, head.address, json.dumps(document)]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)

    before = tell(said)
    try:
        told = tried(head.address)
    finally:
        tell(before)
    assert shown in told
    assert "install the same versions on both sides" in told


def test_the_package_is_missing_on_the_workers(head):
    Path("missing/adaexplore").mkdir(parents=True)
    Path("missing/adaexplore/__init__.py").write_text(
        "raise ModuleNotFoundError(name='adaexplore')"
    )
    told = refusal(rays.launch("+grid=smoke", *head.backend(path_of("missing")), head=head))
    assert "expected the package adaexplore, got no module adaexplore: install it" in told


def test_other_code_on_the_workers(head):
    ignored = shutil.ignore_patterns("__pycache__")  # others write there at any time
    shutil.copytree(Path(adaexplore.__file__).parent, "other/adaexplore", ignore=ignored)
    Path("other/adaexplore/more.py").write_text("# another version")
    told = refusal(rays.launch("+grid=smoke", *head.backend(path_of("other")), head=head))
    assert "expected adaexplore with source digest" in told
    assert "install the same version there" in told


def path_of(folder):
    return "+backend.ray.runtime_env.env_vars.PYTHONPATH=" + str(Path(folder).absolute())


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("backend.ray.num_workers=50", "expected room for 50 workers of 1 processors"),
        ("backend.ray.object_store_mb=200", "expected an object store of 200 MB, got 80 MB"),
    ],
)
def test_a_cluster_that_is_too_small(head, word, shown):
    assert shown in refusal(rays.launch("+grid=smoke", *head.backend(word), head=head))


def test_too_little_shared_memory_for_a_ray_of_our_own():
    told = refusal(rays.launch("+grid=smoke", "backend=ray", "backend.ray.object_store_mb=100000"))
    assert "expected 100000 MB free for Ray's object store, got" in told
    assert [] == rays.of_own_ray()


def test_a_served_model_is_not_played_on_a_cluster_elsewhere(head):
    words = ["+grid=smoke", *head.backend("serving=vllm_process")]
    told = refusal(rays.launch(*words, head=head), code=2)
    assert "serving=vllm_process answers on this machine alone" in told
