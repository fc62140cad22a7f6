"""The seam to MLflow itself: the few calls that a projection needs, and how they fail.

There are two ways to a run: the REST interface of a server, spoken here since MLflow's own library
costs ten times the processor time a call and hides what was refused; and that library, in a process
of its own, for embedded databases, files and traces.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Status = Literal["RUNNING", "FINISHED", "FAILED", "KILLED"]
Kind = Literal["again", "gone", "exists", "refused"]


class ServiceError(Exception):
    """A call that failed.

    `again` may be tried again, `gone` names a run or experiment that is not there (any more),
    `exists` one that is there already, and `refused` will not do however often it is tried.
    """

    def __init__(self, kind: Kind, message: str, retry_after_s: float | None = None) -> None:
        """Keep what happened; `retry_after_s` is what a server asked for."""
        super().__init__(kind, message, retry_after_s)
        self.kind: Kind = kind
        self.message = message
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        """What happened, in one line."""
        return " ".join(self.message.split())[:300]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as MLflow holds it."""

    run_id: str
    name: str
    status: str
    start_ms: int
    tags: Mapping[str, str]
    params: Mapping[str, str]
    metrics: Mapping[str, float]
    """The last value of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is logged of a run in one call."""

    points: Sequence[tuple[str, float, int]] = ()
    """(name, value, step)."""
    params: Mapping[str, str] | None = None
    tags: Mapping[str, str] | None = None
    time_ms: int = 0
    """Time of every point: the same point logged twice is then one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One span of a trace."""

    name: str
    parent: bool
    """Whether it has one: the first span of the trace."""
    start_ms: int
    end_ms: int
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One episode as a trace: the first span is the whole, the others are its turns."""

    trace_id: str
    run_id: str
    tags: Mapping[str, str]
    spans: Sequence[Span]


class Service(Protocol):
    """MLflow. Safe from several threads; every method raises ServiceError."""

    def experiment(self, name: str, *, make: bool = True) -> str:
        """Id of an experiment; if there is none it is made, or `gone`."""

    def search(self, experiment_id: str, condition: str) -> Iterable[Run]:
        """All runs that meet a condition and are not deleted."""

    def create(self, experiment_id: str, name: str, start_ms: int, tags: Mapping[str, str]) -> str:
        """Id of a new run."""

    def log(self, run_id: str, entry: Entry) -> None:
        """Log points, params and tags, within the limits of one call."""

    def end(self, run_id: str, status: Status, end_ms: int) -> None:
        """End a run, or begin it again."""

    def delete(self, run_id: str) -> None:
        """Delete a run."""

    def history(self, run_id: str, metric: str) -> list[tuple[int, float]]:
        """(step, value) of every point of a metric, sorted."""

    def upload(self, run_id: str, files: Mapping[str, bytes]) -> None:
        """Keep files of a run, by path."""

    def trace(self, experiment_id: str, conversation: Conversation) -> None:
        """Keep a trace; the same one again changes nothing."""

    def close(self) -> None:
        """Release connections and processes."""
