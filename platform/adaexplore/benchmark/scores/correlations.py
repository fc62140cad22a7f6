"""Correlations: does what agents do go with what they find out, within models and across them?

Within a model the points are its episode runs; pooled, they are the runs of all models, each centred
at its own model, so that a model which does more of everything adds nothing; across models the points
are the models' metrics. Intervals draw whole episodes, with all their seeds and models, and centre
anew in each resample. Seeds of one episode are not independent, so p within models is that of the
slope with errors clustered by episode, which the number of runs cannot inflate. Source: paper, tables
3 and 8; Liang and Zeger (1986); MacKinnon and White (1985) for the small-sample factor.

Decisions of ours: Pearson's coefficient, with Spearman's beside it (`ranked`) since counts of
re-probes are skewed; fewer than three points, or three episodes for a test, say nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isnan, nan, sqrt
from typing import Final

import numpy as np
from scipy import special

from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.scores import metrics, ranks, statistics
from adaexplore.benchmark.scores.estimates import Estimate, draws, scored
from adaexplore.benchmark.scores.metrics import Metric
from adaexplore.benchmark.world.fields import Floats

LEAST: Final = 3
"""Points that a correlation needs: two are always on a line."""
FLAT: Final = 1e-9
"""Share of its original spread below which a resample counts as constant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """A correlation coefficient with its test."""

    estimate: Estimate
    """In [-1, 1]; n counts points: episode runs, or models."""
    p: float
    """Two-sided, of no linear relation."""
    clusters: int
    """What is drawn in resamples: episodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """What is correlated: one point an episode run, where both metrics are defined."""

    x: Floats
    """Shape (n,)."""
    y: Floats
    episodes: tuple[str, ...]


def _normalised_re_probes(record: EpisodeRecord) -> Floats:
    before, after = metrics.probe_points(record)
    if not record.drifts or not before:
        return np.zeros(2)
    return np.array([len(before & after) / len(before), 1.0])


NORMALISED_RE_PROBES: Final = Metric(
    name="normalised_re_probes",
    contribution=_normalised_re_probes,
    value=lambda s: metrics.ratio(s[..., 0], s[..., 1]),
)
"""Share of the points known before the change that were asked again; undefined where none were."""


def points(x: Metric, y: Metric, records: Sequence[EpisodeRecord]) -> Points:
    """The scored runs of a group for which both metrics are defined, by episode."""
    counted = scored(records)
    if not counted:
        return Points(x=np.zeros(0), y=np.zeros(0), episodes=())
    first, second = (m.value(metrics.contributions(m, counted)) for m in (x, y))
    keep = np.isfinite(first) & np.isfinite(second)
    episodes = tuple(r.episode_id for r, kept in zip(counted, keep, strict=True) if kept)
    return Points(x=first[keep], y=second[keep], episodes=episodes)


# -- within models -----------------------------------------------------------------------------


def within(found: Points, *, rng: np.random.Generator) -> Correlation:
    """Pearson's correlation over the runs of one model.

    Args:
        found: The runs.
        rng: Generator to draw resamples of episodes from.

    Returns:
        The coefficient; nan with fewer than three runs or where one side does not vary.
    """
    return pooled({"": found}, rng=rng)


def pooled(found: Mapping[str, Points], *, rng: np.random.Generator) -> Correlation:
    """Pearson's correlation over the runs of several models, each centred at its model's means.

    Args:
        found: Runs by model; a model with a single run adds nothing to the coefficient.
        rng: Generator to draw resamples from; an episode is drawn with the runs of all models.

    Returns:
        The coefficient; the test has one intercept a model. Source: paper, table 3.
    """
    groups = [p for p in found.values() if len(p.x)]
    plain = _plain(groups)
    if isnan(plain.estimate.value) or plain.clusters < 2:
        return plain
    x, y = _centred_axes(groups)
    rows = _moments(x, y, [len(p.x) for p in groups])
    sums = statistics.cluster_sums(rows, [e for p in groups for e in p.episodes])
    return _with_interval(plain, statistics.bootstrap_values(sums, _pearson, rng))


def _plain(groups: Sequence[Points]) -> Correlation:
    """The coefficient and its test, still without an interval."""
    episodes = [e for p in groups for e in p.episodes]
    n, clusters = len(episodes), len(set(episodes))
    value = p = nan
    if n >= LEAST:
        x, y = _centred_axes(groups)
        value = float(coefficient(x @ x, y @ y, x @ y))
        p = nan if isnan(value) else _clustered_p(x, y, episodes, len(groups))
    estimate = Estimate(value=value, low=nan, high=nan, n=n)
    return Correlation(estimate=estimate, p=p, clusters=clusters)


def _with_interval(plain: Correlation, resamples: Floats) -> Correlation:
    found = Estimate.resampled(plain.estimate.value, resamples, plain.estimate.n)
    return replace(plain, estimate=found)


def _centred_axes(groups: Sequence[Points]) -> tuple[Floats, Floats]:
    return _centred([p.x for p in groups]), _centred([p.y for p in groups])


def _centred(groups: Sequence[Floats]) -> Floats:
    """Values less the means of their groups, in units of the spread that is left; shape (n,)."""
    values = np.concatenate([group - group.mean() for group in groups])
    scale = max(float(np.abs(group).max()) for group in groups)
    spread = float(np.sqrt(np.mean(values**2)))
    return values / spread if spread > FLAT * scale else np.zeros(len(values))


def coefficient(xx: Floats, yy: Floats, xy: Floats) -> Floats:
    """`xy / sqrt(xx yy)` of sums, shape (...), of values in units of their spread.

    nan where a sum of squares is as good as 0.
    """
    flat = (np.asarray(xx) < FLAT) | (np.asarray(yy) < FLAT)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.clip(np.where(flat, nan, xy / np.sqrt(np.asarray(xx) * yy)), -1.0, 1.0)


def _moments(x: Floats, y: Floats, sizes: Sequence[int]) -> Floats:
    """Rows of (1, x, y, xx, yy, xy), each in the six columns of its model; shape (n, 6 models)."""
    rows = np.zeros((len(x), len(sizes), 6))
    model = np.repeat(np.arange(len(sizes)), sizes)
    rows[np.arange(len(x)), model] = np.stack([np.ones(len(x)), x, y, x * x, y * y, x * y], axis=1)
    return rows.reshape(len(x), -1)


def _pearson(sums: Floats) -> Floats:
    """Pooled coefficients of resampled moments, shape (..., 6 models), centred anew by model."""
    n, x, y, xx, yy, xy = np.moveaxis(sums.reshape(*sums.shape[:-1], -1, 6), -1, 0)
    count = np.maximum(n, 1.0)  # a model without a run in this resample has only zeros
    parts = (xx - x * x / count, yy - y * y / count, xy - x * y / count)
    return coefficient(*(np.asarray(part.sum(axis=-1)) for part in parts))


def _clustered_p(x: Floats, y: Floats, episodes: Sequence[str], intercepts: int) -> float:
    """The p of the slope of centred y on centred x, errors clustered by episode (CR1, t with G - 1)."""
    clusters, n = len(set(episodes)), len(x)
    if clusters < LEAST or n <= intercepts + 1:
        return nan
    slope = float(x @ y) / float(x @ x)
    scores = statistics.cluster_sums((x * (y - slope * x))[:, None], episodes)
    factor = clusters / (clusters - 1) * (n - 1) / (n - intercepts - 1)
    error = sqrt(factor * float((scores**2).sum())) / float(x @ x)
    return student_p(slope / error if error else inf, clusters - 1)


def student_p(t: float, freedom: int) -> float:
    """Two-sided p of a t statistic."""
    return float(2.0 * special.stdtr(freedom, -abs(t)))


def ranked(found: Points, *, rng: np.random.Generator) -> Correlation:
    """Spearman's correlation over the runs of one model: Pearson's, of mid-ranks.

    Resamples are ranked anew; p is that of `within` on the ranks (Conover and Iman 1981).
    """
    once = np.ones(len(found.x))
    x, y = (ranks.mid_ranks(values, once) for values in (found.x, found.y))
    plain = _plain([Points(x=x, y=y, episodes=found.episodes)] if len(x) else [])
    if isnan(plain.estimate.value) or plain.clusters < 2:
        return plain
    return _with_interval(plain, _spearman(found, draws(found.episodes, rng)))


def _spearman(found: Points, counts: Floats) -> Floats:
    """Rank correlations of runs that occur `counts` (..., n) times."""
    n = counts.sum(axis=-1, keepdims=True)
    x, y = (ranks.mid_ranks(v, counts) - (n + 1.0) / 2.0 for v in (found.x, found.y))
    return coefficient(*(np.sum(counts * a * b, axis=-1) for a, b in ((x, x), (y, y), (x, y))))
