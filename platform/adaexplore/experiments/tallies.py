"""Tallies: what episode runs add to the tables, a few numbers a run instead of its record.

The record of a full episode takes some 40 KB of memory and its numbers a quarter of a kilobyte, so tables over
ten thousand runs are made from numbers: each record is read, counted and let go. What is counted is what
the metrics say that an episode contributes (`scores.metrics`), kept exactly: a table is the same to the
bit, whether its records are all there at once or were counted one after another.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Final, Self

import numpy as np

from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.scores import metrics
from adaexplore.benchmark.scores.comparisons import Key
from adaexplore.benchmark.scores.metrics import Metric
from adaexplore.benchmark.world.fields import Floats
from adaexplore.experiments.packed import Rows

Group = tuple[str, str]
"""(model, setting): what a row of the main table pools, over all seeds."""

SHOWN: Final = (*metrics.MAIN, *metrics.BESIDE)
"""Metrics of the score tables."""
CURVE: Final = {offset: metrics.at_offset(offset) for offset in metrics.OFFSETS}
"""Metrics of the curve, by offset from the change."""
COUNTED: Final = (
    "turns", "repairs", "fallbacks", "truncations", "calculator_calls", "lenient_would_accept",
)  # fmt: skip
"""Protocol counts that the tables show."""
Contribution = Callable[[EpisodeRecord], Floats]
_CASES: Final = (metrics.EXACT_ACCURACY, *CURVE.values())
"""Metrics of sums over cases, each sum once."""
_OTHERS: Final = tuple(
    dict.fromkeys(
        metric.contribution
        for metric in SHOWN
        if metric.contribution is not metrics.EXACT_ACCURACY.contribution
    )
)
"""Contributions of the others; metrics of the same sums share them."""


class Counted:
    """Protocol accounting of episode runs, scored or not."""

    def __init__(self) -> None:
        """Nothing is counted yet."""
        self.runs = 0
        self.unscored = 0
        """Runs that the provider ended."""
        self.unanswered = 0
        """Cases without an answer."""
        self.counts = dict.fromkeys(COUNTED, 0)

    @classmethod
    def of(cls, records: Iterable[EpisodeRecord]) -> Self:
        """The accounting of records."""
        found = cls()
        for record in records:
            found.add(record)
        return found

    @property
    def scored(self) -> int:
        """Runs that count in the scores."""
        return self.runs - self.unscored

    def add(self, record: EpisodeRecord) -> None:
        """Count one run."""
        self.runs += 1
        self.unscored += record.status != "completed"
        self.unanswered += sum(case.action is None for case in record.cases)
        for name in COUNTED:
            self.counts[name] += getattr(record.counts, name)

    def extend(self, other: "Counted") -> None:
        """Count the runs of another accounting too."""
        self.runs += other.runs
        self.unscored += other.unscored
        self.unanswered += other.unanswered
        for name in COUNTED:
            self.counts[name] += other.counts[name]


class Tally:
    """Numbers of the episode runs of one cell or group."""

    def __init__(self) -> None:
        """Nothing is counted yet."""
        self.counted = Counted()
        kept = (*(metric.contribution for metric in _CASES), *_OTHERS)
        self._sums = {contribution: Rows() for contribution in kept}
        self._keys: list[Key] = []

    @classmethod
    def of(cls, records: Iterable[EpisodeRecord]) -> Self:
        """The tally of records, which are taken one by one."""
        tally = cls()
        for record in records:
            tally.add(record)
        return tally

    def add(self, record: EpisodeRecord) -> None:
        """Count one run."""
        self.counted.add(record)
        if record.status != "completed":
            return
        self._keys.append(_key(record.episode_id, record.hidden_digest))
        for contribution, sums in _contributed(record):
            self._sums[contribution].add(sums)

    def extend(self, other: "Tally") -> None:
        """Count the runs of another tally too."""
        self.counted.extend(other.counted)
        self._keys += other._keys  # noqa: SLF001 (one of its kind)
        for contribution, kept in self._sums.items():
            kept.extend(other._sums[contribution])  # noqa: SLF001

    @property
    def keys(self) -> list[Key]:
        """(episode, digest of its hidden side) of each scored run, ordered by episode."""
        return [self._keys[place] for place in self._order()]

    def rows(self, metric: Metric) -> Floats:
        """What the scored runs contribute to a metric of the tables, shape (n, k), as `keys`."""
        if not self._keys:
            return np.zeros((0, 0))
        return self._sums[metric.contribution].array()[self._order()]

    def value(self, metric: Metric) -> float:
        """A metric of the tables over the scored runs; nan where it is undefined."""
        return float(metric.value(self.rows(metric).sum(axis=0))) if self._keys else float("nan")

    def _order(self) -> list[int]:
        """Places of the scored runs by episode; those of one episode as they were added."""
        return sorted(range(len(self._keys)), key=lambda place: self._keys[place][0])


def _contributed(record: EpisodeRecord) -> Iterator[tuple[Contribution, Floats]]:
    """What a run contributes to each metric; the metrics of cases share the look at them."""
    rows = metrics.case_rows(record.cases)
    after = np.array([case.batch_number for case in record.cases]) - record.change_batch
    yield metrics.EXACT_ACCURACY.contribution, rows.sum(axis=0)
    for offset, metric in CURVE.items():
        yield metric.contribution, rows[after == offset].sum(axis=0)
    for contribution in _OTHERS:
        yield contribution, contribution(record)


@cache
def _key(episode: str, hidden: str) -> Key:
    """The key of an episode, one object for all its runs."""
    return episode, hidden


Tallies = Mapping[Group, Tally]
"""Tallies by group, in the order of the sweep's axes."""


def grouped(cells: Iterable[tuple[Group, Tally]]) -> dict[Group, Tally]:
    """Tallies by group of those of cells, which are taken one by one, in the order of the sweep's."""
    found: dict[Group, Tally] = {}
    for group, tally in cells:
        found.setdefault(group, Tally()).extend(tally)
    return found
