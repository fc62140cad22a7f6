"""MLflow as a projection of the store.

Runs are nested: the sweep, its cells, their episodes. Each carries the tag `adaexplore.id`, found
before it is made, so nothing is shown twice; per-batch metrics are steps, so that MLflow's own
charts show the drop at the drift. Everything happens in one thread fed by a queue: MLflow may be
slow or broken without stopping the sweep, and what it missed is shown by the next launch.
"""

import fcntl
import logging
import math
import os
import queue
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.scores import metrics
from adaexplore.experiments import trackers
from adaexplore.experiments.grids import Cell

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric

ID_TAG: Final = "adaexplore.id"
SWEEP_TAG: Final = "adaexplore.sweep"
PARENT_TAG: Final = "mlflow.parentRunId"
PAGE: Final = 5000

Point = tuple[str, float, int]
"""(name, value, step)."""


@dataclass(slots=True)
class _Shown:
    """A run that MLflow holds already."""

    run_id: str
    start_ms: int
    finished: bool


@dataclass(slots=True)
class _Sweep:
    """The connection and what it knows of the sweep's runs."""

    client: "MlflowClient"
    experiment_id: str
    runs: dict[str, _Shown] = field(default_factory=dict)


class MlflowTracker:
    """Shows one sweep in an embedded MLflow database."""

    def __init__(self, root: Path, *, experiment: str, sweep: str) -> None:
        """Show runs below `root` (`mlflow.db` and `mlartifacts/`), in a thread of its own."""
        self._root = root.absolute()
        self._experiment = experiment
        self._name = sweep
        self._trouble: str | None = None
        self._queue: queue.Queue[Callable[[_Sweep], None] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._work, name="mlflow", daemon=True)
        self._thread.start()

    # -- the seam ------------------------------------------------------------------------------

    def episode(self, cell: Cell, record: EpisodeRecord) -> None:
        """Show one finished episode run below its cell."""
        self._queue.put(lambda sweep: self._show_episode(sweep, cell, record))

    def cell(self, cell: Cell, values: dict[str, float]) -> None:
        """Show the metrics of a cell."""
        points = [(name, value, 0) for name, value in values.items()]
        self._queue.put(lambda sweep: self._show_cell(sweep, cell, points))

    def finish(self, values: dict[str, float], artifacts: list[Path]) -> None:
        """Show the sweep's metrics and files, last."""
        points = [(name, value, 0) for name, value in values.items()]
        self._queue.put(lambda sweep: self._show_sweep(sweep, points, artifacts))
        self._queue.put(None)

    def wait(self, seconds: float) -> bool:
        """Whether the queue is empty and its last run shown, after at most so many seconds."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def pending(self) -> int:
        """Runs that wait to be shown."""
        return self._queue.qsize()

    def where(self) -> str | None:
        """The command that opens the page, on loopback."""
        command = Path(sys.executable).with_name("mlflow")
        program = str(command) if command.exists() else "mlflow"
        options = ["--host", "127.0.0.1", "--port", "5000", "--backend-store-uri", self._uri]
        return shlex.join([program, "ui", *options])

    def trouble(self) -> str | None:
        """What went wrong, in one line."""
        return self._trouble

    @property
    def _uri(self) -> str:
        return f"sqlite:///{_quoted(self._root / 'mlflow.db')}"

    # -- the thread ----------------------------------------------------------------------------

    def _work(self) -> None:
        sweep: _Sweep | None = None
        while (act := self._queue.get()) is not None:
            if self._trouble is not None:
                continue
            try:
                if sweep is None:
                    with _alone(self._root):
                        sweep = self._connect()
                act(sweep)
            except Exception as error:  # noqa: BLE001 (the sweep must go on)
                self._trouble = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"

    def _connect(self) -> _Sweep:
        # Set before the import: MLflow would call home, and reports every migration it makes.
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "ERROR")
        from mlflow import MlflowClient

        client = MlflowClient(tracking_uri=self._uri)
        if (quoted := _quoted(self._root)) != str(self._root):
            with suppress(OSError):  # MLflow makes a folder of the quoted name as well
                os.removedirs(quoted)
        logging.getLogger("alembic").setLevel(logging.ERROR)
        found = client.get_experiment_by_name(self._experiment)
        artifacts = (self._root / "mlartifacts").as_uri()
        experiment_id = (
            client.create_experiment(self._experiment, artifact_location=artifacts)
            if found is None
            else found.experiment_id
        )
        sweep = _Sweep(client=client, experiment_id=experiment_id)
        for run in self._existing(sweep):
            sweep.runs[run.data.tags[ID_TAG]] = _Shown(
                run_id=run.info.run_id,
                start_ms=run.info.start_time,
                finished=run.info.status == "FINISHED",
            )
        return sweep

    def _existing(self, sweep: _Sweep) -> Iterable[Any]:
        token: str | None = None
        while True:
            page = sweep.client.search_runs(
                [sweep.experiment_id],
                filter_string=f"tags.`{SWEEP_TAG}` = '{self._name}'",
                max_results=PAGE,
                page_token=token,
            )
            yield from page
            token = page.token
            if not token:
                return

    # -- showing -------------------------------------------------------------------------------

    def _show_episode(self, sweep: _Sweep, cell: Cell, record: EpisodeRecord) -> None:
        identity = f"{cell.cell_id}/{record.episode_id}"
        parent = self._cell_run(sweep, cell)
        shown = self._run(sweep, identity, record.episode_id, parent, self._episode_tags(record))
        if shown.finished:
            return
        params = {**trackers.params(cell), "episode": record.episode_id, "domain": record.domain_id}
        self._log(sweep, shown, _episode_points(record), params)
        self._close(sweep, shown)

    def _show_cell(self, sweep: _Sweep, cell: Cell, points: list[Point]) -> None:
        shown = self._cell_run(sweep, cell)
        self._log(sweep, shown, points, {**trackers.params(cell), "cell_id": cell.cell_id})
        self._close(sweep, shown)

    def _show_sweep(self, sweep: _Sweep, points: list[Point], artifacts: list[Path]) -> None:
        shown = self._sweep_run(sweep)
        self._log(sweep, shown, points, {"sweep": self._name})
        for path in artifacts:
            sweep.client.log_artifact(shown.run_id, str(path), path.parent.name)
        self._close(sweep, shown)

    def _sweep_run(self, sweep: _Sweep) -> _Shown:
        return self._run(sweep, self._name, self._name, None, {"adaexplore.level": "sweep"})

    def _cell_run(self, sweep: _Sweep, cell: Cell) -> _Shown:
        parent = self._sweep_run(sweep)
        return self._run(sweep, cell.cell_id, cell.label, parent, {"adaexplore.level": "cell"})

    def _episode_tags(self, record: EpisodeRecord) -> dict[str, str]:
        return {
            "adaexplore.level": "episode",
            "adaexplore.status": record.status,
            "adaexplore.change_batch": str(record.change_batch),
        }

    def _run(
        self, sweep: _Sweep, identity: str, name: str, parent: _Shown | None, tags: dict[str, str]
    ) -> _Shown:
        """The run of an id: found, or made."""
        if identity in sweep.runs:
            return sweep.runs[identity]
        tags = {ID_TAG: identity, SWEEP_TAG: self._name, **tags}
        if parent is not None:
            tags[PARENT_TAG] = parent.run_id
        start_ms = int(time.time() * 1000)
        run = sweep.client.create_run(
            sweep.experiment_id, start_time=start_ms, tags=tags, run_name=name
        )
        shown = _Shown(run_id=run.info.run_id, start_ms=start_ms, finished=False)
        sweep.runs[identity] = shown
        return shown

    def _log(
        self, sweep: _Sweep, shown: _Shown, points: Iterable[Point], params: dict[str, Any]
    ) -> None:
        # The run's own start as timestamp: logging the same point again then changes nothing.
        from mlflow.entities import Param

        logged: list[Metric] = [
            _metric(name, value, shown.start_ms, step)
            for name, value, step in points
            if math.isfinite(value)
        ]
        given = [Param(key, str(value)) for key, value in params.items()]
        sweep.client.log_batch(shown.run_id, metrics=logged, params=given)

    def _close(self, sweep: _Sweep, shown: _Shown) -> None:
        if not shown.finished:
            sweep.client.set_terminated(shown.run_id)
            shown.finished = True


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """One process at a time: two that make the database at once break each other's migration."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / "mlflow.db.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _quoted(path: Path) -> str:
    """A path inside a database URL, where only these two characters mean something else."""
    return str(path).replace("%", "%25").replace("?", "%3F")


def _metric(name: str, value: float, timestamp_ms: int, step: int) -> "Metric":
    from mlflow.entities import Metric

    return Metric(name, value, timestamp_ms, step)


def _episode_points(record: EpisodeRecord) -> list[Point]:
    """Final metrics, and per-batch series with the batch number as step."""
    points = [(m.name, metrics.value(m, [record]), 0) for m in metrics.MAIN]
    points += [
        ("turns", float(record.counts.turns), 0),
        ("repairs", float(record.counts.repairs), 0),
    ]
    cumulative = 0.0
    for number in sorted({case.batch_number for case in record.cases}):
        cases = [case for case in record.cases if case.batch_number == number]
        sums = metrics.accuracy_sums(cases)
        cumulative += sum(0.0 if c.action is None else c.utilities[c.action] for c in cases)
        points += [
            ("batch/ea", float(metrics.exact_accuracy_value(sums)), number),
            ("batch/ca", float(metrics.calibrated_accuracy_value(sums)), number),
            ("batch/cumulative_utility", cumulative, number),
        ]
    return points
