"""A Ray of our own: the same tables as in one process, and nothing of it is left, however it ends."""

import signal
from pathlib import Path

import pytest

import rays

pytestmark = pytest.mark.ray
GRID = ["+grid=main", "models=[random,constant]", "settings=[default,stationary]", "dataset=first"]


def test_the_smoke_grid_has_the_tables_of_the_local_backend_and_leaves_nothing():
    local = rays.launch("+grid=smoke", "runs_dir=local")
    ray = rays.launch("+grid=smoke", "backend=ray")

    assert (0, 0) == (local.returncode, ray.returncode), ray.stderr
    assert rays.tables("local") == rays.tables()
    assert len(rays.tables()) > 3
    assert rays.asked("local") == rays.asked()
    assert [] == rays.of_own_ray()
    assert [] == list(Path("runs/ray").iterdir())
    assert not (Path.home() / ".ray" / "auth_token").exists()
    assert "" == ray.stderr


def test_nothing_is_left_of_a_launch_that_is_killed_or_interrupted_and_the_next_goes_on():
    words = [*GRID, "backend=ray", "backend.ray.batch=2"]
    undisturbed = rays.launch(*GRID, "runs_dir=local")
    first = rays.begun(*words)
    rays.until(lambda: rays.finished() > 3)
    token = next(Path("runs/ray").glob("token-*"))
    mode = token.stat().st_mode & 0o777
    rays.killed(first)
    rays.until(lambda: not rays.of_own_ray(), 30)
    second = rays.begun(*words)
    rays.until(lambda: rays.of_own_ray() and rays.finished() > 8)
    code, output = rays.killed(second, signal.SIGINT)
    left = rays.of_own_ray()
    third = rays.launch(*words)

    assert 0o600 == mode
    assert (3, []) == (code, left), output
    assert "interrupted: nothing is lost" in output
    assert (0, 0) == (undisturbed.returncode, third.returncode), third.stderr
    assert rays.tables("local") == rays.tables()
    assert rays.asked("local") == rays.asked()
    assert [] == rays.of_own_ray()
