"""Evidence: all that the analyses of a report rest on, read once.

Ten models under five settings on 240 episodes are 12,000 records of 96 cases each, and every analysis
asks for sums over the same cases. So equal cases are one object (`Sharer`), and what an episode
contributes to a metric is computed once (`Memory`) and found again by every analysis.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from adaexplore.benchmark.game.records import CaseRecord, EpisodeRecord
from adaexplore.benchmark.scores import comparisons, estimates
from adaexplore.benchmark.scores.comparisons import Pairs
from adaexplore.benchmark.scores.estimates import Estimate
from adaexplore.benchmark.scores.metrics import Metric
from adaexplore.benchmark.scores.missingness import Group as Planned
from adaexplore.benchmark.world import seeds
from adaexplore.benchmark.world.fields import Floats
from adaexplore.experiments import tables
from adaexplore.experiments.tables import BASELINE, Estimates
from adaexplore.experiments.tallies import SHOWN, Group
from adaexplore.experiments.usages import Usage

Runs = Sequence[EpisodeRecord]
Records = Mapping[Group, Runs]
"""Records by group, in the order of the sweeps' axes."""
T = TypeVar("T")
Contribution = Callable[[EpisodeRecord], Floats]


class Memory:
    """What episodes contribute to metrics, computed once; metrics of the same sums share them.

    Several threads may ask: a row that two of them compute is the same row.
    """

    def __init__(self) -> None:
        """Remember nothing yet."""
        # The record is kept beside its sums: its id is nobody else's as long as it lives.
        self._rows: dict[tuple[Contribution, int], tuple[EpisodeRecord, Floats]] = {}
        self._made: dict[str, Any] = {}
        self._lock = threading.RLock()

    def of(self, metric: Metric) -> Metric:
        """The metric, whose contributions are remembered."""

        def contribution(record: EpisodeRecord) -> Floats:
            key = (metric.contribution, id(record))
            found = self._rows.get(key)
            if found is None:
                found = self._rows[key] = (record, metric.contribution(record))
            return found[1]

        return replace(metric, contribution=contribution)

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What `make` returns, made at the first call of this name."""
        with self._lock:
            if name not in self._made:
                self._made[name] = make()
            found: T = self._made[name]
            return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where evidence comes from: what the methods of a report have to tell."""

    sweeps: tuple[str, ...]
    cells: Mapping[str, Mapping[str, Any]]
    """Semantic configuration by `sweep: model/setting/seed`."""
    launches: tuple[Mapping[str, Any], ...] = ()
    """Notes of the launches, the latest last."""
    where: str = ""
    """Where the sweeps are kept, for people."""
    options: tuple[str, ...] = ()
    """Words of the command line that find them there."""
    pages: tuple[str, ...] = ()
    """Pages of single episodes, by their addresses beside the report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was planned, what was played and what it cost, by (model, setting)."""

    origin: Origin
    records: Records
    """All records of a group, seeds pooled, scored or not; in the order of the sweeps' axes."""
    planned: Mapping[Group, Mapping[str, int]]
    """Runs that each group was to play, by episode id."""
    usages: Mapping[Group, Usage] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory, repr=False, compare=False)

    @property
    def models(self) -> tuple[str, ...]:
        """Models in their order."""
        return tuple(dict.fromkeys(model for model, _ in self.records))

    @property
    def settings(self) -> tuple[str, ...]:
        """Settings in their order, the baseline first."""
        found = dict.fromkeys(setting for _, setting in self.records)
        return tuple(sorted(found, key=lambda setting: setting != BASELINE))

    @property
    def scored(self) -> int:
        """Scored episode runs."""
        return sum(len(estimates.scored(found)) for found in self.records.values())

    def under(self, setting: str) -> dict[str, Runs]:
        """Scored runs by model under a setting; models without any are left out."""
        found = {m: estimates.scored(r) for (m, s), r in self.records.items() if s == setting}
        return {model: runs for model, runs in found.items() if runs}

    @property
    def drifting(self) -> tuple[str, ...]:
        """Settings under which the rule drifts in a scored run."""
        return tuple(
            s
            for s in self.settings
            if any(r.drifts for runs in self.under(s).values() for r in runs)
        )

    @property
    def focus(self) -> str | None:
        """The setting that analyses of the drift are about: the baseline if it was played."""
        return next(iter(self.drifting), None)

    def plan_of(self, group: Group) -> Planned:
        """What was planned for a group and what came of it."""
        return Planned(planned=self.planned.get(group, {}), records=self.records[group])

    def estimates(self, wanted: Sequence[Metric], runs: Runs, *names: str) -> dict[str, Estimate]:
        """Estimates of metrics over runs, by name of the metric, from the stream of these names."""
        remembered = [self.memory.of(metric) for metric in wanted]
        return estimates.of_metrics(remembered, runs, rng=stream(*names))

    def pairs(self, metric: Metric, first: Runs, second: Runs) -> Pairs:
        """The scored episodes that two conditions share, with equal hidden sides."""
        return comparisons.pair(self.memory.of(metric), first, second)

    def scores(self) -> Estimates:
        """The estimates of the score tables, with the tables' own streams; made at the first call."""
        return self.memory.once("scores", self._estimated)

    def _estimated(self) -> Estimates:
        return {
            (group, metric.name): tables.estimate(self.memory.of(metric), found, *group)
            for metric in SHOWN
            for group, found in self.records.items()
        }


def stream(*names: str) -> np.random.Generator:
    """The random stream of one number of a report."""
    return seeds.generator("report", *names)


class Sharer:
    """Makes equal cases of many records one object: models meet the same cases."""

    def __init__(self) -> None:
        """Know no case yet."""
        self._cases: dict[CaseRecord, CaseRecord] = {}

    def shared(self, record: EpisodeRecord) -> EpisodeRecord:
        """The same record, made of cases that others share."""
        known = self._cases
        return replace(record, cases=tuple(known.setdefault(case, case) for case in record.cases))
