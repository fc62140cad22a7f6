"""Adaptation: how much is lost when the rule drifts, and how much comes back?

Episodes change after different batches, so each is aligned at its own change. Three windows tell the
course: the plateau before (the last three batches up to the change, a decision of ours), the first
batch after, and the end (the last two batches of the episode). Each pair of windows is compared
within episodes (`comparisons`). A stationary branch has the same cases and no change: run through the
same functions it is the placebo. Source: paper, figure 3 and the analysis beside it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.scores import comparisons, estimates, metrics, statistics
from adaexplore.benchmark.scores.comparisons import Comparison
from adaexplore.benchmark.scores.estimates import Estimate
from adaexplore.benchmark.scores.metrics import Metric
from adaexplore.benchmark.world.fields import Floats

PLATEAU_BATCHES: Final = 3
FINAL_BATCHES: Final = 2

Window = Callable[[EpisodeRecord], range]
"""The batch numbers of an episode that a window holds."""


def _window(name: str, batches: Window) -> Metric:
    """Calibrated accuracy pooled over the cases of a window."""

    def contribution(record: EpisodeRecord) -> Floats:
        numbers = batches(record)
        return metrics.accuracy_sums(c for c in record.cases if c.batch_number in numbers)

    return Metric(name=name, contribution=contribution, value=metrics.calibrated_accuracy_value)


def _before(record: EpisodeRecord) -> range:
    return range(record.change_batch - PLATEAU_BATCHES + 1, record.change_batch + 1)


def _after(record: EpisodeRecord) -> range:
    return range(record.change_batch + 1, record.change_batch + 2)


def _end(record: EpisodeRecord) -> range:
    last = max((case.batch_number for case in record.cases), default=0)
    return range(last - FINAL_BATCHES + 1, last + 1)


PLATEAU: Final = _window("ca_plateau", _before)
FIRST_AFTER: Final = _window("ca_first_after", _after)
FINAL: Final = _window("ca_final", _end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptation:
    """The course of calibrated accuracy around the change, for one group of episode runs."""

    plateau: Estimate
    first_after: Estimate
    final: Estimate
    drop: Comparison
    """First batch after the change minus plateau: negative is what the change costs at once."""
    regained: Comparison
    """Final batches minus first batch after the change."""
    recovery: Comparison
    """Final batches minus plateau: 0 is full recovery, negative what stays lost."""

    @property
    def p_values(self) -> tuple[float, float, float]:
        """Of (drop, regained, recovery), unadjusted: the caller knows the family of tests."""
        return self.drop.test.p, self.regained.test.p, self.recovery.test.p


def adaptation(records: Sequence[EpisodeRecord], *, rng: np.random.Generator) -> Adaptation:
    """The three windows of a group with their differences, each tested.

    Args:
        records: Episode runs of one group, all seeds.
        rng: Generator to draw resamples from.
    """
    plateau, first_after, final = (
        estimates.of_metric(window, records, rng=rng) for window in (PLATEAU, FIRST_AFTER, FINAL)
    )
    return Adaptation(
        plateau=plateau,
        first_after=first_after,
        final=final,
        drop=_between(PLATEAU, FIRST_AFTER, records, rng),
        regained=_between(FIRST_AFTER, FINAL, records, rng),
        recovery=_between(PLATEAU, FINAL, records, rng),
    )


def _between(
    first: Metric, second: Metric, records: Sequence[EpisodeRecord], rng: np.random.Generator
) -> Comparison:
    return comparisons.compare(comparisons.pair_metrics(first, second, records), rng=rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """One point of the curve aligned at the change."""

    offset: int
    """Batches after the change batch; 0 is the last one under the old rule."""
    accuracy: Estimate
    """n counts episode runs with cases in that batch."""


def curve(records: Sequence[EpisodeRecord], *, rng: np.random.Generator) -> tuple[CurvePoint, ...]:
    """Calibrated accuracy at each of `metrics.OFFSETS`, those that every episode has.

    Args:
        records: Episode runs of one group, all seeds.
        rng: Generator to draw resamples from; all points share the resamples, so that the band is
            that of whole curves, point by point.
    """
    counted = estimates.scored(records)
    points = [metrics.at_offset(offset) for offset in metrics.OFFSETS]
    if not counted:
        none = Estimate.undefined(0)
        return tuple(CurvePoint(offset=offset, accuracy=none) for offset in metrics.OFFSETS)
    rows = np.stack([metrics.contributions(point, counted) for point in points], axis=1)
    clusters = [record.episode_id for record in counted]
    resamples = _curves(rows, clusters, rng)
    found = []
    for place, offset in enumerate(metrics.OFFSETS):
        value = metrics.calibrated_accuracy_value(rows[:, place].sum(axis=0))
        n = int((rows[:, place, -1] > 0.0).sum())
        accuracy = Estimate.resampled(float(value), resamples[:, place], n)
        found.append(CurvePoint(offset=offset, accuracy=accuracy))
    return tuple(found)


def _curves(rows: Floats, clusters: Sequence[str], rng: np.random.Generator) -> Floats:
    """Resampled curves, shape (resamples, offsets), of sums, shape (n, offsets, k)."""
    runs, offsets, width = rows.shape
    sums = statistics.cluster_sums(rows.reshape(runs, offsets * width), clusters)
    if len(sums) < 2:
        return np.zeros((0, offsets))

    def value(flat: Floats) -> Floats:
        return metrics.calibrated_accuracy_value(flat.reshape(-1, offsets, width))

    return statistics.bootstrap_values(sums, value, rng)
