"""The ledger: which runs of a sweep MLflow holds, and how one is brought to what it must say.

Run ids are MLflow's to choose, so a run is known by its tags: `adaexplore.id` is unique within an
`adaexplore.origin`. The last thing that is logged of a run is a digest of its content, so one that was
cut short is told from a whole one. A run that says something else than it must is made again: MLflow
takes nothing back.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from adaexplore.backends.mlflow import comparing, limits
from adaexplore.backends.mlflow.claims import Claim
from adaexplore.backends.mlflow.service import Run, Service, ServiceError, Status
from adaexplore.experiments import identity
from adaexplore.experiments.contents import Content, Place

ID: Final = "adaexplore.id"
ORIGIN: Final = "adaexplore.origin"
SWEEP: Final = "adaexplore.sweep"
LEVEL: Final = "adaexplore.level"
WRITER: Final = "adaexplore.writer"
CONTENT: Final = "adaexplore.content"
FILES: Final = "adaexplore.files"
TRACE: Final = "adaexplore.trace"
PARENT: Final = "mlflow.parentRunId"

Trace = Callable[[Place, str, str], tuple[str, int]]
"""Given the place, run id and experiment id of a finished episode, keeps its trace where traces are wanted;
returns the trace's id (empty without one) and how long the episode took, in milliseconds."""


@dataclass(slots=True)
class Known:
    """What is known of a run that MLflow holds."""

    run_id: str
    status: str
    tags: dict[str, str]
    found: Run | None = None
    """What it said when it was found."""
    sent: dict[str, str] | None = None
    """Digest by path of the files that were sent; None before the first try."""

    @property
    def done(self) -> bool:
        """Whether it was shown whole."""
        return CONTENT in self.tags and self.status != "RUNNING"


@dataclass(slots=True, kw_only=True)
class Ledger:
    """The runs of one sweep. Safe from several threads."""

    service: Service
    claim: Claim
    experiment: str
    """Name of the experiment."""
    sweep: str
    origin: str
    """Name of the sweep's projection."""
    start_ms: int
    """When the sweep began: the time of everything that is logged."""
    trace: Trace
    traces: bool = False
    thorough: bool = False
    """Whether runs that are whole by their tags, and journals that are there, are compared too."""
    moved: Callable[[], None] = lambda: None
    """Called when a part of a run is done."""
    unsure: set[str] = field(default_factory=set)
    """Ids of runs whose making was cut short: they may be there, and even twice."""
    _experiment_id: str = ""
    _runs: dict[str, Known] = field(default_factory=dict)
    _locks: dict[str, threading.RLock] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    # -- opening -------------------------------------------------------------------------------

    def open(self) -> None:
        """Find the experiment and the runs that are there; of two with one id, the younger goes."""
        self._experiment_id = self.service.experiment(self.experiment)
        found: dict[str, Known] = {}
        for run in sorted(self.search(), key=_whole_first):
            known = Known(run_id=run.run_id, status=run.status, tags=dict(run.tags), found=run)
            if found.setdefault(run.tags[ID], known) is not known:
                self.service.delete(run.run_id)
        self.unsure |= self._runs.keys()  # other threads may be making some at this moment
        self._runs = found

    def find(self) -> None:
        """Find the experiment and change nothing; a `gone` fault if there is none."""
        self._experiment_id = self.service.experiment(self.experiment, make=False)

    def search(self) -> list[Run]:
        """All runs of the sweep."""
        condition = f"tags.`{ORIGIN}` = '{self.origin}'"
        return [
            run for run in self.service.search(self._experiment_id, condition) if ID in run.tags
        ]

    def reap(self) -> None:
        """Mark runs of other sweeps of this store as killed whose writer died without ending them."""
        running = self.service.search(self._experiment_id, "attributes.status = 'RUNNING'")
        for run in list(running):
            writer, sweep = run.tags.get(WRITER), run.tags.get(SWEEP)
            if writer and sweep and sweep != self.sweep and self._is_orphan(writer, sweep):
                self.service.end(run.run_id, "KILLED", _now_ms())

    def _is_orphan(self, writer: str, sweep: str) -> bool:
        return self.claim.holds(writer, sweep) and not self.claim.alive(writer)

    # -- showing -------------------------------------------------------------------------------

    def done(self, place: Place) -> bool:
        """Whether a run was shown whole, by whomever, and stands where it must."""
        known = self._runs.get(place.identity)
        if known is None or not known.done:
            return False
        parent = self._runs.get(place.parent.identity) if place.parent else None
        return place.parent is None or (
            parent is not None and known.tags.get(PARENT) == parent.run_id
        )

    def show(self, content: Content) -> None:
        """Bring a run to what it must say; nothing is done where it says so already."""
        with self._locked(content.place.identity):
            known = self._run(content.place)
            if self._says_otherwise(known, content):
                known = self._again(content.place)
            try:
                self._fill(known, content)
            except ServiceError as error:
                if error.kind != "refused" or known.done:
                    raise
                # Something else was logged before it was cut short: only a new run can say it right.
                self._fill(self._again(content.place), content)

    def _says_otherwise(self, known: Known, content: Content) -> bool:
        if known.tags.get(CONTENT) != content.digest():
            return CONTENT in known.tags
        if not self.thorough or known.found is None:
            return False
        return any(comparing.differences(self.service, content, known.found))

    def _fill(self, known: Known, content: Content) -> None:
        digest, place, took_ms = content.digest(), content.place, 0
        status: Status = "FINISHED" if content.complete else "FAILED"
        whole, last = known.tags.get(CONTENT) == digest, dict[str, str]()
        due = not whole or known.status != status or (self.traces and TRACE not in known.tags)
        if place.level == "episode" and due:
            trace_id, took_ms = self.trace(place, known.run_id, self._experiment_id)
            last = {TRACE: trace_id} if trace_id else {}
        if not whole:
            last |= {**content.tags, CONTENT: digest}
            for entry in limits.entries(content.points, content.params, last, self.start_ms):
                self.service.log(known.run_id, entry)
            known.tags |= last
        elif last:
            self._tag(known, last)
        self._upload(known, content, unchanged=whole)
        if known.status != status:
            self.service.end(known.run_id, status, self.start_ms + took_ms)
            known.status = status

    def _upload(self, known: Known, content: Content, *, unchanged: bool) -> None:
        journals = content.place.level == "cell"  # large, and the same while the cell's content is
        if journals and unchanged and FILES in known.tags and not self.thorough:
            return
        files = {path: make() for path, make in content.artifacts.items()}
        digest = files_digest(files)
        if files and known.tags.get(FILES) != digest:
            self._send(known, files)
            self._tag(known, {FILES: digest})

    def _send(self, known: Known, files: Mapping[str, bytes]) -> None:
        """Send all files at once; where that failed, one by one, none twice."""
        sums = {path: hashlib.sha256(data).hexdigest() for path, data in files.items()}
        parts = [files] if known.sent is None else [{path: files[path]} for path in files]
        sent = known.sent = known.sent or {}
        for part in parts:
            if any(sent.get(path) != sums[path] for path in part):
                self.service.upload(known.run_id, part)
                sent |= {path: sums[path] for path in part}
                self.moved()

    def _again(self, place: Place) -> Known:
        """A new run in place of one that says something else; what is nested in it moves along."""
        old = self._runs[place.identity]
        self.service.delete(old.run_id)
        del self._runs[place.identity]
        new = self._run(place)
        for known in list(self._runs.values()):
            if known.tags.get(PARENT) == old.run_id:
                self._tag(known, {PARENT: new.run_id})
        return new

    def _run(self, place: Place) -> Known:
        """The run of a place, found or made, nested where it belongs."""
        with self._locked(place.identity):
            parent = self._run(place.parent) if place.parent else None
            known = self._runs.get(place.identity)
            if known is None:
                known = self._made(place, parent)
            elif parent is not None and known.tags.get(PARENT) != parent.run_id:
                self._tag(known, {PARENT: parent.run_id})
            return known

    def _made(self, place: Place, parent: Known | None) -> Known:
        known = self._overlooked(place) or self._created(place, parent)
        self._runs[place.identity] = known
        return known

    def _created(self, place: Place, parent: Known | None) -> Known:
        tags = {
            ID: place.identity, ORIGIN: self.origin, SWEEP: self.sweep, LEVEL: place.level,
            WRITER: self.claim.writer,
        }  # fmt: skip
        if parent is not None:
            tags[PARENT] = parent.run_id
        tags = limits.tags(tags)
        try:
            run_id = self.service.create(self._experiment_id, place.name, self.start_ms, tags)
        except ServiceError as error:
            if error.kind == "again":
                self.unsure.add(place.identity)
            raise
        return Known(run_id=run_id, status="RUNNING", tags=tags)

    def _overlooked(self, place: Place) -> Known | None:
        """A run that was made although we never heard so."""
        if place.identity not in self.unsure:
            return None
        condition = f"tags.`{ORIGIN}` = '{self.origin}' AND tags.`{ID}` = '{place.identity}'"
        for run in self.service.search(self._experiment_id, condition):
            return Known(run_id=run.run_id, status=run.status, tags=dict(run.tags))
        return None

    def _tag(self, known: Known, tags: dict[str, str]) -> None:
        (entry,) = limits.entries((), {}, tags, 0)
        self.service.log(known.run_id, entry)
        known.tags |= tags

    def _locked(self, name: str) -> threading.RLock:
        with self._lock:
            return self._locks.setdefault(name, threading.RLock())

    # -- ending --------------------------------------------------------------------------------

    def kill(self) -> None:
        """Mark what is under way as killed."""
        for known in list(self._runs.values()):
            if known.status == "RUNNING":
                self.service.end(known.run_id, "KILLED", _now_ms())
                known.status = "KILLED"


def files_digest(files: Mapping[str, bytes]) -> str:
    """Digest of files by path."""
    sums = {path: hashlib.sha256(data).hexdigest() for path, data in files.items()}
    return identity.digest(sums)[:16]


def _whole_first(run: Run) -> tuple[bool, int, str]:
    return CONTENT not in run.tags, run.start_ms, run.run_id


def _now_ms() -> int:
    return int(time.time() * 1000)
