"""Missing episodes: what they could hide, and whether the compared models lose as many.

An episode that a provider refused, that overflowed the context or that never ended is not scored, and
what is left may be the easier part. So a score is told three ways: without the missing runs; with each
as if nothing had been answered; and between the worst and the best that they could have been. The
bounds assume nothing. Missing runs are made up from the hidden side of the same episode, known from
any complete record of it under the same setting, whoever played.
Source: platform design, failure policy; bounds as in Horowitz and Manski (2000).

Decisions of ours: only whole runs are filled in, never a missing assessment of a scored run; the unit
of tests is the episode (missing where any of its runs is), since seeds of an episode fail together;
pairs of models are compared as if they were independent, which is cautious where they fail alike.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import nan
from typing import Final

import numpy as np
from scipy import special

from adaexplore.benchmark.game.assessment import Assessment, Phase
from adaexplore.benchmark.game.records import CaseRecord, EpisodeRecord
from adaexplore.benchmark.scores import estimates, metrics, significance, statistics
from adaexplore.benchmark.scores.estimates import Estimate
from adaexplore.benchmark.scores.metrics import Metric

BOUNDED: Final = (
    metrics.EXACT_ACCURACY, metrics.CALIBRATED_ACCURACY, metrics.FACTOR_RECOGNITION,
    metrics.CHANGE_RECOGNITION,
)  # fmt: skip
"""Metrics that have a worst and a best play."""
DRAWS: Final = 9999
"""Tables drawn for the test over all models; the smallest p is one over one more."""

Episodes = Mapping[str, EpisodeRecord]
"""A complete record by episode id: the hidden side of what may be missing elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What was planned for one model and setting, and what came of it."""

    planned: Mapping[str, int]
    """Runs (seeds) by episode id; episodes without a record included."""
    records: Sequence[EpisodeRecord]
    """All records there are, scored or not."""

    def missing(self) -> dict[str, int]:
        """Planned runs without a score, by episode; only episodes that miss any.

        Raises:
            ValueError: An episode has more scored runs than were planned.
        """
        left = dict(self.planned)
        for record in estimates.scored(self.records):
            left[record.episode_id] = left.get(record.episode_id, 0) - 1
        for episode_id, count in left.items():
            if count < 0:
                planned = self.planned.get(episode_id, 0)
                raise ValueError(
                    f"{episode_id}: expected at most {planned} scored runs as planned, "
                    f"got {planned - count}"
                )
        return {episode_id: count for episode_id, count in left.items() if count}


# -- three ways to tell a score ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FailurePolicies:
    """One metric of one group under each treatment of its missing runs."""

    excluded: Estimate
    """Scored runs alone: the number of every other table."""
    as_zero: Estimate
    """Missing runs answered nothing: no case and no field."""
    worst: Estimate
    """Missing runs played as badly as can be: the lower bound."""
    best: Estimate
    """Missing runs played as the oracle: the upper bound."""
    planned: int
    missing: int
    unknown: int
    """Missing runs that nobody completed, so that their cases are not known; they are in no number
    here, and the bounds do not cover them."""


def by_policy(
    metric: Metric, group: Group, known: Episodes, *, rng: np.random.Generator
) -> FailurePolicies:
    """A metric of a group, told three ways.

    Args:
        metric: One of `BOUNDED`.
        group: What was planned and what came of it.
        known: Complete records under the same setting, as `known_episodes` finds them.
        rng: Generator to draw resamples from.

    Raises:
        ValueError: The metric has no worst and best, or a record is beyond the plan.
    """
    if metric not in BOUNDED:
        names = ", ".join(each.name for each in BOUNDED)
        raise ValueError(f"expected a metric with bounds ({names}), got {metric.name}")
    counted = estimates.scored(group.records)
    missing = group.missing()
    lost = [known[e] for e, count in missing.items() if e in known for _ in range(count)]

    def filled(play: Callable[[EpisodeRecord], EpisodeRecord]) -> Estimate:
        return estimates.of_metric(metric, [*counted, *map(play, lost)], rng=rng)

    return FailurePolicies(
        excluded=estimates.of_metric(metric, counted, rng=rng),
        as_zero=filled(silent),
        worst=filled(worst),
        best=filled(best),
        planned=sum(group.planned.values()),
        missing=sum(missing.values()),
        unknown=sum(missing.values()) - len(lost),
    )


def known_episodes(records: Iterable[EpisodeRecord]) -> dict[str, EpisodeRecord]:
    """A complete record of each episode, from the records of all models under one setting."""
    return {record.episode_id: record for record in estimates.scored(records)}


def silent(record: EpisodeRecord) -> EpisodeRecord:
    """The episode as played by nobody: no case answered, no field reported."""
    return _played(record, lambda _: None, {phase: {} for phase in record.truth})


def best(record: EpisodeRecord) -> EpisodeRecord:
    """The episode with the best action everywhere and the truth reported."""
    return _played(record, lambda u: u.index(max(u)), record.truth)


def worst(record: EpisodeRecord) -> EpisodeRecord:
    """The episode with the worst action everywhere, every distractor reported and nothing else.

    Of the true atoms of a change this reports none: what comes and goes is the wrong way round.
    """
    reports = {
        phase: {name: 1 for name in record.visible_fields if name not in truth}
        for phase, truth in record.truth.items()
    }
    return _played(record, lambda u: u.index(min(u)), reports)


def _played(
    record: EpisodeRecord,
    choose: Callable[[tuple[float, ...]], int | None],
    reports: Mapping[Phase, dict[str, int]],
) -> EpisodeRecord:
    def answered(case: CaseRecord) -> CaseRecord:
        return replace(case, action=choose(case.utilities))

    return replace(
        record,
        cases=tuple(map(answered, record.cases)),
        probes=(),
        assessments=tuple(
            Assessment(phase=phase, status="completed", directions=directions)
            for phase, directions in reports.items()
        ),
    )


# -- do models lose as many? -------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingPair:
    """Two models' shares of missing episodes compared."""

    first: str
    second: str
    p: float
    """Fisher's exact test, two-sided."""
    p_holm: float
    """Adjusted over all pairs of models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingnessTest:
    """Whether missing episodes fall on the compared models alike."""

    rates: dict[str, Estimate]
    """Share of episodes with a missing run, by model; exact interval, n counts episodes."""
    p: float
    """Of equal shares over all models; nan with fewer than two."""
    n: int
    """Models with a planned episode."""
    pairs: tuple[MissingPair, ...]


def equal_missingness(groups: Mapping[str, Group], *, rng: np.random.Generator) -> MissingnessTest:
    """Test that the models of a comparison miss episodes equally often.

    Args:
        groups: By model, under one setting.
        rng: Generator that the test over all models draws its tables from.

    Source: chi-squared statistic, its distribution given all totals by simulation (Hope 1968); Fisher
    (1935) for pairs, Holm (1979) over them; interval of Clopper and Pearson (1934).
    """
    counts = {model: (len(g.missing()), len(g.planned)) for model, g in groups.items()}
    met = [count for count in counts.values() if count[1]]
    models = list(combinations(counts, 2))
    raw = [significance.fisher(counts[first], counts[second]) for first, second in models]
    adjusted = significance.holm(raw)
    return MissingnessTest(
        rates={model: _share(*count) for model, count in counts.items()},
        p=_equal_shares(met, rng),
        n=len(met),
        pairs=tuple(
            MissingPair(first=first, second=second, p=p, p_holm=p_holm)
            for (first, second), p, p_holm in zip(models, raw, adjusted, strict=True)
        ),
    )


def _share(hits: int, n: int) -> Estimate:
    """A share with its exact interval."""
    if not n:
        return Estimate.undefined(0)
    tail = (1.0 - statistics.LEVEL) / 2.0
    low = special.betaincinv(hits, n - hits + 1, tail) if hits else 0.0
    high = special.betaincinv(hits + 1, n - hits, 1.0 - tail) if hits < n else 1.0
    return Estimate(value=hits / n, low=float(low), high=float(high), n=n)


def _equal_shares(counts: Sequence[tuple[int, int]], rng: np.random.Generator) -> float:
    """The p of equal shares in (hits, size) of groups, by drawing tables with the same totals."""
    if len(counts) < 2:
        return nan
    hits, sizes = np.asarray(counts).T
    drawn = rng.multivariate_hypergeometric(sizes, int(hits.sum()), size=DRAWS)
    # With all totals fixed, chi-squared rises with this sum, and with nothing else.
    observed, others = (np.sum(h**2 / sizes, axis=-1) for h in (hits, drawn))
    extreme = int((others >= observed - 1e-9 * observed).sum())
    return (1 + extreme) / (1 + DRAWS)
