"""MLflow's library in a process of its own, behind the seam.

Its import takes seconds and its calls tens of milliseconds of processor time, all of it under the
interpreter's lock: in the sweep's own process it would hold up every episode. A process costs nothing
until it is used; if it dies, the next call starts another.
"""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from adaexplore.backends.mlflow.service import Conversation, Entry, Run, ServiceError, Status

_MODULE: Final = "adaexplore.backends.mlflow.library"


class Child:
    """A `Service` whose every call is answered by the library in another process, one at a time."""

    def __init__(self, uri: str, artifacts: str | None = None) -> None:
        """Use an address; the process is started by the first call."""
        self._words = [uri] if artifacts is None else [uri, artifacts]
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def experiment(self, name: str, *, make: bool = True) -> str:
        """Id of an experiment; if there is none it is made, or `gone`."""
        return str(self._call("experiment", name, make))

    def search(self, experiment_id: str, condition: str) -> list[Run]:
        """All runs that meet a condition and are not deleted."""
        found: list[Run] = self._call("search", experiment_id, condition)
        return found

    def create(self, experiment_id: str, name: str, start_ms: int, tags: Mapping[str, str]) -> str:
        """Id of a new run."""
        return str(self._call("create", experiment_id, name, start_ms, dict(tags)))

    def log(self, run_id: str, entry: Entry) -> None:
        """Log points, params and tags."""
        self._call("log", run_id, entry)

    def end(self, run_id: str, status: Status, end_ms: int) -> None:
        """End a run, or begin it again."""
        self._call("end", run_id, status, end_ms)

    def delete(self, run_id: str) -> None:
        """Delete a run."""
        self._call("delete", run_id)

    def history(self, run_id: str, metric: str) -> list[tuple[int, float]]:
        """(step, value) of every point of a metric, sorted."""
        found: list[tuple[int, float]] = self._call("history", run_id, metric)
        return found

    def upload(self, run_id: str, files: Mapping[str, bytes]) -> None:
        """Keep files of a run, by path."""
        self._call("upload", run_id, dict(files))

    def trace(self, experiment_id: str, conversation: Conversation) -> None:
        """Keep a trace; the same one again changes nothing."""
        self._call("trace", experiment_id, conversation)

    def close(self) -> None:
        """Let the process end, and wait for it for a moment."""
        with self._lock:
            self._drop(patience_s=5.0)

    def _call(self, method: str, *arguments: Any) -> Any:
        with self._lock:
            process = self._process = self._process or self._start()
            try:
                pickle.dump((method, arguments), process.stdin)  # type: ignore[arg-type]
                process.stdin.flush()  # type: ignore[union-attr]
                result, fault = pickle.load(process.stdout)  # type: ignore[arg-type]  # noqa: S301
            except (OSError, EOFError, pickle.UnpicklingError):
                self._drop(patience_s=0.0)
                raise ServiceError("again", "the process of MLflow's library died") from None
        if fault is not None:
            raise fault
        return result

    def _start(self) -> subprocess.Popen[bytes]:
        # The same packages as here, wherever this process found them; no other path, no shadowing.
        paths = os.pathsep.join(path for path in sys.path if path)
        return subprocess.Popen(  # noqa: S603 (our own module)
            [sys.executable, "-P", "-W", "ignore", "-m", _MODULE, *self._words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": paths},
        )

    def _drop(self, *, patience_s: float) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(OSError):
            process.stdin.close()  # type: ignore[union-attr]
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()  # type: ignore[union-attr]
