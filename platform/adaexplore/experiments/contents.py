"""Contents: what the runs of a sweep say in a tracker, as a function of its records.

Sweep, cells and episodes are runs, nested. What each holds is made here and nowhere else, whether a
launch shows it as it comes or `sync` reads it back years later; so the two are the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.scores import metrics
from adaexplore.experiments import identity
from adaexplore.experiments.tallies import Group, Tally
from adaexplore.experiments.trackers import Artifacts, ShownCell

Point = tuple[str, float, int]
"""(name, value, step)."""
COUNTED: Final = ("turns", "repairs", "input_tokens", "output_tokens")
MISSING: Final = "missing"
"""Metric of cells and sweeps: episode runs without a result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a run stands: its id, unique within the sweep, and what it is nested in."""

    identity: str
    name: str
    level: str
    """`sweep`, `cell` or `episode`."""
    parent: "Place | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """All that one run says."""

    place: Place
    params: Mapping[str, str]
    points: Sequence[Point]
    tags: Mapping[str, str] = field(default_factory=dict)
    artifacts: Artifacts = field(default_factory=dict)
    complete: bool = True
    """False where episode runs are missing."""

    def digest(self) -> str:
        """Digest of what is shown, files apart."""
        points = [(name, repr(value), step) for name, value, step in self.points]
        document = [self.place.name, dict(self.params), sorted(points), dict(self.tags)]
        return identity.digest([*document, self.complete])[:16]


# -- places ------------------------------------------------------------------------------------


def sweep_place(sweep: str) -> Place:
    """Where the sweep's own run stands."""
    return Place(identity=sweep, name=sweep, level="sweep")


def cell_place(sweep: str, cell: ShownCell) -> Place:
    """Where a cell's run stands."""
    return Place(
        identity=cell.cell_id, name=cell.label, level="cell", parent=sweep_place(sweep)
    )  # fmt: skip


def episode_place(sweep: str, cell: ShownCell, episode_id: str) -> Place:
    """Where an episode's run stands."""
    return Place(
        identity=f"{cell.cell_id}/{episode_id}",
        name=f"{cell.label}/{episode_id}",  # by which a line in a chart is told from the others
        level="episode",
        parent=cell_place(sweep, cell),
    )


# -- contents ----------------------------------------------------------------------------------


def episode(sweep: str, cell: ShownCell, record: EpisodeRecord) -> Content:
    """One episode run: its metrics, with the batch number as step where they are by batch."""
    return Content(
        place=episode_place(sweep, cell, record.episode_id),
        params=_axes(cell)
        | {
            "episode": record.episode_id,
            "domain": record.domain_id,
            "family": record.family,
            "change_batch": str(record.change_batch),
        },
        points=_episode_points(record),
        tags={"adaexplore.status": record.status},
    )


def cell(sweep: str, cell: ShownCell, values: Mapping[str, float], artifacts: Artifacts) -> Content:
    """One cell: its pooled metrics, and its whole semantic configuration as parameters."""
    return Content(
        place=cell_place(sweep, cell),
        params=_axes(cell) | _flat(cell.semantic),
        points=[(name, value, 0) for name, value in values.items()],
        artifacts=artifacts,
        complete=not values.get(MISSING, 0.0),
    )


def sweep(name: str, values: Mapping[str, float], artifacts: Artifacts) -> Content:
    """The sweep: the pooled metrics of every model and setting, tables, figures, frozen document."""
    return Content(
        place=sweep_place(name),
        params={"sweep": name},
        points=[(key, value, 0) for key, value in values.items()],
        artifacts=artifacts,
        complete=not values.get(MISSING, 0.0),
    )


def cell_values(tally: Tally, planned: int) -> dict[str, float]:
    """Metrics of a cell: the columns of the main table, and how many episode runs there are."""
    runs = tally.counted.runs
    return {**pooled(tally), "episodes": float(runs), MISSING: float(planned - runs)}


def sweep_values(pooled: Mapping[Group, Mapping[str, float]], missing: int) -> dict[str, float]:
    """Metrics of a sweep, `model/setting/metric`, over all seeds, and what is missing."""
    values = {
        f"{model}/{setting}/{name}": value
        for (model, setting), found in pooled.items()
        for name, value in found.items()
    }
    return {**values, MISSING: float(missing)}


def pooled(tally: Tally) -> dict[str, float]:
    """Metrics of the main table, by name."""
    return {metric.name: tally.value(metric) for metric in metrics.MAIN}


def _axes(cell: ShownCell) -> dict[str, str]:
    model, setting, seed = cell.label.split("/")
    return {"model": model, "setting": setting, "seed": seed}


def _flat(document: Mapping[str, Any], start: str = "setup") -> dict[str, str]:
    """Leaves of a document by dotted path."""
    found: dict[str, str] = {}
    for key, value in document.items():
        path = f"{start}.{key}"
        nested = isinstance(value, dict) and value
        found |= _flat(value, path) if nested else {path: str(value)}
    return found


def _episode_points(record: EpisodeRecord) -> list[Point]:
    points = [(m.name, metrics.value(m, [record]), 0) for m in metrics.MAIN]
    counts = record.counts
    points += [(name, float(getattr(counts, name)), 0) for name in COUNTED]
    cumulative = 0.0
    for number in sorted({case.batch_number for case in record.cases}):
        cases = [case for case in record.cases if case.batch_number == number]
        sums = metrics.accuracy_sums(cases)
        cumulative += sum(0.0 if c.action is None else c.utilities[c.action] for c in cases)
        probes = sum(probe.batch_number == number for probe in record.probes)
        points += [
            ("batch/ea", float(metrics.exact_accuracy_value(sums)), number),
            ("batch/ca", float(metrics.calibrated_accuracy_value(sums)), number),
            ("batch/cumulative_utility", cumulative, number),
            ("batch/probes", float(probes), number),
        ]
    return points
