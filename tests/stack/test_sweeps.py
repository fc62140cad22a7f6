"""A sweep on real services, each of which dies on the way: nothing is lost, nothing is told twice.

One story, in order: a grid is played on the S3 store and the MLflow server while the services are
killed (kill -9, children included) ten times at random moments of the sweep's progress, the sweep's
own process once; a model's server answers no more calls than come before the next death, so that none
comes too late. Its tables are the bytes of an undisturbed local run; MLflow is wiped and made again
from the store, to the same content; the audit finds nothing. The seed is printed: CHAOS_SEED=7 does
the same again.
"""

import hashlib
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from stack.services import NAMES, Stack

import rays
from adaexplore.backends.s3.store import S3Store
from adaexplore.experiments import attempts, journals
from adaexplore.experiments.config import StoreConfig
from stack import layout, seaweed

pytestmark = pytest.mark.stack

GRID = [
    "+grid=main", "models=[random,constant,quick]", "settings=[default,stationary]",
    "dataset=lite", "dataset.limit=12", "name=stormy", "backend.processes=0", "backend.concurrency=4",
]  # fmt: skip
RUNS = 3 * 2 * 12
KILLS = 10
SEED = int(os.environ.get("CHAOS_SEED", random.SystemRandom().randrange(10**6)))


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    made = Stack(tmp_path_factory.mktemp("stack"), layout.free_ports())
    try:
        made.up()
        with pytest.MonkeyPatch.context() as patch:
            for name, value in made.environment.items():
                patch.setenv(name, value)
            yield made
    finally:
        made.down()


@pytest.fixture(scope="module")
def server():
    """The model server, which can be held."""
    with rays.GatedServer() as found:
        yield found


def placed(folder, server):
    """A folder where sweeps know the model behind the server."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        rays.profile(server)
    return folder


@pytest.fixture(scope="module")
def local(server, tmp_path_factory):
    """Folder of an undisturbed run on embedded defaults, without MLflow."""
    folder = placed(tmp_path_factory.mktemp("local"), server)
    subprocess.run(
        [sys.executable, "-m", "adaexplore.launch", *GRID, "tracking=none"],
        cwd=folder, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return folder


def words(stack, *verb):
    return [sys.executable, "-m", *verb, *stack.overrides]


def environment(stack):
    return {**os.environ, **stack.environment}


def command(stack, folder, *verb):
    return subprocess.run(
        words(stack, *verb), cwd=folder, env=environment(stack), capture_output=True, text=True, check=False
    )  # fmt: skip


def opened(stack):
    config = StoreConfig(kind="s3", bucket=seaweed.BUCKET, endpoint=stack.endpoint)
    return S3Store(config)


@pytest.fixture(scope="module")
def played(stack, local, server, tmp_path_factory):
    """(folder, kills by service, launches) of the sweep, complete after the storm."""
    rng = random.Random(f"services {SEED}")
    victims = [*NAMES, *rng.choices(NAMES, k=KILLS - len(NAMES))]
    rng.shuffle(victims)
    assert local.is_dir()
    calls = len(server.work)  # of the local run, and so at least as many again
    moments = sorted(rng.sample(range(1, calls * 3 // 4), KILLS))
    print(f"CHAOS_SEED={SEED}: {list(zip(moments, victims, strict=True))}")
    folder = placed(tmp_path_factory.mktemp("laptop"), server)
    server.let(moments[0])
    child, launches = launch(stack, folder), 1
    for number, victim in enumerate(victims):
        while not server.held or child.poll() is not None:
            if child.poll() is not None:
                assert child.returncode in (-signal.SIGKILL, 4)
                child, launches = launch(stack, folder), launches + 1
            time.sleep(0.05)  # progress kills, not the clock
        stack.kill(victim)
        if number == KILLS // 2:
            child.kill()
        if number + 1 < KILLS:  # it goes on while the service is away
            server.let(moments[number + 1] - moments[number])
        stack.start(victim)
    server.allowed = math.inf
    while child.wait() != 0:
        assert child.returncode in (-signal.SIGKILL, 4)
        child, launches = launch(stack, folder), launches + 1
    return folder, Counter(victims), launches


def launch(stack, folder):
    with (folder / "output.txt").open("a") as output:
        return subprocess.Popen(
            words(stack, "adaexplore.launch", *GRID), cwd=folder, env=environment(stack),
            stdout=output, stderr=output,
        )  # fmt: skip


def tables(stack, sweep="stormy"):
    store = opened(stack)
    prefix = f"sweeps/{sweep}/tables/"
    return {key.removeprefix(prefix): store.get(key) for key in store.keys(prefix)}


def test_the_tables_are_those_of_an_undisturbed_local_run(stack, local, played):
    _, kills, launches = played
    print(f"killed: {dict(kills)}; launches: {launches}")
    folder = local / "runs" / "sweeps" / "stormy" / "tables"

    assert set(NAMES) == set(kills)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == tables(stack)


def test_no_turn_that_was_journaled_was_asked_twice(stack, local, played):
    """Over all attempts, each reply was asked for once; the local run says how many there are."""
    assert played
    store = opened(stack)
    found, expected = Counter(), Counter()
    for key in store.keys("cells/"):
        if key.endswith("/journal.jsonl"):
            journal = journals.read(store.get(key), key)
            found[tuple(key.split("/")[1:3])] += 0 if journal is None else len(journal.own_entries)
    for path in local.glob("runs/cells/*/*/*/journal.jsonl"):
        expected[path.parts[-4:-2]] = len(journals.read(path.read_bytes(), str(path)).entries)

    assert expected == found
    assert all(len(attempts.finished(store, cell)) == 12 for cell, _ in expected)


def test_two_launchers_at_once_share_the_work(stack, tmp_path):
    """On a store without locks that a process frees by dying."""
    small = [*GRID, "name=twins", "dataset.limit=2", "seeds=[7]", "models=[random,constant]",
             "tracking.experiment=twins"]  # fmt: skip
    pair = [
        subprocess.Popen(
            [*words(stack, "adaexplore.launch"), *small], cwd=tmp_path, env=environment(stack),
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    ends = [child.communicate()[1] for child in pair]
    alone = subprocess.run(
        [sys.executable, "-m", "adaexplore.launch", *small, "tracking=none"], cwd=tmp_path, check=True,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    here = tmp_path / "runs" / "sweeps" / "twins" / "tables"

    assert (0, ["", ""], [0, 0]) == (alone.returncode, ends, [child.returncode for child in pair])
    assert {path.name: path.read_bytes() for path in here.iterdir()} == tables(stack, "twins")


def content(stack):
    """All runs of the experiment as MLflow shows them, without ids and times."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=stack.tracking_uri)
    experiment = client.get_experiment_by_name("adaexplore")
    runs, token = [], None
    while True:
        page = client.search_runs([experiment.experiment_id], max_results=1000, page_token=token)
        runs += page
        if not (token := page.token):
            break
    ids = {run.info.run_id: run.data.tags["adaexplore.id"] for run in runs}
    assert len(ids) == len(set(ids.values()))
    return {ids[run.info.run_id]: shown(client, run, ids) for run in runs}


def shown(client, run, ids):
    tags = {k: v for k, v in run.data.tags.items() if k.startswith("adaexplore.")}
    tags.pop("adaexplore.writer", None)
    parent = run.data.tags.get("mlflow.parentRunId")
    series = {
        name: [
            (point.step, point.value) for point in client.get_metric_history(run.info.run_id, name)
        ]
        for name in run.data.metrics
        if tags["adaexplore.level"] != "episode" or name == "batch/ca"
    }
    files = {} if tags["adaexplore.level"] == "episode" else artifacts(client, run.info.run_id)
    return {
        "status": run.info.status, "tags": tags, "parent": parent and ids[parent],
        "params": run.data.params, "metrics": run.data.metrics, "series": series, "files": files,
    }  # fmt: skip


def artifacts(client, run_id, path=None):
    found = {}
    for item in client.list_artifacts(run_id, path):
        if item.is_dir:
            found |= artifacts(client, run_id, item.path)
        else:
            data = Path(client.download_artifacts(run_id, item.path)).read_bytes()
            found[item.path] = hashlib.sha256(data).hexdigest()
    return found


def test_mlflow_is_made_again_from_the_store_to_the_same_content(stack, played):
    folder, *_ = played
    synced = command(stack, folder, "adaexplore", "sync", "stormy")
    before = content(stack)
    wipe(stack)
    again = command(stack, folder, "adaexplore", "sync", "stormy")

    assert (0, 0) == (synced.returncode, again.returncode), synced.stderr + again.stderr
    assert RUNS + 6 + 1 == len(before)
    assert {"FINISHED"} == {run["status"] for run in before.values()}
    assert before == content(stack)


def wipe(stack):
    """A server that knows nothing: its database and its bucket are gone."""
    for name in ("mlflow", "postgres"):
        stack.stop(name)
    shutil.rmtree(stack.folder / "postgres")
    client = seaweed.s3_client(stack.ports.s3, stack._keys)
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=seaweed.MLFLOW_BUCKET)
    for page in pages:
        for item in page.get("Contents", ()):
            client.delete_object(Bucket=seaweed.MLFLOW_BUCKET, Key=item["Key"])
    stack.up()


def test_the_audit_finds_nothing_and_then_what_was_damaged(stack, played):
    folder, *_ = played
    clean = command(stack, folder, "adaexplore", "verify", "stormy")
    store = opened(stack)
    key = next(key for key in store.keys("cells/") if key.endswith("/journal.jsonl"))
    whole = store.get(key)
    store.put(key, whole.replace(b"action_1", b"action_2", 1))
    damaged = command(stack, folder, "adaexplore", "verify", "stormy")
    store.put(key, whole)

    assert 0 == clean.returncode, clean.stdout + clean.stderr
    assert 4 == damaged.returncode
    assert f"journal  {key}" in damaged.stdout


@pytest.mark.usefixtures("played")
def test_the_sweep_replays_without_a_model(stack, tmp_path, local):
    replayed = command(stack, tmp_path, "adaexplore", "replay", "stormy", "--out", "tables")
    folder = local / "runs" / "sweeps" / "stormy" / "tables"

    assert 0 == replayed.returncode, replayed.stdout + replayed.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        path.name: path.read_bytes() for path in (tmp_path / "tables").iterdir()
    }
