"""A Ray of our own: the same tables as in one process, and nothing of it is left, however it ends."""

import math
import signal
from pathlib import Path

import pytest

import rays

pytestmark = pytest.mark.ray
GRID = [
    "+grid=main",
    "models=[quick,constant]",
    "settings=[default,stationary]",
    "dataset=first",
    "protocol.batches=4",
]


def test_the_smoke_grid_has_the_tables_of_the_local_backend_and_leaves_nothing():
    local = rays.launch("+grid=smoke", "runs_dir=local")
    home = Path("home").absolute()
    home.mkdir()
    ray = rays.launch("+grid=smoke", "backend=ray", HOME=str(home))

    assert (0, 0) == (local.returncode, ray.returncode), ray.stderr
    assert rays.tables("local") == rays.tables()
    assert len(rays.tables()) > 3
    assert rays.asked("local") == rays.asked()
    assert [] == rays.of_own_ray()
    assert [] == list(Path("runs/ray").iterdir())
    assert not (home / ".ray").exists()
    assert "" == ray.stderr


def test_nothing_is_left_of_a_launch_that_is_killed_or_interrupted_and_the_next_goes_on(server):
    rays.profile(server)
    words = [*GRID, "backend=ray", "backend.ray.batch=2"]
    undisturbed = rays.launch(*GRID, "runs_dir=local")
    server.let(100)
    first = rays.begun(*words)
    rays.until(lambda: server.held, of=first)
    token = next(Path("runs/ray").glob("token-*"))
    mode = token.stat().st_mode & 0o777
    rays.killed(first)
    rays.until(lambda: not rays.of_own_ray())
    server.let(100)
    second = rays.begun(*words)
    rays.until(lambda: server.held, of=second)
    code, output = rays.killed(second, signal.SIGINT)
    left = rays.of_own_ray()
    server.allowed = math.inf
    third = rays.launch(*words)

    assert 0o600 == mode
    assert (3, []) == (code, left), output
    assert "interrupted: nothing is lost" in output
    assert (0, 0) == (undisturbed.returncode, third.returncode), third.stderr
    assert rays.tables("local") == rays.tables()
    assert rays.asked("local") == rays.asked()
    assert [] == rays.of_own_ray()
