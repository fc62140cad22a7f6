"""MLflow's own library behind the seam: for embedded databases, files and traces.

`python -m adaexplore.backends.mlflow.library ADDRESS ARTIFACTS` serves it to the process that started it,
over standard input and output, and ends with that process however it ends.
"""

import fcntl
import logging
import os
import pickle
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from urllib.parse import unquote

from adaexplore.backends.mlflow.service import Conversation, Entry, Run, ServiceError, Status

if TYPE_CHECKING:
    from mlflow.entities import Run as MlflowRun

PAGE: Final = 1000
TIMEOUT_S: Final = 20
_QUIET: Final = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "ERROR",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",  # we have one layer of retries, in the outbox
    "MLFLOW_HTTP_REQUEST_TIMEOUT": str(TIMEOUT_S),
}
_SQLITE: Final = "sqlite:///"


class Library:
    """MLflow at an address, through its own client; not a `Service` alone in that it waits."""

    def __init__(self, uri: str, artifacts: str | None = None) -> None:
        """Open an address: a server's, or an SQLite database with the folder of its artifacts."""
        # Set before the import: MLflow would call home, and reports every migration it makes.
        os.environ.update(_QUIET)
        from mlflow import MlflowClient

        self._uri = uri
        self._artifacts = artifacts
        with _explained():
            self._client = MlflowClient(tracking_uri=uri)
        if (database := _database(uri)) is not None and "%" in uri:
            with suppress(OSError):  # MLflow makes a folder of the quoted name as well
                os.removedirs(Path(uri.removeprefix(_SQLITE)).parent)
            database.parent.mkdir(parents=True, exist_ok=True)
        logging.getLogger("alembic").setLevel(logging.ERROR)

    def experiment(self, name: str, make: bool = True) -> str:
        """Id of an experiment; if there is none it is made, or `gone`."""
        with _explained(), _alone(_database(self._uri)):
            found = self._client.get_experiment_by_name(name)
            if found is None and not make:
                raise ServiceError("gone", f"expected MLflow experiment '{name}', got none")
            if found is None:
                location = self._artifacts
                return str(self._client.create_experiment(name, artifact_location=location))
            if found.lifecycle_stage != "active":
                raise deleted(name)
            return str(found.experiment_id)

    def search(self, experiment_id: str, condition: str) -> list[Run]:
        """All runs that meet a condition and are not deleted."""
        found: list[Run] = []
        token: str | None = None
        with _explained():
            while True:
                page = self._client.search_runs(
                    [experiment_id], condition, max_results=PAGE, page_token=token
                )
                found += [_run(run) for run in page]
                token = page.token
                if not token:
                    return found

    def create(self, experiment_id: str, name: str, start_ms: int, tags: Mapping[str, str]) -> str:
        """Id of a new run."""
        with _explained():
            run = self._client.create_run(
                experiment_id, start_time=start_ms, tags=dict(tags), run_name=name
            )
            return str(run.info.run_id)

    def log(self, run_id: str, entry: Entry) -> None:
        """Log points, params and tags."""
        from mlflow.entities import Metric, Param, RunTag

        points = [Metric(name, value, entry.time_ms, step) for name, value, step in entry.points]
        params = [Param(key, value) for key, value in (entry.params or {}).items()]
        tags = [RunTag(key, value) for key, value in (entry.tags or {}).items()]
        with _explained():
            self._client.log_batch(run_id, metrics=points, params=params, tags=tags)

    def end(self, run_id: str, status: Status, end_ms: int) -> None:
        """End a run, or begin it again."""
        with _explained():
            if status == "RUNNING":
                self._client.update_run(run_id, status)
            else:
                self._client.set_terminated(run_id, status, end_ms)

    def delete(self, run_id: str) -> None:
        """Delete a run."""
        with _explained():
            self._client.delete_run(run_id)

    def history(self, run_id: str, metric: str) -> list[tuple[int, float]]:
        """(step, value) of every point of a metric, sorted."""
        with _explained():
            found = self._client.get_metric_history(run_id, metric)
            return sorted((point.step, point.value) for point in found)

    def upload(self, run_id: str, files: Mapping[str, bytes]) -> None:
        """Keep files of a run, by path."""
        with tempfile.TemporaryDirectory() as folder, _explained():
            for path, data in files.items():
                target = Path(folder) / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
            self._client.log_artifacts(run_id, folder)

    def trace(self, experiment_id: str, conversation: Conversation) -> None:
        """Keep a trace; the same one again changes nothing."""
        from adaexplore.backends.mlflow import spans

        with _explained():
            spans.keep(self._uri, experiment_id, conversation)

    def close(self) -> None:
        """Nothing is held."""


def deleted(name: str) -> ServiceError:
    """What is said of an experiment that somebody has deleted."""
    return ServiceError(
        "refused",
        f"expected MLflow experiment '{name}' to be there or to be free, got a deleted one: restore it "
        "in MLflow, or choose another with tracking.experiment=...",
    )


def _run(run: "MlflowRun") -> Run:
    return Run(
        run_id=run.info.run_id,
        name=run.info.run_name,
        status=run.info.status,
        start_ms=run.info.start_time,
        tags=dict(run.data.tags),
        params=dict(run.data.params),
        metrics=dict(run.data.metrics),
    )


@contextmanager
def _explained() -> Iterator[None]:
    """What MLflow and the database say, as a fault of ours."""
    try:
        yield
    except ServiceError:
        raise
    except Exception as error:  # noqa: BLE001 (its kinds are told apart by what they say)
        raise ServiceError(_kind(error), f"{type(error).__name__}: {error}") from None


def _kind(error: Exception) -> Any:
    code, text = getattr(error, "error_code", ""), str(error)
    if code == "RESOURCE_DOES_NOT_EXIST" or "must be in the 'active' state" in text:
        return "gone"
    if code == "RESOURCE_ALREADY_EXISTS":
        return "exists"
    status = getattr(error, "get_http_status_code", lambda: 0)()
    known = ("locked", "failed with exception", "timeout exception", "disk I/O", "SlowDown")
    if any(words in text for words in known) or status in (408, 429, 502, 503, 504):
        return "again"
    return "refused"


def _database(uri: str) -> Path | None:
    return Path(unquote(uri.removeprefix(_SQLITE))) if uri.startswith(_SQLITE) else None


@contextmanager
def _alone(database: Path | None) -> Iterator[None]:
    """One process at a time: two that make the database at once break each other's migration."""
    if database is None:
        yield
        return
    database.parent.mkdir(parents=True, exist_ok=True)
    with database.with_name(f"{database.name}.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# -- the process of its own --------------------------------------------------------------------


def serve(asked: BinaryIO, answers: BinaryIO, uri: str, artifacts: str | None) -> None:
    """Answer calls, `(method, arguments)`, each with `(result, error)`, until there are no more."""
    library: Library | None = None
    while True:
        try:
            method, arguments = pickle.load(asked)  # noqa: S301 (from the process that started us)
        except EOFError:
            return
        result, fault = None, None
        try:
            if library is None:
                library = Library(uri, artifacts)
            result = getattr(library, method)(*arguments)
        except ServiceError as error:
            fault = error
        except Exception as error:  # noqa: BLE001 (the one who asked must hear of it)
            fault = ServiceError("refused", f"{type(error).__name__}: {error}")
        pickle.dump((result, fault), answers)
        answers.flush()


def main() -> None:
    """Serve on standard input and output; what the library prints goes nowhere."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started us
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    uri, artifacts = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    serve(sys.stdin.buffer, answers, uri, artifacts)


if __name__ == "__main__":
    main()
