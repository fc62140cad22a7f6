"""jobs/run_grid.py: what the cluster runs."""

import math
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import rays
from adaexplore import provenance

pytestmark = pytest.mark.ray
GRID = ["+grid=main", "models=[random,quick]", "dataset=first", "protocol.batches=4"]


@pytest.fixture(scope="module")
def gate():
    """The server of the frozen sweep's model, which can be held."""
    with rays.GatedServer() as found:
        yield found


@pytest.fixture(scope="module")
def place(tmp_path_factory, gate):
    """A folder with a sweep that one process has played, in `local`, and a working directory."""
    folder = tmp_path_factory.mktemp("jobs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        rays.profile(gate)
        local = rays.launch(*GRID, f"runs_dir={folder}/local")
    assert 0 == local.returncode, local.stderr
    for name in ("jobs", "platform"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(rays.ROOT / name, folder / "work" / name, ignore=ignored)
    return folder


@pytest.fixture
def frozen(place):
    """Words that play the frozen sweep; the code may be worked on while the tests run."""
    (file,) = place.glob("local/sweeps/*/frozen.yaml")
    changed = provenance.collect()["dirty"]
    return [f"file://{file}", "tracking=none", *(["--allow-drift=code"] if changed else [])]


def submitted(head, place, *words):
    """A Ray job of the working directory, followed to its end."""
    ray = Path(sys.executable).parent / "ray"
    command = [
        ray, "job", "submit", "--address", head.dashboard, "--working-dir", place / "work",
        "--runtime-env-json", '{"env_vars": {"HYDRA_FULL_ERROR": "0"}}', "--", sys.executable,
        "jobs/run_grid.py", *words,
    ]  # fmt: skip
    return subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=rays.DEADLINE_S,
        env=rays.environment(head, {}),
    )  # fmt: skip


def test_a_submitted_job_plays_a_frozen_sweep_and_ends_with_its_codes(head, place, frozen):
    done = submitted(head, place, *frozen, f"runs_dir={Path('runs').absolute()}")
    refused = submitted(head, place, *frozen, "runs_dir=runs")
    told = refused.stdout + refused.stderr

    assert 0 == done.returncode, done.stdout + done.stderr
    assert rays.tables(place / "local") == rays.tables()
    assert rays.asked(place / "local") == rays.asked()
    assert "exit code 2" in told
    assert "is in the job's copy of its working directory" in told


def test_sigterm_ends_it_in_order_and_again_it_resumes(head, place, frozen, gate):
    command = [sys.executable, place / "work" / "jobs" / "run_grid.py", *frozen, "runs_dir=runs"]
    command += ["backend.ray.batch=1", "backend.concurrency=1"]
    own = rays.environment(head, {"RAY_ADDRESS": head.address})
    gate.let(60)
    first = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=own
    )
    rays.until(lambda: gate.held, of=first)
    code, output = rays.killed(first, signal.SIGTERM)
    rays.until(lambda: not head.actors("Worker"))
    gate.allowed = math.inf
    again = subprocess.run(command, check=False, capture_output=True, text=True, env=own)

    assert 3 == code, output
    assert "interrupted: nothing is lost" in output
    assert 0 == again.returncode, again.stderr
    assert rays.tables(place / "local") == rays.tables()
    assert rays.asked(place / "local") == rays.asked()
