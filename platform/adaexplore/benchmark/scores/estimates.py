"""Estimates: a number never travels without its interval and its n.

What counts is the scored episode run; what is resampled is the episode with all its runs, since seeds
of one episode share its cases (`statistics`). Undefined is nan, and n says why: 0 is nothing to
estimate from, and of one episode there is a value and no interval.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Self

import numpy as np

from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.scores import metrics, statistics
from adaexplore.benchmark.scores.metrics import Metric
from adaexplore.benchmark.world.fields import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value with its 95 % interval, in the unit of what is estimated."""

    value: float
    low: float
    high: float
    n: int
    """What the value rests on: episode runs, episodes or models, as the function says."""

    @classmethod
    def undefined(cls, n: int) -> Self:
        """Nothing could be estimated from this n."""
        return cls(value=nan, low=nan, high=nan, n=n)

    @classmethod
    def resampled(cls, value: float, resamples: Floats, n: int) -> Self:
        """A value with the percentile interval of its resamples, shape (resamples,)."""
        if isnan(value):
            return cls.undefined(n)
        low, high = statistics.percentile_interval(resamples)
        return cls(value=value, low=low, high=high, n=n)


def scored(records: Iterable[EpisodeRecord]) -> list[EpisodeRecord]:
    """Episode runs that count, those that the provider did not end, ordered by episode."""
    return sorted((r for r in records if r.status == "completed"), key=lambda r: r.episode_id)


def of_metric(
    metric: Metric, records: Sequence[EpisodeRecord], *, rng: np.random.Generator
) -> Estimate:
    """A metric over the scored runs of a group.

    Args:
        metric: What is estimated.
        records: Episode runs of one group, all seeds.
        rng: Generator to draw resamples from.

    Returns:
        The estimate; n counts the runs for which the metric is defined. The interval is nan with
        fewer than two episodes.

    Source: paper, appendix on metrics; cluster bootstrap, Davison and Hinkley (1997), section 3.8.
    """
    counted = scored(records)
    rows = metrics.contributions(metric, counted)
    return of_rows(metric, rows, [record.episode_id for record in counted], rng=rng)


def of_rows(
    metric: Metric, rows: Floats, episodes: Sequence[str], *, rng: np.random.Generator
) -> Estimate:
    """As `of_metric`, from what the scored runs contribute.

    Args:
        metric: What is estimated.
        rows: Contributions, shape (n, k), ordered by episode.
        episodes: The episode of each row.
        rng: Generator to draw resamples from.
    """
    if not len(rows):
        return Estimate.undefined(0)
    n = int(np.isfinite(metric.value(rows)).sum())
    value = float(metric.value(rows.sum(axis=0)))
    if isnan(value):
        return Estimate.undefined(n)
    low, high = statistics.interval(rows, episodes, metric.value, rng=rng)
    return Estimate(value=value, low=low, high=high, n=n)


def of_metrics(
    wanted: Sequence[Metric], records: Sequence[EpisodeRecord], *, rng: np.random.Generator
) -> dict[str, Estimate]:
    """Several metrics over the scored runs of a group, by name; all from the same resamples.

    As `of_metric` for each, at the cost of one: resampling is most of the work.
    """
    counted = scored(records)
    if not counted:
        return {metric.name: Estimate.undefined(0) for metric in wanted}
    parts = [metrics.contributions(metric, counted) for metric in wanted]
    resampled = _sums(np.concatenate(parts, axis=1), counted, rng)
    ends = np.cumsum([part.shape[1] for part in parts])[:-1]
    found = {}
    for metric, rows, sums in zip(wanted, parts, np.split(resampled, ends, axis=1), strict=True):
        resamples = metric.value(sums)
        n = int(np.isfinite(metric.value(rows)).sum())
        found[metric.name] = Estimate.resampled(float(metric.value(rows.sum(axis=0))), resamples, n)
    return found


def _sums(rows: Floats, runs: Sequence[EpisodeRecord], rng: np.random.Generator) -> Floats:
    """Sums of rows, shape (n, k), in each resample of episodes; (0, k) with fewer than two."""
    sums = statistics.cluster_sums(rows, [run.episode_id for run in runs])
    if len(sums) < 2:
        return np.zeros((0, rows.shape[1]))
    return statistics.bootstrap_values(sums, lambda drawn: drawn, rng)


def draws(episodes: Sequence[str], rng: np.random.Generator) -> Floats:
    """How often each row is drawn in each resample of episodes, for what is no function of sums.

    Args:
        episodes: The episode of each row, shape (n,).
        rng: Generator to draw from.

    Returns:
        Shape (resamples, n), equal in all rows of one episode; (0, n) with fewer than two episodes.
    """
    index = statistics.cluster_index(episodes)
    if not index.any():
        return np.zeros((0, len(episodes)))
    names = int(index.max()) + 1
    return statistics.bootstrap_values(np.eye(names), lambda counts: counts, rng)[:, index]
