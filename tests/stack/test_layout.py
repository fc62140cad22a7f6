"""Ports, keys, processes and the command, without starting any of the services."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stack.layout import Ports, StackError
from stack.processes import Children, Command, Site

from adaexplore.errors import ConfigError
from conftest import ROOT
from stack import keys, layout, postgres, processes

PATIENT_S = 60

# -- ports --------------------------------------------------------------------------------------


def test_default_ports_lie_outside_the_range_of_outgoing_connections():
    assert [] == [port for port in Ports().checked().numbers() if not 1024 <= port < 32768]


def test_ports_move_by_name_and_the_others_stay():
    assert Ports(mlflow=5001, s3=8334) == Ports().moved("mlflow=5001, s3=8334")
    assert Ports() == Ports().moved("")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("mlflow", "'mlflow'"),
        ("mlflow=x", "'mlflow=x'"),
        ("minio=9000", "'minio=9000'"),
        ("mlflow=-1", "'mlflow=-1'"),
        ("mlflow=80", "80 outside"),
        ("mlflow=65536", "65536 outside"),
        ("mlflow=8333", "8333 twice"),
        ("s3=18347", "18347 twice"),
        ("postgres=28347", "28347 twice"),
    ],
)
def test_a_wrong_port_is_named(text, named):
    with pytest.raises(ConfigError, match=re.escape(named)) as error:
        Ports().moved(text)

    assert "STACK_PORTS" in str(error.value)
    assert "\n" not in str(error.value)


@given(st.integers(1024, 65535), st.integers(1024, 55000))
def test_checked_ports_are_distinct_and_exist(mlflow, internal):
    """Counted independently: eight in a row, one 10,007 above the first, and three by themselves."""
    ports = Ports(mlflow=mlflow, seaweed=internal)
    numbers = {15432, 8333, mlflow, *range(internal, internal + 8), internal + 10_007}
    right = len(numbers) == 12 and max(numbers) <= 65535

    if right:
        assert sorted(numbers) == sorted(ports.checked().numbers())
    else:
        with pytest.raises(ConfigError):
            ports.checked()


def test_ports_are_kept_with_the_data(tmp_path):
    assert Ports() == layout.saved(tmp_path)

    layout.save(tmp_path, Ports(mlflow=5001))

    assert Ports(mlflow=5001) == layout.saved(tmp_path)


# -- keys ---------------------------------------------------------------------------------------


def test_keys_are_made_once_and_only_for_their_owner(tmp_path):
    first = keys.ensure(tmp_path)
    second = keys.ensure(tmp_path)

    assert first == second
    assert {"env", "pgpass", "compose.env"} == {path.name for path in tmp_path.iterdir()}
    assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}


def test_keys_differ_between_stacks_and_are_not_shown(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, other = keys.ensure(tmp_path / "a"), keys.ensure(tmp_path / "b")

    assert one.password != other.password
    assert one.s3["AWS_SECRET_ACCESS_KEY"] != other.s3["AWS_SECRET_ACCESS_KEY"]
    assert not any(secret in repr(one) for secret in [one.password, *one.s3.values()])


def test_a_shell_reads_the_key_file(tmp_path):
    made = keys.ensure(tmp_path)
    words = ["sh", "-c", f". {tmp_path}/env && env"]
    seen = subprocess.run(words, env={}, capture_output=True, text=True, check=True).stdout

    assert made.s3.items() <= dict(line.split("=", 1) for line in seen.splitlines()).items()


def test_a_damaged_key_file_is_named(tmp_path):
    keys.ensure(tmp_path)
    (tmp_path / "env").write_text("export AWS_ACCESS_KEY_ID=only\n")

    with pytest.raises(StackError, match="delete both"):
        keys.ensure(tmp_path)


# -- processes ----------------------------------------------------------------------------------


@pytest.fixture
def site(tmp_path):
    (tmp_path / "home").mkdir()
    return Site(
        name="sleeper",
        home=tmp_path / "home",
        log=tmp_path / "logs" / "sleeper.log",
        pid_file=tmp_path / "sleeper.pid",
        program="sleep",
    )


def titles(site):
    """Command lines of a service's processes: one that has not become its program yet is its shell."""
    found = []
    for process in processes.members(site):
        with suppress(OSError):
            words = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
            found.append(b" ".join(words).decode().strip())
    return sorted(found)


def sleeper(site, script="exec sleep 60"):
    return Command(words=["sh", "-c", script], folder=site.home)


def test_a_process_is_known_by_its_start_time_and_boot_not_by_its_id(site):
    """A file that names a living process which is not the one that was started is stale."""
    children = Children()
    started = children.start(site, sleeper(site))
    document = json.loads(site.pid_file.read_text())
    assert started.root.pid == processes.running(site).pid

    for changed in ({"started": 1}, {"boot": "another"}, {"pid": os.getpid()}, {"pid": "x"}):
        site.pid_file.write_text(json.dumps({**document, **changed}))
        assert processes.running(site) is None
    site.pid_file.write_text("{")
    assert processes.running(site) is None

    site.pid_file.write_text(json.dumps(document))
    assert processes.stop(site, children, number=signal.SIGTERM, grace_s=PATIENT_S)
    assert not site.pid_file.exists()


def test_nothing_outlives_its_service(site):
    """Children in sessions of their own, orphans, and those that ignore the polite signal."""
    children = Children()
    script = "trap '' TERM; setsid sleep 61 & (sleep 62 &) ; sleep 63; sleep 64"
    children.start(site, sleeper(site, script))
    sleeping = {"sleep 61", "sleep 62", "sleep 63"}
    assert processes.wait(lambda: sleeping <= set(titles(site)), PATIENT_S, children)

    assert not processes.stop(site, children, number=signal.SIGTERM, grace_s=0.2)

    assert [] == processes.members(site)


def test_what_a_lost_root_left_behind_is_still_found(site):
    children = Children()
    started = children.start(site, sleeper(site, "setsid sleep 61 & exec sleep 62"))
    both = ["sleep 61", "sleep 62"]
    assert processes.wait(lambda: both == titles(site), PATIENT_S, children)
    os.kill(started.root.pid, signal.SIGKILL)
    assert processes.wait(lambda: processes.running(site) is None, PATIENT_S, children)

    assert ["sleep 61"] == titles(site)

    processes.end(site, children)
    assert [] == processes.members(site)


def test_a_service_inherits_few_variables(site, monkeypatch):
    """Secrets of the user's shell are none of its business."""
    monkeypatch.setenv("MY_API_KEY", "canary")
    children = Children()
    children.start(site, sleeper(site, "env; exec sleep 60"))
    assert processes.wait(lambda: b"HOME=" in site.log.read_bytes(), PATIENT_S, children)
    processes.end(site, children)

    names = set(re.findall(r"^(\w+)=", site.log.read_text(), re.MULTILINE))
    assert names <= {"PATH", "LANG", "TZ", "HOME", "PWD", "SHLVL", "_", "OLDPWD", processes.MARKER}


def test_a_missing_program_is_one_line(site):
    with pytest.raises(StackError, match="cannot run /no/such"):
        Children().start(site, Command(words=["/no/such"], folder=site.home))


# -- PostgreSQL's programs ----------------------------------------------------------------------


def test_the_programs_fit_the_version_of_the_data(tmp_path, monkeypatch):
    for version in ("9", "14", "16"):
        folder = tmp_path / version
        folder.mkdir()
        for name in ("initdb", "postgres"):
            (folder / name).write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {version}.3'\n")
            (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "14"), prepend=os.pathsep)

    assert tmp_path / "14" == postgres.programs("14")
    with pytest.raises(StackError, match=r"PostgreSQL 99 .*apt-get install postgresql-99"):
        postgres.programs("99")


# -- the command --------------------------------------------------------------------------------


def run(*words, **environment):
    return subprocess.run(
        [sys.executable, "-m", "stack", *words],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_names_what_is_wrong_in_one_line(tmp_path):
    wrong = run("up", "--folder", str(tmp_path / "s"), STACK_PORTS="mlflow=x")

    assert (2, 1) == (wrong.returncode, len(wrong.stderr.splitlines()))
    assert "STACK_PORTS" in wrong.stderr


def test_a_taken_port_is_named_with_its_owner_and_nothing_is_started(tmp_path):
    program = (
        "import socket, time; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); "
        "print(s.getsockname()[1], flush=True); time.sleep(60)"
    )
    words = [sys.executable, "-c", program]
    free = layout.free_ports()
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as holder:
        port = int(holder.stdout.readline())
        ports = f"postgres={free.postgres},mlflow={free.mlflow},seaweed={free.seaweed},s3={port}"
        refused = run("up", "--folder", str(tmp_path / "s"), "--ports", ports)
        holder.kill()

    assert 4 == refused.returncode
    assert f"port {port} is taken by process {holder.pid} (python" in refused.stderr
    assert "STACK_PORTS=s3=N" in refused.stderr
    assert "" == refused.stdout
    assert not list((tmp_path / "s").glob("*.pid"))


def test_down_and_status_of_nothing_are_fine(tmp_path):
    for command in ("down", "status"):
        done = run(command, "--folder", str(tmp_path / "s"))
        assert (0, 3) == (done.returncode, done.stdout.count("not running"))
