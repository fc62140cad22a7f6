"""Statuses: how far a sweep is, told by the store alone.

Whoever asks may sit at another machine than whoever plays: nothing is asked of the launchers but
whether they live, and even that the store answers.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from adaexplore.errors import StoreError
from adaexplore.experiments import attempts, launches, usages
from adaexplore.experiments.attempts import Found
from adaexplore.experiments.stored import StoredSweep
from adaexplore.experiments.stores import Store
from adaexplore.experiments.usages import Usage
from adaexplore.models.profiles import Prices

State = Literal["finished", "playing", "failed", "interrupted", "missing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """How far one episode run is."""

    state: State
    reason: str | None = None
    """Why its last attempt failed."""
    attempt: str | None = None
    """Key prefix of the attempt that this is about; None where there is none."""

    def __str__(self) -> str:
        """The status in words."""
        return {
            "finished": "finished",
            "playing": "is being played",
            "failed": f"failed ({self.reason}); launch again to go on with it",
            "interrupted": "was interrupted; launch again to go on with it",
            "missing": "was never played; launch again",
        }[self.state]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellStatus:
    """How far one cell is."""

    label: str
    cell_id: str
    runs: Mapping[State, int]
    """Episode runs by state."""
    last_failure: str | None
    """Of the runs that are in state failed, with the episode."""
    usage: Usage

    def document(self) -> dict[str, Any]:
        """The status as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepStatus:
    """How far a sweep is."""

    name: str
    episodes: int
    cells: tuple[CellStatus, ...]
    running: tuple[str, ...]
    """Names of the launches that are under way."""
    last_launch: str | None
    """When the last launch began, as its note says."""
    usage: Usage = field(default_factory=Usage)
    """Of all cells."""

    def count(self, state: State) -> int:
        """Episode runs in a state; two cells of one meaning count once."""
        by_id = {cell.cell_id: cell.runs.get(state, 0) for cell in self.cells}
        return sum(by_id.values())

    @property
    def runs(self) -> int:
        """Episode runs of the whole sweep."""
        return len({cell.cell_id for cell in self.cells}) * self.episodes

    def document(self) -> dict[str, Any]:
        """The status as plain data."""
        return asdict(self)


def of_run(store: Store, found: Sequence[Found]) -> RunStatus:
    """How far an episode run with these attempts is."""
    if (result := attempts.result_of(found)) is not None:
        return RunStatus(state="finished", attempt=result.removesuffix(attempts.RESULT))
    if not found:
        return RunStatus(state="missing")
    for attempt in found:
        if attempt.open and store.alive(attempt.writer):
            return RunStatus(state="playing", attempt=attempt.prefix)
    failed = [attempt for attempt in found if "failure.json" in attempt.files]
    if failed and failed[-1] is found[-1]:
        return RunStatus(state="failed", reason=_reason(store, found[-1]), attempt=found[-1].prefix)
    return RunStatus(state="interrupted", attempt=found[-1].prefix)


def _reason(store: Store, attempt: Found) -> str:
    try:
        found = json.loads(store.get(f"{attempt.prefix}failure.json") or b"")
        return str(found["reason"])
    except (ValueError, KeyError, TypeError):
        return "for a reason that cannot be read"


def of_sweep(
    store: Store, sweep: StoredSweep, prices: Mapping[str, Prices] | None = None
) -> SweepStatus:
    """How far a sweep is.

    Args:
        store: Where it is kept.
        sweep: What its document says.
        prices: By model; a model without prices spends tokens only.
    """
    known = {} if prices is None else prices
    cells = tuple(_of_cell(store, sweep, cell.label, cell.cell_id, known) for cell in sweep.cells)
    total = Usage()
    for usage in {cell.cell_id: cell.usage for cell in cells}.values():
        total.add(usage)
    return SweepStatus(
        name=sweep.name,
        episodes=len(sweep.selection.episode_ids),
        cells=cells,
        running=tuple(launches.running(store, sweep.name)),
        last_launch=_last_launch(store, sweep.name),
        usage=total,
    )


def _of_cell(
    store: Store, sweep: StoredSweep, label: str, cell_id: str, prices: Mapping[str, Prices]
) -> CellStatus:
    listed = attempts.listed(store, f"cells/{cell_id}/")
    runs: dict[State, int] = {}
    last = None
    for episode_id in sweep.selection.episode_ids:
        status = of_run(store, listed.get(episode_id, ()))
        runs[status.state] = runs.get(status.state, 0) + 1
        if status.state == "failed":
            last = f"{episode_id}: {status.reason}"
    price = prices.get(label.split("/", maxsplit=1)[0], usages.UNPRICED)
    usage = usages.of_cell(store, cell_id, price)
    return CellStatus(label=label, cell_id=cell_id, runs=runs, last_failure=last, usage=usage)


def _last_launch(store: Store, sweep: str) -> str | None:
    names = launches.names(store, sweep)
    if not names:
        return None
    try:
        return str(launches.read(store, sweep, names[-1]).get("started"))
    except StoreError:
        return None
