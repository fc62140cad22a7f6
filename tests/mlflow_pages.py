"""MLflow in tests: a played sweep to show, a real server, and what a database holds, told by itself.

The dump reads the database and the folder of artifacts and nothing of ours or of MLflow's library.
"""

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import time
import urllib.request
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from adaexplore import launch
from adaexplore.backends.folder import FolderStore
from adaexplore.backends.mlflow.child import Child
from adaexplore.backends.mlflow.library import Library
from adaexplore.backends.mlflow.service import ServiceError
from adaexplore.backends.mlflow.tracker import MlflowTracker, Target
from adaexplore.experiments import attempts, contents, projections, stored, tallies
from adaexplore.experiments.config import TrackingConfig
from adaexplore.experiments.tallies import Tally
from loopback import free_ports

SWEEP = "shown"
GRID = ["+grid=main", "models=[random,oracle]", "settings=[default,stationary]", "dataset.limit=2",
        "backend.processes=0", f"name={SWEEP}"]  # fmt: skip
RUNS = 1 + 4 + 8


def play(root, *words):
    """Play the sweep into a folder, untracked."""
    assert 0 == launch.launch([*GRID, "tracking=none", f"runs_dir={root}", *words])


def copied(source, root):
    """A store with the same sweep, never shown."""
    shutil.copytree(source, root)
    return root


@dataclass(frozen=True, slots=True, kw_only=True)
class Near(Target):
    """A target whose library is in this process: the same code, without the seconds of its import."""

    def service(self):
        return Library(self.uri, (self.root.absolute() / "mlartifacts").as_uri())


def target(root, uri=None, *, experiment="tests", kind=Target, **options):
    """Where the sweep in a folder is shown: beside it, or on a server; a new store object each time."""
    where = "sqlite" if uri is None else "server"
    config = TrackingConfig(kind=where, experiment=experiment, uri=uri, **options)
    return kind(config=config, root=Path(root), store=FolderStore(Path(root)), sweep=SWEEP)


def near(root, **options):
    """The same, embedded and with the library in this process."""
    return target(root, kind=Near, **options)


def blank(folder):
    """An MLflow database with nothing in it, which takes MLflow seconds to make."""
    with closing(Child(f"sqlite:///{folder / 'mlflow.db'}")) as child, suppress(ServiceError):
        child.experiment("none", make=False)
    return folder / "mlflow.db"


def tell(tracker, where, *, upto=None):
    """Tell a tracker of the episodes in the store, as a launch does."""
    told = [
        (cell, attempts.read_result(where.store, key))
        for cell in stored.read(where.store, SWEEP).cells
        for key in attempts.finished(where.store, cell.cell_id).values()
    ]
    for cell, record in told[:upto]:
        tracker.episode(cell, record.episode_id, lambda record=record: record)
    return told


def finish(tracker, where):
    """Tell a tracker of cells and sweep, the same way."""
    sweep = stored.read(where.store, SWEEP)
    ids = sweep.selection.episode_ids
    tallied = []
    for cell in sweep.cells:
        tally = Tally.of(stored.records(where.store, cell.cell_id, ids))
        tallied.append((cell.group, tally))
        files = projections.cell_artifacts(where.store, cell, ids)
        tracker.cell(cell, contents.cell_values(tally, len(ids)), files)
    missing = sweep.runs - sum(tally.counted.runs for _, tally in tallied)
    pooled = {g: contents.pooled(t) for g, t in tallies.grouped(tallied).items()}
    values = contents.sweep_values(pooled, missing)
    tracker.finish(values, projections.sweep_artifacts(where.store, SWEEP))


def wait(tracker, seconds=600):
    assert tracker.wait(seconds)


def show(where):
    """Show the sweep to its end; the tracker."""
    tracker = MlflowTracker(where)
    tell(tracker, where)
    finish(tracker, where)
    wait(tracker)
    where.store.close()
    return tracker


# -- what MLflow holds -------------------------------------------------------------------------

OURS_ALONE = ("adaexplore.origin", "adaexplore.writer", "adaexplore.trace", "mlflow.parentRunId")


def rows(database, query, *arguments):
    with closing(
        sqlite3.connect(f"file:{quote(str(database))}?mode=rw", uri=True, timeout=10)
    ) as db:
        return db.execute(query, arguments).fetchall()


def runs(database, experiment="tests"):
    """(run id, name, status, start, end, artifacts) of every run that is not deleted."""
    return rows(
        database,
        "SELECT run_uuid, name, status, start_time, end_time, artifact_uri FROM runs WHERE lifecycle_stage ="
        " 'active' AND experiment_id = (SELECT experiment_id FROM experiments WHERE name = ?)",
        experiment,
    )


def dump(database, artifacts, experiment="tests"):
    """Everything that an experiment's runs say, by id tag, without ids that MLflow chose."""
    found = runs(database, experiment)
    tags = {run[0]: dict(rows(database, "SELECT key, value FROM tags WHERE run_uuid = ?", run[0]))
            for run in found}  # fmt: skip
    said = {}
    for run_id, name, status, start, end, uri in found:
        own = tags[run_id]
        identity = own["adaexplore.id"]
        assert identity not in said, f"{identity} is there twice"
        parent = own.get("mlflow.parentRunId")
        said[identity] = {
            "name": name, "status": status, "start": start, "end": end,
            "parent": tags[parent]["adaexplore.id"] if parent else None,
            "tags": {k: v for k, v in own.items() if k not in OURS_ALONE},
            "params": dict(rows(database, "SELECT key, value FROM params WHERE run_uuid = ?", run_id)),
            "points": sorted(rows(
                database, "SELECT key, step, value, timestamp FROM metrics WHERE run_uuid = ?", run_id)),
            "files": files(artifacts, uri),
        }  # fmt: skip
    return said


def files(artifacts, uri):
    """Digests of a run's files by path."""
    folder = Path(artifacts) / uri.partition("mlflow-artifacts:/")[2]
    if uri.startswith("file:"):
        folder = Path(urllib.request.url2pathname(uri.removeprefix("file://")))
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def shown(root):
    """What an embedded MLflow holds."""
    return dump(Path(root) / "mlflow.db", root)


# -- a real server -----------------------------------------------------------------------------


class Server:
    """`mlflow server` on SQLite and loopback."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.database, self.artifacts = self.folder / "mlflow.db", self.folder / "artifacts"
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        environment = {
            **os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true",
        }  # fmt: skip
        words = [
            "--backend-store-uri",
            f"sqlite:///{self.database}",
            "--artifacts-destination",
            str(self.artifacts),
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--workers",
            "1",
            "--uvicorn-opts",
            "--loop uvloop --no-access-log",
        ]
        self.log = (self.folder / "log").open("wb")
        command = [str(Path(sys.executable).with_name("mlflow")), "server", *words]
        self.process = subprocess.Popen(
            command,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        until = time.monotonic() + 240
        while time.monotonic() < until:
            with suppress(OSError):
                urllib.request.urlopen(f"{self.url}/version", timeout=5).close()  # noqa: S310 (loopback)
                return self
            assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.05)
        raise AssertionError("the server does not answer")

    def __exit__(self, *_):
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, 15)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            self.process.wait()
        self.log.close()

    def wipe(self, experiment):
        """Take an experiment away with all that is in it, as a new database would."""
        with closing(sqlite3.connect(self.database, timeout=10)) as db:
            inside = (
                "(SELECT run_uuid FROM runs WHERE experiment_id ="
                " (SELECT experiment_id FROM experiments WHERE name = ?))"
            )
            for table in ("metrics", "latest_metrics", "params", "tags"):
                db.execute(f"DELETE FROM {table} WHERE run_uuid IN {inside}", (experiment,))  # noqa: S608
            chosen = "(SELECT experiment_id FROM experiments WHERE name = ?)"
            db.execute(f"DELETE FROM runs WHERE experiment_id = {chosen}", (experiment,))  # noqa: S608
            db.execute(f"DELETE FROM experiment_tags WHERE experiment_id = {chosen}", (experiment,))  # noqa: S608
            db.execute("DELETE FROM experiments WHERE name = ?", (experiment,))
            db.commit()

    def dump(self, experiment):
        return dump(self.database, self.artifacts, experiment)
