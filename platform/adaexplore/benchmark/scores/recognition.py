"""What recognition scores are made of: precision and recall, kinds of error, atoms, whole episodes.

An F1 does not say whether an agent overlooks fields or invents them, finds the replacement or the
reversal, or just repeats its first answer. Each share here is a `Metric`, so one function estimates
them all with their intervals (`estimates.of_metric`). Only completed assessments count; for anything
about the change, both have to be. Source: paper, analysis of recognition and its appendix.

Decisions of ours: precision and recall of factors are pooled within a phase and averaged over phases,
as the F1 is; those of changes are pooled over atoms, since an episode that reports none has no
precision of its own.
"""

from collections.abc import Callable
from typing import Final, Literal

import numpy as np

from adaexplore.benchmark.game.assessment import Phase
from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.scores import metrics
from adaexplore.benchmark.scores.metrics import Atom, Metric
from adaexplore.benchmark.world.fields import Floats

FactorCategory = Literal["exact", "omission_only", "addition_only", "both"]
EpisodeCategory = Literal["complete", "replacement_only", "reversal_only", "neither"]

PHASES: Final[tuple[Phase, ...]] = ("pre", "post")


def _share(sums: Floats) -> Floats:
    """The first sum over the second."""
    return metrics.ratio(sums[..., 0], sums[..., 1])


# -- factors -----------------------------------------------------------------------------------


def factor_category(record: EpisodeRecord, phase: Phase) -> FactorCategory | None:
    """How the fields reported in a phase err; None where the assessment is missing.

    An empty answer leaves out everything and adds nothing: omission only. Source: paper, table 12.
    """
    if metrics.completed(record, phase) is None or phase not in record.truth:
        return None
    _, added, omitted = metrics.factor_counts(record, phase)
    if added:
        return "both" if omitted else "addition_only"
    return "omission_only" if omitted else "exact"


def _factor_share(category: FactorCategory, phase: Phase) -> Metric:
    def contribution(record: EpisodeRecord) -> Floats:
        found = factor_category(record, phase)
        return np.array([found == category, found is not None], dtype=np.float64)

    return Metric(name=f"factors_{phase}_{category}", contribution=contribution, value=_share)


FACTOR_CATEGORIES: Final[tuple[FactorCategory, ...]] = (
    "exact", "omission_only", "addition_only", "both",
)  # fmt: skip
FACTOR_ERRORS: Final = {
    phase: tuple(_factor_share(category, phase) for category in FACTOR_CATEGORIES)
    for phase in PHASES
}
"""By phase: the share of completed assessments in each category; the four sum to 1."""


def _by_phase(part: Callable[[int, int, int], tuple[int, int]], name: str) -> Metric:
    """A ratio of pooled counts in each phase, and the mean of the phases."""

    def contribution(record: EpisodeRecord) -> Floats:
        pre = part(*metrics.factor_counts(record, "pre"))
        post = part(*metrics.factor_counts(record, "post"))
        return np.array([*pre, *post, record.drifts], dtype=np.float64)

    def value(sums: Floats) -> Floats:
        pre, post = _share(sums[..., 0:2]), _share(sums[..., 2:4])
        return np.where(sums[..., 4] > 0.0, (pre + post) / 2.0, post)

    return Metric(name=name, contribution=contribution, value=value)


FACTOR_PRECISION: Final = _by_phase(lambda tp, fp, _: (tp, tp + fp), "factor_precision")
"""Of the fields reported, the share that is relevant; nan where none is reported."""
FACTOR_RECALL: Final = _by_phase(lambda tp, _, fn: (tp, tp + fn), "factor_recall")
"""Of the relevant fields, the share that is reported."""


# -- changes -----------------------------------------------------------------------------------


def _atom_sets(record: EpisodeRecord) -> tuple[set[Atom], set[Atom]] | None:
    """(reported, true) atoms; None unless the rule drifts and both assessments are completed."""
    reported = metrics.reported_atoms(record) if record.drifts else None
    return None if reported is None else (reported, metrics.true_atoms(record))


def _of_atoms(part: Callable[[set[Atom], set[Atom]], tuple[int, int]], name: str) -> Metric:
    """A share of atoms, pooled over eligible episodes."""

    def contribution(record: EpisodeRecord) -> Floats:
        sets = _atom_sets(record)
        return np.array((0, 0) if sets is None else part(*sets), dtype=np.float64)

    return Metric(name=name, contribution=contribution, value=_share)


CHANGE_PRECISION: Final = _of_atoms(
    lambda reported, true: (len(reported & true), len(reported)), "change_precision"
)
"""Of the atoms reported, the share that is true; nan where none is reported."""
CHANGE_RECALL: Final = _of_atoms(
    lambda reported, true: (len(reported & true), len(true)), "change_recall"
)
"""Of the three true atoms, the share that is reported."""
PRECISION_RECALL: Final = (FACTOR_PRECISION, FACTOR_RECALL, CHANGE_PRECISION, CHANGE_RECALL)


def _recovered(name: str, kinds: tuple[str, ...]) -> Metric:
    def part(reported: set[Atom], true: set[Atom]) -> tuple[int, int]:
        wanted = {atom for atom in true if atom[0] in kinds}
        return len(reported & wanted), len(wanted)

    return _of_atoms(part, f"recovered_{name}")


RECOVERED: Final = (
    _recovered("replacement", ("removal", "addition")),
    _recovered("removal", ("removal",)),
    _recovered("addition", ("addition",)),
    _recovered("reversal", ("reversal",)),
)
"""Shares of true atoms recovered under strict matching; a replacement is two atoms (table 10)."""


# -- episodes ----------------------------------------------------------------------------------


def episode_category(record: EpisodeRecord) -> EpisodeCategory | None:
    """Which parts of the transition the agent recovered; None where the episode is not eligible.

    Half a replacement counts as none. Source: paper, table 13.
    """
    sets = _atom_sets(record)
    if sets is None:
        return None
    missed = {atom[0] for atom in sets[1] - sets[0]}
    replacement, reversal = not missed & {"removal", "addition"}, "reversal" not in missed
    if replacement:
        return "complete" if reversal else "replacement_only"
    return "reversal_only" if reversal else "neither"


def is_unchanged(record: EpisodeRecord) -> bool:
    """Whether an eligible episode's two assessments name the same fields and directions."""
    return metrics.reported_atoms(record) == set()


def _episode_share(name: str, belongs: Callable[[EpisodeRecord], bool]) -> Metric:
    def contribution(record: EpisodeRecord) -> Floats:
        eligible = _atom_sets(record) is not None
        return np.array([eligible and belongs(record), eligible], dtype=np.float64)

    return Metric(name=name, contribution=contribution, value=_share)


def _category_share(category: EpisodeCategory) -> Metric:
    return _episode_share(
        f"episodes_{category}", lambda record: episode_category(record) == category
    )


EPISODE_CATEGORIES: Final[tuple[EpisodeCategory, ...]] = (
    "complete", "replacement_only", "reversal_only", "neither",
)  # fmt: skip
EPISODE_SHARES: Final = tuple(_category_share(category) for category in EPISODE_CATEGORIES)
"""Share of eligible episodes in each category; the four sum to 1."""
UNCHANGED: Final = _episode_share("episodes_unchanged", is_unchanged)
"""Share of eligible episodes whose second report repeats the first: part of `neither`."""
