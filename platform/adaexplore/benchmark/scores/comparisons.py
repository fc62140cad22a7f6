"""Paired comparisons: is a condition better than another on the same episodes, and by how much?

Settings, models and windows of an episode meet the same hidden rules and cases, so they are compared
episode by episode, all seeds of an episode pooled first: the episode is the unit. The difference is
that of the pooled metric with a bootstrap interval; the test is Wilcoxon's signed-rank test on the
episodes' own values; effect sizes stand beside it, since with 240 episodes little is insignificant.
Source: paper, table 16; Kerby (2014); Cohen (1988).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import nan

import numpy as np

from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.scores import metrics, ranks, statistics
from adaexplore.benchmark.scores.estimates import Estimate, draws, scored
from adaexplore.benchmark.scores.metrics import Metric
from adaexplore.benchmark.scores.significance import DIGITS, SignedRank, signed_rank
from adaexplore.benchmark.scores.statistics import Value
from adaexplore.benchmark.world.fields import Floats

Key = tuple[str, str]
"""(episode, digest of its hidden side): equal keys prove equal rules and cases."""


# -- pairs -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Two conditions of one metric over the same episodes, seeds pooled."""

    episodes: tuple[str, ...]
    first: Floats
    """Summed contributions, shape (episodes, k)."""
    second: Floats
    value: Value
    """What summed contributions are worth."""

    def values(self) -> tuple[Floats, Floats]:
        """The metric of each episode under (first, second), shape (episodes,) each."""
        return self.value(self.first), self.value(self.second)

    def defined(self) -> "Pairs":
        """Without the episodes for which the metric is undefined under either condition."""
        if not self.episodes:
            return self
        keep = np.isfinite(np.sum(self.values(), axis=0))
        episodes = tuple(e for e, kept in zip(self.episodes, keep, strict=True) if kept)
        return Pairs(
            episodes=episodes,
            first=self.first[keep],
            second=self.second[keep],
            value=self.value,
        )


def pair(
    metric: Metric,
    first: Iterable[EpisodeRecord],
    second: Iterable[EpisodeRecord],
    *,
    same_cases: bool = True,
) -> Pairs:
    """The scored episodes that two conditions share.

    Args:
        metric: What is compared.
        first: Episode runs of the one condition, all seeds.
        second: Episode runs of the other.
        same_cases: Whether pairs need equal hidden sides; without, equal episode ids are enough,
            for conditions that draw other cases on purpose.

    Returns:
        Pairs in the order of episode ids; none where nothing is shared.
    """
    one, other = (_keyed(metric, group, same_cases=same_cases) for group in (first, second))
    return pair_rows(metric, one, other)


def pair_rows(
    metric: Metric, first: Iterable[tuple[Key, Floats]], second: Iterable[tuple[Key, Floats]]
) -> Pairs:
    """As `pair`, from what the scored runs of each condition contribute, ordered by episode."""
    one, other = _pooled(first), _pooled(second)
    shared = sorted(one.keys() & other.keys())
    return Pairs(
        episodes=tuple(key[0] for key in shared),
        first=_stacked([one[key] for key in shared]),
        second=_stacked([other[key] for key in shared]),
        value=metric.value,
    )


def pair_metrics(first: Metric, second: Metric, records: Iterable[EpisodeRecord]) -> Pairs:
    """The scored episodes of one group under two metrics of the same form, as two windows are.

    Raises:
        ValueError: The metrics make their values in different ways: no difference has a meaning.
    """
    if first.value is not second.value:
        raise ValueError(
            f"expected metrics with the same value function, got {first.name} and {second.name}"
        )
    counted = list(records)
    one, other = (_pooled(_keyed(m, counted, same_cases=True)) for m in (first, second))
    return Pairs(
        episodes=tuple(key[0] for key in sorted(one)),
        first=_stacked([one[key] for key in sorted(one)]),
        second=_stacked([other[key] for key in sorted(one)]),
        value=first.value,
    )


def _keyed(
    metric: Metric, records: Iterable[EpisodeRecord], *, same_cases: bool
) -> Iterator[tuple[Key, Floats]]:
    for record in scored(records):
        key = (record.episode_id, record.hidden_digest if same_cases else "")
        yield key, metric.contribution(record)


def _pooled(rows: Iterable[tuple[Key, Floats]]) -> dict[Key, Floats]:
    sums: dict[Key, Floats] = {}
    for key, part in rows:
        sums[key] = sums[key] + part if key in sums else part
    return sums


def _stacked(rows: Sequence[Floats]) -> Floats:
    return np.stack(rows) if rows else np.zeros((0, 0))


# -- comparisons -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A paired comparison of one metric, second minus first."""

    first: float
    """The pooled metric under the first condition, over the episodes compared."""
    second: float
    difference: Estimate
    """`second - first`; n counts episodes."""
    test: SignedRank
    """On the episodes' own differences."""
    rank_biserial: Estimate
    """Effect size of the test, in [-1, 1] (Kerby 2014); nan where no episode differs."""
    standardized: Estimate
    """Mean over standard deviation of the differences, d_z (Cohen 1988); nan where they are equal."""


def compare(pairs: Pairs, *, rng: np.random.Generator) -> Comparison:
    """Compare two conditions over the episodes for which the metric is defined under both.

    Args:
        pairs: The episodes of both, as `pair` makes them.
        rng: Generator to draw resamples from.

    Returns:
        The comparison; everything is nan with n = 0 without episodes, and there are no intervals
        with one.
    """
    kept = pairs.defined()
    n = len(kept.episodes)
    test = signed_rank(_differences(kept))
    if not n:
        none = Estimate.undefined(0)
        return Comparison(
            first=nan,
            second=nan,
            difference=none,
            test=test,
            rank_biserial=none,
            standardized=none,
        )
    first, second = (float(kept.value(rows.sum(axis=0))) for rows in (kept.first, kept.second))
    low, high = statistics.paired_interval(kept.first, kept.second, kept.value, rng=rng)
    rank_biserial, standardized = _effects(_differences(kept), rng)
    return Comparison(
        first=first,
        second=second,
        difference=Estimate(value=second - first, low=low, high=high, n=n),
        test=test,
        rank_biserial=rank_biserial,
        standardized=standardized,
    )


def _differences(pairs: Pairs) -> Floats:
    if not pairs.episodes:
        return np.zeros(0)
    first, second = pairs.values()
    return np.round(second - first, DIGITS)


def _effects(differences: Floats, rng: np.random.Generator) -> tuple[Estimate, Estimate]:
    """(rank-biserial correlation, d_z) of differences, with intervals from the same resamples."""
    n = len(differences)
    once, counts = np.ones(n), draws([str(i) for i in range(n)], rng)

    def estimate(effect: Callable[[Floats, Floats], Floats]) -> Estimate:
        value = float(effect(differences, once))
        return Estimate.resampled(value, effect(differences, counts), n)

    return estimate(_rank_biserial), estimate(_standardized)


def _rank_biserial(differences: Floats, counts: Floats) -> Floats:
    """Rank-biserial correlations, shape (...), of differences that occur `counts` (..., n) times."""
    weighted = counts * ranks.mid_ranks(np.abs(differences), counts)
    signed = np.sum(weighted * np.sign(differences), axis=-1)
    return metrics.ratio(signed, np.sum(weighted * (differences != 0.0), axis=-1))


def _standardized(differences: Floats, counts: Floats) -> Floats:
    """d_z, shape (...), of differences that occur `counts` (..., n) times; nan where all are equal."""
    n = counts.sum(axis=-1)
    mean = metrics.ratio(counts @ differences, n)
    squares = np.sum(counts * (differences - mean[..., None]) ** 2, axis=-1)
    spread = np.sqrt(metrics.ratio(squares, n - 1.0))
    # Equal differences leave a spread of rounding errors alone, far below their last digit.
    return np.where(spread > 10.0**-DIGITS, metrics.ratio(mean, spread), nan)


# -- over models -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelComparison:
    """A comparison over models: is the change one that models share?"""

    difference: Estimate
    """Mean of the models' pooled differences; n counts models. The interval is over episodes, each
    drawn with all its models: it speaks of these models."""
    test: SignedRank
    """On the models' differences: it speaks of models like these. With fewer than six no p is
    below 0.05."""


def over_models(pairs: Mapping[str, Pairs], *, rng: np.random.Generator) -> ModelComparison:
    """Compare two conditions over models, from the pairs of each.

    Models without a defined episode do not count. Source: paper, table 16 (model level).
    """
    groups = [p for p in (each.defined() for each in pairs.values()) if p.episodes]
    differences = np.array(
        [float(p.value(p.second.sum(axis=0)) - p.value(p.first.sum(axis=0))) for p in groups]
    )
    test = signed_rank(differences)
    if not groups:
        return ModelComparison(difference=Estimate.undefined(0), test=test)
    resamples = _joint_means(groups, rng)
    estimate = Estimate.resampled(float(differences.mean()), resamples, len(groups))
    return ModelComparison(difference=estimate, test=test)


def _joint_means(groups: Sequence[Pairs], rng: np.random.Generator) -> Floats:
    """Resampled means of the models' differences: episodes are drawn once for all models."""
    counts = draws([e for group in groups for e in group.episodes], rng)
    ends = np.cumsum([len(group.episodes) for group in groups])[:-1]
    differences = [
        group.value(drawn @ group.second) - group.value(drawn @ group.first)
        for group, drawn in zip(groups, np.split(counts, ends, axis=1), strict=True)
    ]
    return np.asarray(np.mean(differences, axis=0))
