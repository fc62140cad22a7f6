"""The services themselves: started from nothing, killed, restarted, stopped, started again.

One stack for the whole file, in a folder that only its owner may enter; the tests go through its life
in order. `make test-stack` runs this.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import psycopg2
import pytest
from botocore.exceptions import ClientError
from stack.layout import StackError
from stack.services import NAMES, Stack

from adaexplore.backends.vllm import procfs
from conftest import ROOT
from stack import layout, processes, seaweed

pytestmark = pytest.mark.stack

KEY = "cells/a/b/attempt-0001-0123456789ab/journal.jsonl"
BODY = os.urandom(200_000)
PATIENT_S = 60


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    made = Stack(tmp_path_factory.mktemp("stack"), layout.free_ports())
    yield made
    made.down()


@pytest.fixture(scope="module")
def seconds(stack):
    """From nothing to three services that answer: by the clock, and of processors."""
    begun, own = time.monotonic(), time.process_time()
    stack.up()
    used = time.process_time() - own + sum(worked(stack, name) for name in NAMES)
    return time.monotonic() - begun, used


def worked(stack, name):
    """Seconds of processors that a service has used, with its children that have ended."""
    ticks = 0
    for pid in stack.pids(name):
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


@pytest.fixture(scope="module")
def written(stack, seconds):
    """An object in the store, and the id of a run with a metric and an artifact."""
    assert seconds
    s3(stack).put_object(Bucket=seaweed.BUCKET, Key=KEY, Body=BODY)
    client = mlflow(stack)
    experiment = client.create_experiment("adaexplore")
    run = client.create_run(experiment, tags={"adaexplore.id": "x"}).info.run_id
    client.log_metric(run, "ca", 0.5, step=3)
    client.log_text(run, "a table", "tables/metrics.csv")
    client.set_terminated(run)
    return run


def s3(stack):
    return seaweed.s3_client(stack.ports.s3, stack._keys)


def mlflow(stack):
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=stack.tracking_uri)


def assert_kept(stack, run):
    """Everything that was acknowledged is there, through every service."""
    assert BODY == s3(stack).get_object(Bucket=seaweed.BUCKET, Key=KEY)["Body"].read()
    client = mlflow(stack)
    experiment = client.get_experiment_by_name("adaexplore").experiment_id
    (found,) = client.search_runs([experiment], "tags.`adaexplore.id` = 'x' and metrics.ca = 0.5")
    assert (run, "FINISHED") == (found.info.run_id, found.info.status)
    path = Path(client.download_artifacts(run, "tables/metrics.csv"))
    assert "a table" == path.read_text()


def segments():
    return {line.split()[1] for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]}


def traces(stack):
    """Processes that have anything to do with the stack's folder, asked without our own code."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        if int(path.name) == os.getpid():
            continue
        try:
            said = (path / "cmdline").read_bytes() + (path / "environ").read_bytes()
            where = str((path / "cwd").readlink())
        except OSError:
            continue
        if str(stack.folder).encode() in said or where.startswith(str(stack.folder)):
            found[int(path.name)] = said[:80]
    return found


def test_up_from_nothing_in_under_a_minute(seconds):
    """By the clock; where others keep the machine busy, by the processors' time that it took."""
    lasted, used = seconds
    print(f"up from nothing: {lasted:.1f} s, {used:.1f} s of processors")
    assert min(lasted, used) < 60


def test_what_is_written_is_read(stack, written):
    assert_kept(stack, written)
    listed = s3(stack).list_objects_v2(Bucket=seaweed.MLFLOW_BUCKET)["Contents"]
    assert [f"/{written}/artifacts/tables/metrics.csv"] == [
        re.sub(r"^[^/]+", "", item["Key"]) for item in listed
    ]


def test_everything_listens_on_loopback_and_on_its_own_ports_only(stack, written):
    assert written
    inodes = procfs.sockets(
        process for name in NAMES for pid in stack.pids(name) if (process := procfs.read(pid))
    )
    listening = set()
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                address, port = fields[1].split(":")
                listening.add((address, int(port, 16)))

    loopback = f"{int.from_bytes(socket.inet_aton('127.0.0.1'), 'little'):08X}"
    assert {(loopback, port) for port in stack.ports.numbers()} == listening


def test_keys_are_needed(stack, written):
    assert written
    wrong = replace(stack._keys, s3={**stack._keys.s3, "AWS_SECRET_ACCESS_KEY": "wrong"})
    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        seaweed.s3_client(stack.ports.s3, wrong).list_buckets()
    for role, password in (("mlflow", "wrong"), ("postgres", stack._keys.password)):
        with pytest.raises(psycopg2.OperationalError):
            psycopg2.connect(
                host="127.0.0.1",
                port=stack.ports.postgres,
                user=role,
                password=password,
                dbname="mlflow",
            )


def test_secrets_are_in_the_key_files_and_nowhere_else(stack, written):
    """Command lines of every process, and every file of the stack that we can name: logs, data."""
    assert written
    secrets = [stack._keys.password.encode(), stack.environment["AWS_SECRET_ACCESS_KEY"].encode()]
    told = [path for path in Path("/proc").glob("[0-9]*/cmdline") if holds(path, secrets)]
    # os.walk passes over what a service removes meanwhile.
    files = [Path(top, name) for top, _, names in os.walk(stack.folder) for name in names]
    kept = {path.name for path in files if path.is_file() and holds(path, secrets)}

    assert [] == told
    assert {"env", "pgpass", "compose.env"} == kept


def holds(path, secrets):
    try:
        data = path.read_bytes()
    except OSError:
        return False
    return any(secret in data for secret in secrets)


def test_up_again_leaves_everything_as_it_is(stack, written):
    before, said = {name: stack.pids(name)[0] for name in NAMES}, []

    stack.up(said.append)

    assert before == {name: stack.pids(name)[0] for name in NAMES}
    assert 3 == sum("already running" in line for line in said)
    assert_kept(stack, written)


@pytest.mark.parametrize("name", NAMES)
def test_a_killed_service_comes_back_with_its_data_and_the_others_never_noticed(
    stack, written, name
):
    others = {other: stack.pids(other)[0] for other in NAMES if other != name}
    stack.kill(name)
    assert [] == stack.pids(name)

    begun = time.monotonic()
    stack.start(name)

    print(f"{name} killed, ready again after {time.monotonic() - begun:.1f} s")
    assert_kept(stack, written)
    assert others == {other: stack.pids(other)[0] for other in others}


@pytest.mark.parametrize("name", NAMES)
def test_a_service_that_lost_its_first_process_is_started_anew(stack, written, name):
    """What is left of it holds the port, and would answer in its place."""
    root = processes.running(stack.services[name].site)
    os.kill(root.pid, signal.SIGKILL)
    assert processes.wait(lambda: not procfs.remaining([root]), PATIENT_S, stack._children)

    stack.start(name)

    assert root.pid not in stack.pids(name)
    assert_kept(stack, written)


def test_the_id_of_a_lost_server_may_be_used_again(stack, written):
    """PostgreSQL's own file then names a living process of the same account, and would refuse to start."""
    file = stack.services["postgres"].site.home / "postmaster.pid"
    lines = file.read_text().splitlines()
    owner = file.stat()
    who = (
        {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}
        if os.geteuid() == 0
        else {}
    )
    lost = procfs.read(int(lines[0]))
    os.kill(lost.pid, signal.SIGKILL)
    assert processes.wait(lambda: not procfs.remaining([lost]), PATIENT_S, stack._children)
    with subprocess.Popen(["sleep", "60"], cwd="/", **who) as stranger:
        file.write_text("\n".join([str(stranger.pid), *lines[1:]]) + "\n")
        stack.start("postgres")
        assert stranger.poll() is None
        stranger.kill()

    assert_kept(stack, written)


def test_down_leaves_data_and_nothing_else(stack, written):
    assert written
    segment = Path(stack.services["postgres"].site.home / "postmaster.pid").read_text().split()[-2]
    ports, pids = stack.ports.numbers(), [pid for name in NAMES for pid in stack.pids(name)]
    assert segment in segments()
    assert len(pids) > 10

    begun = time.monotonic()
    stack.down()

    print(f"down: {time.monotonic() - begun:.1f} s")
    assert {} == traces(stack)
    # An orphan is collected by the system's first process, in its own time.
    assert processes.wait(
        lambda: not any(Path(f"/proc/{pid}/cmdline").exists() for pid in pids),
        PATIENT_S,
        stack._children,
    )
    assert segment not in segments()
    assert [] == [path for port in ports for path in Path("/tmp").glob(f"seaweedfs-*{port}.sock")]  # noqa: S108
    assert [] == list(stack.folder.glob("*.pid"))


def test_killed_and_then_down_leaves_no_memory_either(stack):
    stack.start("postgres")
    segment = Path(stack.services["postgres"].site.home / "postmaster.pid").read_text().split()[-2]
    stack.kill("postgres")
    assert segment in segments()

    stack.down()

    assert segment not in segments()


def test_why_a_service_does_not_start_is_said(stack):
    """The last of it comes from its own log."""
    file = stack.services["postgres"].site.home / "postgresql.conf"
    kept = file.read_text()
    file.write_text(f"{kept}\nshared_buffers = 'plenty'\n")
    with pytest.raises(StackError, match=r"shared_buffers|postgresql\.conf") as error:
        stack.up()
    file.write_text(kept)

    assert "postgres.log" in str(error.value)
    assert "\n" not in str(error.value)


def test_up_again_finds_the_data_even_with_new_keys_and_ports(stack, written):
    """By the command this time, as another process than the one that made the stack."""
    for name in ("env", "pgpass"):
        (stack.folder / name).unlink()
    ports = layout.free_ports()
    up = command(
        stack, "up", "--ports", ",".join(f"{name}={port}" for name, port in asdict(ports).items())
    )
    assert (0, "") == (up.returncode, up.stderr)
    again = Stack(stack.folder)

    assert ports == again.ports
    assert again.environment != stack.environment
    assert f"tracking.uri={again.tracking_uri} store=s3 store.bucket=adaexplore" in up.stdout
    assert_kept(again, written)

    down = command(stack, "down")
    assert (0, "") == (down.returncode, down.stderr)
    assert {} == traces(stack)


def command(stack, *words):
    return subprocess.run(
        [sys.executable, "-m", "stack", *words, "--folder", str(stack.folder)],
        cwd=ROOT,
        check=False,
        text=True,
        capture_output=True,
    )
