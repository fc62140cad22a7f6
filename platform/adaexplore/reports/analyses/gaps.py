"""Gaps: what missing episode runs could hide, and whether the compared models lose as many.

Source: the failure policy of the platform's design; `scores.missingness` says how it is done.
"""

from dataclasses import replace
from math import isfinite
from typing import Final

from adaexplore.benchmark.scores import estimates, missingness
from adaexplore.benchmark.scores.metrics import Metric
from adaexplore.benchmark.scores.missingness import FailurePolicies, Group, MissingnessTest
from adaexplore.experiments.tables import P, Table, Value
from adaexplore.reports.evidence import Evidence, stream
from adaexplore.reports.sections import Analysis, listed, shown, shown_p

WAYS: Final = ("excluded", "as_zero", "worst", "best")


def _plans(evidence: Evidence) -> dict[tuple[str, str], Group]:
    return {group: evidence.plan_of(group) for group in evidence.records}


def policies(evidence: Evidence) -> Analysis:
    """Scores told three ways where runs are missing: excluded, as zero, and bounds."""
    blank = Analysis(
        key="failures", title="Missing runs, told three ways",
        question="Could the runs that failed change the picture?",
    )  # fmt: skip
    gaps = {group: plan for group, plan in _plans(evidence).items() if plan.missing()}
    if not gaps:
        return replace(blank, absent="no planned episode run is missing, so that all ways agree")
    rows: list[tuple[Value, ...]] = []
    widths: dict[str, float] = {}
    for group, plan in gaps.items():
        for metric in missingness.BOUNDED:
            found = _told(evidence, group, plan, metric)
            ways = [getattr(found, way) for way in WAYS]
            rows.append((*group, metric.name, found.planned, found.missing, found.unknown, *ways))
            if metric.name == "ca" and isfinite(found.best.value):
                widths[" under ".join(group)] = found.best.value - found.worst.value
    table = Table(
        name="failures", columns=("model", "setting", "metric", "planned", "missing", "unknown", *WAYS),
        rows=tuple(rows), title="Scores by treatment of missing runs",
        note="Excluded: the number of every other table. As zero: nothing answered. Worst and best: the bounds "
        "that hold whatever the missing runs were. Unknown: missing runs that nobody completed, which no "
        "number here covers. n counts the runs in each number.",
    )  # fmt: skip
    return replace(blank, reading=_width(widths), tables=(table,))


def _told(
    evidence: Evidence, group: tuple[str, str], plan: Group, metric: Metric
) -> FailurePolicies:
    of_setting = [r for (_, s), found in evidence.records.items() if s == group[1] for r in found]
    known = missingness.known_episodes(of_setting)
    return missingness.by_policy(metric, plan, known, rng=stream("policy", metric.name, *group))


def _width(widths: dict[str, float]) -> str:
    if not widths:
        return "Nothing can be said of the missing runs: nobody completed their episodes."
    widest = max(widths, key=widths.__getitem__)
    return f"The bounds of calibrated accuracy lie furthest apart for {widest}, by {shown(widths[widest], 2)}."


def equal_missingness(evidence: Evidence) -> Analysis:
    """A test that the compared models miss episodes equally often, under each setting."""
    blank = Analysis(
        key="missingness", title="Are as many runs missing for every model?",
        question="Scores of different gaps cannot simply be compared: are the gaps alike?",
    )  # fmt: skip
    plans = _plans(evidence)
    found = {
        setting: missingness.equal_missingness(
            {m: plan for (m, s), plan in plans.items() if s == setting},
            rng=stream("missing", setting),
        )
        for setting in evidence.settings
    }
    if all(test.n < 2 for test in found.values()):
        return replace(blank, absent="needs two models or more under one setting")
    unequal = [setting for setting, test in found.items() if test.p < 0.05]
    warning = (
        f"Models miss episodes unequally often under {listed(unequal)}: compare them with care."
    )
    return replace(
        blank,
        reading=_missing_reading({s: t.p for s, t in found.items()}, unequal),
        tables=(*_shares(found), *_pairs(found)),
        warnings=(warning,) if unequal else (),
    )


def _shares(found: dict[str, MissingnessTest]) -> tuple[Table, Table]:
    rates: list[tuple[Value, ...]] = [
        (model, setting, rate)
        for setting, test in found.items()
        for model, rate in test.rates.items()
    ]
    shares = Table(
        name="missing", columns=("model", "setting", "missing_share"), rows=tuple(rates),
        title="Share of episodes with a missing run", note="Exact intervals; n counts episodes.",
    )  # fmt: skip
    tests = Table(
        name="missing_tests", columns=("setting", "models", "p"),
        rows=tuple((s, t.n, P(t.p)) for s, t in found.items()), title="Equal shares over all models",
        note="Chi-squared statistic with its distribution given all totals, by simulation.",
    )  # fmt: skip
    return shares, tests


def _pairs(found: dict[str, MissingnessTest]) -> tuple[Table, ...]:
    """Pairs of models with any sign of a difference; none where there is none."""
    rows: list[tuple[Value, ...]] = [
        (setting, pair.first, pair.second, P(pair.p), P(pair.p_holm))
        for setting, test in found.items()
        for pair in test.pairs
        if pair.p_holm < 1.0
    ]
    table = Table(
        name="missing_pairs", columns=("setting", "first", "second", "p", "p_holm"), rows=tuple(rows),
        title="Pairs of models that differ",
        note="Fisher's exact test, adjusted after Holm over the pairs of a setting; pairs at 1 are left out.",
    )  # fmt: skip
    return (table,) if rows else ()


def _missing_reading(found: dict[str, float], unequal: list[str]) -> str:
    if not unequal:
        return "No setting shows that models miss episodes unequally often at 0.05."
    told = [f"{setting} (p {shown_p(found[setting])})" for setting in unequal]
    return f"Models miss episodes unequally often under {listed(told)}."


def missing_counts(evidence: Evidence) -> dict[tuple[str, str], tuple[int, int, int]]:
    """(planned, unscored, without any result) runs by group, where any is missing."""
    counts = {}
    for group, records in evidence.records.items():
        planned = sum(evidence.planned.get(group, {}).values())
        unscored = len(records) - len(estimates.scored(records))
        if unscored or planned > len(records):
            counts[group] = (planned, unscored, planned - len(records))
    return counts
