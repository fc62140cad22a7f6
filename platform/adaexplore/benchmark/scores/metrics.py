"""The six metrics of the paper, and what they are pooled from.

Every metric of a cell is a function of sums over its episodes: accuracies pool cases, factor
recognition pools counts, the others are means over episodes. So each metric is a pair: what one
episode contributes (a vector), and how the summed vector becomes the value. The same pair serves the
estimate, its bootstrap interval (`statistics`) and every breakdown. Undefined is nan, never 0.
Source: paper, appendix on metrics; the form of calibrated accuracy is a decision of ours.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from adaexplore.benchmark.game.assessment import Assessment, Phase
from adaexplore.benchmark.game.records import CaseRecord, EpisodeRecord
from adaexplore.benchmark.world.fields import Floats

Atom = tuple[str, str, int, int]
"""(kind, field, direction before, direction after); 0 where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric: what an episode contributes and how contributions become the value."""

    name: str
    contribution: Callable[[EpisodeRecord], Floats]
    """Shape (k,): sums over the episode's cases, probes or assessments."""
    value: Callable[[Floats], Floats]
    """Values, shape (...), of summed contributions, shape (..., k); nan where undefined."""


def contributions(metric: Metric, records: Iterable[EpisodeRecord]) -> Floats:
    """Contributions of episodes, shape (n, k)."""
    return np.asarray([metric.contribution(record) for record in records], dtype=np.float64)


def value(metric: Metric, records: Iterable[EpisodeRecord]) -> float:
    """The metric over episodes; nan when there are none or it is undefined for them."""
    rows = contributions(metric, records)
    return float(metric.value(rows.sum(axis=0))) if len(rows) else float("nan")


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Quotient, nan where the denominator is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(denominator == 0.0, np.nan, numerator / denominator))


# -- end-to-end outcomes -----------------------------------------------------------------------


def is_best(case: CaseRecord) -> bool:
    """Whether the chosen action is the best one; an unanswered case is not."""
    return case.action is not None and case.utilities[case.action] == max(case.utilities)


def case_rows(cases: Iterable[CaseRecord]) -> Floats:
    """(best choice, p, b, unanswered, 1) of each case, shape (n, 5).

    p is the share of the possible gain that the choice took, `(u(chosen) - min u) / (max u - min u)`,
    and b what chance would take, its mean over the four actions. An unanswered case has utility 0, and
    the utilities sum to 0, so its p is b.
    """
    counted = list(cases)
    rows = np.ones((len(counted), 5))
    if not counted:
        return rows
    utilities = np.array([case.utilities for case in counted])
    low, high = utilities.min(axis=1), utilities.max(axis=1)
    total = sum(utilities.T)  # one action after another: the same bits everywhere
    mean = total / utilities.shape[1]
    unanswered = np.array([case.action is None for case in counted])
    taken = utilities[np.arange(len(counted)), [case.action or 0 for case in counted]]
    rows[:, 0] = (taken == high) & ~unanswered
    rows[:, 1] = (np.where(unanswered, mean, taken) - low) / (high - low)
    rows[:, 2] = (mean - low) / (high - low)
    rows[:, 3] = unanswered
    return rows


def accuracy_sums(cases: Iterable[CaseRecord]) -> Floats:
    """(best choices, sum of p, sum of b, unanswered, cases), the sums both accuracies need."""
    sums: Floats = case_rows(cases).sum(axis=0)
    return sums


def exact_accuracy_value(sums: Floats) -> Floats:
    """Exact accuracy of `accuracy_sums`, shape (..., 5)."""
    return ratio(sums[..., 0], sums[..., 4])


def calibrated_accuracy_value(sums: Floats) -> Floats:
    """Calibrated accuracy of `accuracy_sums`: `(mean p - mean b) / (1 - mean b)`."""
    return ratio(sums[..., 1] - sums[..., 2], sums[..., 4] - sums[..., 2])


def _case_sums(record: EpisodeRecord) -> Floats:
    return accuracy_sums(record.cases)


EXACT_ACCURACY: Final = Metric(name="ea", contribution=_case_sums, value=exact_accuracy_value)
CALIBRATED_ACCURACY: Final = Metric(
    name="ca", contribution=_case_sums, value=calibrated_accuracy_value
)
UNANSWERED: Final = Metric(
    name="unanswered",
    contribution=_case_sums,
    value=lambda sums: ratio(sums[..., 3], sums[..., 4]),
)


# -- exploration -------------------------------------------------------------------------------


def probe_points(record: EpisodeRecord) -> tuple[set[tuple[int, ...]], set[tuple[int, ...]]]:
    """Distinct probe vectors (before, after) the change; without drift all are in the first."""
    before: set[tuple[int, ...]] = set()
    after: set[tuple[int, ...]] = set()
    for probe in record.probes:
        late = record.drifts and probe.batch_number > record.change_batch
        (after if late else before).add(probe.row)
    return before, after


def _unique_probes(record: EpisodeRecord) -> Floats:
    before, after = probe_points(record)
    return np.array([len(before) + len(after), 1.0])


def _re_probes(record: EpisodeRecord) -> Floats:
    before, after = probe_points(record)
    return np.array([len(before & after), 1.0]) if record.drifts else np.zeros(2)


UNIQUE_PROBES: Final = Metric(
    name="unique_probes", contribution=_unique_probes, value=lambda s: ratio(s[..., 0], s[..., 1])
)
RE_PROBES: Final = Metric(
    name="re_probes", contribution=_re_probes, value=lambda s: ratio(s[..., 0], s[..., 1])
)


# -- recognition -------------------------------------------------------------------------------


def completed(record: EpisodeRecord, phase: Phase) -> Assessment | None:
    """The completed assessment of a phase, or None: missing ones never enter a pool."""
    for assessment in record.assessments:
        if assessment.phase == phase and assessment.status == "completed":
            return assessment
    return None


def factor_counts(record: EpisodeRecord, phase: Phase) -> tuple[int, int, int]:
    """(true positives, false positives, false negatives) of the fields reported in a phase."""
    assessment = completed(record, phase)
    if assessment is None or phase not in record.truth:
        return 0, 0, 0
    reported, true = set(assessment.directions), set(record.truth[phase])
    return len(reported & true), len(reported - true), len(true - reported)


def _factor_sums(record: EpisodeRecord) -> Floats:
    """Counts of both phases, and whether the episode has two phases."""
    counts = (*factor_counts(record, "pre"), *factor_counts(record, "post"))
    return np.array([*counts, float(record.drifts)])


def f1(true_positives: Floats, false_positives: Floats, false_negatives: Floats) -> Floats:
    """F1 of pooled counts; nan where there is nothing to find and nothing reported."""
    return ratio(2.0 * true_positives, 2.0 * true_positives + false_positives + false_negatives)


def _factor_value(sums: Floats) -> Floats:
    pre = f1(sums[..., 0], sums[..., 1], sums[..., 2])
    post = f1(sums[..., 3], sums[..., 4], sums[..., 5])
    return np.where(sums[..., 6] > 0.0, (pre + post) / 2.0, post)


FACTOR_RECOGNITION: Final = Metric(
    name="factor_recognition", contribution=_factor_sums, value=_factor_value
)


def atoms(before: dict[str, int], after: dict[str, int]) -> set[Atom]:
    """Atomic changes between two sets of directed fields: removals, additions, reversals."""
    removed = {("removal", f, before[f], 0) for f in before.keys() - after.keys()}
    added = {("addition", f, 0, after[f]) for f in after.keys() - before.keys()}
    kept = before.keys() & after.keys()
    reversed_ = {("reversal", f, before[f], after[f]) for f in kept if before[f] != after[f]}
    return removed | added | reversed_


def true_atoms(record: EpisodeRecord) -> set[Atom]:
    """The atoms of the episode's transition: always three where the rule drifts."""
    return atoms(record.truth["pre"], record.truth["post"])


def reported_atoms(record: EpisodeRecord) -> set[Atom] | None:
    """The atoms between the two assessments; None unless both are completed."""
    pre, post = completed(record, "pre"), completed(record, "post")
    return None if pre is None or post is None else atoms(pre.directions, post.directions)


def change_f1(record: EpisodeRecord) -> float:
    """Set F1 of the reported atoms under strict matching; nan unless both are assessed."""
    reported = reported_atoms(record) if record.drifts else None
    if reported is None:
        return float("nan")
    true = true_atoms(record)
    return 2.0 * len(reported & true) / (len(reported) + len(true))


def _change_sums(record: EpisodeRecord) -> Floats:
    score = change_f1(record)
    return np.zeros(2) if np.isnan(score) else np.array([score, 1.0])


CHANGE_RECOGNITION: Final = Metric(
    name="change_recognition",
    contribution=_change_sums,
    value=lambda s: ratio(s[..., 0], s[..., 1]),
)


def _completion_sums(record: EpisodeRecord) -> Floats:
    phases: tuple[Phase, ...] = ("pre", "post") if record.drifts else ("post",)
    done = sum(completed(record, phase) is not None for phase in phases)
    return np.array([done, len(phases), done == len(phases), 1.0])


ASSESSMENT_COMPLETION: Final = Metric(
    name="assessment_completion",
    contribution=_completion_sums,
    value=lambda s: ratio(s[..., 0], s[..., 1]),
)
PAIRED_COMPLETION: Final = Metric(
    name="paired_completion",
    contribution=lambda r: _completion_sums(r) if r.drifts else np.zeros(4),
    value=lambda s: ratio(s[..., 2], s[..., 3]),
)

MAIN: Final = (
    EXACT_ACCURACY, CALIBRATED_ACCURACY, UNIQUE_PROBES, RE_PROBES, FACTOR_RECOGNITION,
    CHANGE_RECOGNITION,
)  # fmt: skip
"""The columns of the main table, in order."""
BESIDE: Final = (UNANSWERED, ASSESSMENT_COMPLETION, PAIRED_COMPLETION)
"""Rates that are always reported beside them."""


# -- curves ------------------------------------------------------------------------------------

OFFSETS: Final = (-3, -2, -1, 0, 1, 2, 3, 4)
"""Batches relative to the change batch (0 is the last one before the change takes effect): the four
before and the four after that every episode has, with change batches 5 to 8 of 12."""


def at_offset(offset: int) -> Metric:
    """Calibrated accuracy of the batch at an offset from the change batch."""
    return Metric(
        name=f"ca_at_{offset:+d}",
        contribution=lambda r: accuracy_sums(
            case for case in r.cases if case.batch_number == r.change_batch + offset
        ),
        value=calibrated_accuracy_value,
    )
