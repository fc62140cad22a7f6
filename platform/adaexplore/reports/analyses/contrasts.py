"""Contrasts: two sweeps against each other, episode by episode.

A model is compared with itself where both sweeps have it (another prompt, version or protocol), and
with the other one where each sweep has a single model. Only episodes with equal hidden sides count.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from adaexplore.benchmark.scores import comparisons, metrics
from adaexplore.benchmark.scores.comparisons import Comparison, Pairs
from adaexplore.benchmark.scores.estimates import Estimate
from adaexplore.benchmark.scores.significance import holm
from adaexplore.experiments.tables import P, Table, Value
from adaexplore.reports import layouts
from adaexplore.reports.analyses import settings
from adaexplore.reports.evidence import Evidence, stream
from adaexplore.reports.sections import Analysis, Figure, listed, told

COMPARED: Final = (
    metrics.EXACT_ACCURACY, metrics.CALIBRATED_ACCURACY, metrics.UNIQUE_PROBES, metrics.RE_PROBES,
    metrics.CHANGE_RECOGNITION,
)  # fmt: skip

Found = dict[tuple[str, str, str], tuple[Pairs, Comparison]]
"""By (model or pair of models, setting, metric)."""


def name_of(evidence: Evidence) -> str:
    """The sweeps of evidence, for people."""
    return " and ".join(evidence.origin.sweeps)


def contrast(first: Evidence, second: Evidence) -> Analysis:
    """What the second has over the first, paired by episode."""
    one, other = name_of(first), name_of(second)
    blank = Analysis(
        key="comparison", title=f"{other} against {one}",
        question="On the same episodes, which of the two sweeps does better?",
    )  # fmt: skip
    matched = list(_matched(first, second))
    if not matched:
        return replace(blank, absent=_unmatched(first, second))
    found = dict(_compared(first, second, matched))
    if not found:
        return replace(
            blank,
            absent=f"sweeps {one} and {other} have no scored episode with the same hidden side in common",
        )
    adjusted = holm([comparison.test.p for _, comparison in found.values()])
    cas = {
        key[:2]: value for key, value in found.items() if key[2] == metrics.CALIBRATED_ACCURACY.name
    }
    return replace(
        blank,
        reading=_reading(found, adjusted),
        tables=(_table(found, adjusted, f"{other} (second) minus {one} (first)"),),
        figures=_figures(cas),
        warnings=settings.power_warnings(cas),
    )


def _table(found: Found, adjusted: Sequence[float], title: str) -> Table:
    rows: list[tuple[Value, ...]] = [
        (
            *key, c.difference.n, c.first, c.second, c.difference, P(c.test.p), P(p), c.rank_biserial,
            c.standardized, settings.detectable(pairs),
        )
        for (key, (pairs, c)), p in zip(found.items(), adjusted, strict=True)
    ]  # fmt: skip
    columns = (
        "model", "setting", "metric", "n", "first", "second", "difference", "p", "p_holm",
        "rank_biserial", "d_z", "detectable",
    )  # fmt: skip
    return Table(
        name="comparison", columns=columns, rows=tuple(rows), title=title,
        note="n counts episodes with equal hidden sides, seeds pooled. p: two-sided Wilcoxon signed-rank test; "
        "Holm over all rows. Detectable: the smallest difference found with 80 % probability.",
    )  # fmt: skip


Match = tuple[str, str, str, str]
"""(shown name, setting, model of the first, model of the second)."""


def _matched(first: Evidence, second: Evidence) -> Iterator[Match]:
    alone = len(first.models) == len(second.models) == 1
    for model, setting in first.records:
        if (model, setting) in second.records:
            yield model, setting, model, model
        elif (
            alone
            and (second.models[0], setting) in second.records
            and first.models != second.models
        ):
            yield f"{second.models[0]} against {model}", setting, model, second.models[0]


def _unmatched(first: Evidence, second: Evidence) -> str:
    sides = [
        f"{name_of(e)} has {listed([f'{m} under {s}' for m, s in e.records], 4)}"
        for e in (first, second)
    ]
    return f"no model and setting in common: {'; '.join(sides)}"


def _compared(
    first: Evidence, second: Evidence, matched: Sequence[Match]
) -> Iterator[tuple[tuple[str, str, str], tuple[Pairs, Comparison]]]:
    for shown, setting, one, other in matched:
        for metric in COMPARED:
            groups = first.records[one, setting], second.records[other, setting]
            pairs = comparisons.pair(metric, *groups).defined()
            if pairs.episodes:
                rng = stream("contrast", metric.name, shown, setting)
                yield (shown, setting, metric.name), (pairs, comparisons.compare(pairs, rng=rng))


def _reading(found: Found, adjusted: Sequence[float]) -> str:
    surely = [key for key, p in zip(found, adjusted, strict=True) if p < settings.ALPHA]
    if not surely:
        return f"None of the {len(found)} differences is significant after Holm's correction."
    largest = max(surely, key=lambda key: abs(found[key][1].rank_biserial.value))
    difference = found[largest][1].difference
    return (
        f"{len(surely)} of {len(found)} differences are significant after Holm's correction; the clearest is "
        f"{largest[2].replace('_', ' ')} of {largest[0]} under {largest[1]}, {told(difference, signed=True)}."
    )


def _figures(found: Mapping[tuple[str, str], tuple[Pairs, Comparison]]) -> tuple[Figure, ...]:
    panels: dict[str, dict[str, Estimate]] = {}
    for (model, setting), (_, comparison) in found.items():
        panels.setdefault(setting, {})[model] = comparison.difference
    figure = layouts.by_model(
        list(dict.fromkeys(model for model, _ in found)), panels, name="comparison",
        title="Difference in calibrated accuracy", x_label="difference in CA", marks=(0.0,),
        told="One row a model, one panel a setting; right of the dotted line the second sweep is better.",
    )  # fmt: skip
    return (figure,) if figure.drawn else ()
