"""How long a person waits: for the help, for the pure core, for the first call, for a resume.

All of it is wall time of fresh processes with warm disk caches (one launch before counts for nothing).
The time to the first call ends when the mock model, in its own process, gets its first request. The
finished sweep that is resumed is written through the functions of a launch (`finish.py`): each episode is
played once and kept as a run of every seed. One run is left to play, and taken away again after it.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.children import ROOT, Launched, mock, remote, told
from tests.benchmarks.rows import measured

HELP_S, CORE_S, FIRST_CALL_S, RESUME_S = 0.7, 0.15, 2.5, 5.0
TIMES = 3
"""Fresh processes for each repeat of what takes less than a second."""
FINISHED = 10_000
EPISODES_OF_SEED = 200
CORE = ("adaexplore.benchmark",)
ROOMS = (
    "adaexplore.benchmark.world.search", "adaexplore.benchmark.game.play",
    "adaexplore.benchmark.game.agents", "adaexplore.benchmark.scores.metrics",
)  # fmt: skip
"""The package alone imports nothing; these are its three rooms, statistics apart, which need scipy."""


def rows(bench):
    """The rows of the group."""
    count = TIMES * bench.repeats
    bench.say("--help, imports")
    shown = tuple(_help_s() for _ in range(count + 1))[1:]
    yield measured("starts.help", "`python -m platform.launch --help`", shown, "s", HELP_S)
    for key, what, modules in (
        ("core", "`import adaexplore.benchmark`, beyond numpy", CORE),
        ("rooms", "the same with its modules: world, game, metrics", ROOMS),
    ):
        found = tuple(_import_s(modules) for _ in range(count + 1))[1:]
        yield measured(f"starts.{key}", what, found, "s", CORE_S)
    bench.say("command to first call")
    for key, what, tracking in (
        ("first_call", "command to first model call, tracking=none", "tracking=none"),
        ("first_call_tracked", "the same with MLflow on SQLite, the default", "tracking=sqlite"),
    ):
        found = tuple(_first_call_s(tracking) for _ in range(bench.repeats + 1))[1:]
        yield measured(f"starts.{key}", what, found, "s", FIRST_CALL_S)
    yield from _resumed(bench)


def _help_s():
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "platform.launch", "--help"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    return time.perf_counter() - start


def _import_s(modules):
    code = (
        f"import time, json, numpy; start = time.perf_counter(); import {', '.join(modules)}; "
        "print(json.dumps(time.perf_counter() - start))"
    )
    return told(["-c", code])


def _first_call_s(tracking):
    with tempfile.TemporaryDirectory() as folder:
        return _until_first_call(Path(folder), ["report=false", tracking, "protocol.batches=1"])[0]


def _until_first_call(folder, words):
    """(seconds from the command to the first request that the mock model gets, the launch)."""
    with mock(0.0) as server:
        launched = Launched([*remote(server.port, 32), *words], folder)
    if server.told["first_at"] is None:
        raise RuntimeError(f"the launch asked nothing: {launched.said[-2000:]}")
    return server.told["first_at"] - launched.began_at, launched


# -- resume ------------------------------------------------------------------------------------


def _resumed(bench):
    sweep = [
        "dataset=v1", f"dataset.limit={EPISODES_OF_SEED}", "tracking=none", "report=false", "name=long",
        f"seeds={list(range(FINISHED // EPISODES_OF_SEED))}",
    ]  # fmt: skip
    first, whole = [], []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        bench.say(f"finishing a sweep of {FINISHED:,} runs but one")
        made = told(["-m", "tests.benchmarks.finish", folder / "runs", *sweep], paths=[ROOT])
        for _ in range(bench.repeats):
            bench.say("resuming it")
            seconds, launched = _until_first_call(folder, sweep)
            first.append(seconds)
            whole.append(launched.wall_s)
            shutil.rmtree(folder / "runs" / made["left"])
    what = f"resume of a sweep with {FINISHED:,} finished runs, command to first new call"
    yield measured("starts.resume", what, first, "s", RESUME_S)
    what = "the same, to its end: the last run played, all tables made again"
    yield measured("starts.resumed", what, whole, "s")
