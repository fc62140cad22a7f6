"""Finished episodes shown in MLflow: by our projection, or by bare `MlflowClient` calls.

`python drive_projection.py ours|bare THREADS WORDS…` reads a finished sweep, which the words configure
with where it is tracked, shows one episode so that everything is open, then all the others, and prints
runs a second as JSON. Both sides make the same writes: create a run with its tags, log its metrics,
parameters and tags in one batch, end it. What is shown is read and made beforehand for the bare client,
and by our side while the clock runs.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial

from adaexplore import assemble, configure, preparing
from adaexplore.experiments import attempts, contents

SWEEP = "shown"
GIVE_UP_S = 600.0


def main():
    side, threads, *words = sys.argv[1:]
    prepared = preparing.prepare(configure.sweep(["+grid=smoke", f"name={SWEEP}", *words]))
    cells = {cell.cell_id: cell for cell in prepared.plan.cells}
    with closing(prepared.store) as store:
        runs = [
            (cells[cell_id], episode_id, partial(attempts.read_result, store, key))
            for (cell_id, episode_id), key in prepared.plan.finished.items()
        ]
        show = ours if side == "ours" else bare
        seconds = show(prepared, runs, int(threads))
    print(json.dumps({"runs": len(runs) - 1, "per_s": (len(runs) - 1) / seconds}))


def ours(prepared, runs, _):
    """Seconds that our projection takes for all runs but the first."""
    tracker = assemble.tracker(prepared.config, prepared.store, SWEEP)
    tracker.episode(*runs[0])
    _wait(tracker)
    start = time.perf_counter()
    for run in runs[1:]:
        tracker.episode(*run)
    _wait(tracker)
    seconds = time.perf_counter() - start
    tracker.stop()
    return seconds


def _wait(tracker):
    until = time.monotonic() + GIVE_UP_S
    while tracker.pending():
        assert tracker.trouble() is None, tracker.trouble()
        assert time.monotonic() < until, f"{tracker.pending()} runs are not shown"
        time.sleep(0.005)


def bare(prepared, runs, threads):
    """Seconds that bare calls take for all runs but the first."""
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param, RunTag

    tracking = prepared.config.tracking
    uri = tracking.uri or f"sqlite:///{prepared.config.runs_dir}/bare.db"
    client = MlflowClient(uri)
    experiment = client.create_experiment(f"bare-{tracking.experiment}")
    start_ms = int(time.time() * 1000)

    def show(content):
        tags = {f"adaexplore.{i}": content.place.identity for i in range(5)}
        tags["mlflow.parentRunId"] = "0" * 32
        run = client.create_run(experiment, start_ms, tags, content.place.name)
        client.log_batch(
            run.info.run_id,
            [Metric(name, value, start_ms, step) for name, value, step in content.points],
            [Param(name, value) for name, value in content.params.items()],
            [RunTag(name, value) for name, value in (*content.tags.items(), ("content", "0" * 16))],
        )
        client.set_terminated(run.info.run_id, "FINISHED", start_ms)

    first, *rest = [contents.episode(SWEEP, cell, read()) for cell, _, read in runs]
    show(first)
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(show, rest))
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
