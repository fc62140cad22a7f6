"""Correlations across models: does a metric separate strong models from weak ones?

The points are models, few of them, and each is itself an estimate. The interval draws episodes, each
with all its models and seeds, and makes every model's metrics anew: it says how far the coefficient of
*these* models is settled by the episodes. The test takes the models for a sample, as the paper does:
it speaks of models like these. With eight models neither should be pressed hard.
Source: paper, tables 3 (across models) and 8.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan, nan, sqrt
from typing import Final

import numpy as np

from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.scores import metrics, statistics
from adaexplore.benchmark.scores.correlations import (
    FLAT,
    LEAST,
    Correlation,
    coefficient,
    student_p,
)
from adaexplore.benchmark.scores.estimates import Estimate, draws, scored
from adaexplore.benchmark.scores.metrics import Metric
from adaexplore.benchmark.world.fields import Floats

Groups = Mapping[str, Sequence[EpisodeRecord]]
"""Episode runs by model, all seeds, under one setting."""

RECOGNITION_FLOOR: Final = 0.05
"""Change recognition below which a model is shown apart (a decision of ours; the paper gives no
number): nearly nothing is left to vary with anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeCorrelations:
    """Correlations of one metric with the two end-to-end outcomes, across models."""

    metric: str
    ea: Correlation
    ca: Correlation
    average: Estimate
    """Mean of the two coefficients."""


def split_by_floor(
    groups: Groups, floor: float = RECOGNITION_FLOOR
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Models (above, not above) a change recognition of `floor`; undefined is not above."""
    scores = {m: metrics.value(metrics.CHANGE_RECOGNITION, scored(g)) for m, g in groups.items()}
    above = tuple(model for model, score in scores.items() if score > floor)
    return above, tuple(model for model in groups if model not in above)


def across(x: Metric, y: Metric, groups: Groups, *, rng: np.random.Generator) -> Correlation:
    """Pearson's correlation of two metrics over models.

    Args:
        x: The one metric.
        y: The other.
        groups: Runs by model.
        rng: Generator to draw resamples of episodes from.

    Returns:
        The coefficient; n counts the models for which both are defined, and it is nan with fewer
        than three, or where one side does not vary.
    """
    values, resamples, clusters = _model_values((x, y), groups, rng)
    return _correlation(values, resamples, clusters)


OUTCOMES: Final = (metrics.EXACT_ACCURACY, metrics.CALIBRATED_ACCURACY)


def with_outcomes(
    metric: Metric,
    groups: Groups,
    *,
    rng: np.random.Generator,
    outcomes: tuple[Metric, Metric] = OUTCOMES,
) -> OutcomeCorrelations:
    """Correlations over models of a metric with EA, with CA, and their mean (paper, table 8).

    All three come from the same models and resamples. `outcomes` are EA and CA, in a form that may
    remember what it has computed.
    """
    wanted = (metric, *outcomes)
    values, resamples, clusters = _model_values(wanted, groups, rng)
    pairs = ([0, 1], [0, 2])
    found = [_correlation(values[pair], resamples[:, pair], clusters) for pair in pairs]
    means = [
        np.mean([_over_models(rows[..., pair, :]) for pair in pairs], axis=0)
        for rows in (values, resamples)
    ]
    average = Estimate.resampled(float(means[0]), means[1], values.shape[-1])
    return OutcomeCorrelations(metric=metric.name, ea=found[0], ca=found[1], average=average)


def _correlation(values: Floats, resamples: Floats, clusters: int) -> Correlation:
    """The correlation of two metrics, shape (2, models), and of resamples of them."""
    n = values.shape[-1]
    value = float(_over_models(values))
    if isnan(value):
        return Correlation(estimate=Estimate.undefined(n), p=nan, clusters=clusters)
    rest = 1.0 - value**2
    t = value * sqrt((n - 2) / rest) if rest > 0.0 else inf
    estimate = Estimate.resampled(value, _over_models(resamples), n)
    return Correlation(estimate=estimate, p=student_p(t, n - 2), clusters=clusters)


def _over_models(values: Floats) -> Floats:
    """Coefficients, shape (...), of two metrics over models, shape (..., 2, models)."""
    if values.shape[-1] < LEAST:
        return np.full(values.shape[:-2], nan)
    centred = values - values.mean(axis=-1, keepdims=True)
    size = np.abs(values).max(axis=-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True))
    x, y = np.moveaxis(metrics.ratio(centred, np.where(spread > FLAT * size, spread, 0.0)), -2, 0)
    return coefficient((x * x).sum(axis=-1), (y * y).sum(axis=-1), (x * y).sum(axis=-1))


def _model_values(
    wanted: Sequence[Metric], groups: Groups, rng: np.random.Generator
) -> tuple[Floats, Floats, int]:
    """Metrics of the models for which all are defined, resamples of them, and the episodes drawn.

    Shapes (metrics, models) and (resamples, metrics, models).
    """
    models = [m for m in (_Model.of(wanted, scored(g)) for g in groups.values()) if m is not None]
    if not models:
        return np.zeros((len(wanted), 0)), np.zeros((0, len(wanted), 0)), 0
    episodes = [episode for model in models for episode in model.episodes]
    ends = np.cumsum([len(model.episodes) for model in models])[:-1]
    parts = np.split(draws(episodes, rng), ends, axis=1)
    resamples = [model.values(drawn) for model, drawn in zip(models, parts, strict=True)]
    values = [model.values(np.ones(len(model.episodes))) for model in models]
    return np.stack(values, axis=-1), np.stack(resamples, axis=-1), len(set(episodes))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    """What a model contributes to several metrics, by episode."""

    wanted: Sequence[Metric]
    episodes: Sequence[str]
    sums: Sequence[Floats]
    """For each metric, shape (episodes, k)."""

    @classmethod
    def of(cls, wanted: Sequence[Metric], runs: Sequence[EpisodeRecord]) -> "_Model | None":
        """The model with these runs; None where a metric is undefined over all of them."""
        if any(isnan(metrics.value(metric, runs)) for metric in wanted):
            return None
        names = [run.episode_id for run in runs]
        rows = (metrics.contributions(metric, runs) for metric in wanted)
        sums = [statistics.cluster_sums(each, names) for each in rows]
        return cls(wanted=wanted, episodes=sorted(set(names)), sums=sums)

    def values(self, counts: Floats) -> Floats:
        """The metrics, shape (..., metrics), of episodes that occur `counts` (..., n) times."""
        pairs = zip(self.wanted, self.sums, strict=True)
        return np.stack([metric.value(counts @ sums) for metric, sums in pairs], axis=-1)
