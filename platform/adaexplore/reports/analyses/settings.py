"""Settings: what each ablation does to each model, tested in pairs of the same episodes.

Source: paper, tables 9 and 16, and the section on settings.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import isfinite
from typing import Final

import numpy as np

from adaexplore.benchmark.scores import comparisons, metrics, power
from adaexplore.benchmark.scores.comparisons import Comparison, Pairs
from adaexplore.benchmark.scores.estimates import Estimate
from adaexplore.benchmark.scores.significance import holm
from adaexplore.experiments.tables import BASELINE, INDEPENDENT, P, Table, Value
from adaexplore.reports import layouts
from adaexplore.reports.evidence import Evidence, stream
from adaexplore.reports.sections import Analysis, Figure, listed, shown, told

ALPHA: Final = 0.05
WORTH_FINDING: Final = 0.05
"""A difference of calibrated accuracy that a sweep should be able to find (a decision of ours): about
what the paper's settings make of the models on average."""
CONTROLLED: Final = "stationary"

Found = Mapping[tuple[str, str], tuple[Pairs, Comparison]]
"""Pairs and their comparison by (model, setting)."""


def ablations(evidence: Evidence) -> Analysis:
    """Every setting against the baseline, for each model and over models."""
    blank = Analysis(
        key="ablations", title="Settings against default",
        question="What do drift, evidence and forced probing do to each model?")  # fmt: skip
    found = _compared(evidence)
    if not found:
        return replace(
            blank,
            absent=f"no model has scored episodes both under {BASELINE} and under another setting of the "
            "same cases",
        )
    adjusted = dict(zip(found, holm([c.test.p for _, c in found.values()]), strict=True))
    surely = [key for key, p in adjusted.items() if p < ALPHA]
    table = comparison_table(
        "ablations", found, adjusted, ("setting", BASELINE),
        f"CA under each setting against {BASELINE}",
    )  # fmt: skip
    return replace(
        blank,
        reading=_reading(found, surely),
        tables=(table, _over_models(found)),
        figures=difference_figures(
            evidence, found, "ablations", f"Difference in CA from {BASELINE}"
        ),
        warnings=power_warnings(found),
    )


def _compared(evidence: Evidence) -> Found:
    found = {}
    for model, setting in evidence.records:
        base = evidence.records.get((model, BASELINE), ())
        if setting in (BASELINE, INDEPENDENT):
            continue
        pairs = evidence.pairs(metrics.CALIBRATED_ACCURACY, base, evidence.records[model, setting])
        if pairs.episodes:
            rng = stream("ablation", model, setting)
            found[model, setting] = (pairs, comparisons.compare(pairs, rng=rng))
    return found


def detectable(pairs: Pairs) -> float:
    """The smallest difference that these pairs could have shown with 80 % probability."""
    kept = pairs.defined()
    if not kept.episodes:
        return float("nan")
    first, second = kept.values()
    return power.detectable(np.asarray(second - first))


def comparison_table(
    name: str,
    found: Found,
    adjusted: Mapping[tuple[str, str], float],
    heads: tuple[str, str],
    title: str,
) -> Table:
    """One row a comparison: both values, the difference, the test and effect sizes.

    `heads` are the names of the second axis and of the first condition.
    """
    columns = (
        "model", heads[0], "n", f"ca_{heads[1]}", "ca", "difference", "p", "p_holm",
        "rank_biserial", "d_z", "detectable",
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = [
        (
            *key, c.difference.n, c.first, c.second, c.difference, P(c.test.p), P(adjusted[key]),
            c.rank_biserial, c.standardized, detectable(pairs),
        )
        for key, (pairs, c) in found.items()
    ]  # fmt: skip
    return Table(
        name=name, columns=columns, rows=tuple(rows), title=title,
        note="n counts episodes with equal hidden sides under both, seeds pooled. p is that of the "
        "two-sided Wilcoxon signed-rank test on episodes (zeros after Pratt, exact up to 400 pairs); "
        "p (Holm) is adjusted over all rows. Effect sizes: rank-biserial correlation and standardised "
        "mean difference d_z. Detectable: the smallest difference found with 80 % probability at this "
        "spread and n, before adjustment.",
    )  # fmt: skip


def difference_figures(
    evidence: Evidence, found: Found, name: str, title: str
) -> tuple[Figure, ...]:
    """Differences by model, one panel a name of the second axis."""
    panels: dict[str, dict[str, Estimate]] = {}
    for (model, other), (_, comparison) in found.items():
        panels.setdefault(other, {})[model] = comparison.difference
    figure = layouts.by_model(
        evidence.models, panels, name=name, title=title, x_label="difference in CA", marks=(0.0,),
        told="One row a model; right of the dotted line is better. 95 % intervals, paired by episode.",
    )  # fmt: skip
    return (figure,) if figure.drawn else ()


def _reading(found: Found, surely: list[tuple[str, str]]) -> str:
    if not surely:
        return f"None of the {len(found)} differences is significant after Holm's correction at {ALPHA:g}."
    largest = max(surely, key=lambda key: abs(found[key][1].difference.value))
    difference = told(found[largest][1].difference, signed=True)
    return (
        f"{len(surely)} of {len(found)} differences are significant after Holm's correction; the largest is "
        f"{largest[0]} under {largest[1]}, {difference}."
    )


def power_warnings(found: Found) -> tuple[str, ...]:
    """What is compared with so few episodes that a difference worth finding could be missed."""
    sizes = {key: detectable(pairs) for key, (pairs, _) in found.items()}
    weak = [key for key, size in sizes.items() if size > WORTH_FINDING]
    unknown = [key for key, size in sizes.items() if not isfinite(size)]
    lines = []
    if weak:
        most = max(weak, key=sizes.__getitem__)
        named = listed([f"{model} {other}" for model, other in weak], 4)
        lines.append(
            f"Underpowered: {len(weak)} of {len(found)} comparisons would miss a difference of "
            f"{WORTH_FINDING:g} with more than 20 % probability ({named}); {most[0]} {most[1]} shows only "
            f"differences of {shown(sizes[most], 2)} or more. Play more episodes."
        )
    if unknown:
        lines.append(
            f"{len(unknown)} of {len(found)} comparisons have too few or equal differences, so that nothing "
            "can be said of their power."
        )
    return tuple(lines)


def _over_models(found: Found) -> Table:
    grouped: dict[str, dict[str, Pairs]] = {}
    for (model, setting), (pairs, _) in found.items():
        grouped.setdefault(setting, {})[model] = pairs
    made = {
        setting: comparisons.over_models(pairs, rng=stream("over models", setting))
        for setting, pairs in grouped.items()
    }
    adjusted = holm([each.test.p for each in made.values()])
    rows: list[tuple[Value, ...]] = [
        (setting, each.difference.n, each.difference, P(each.test.p), P(p))
        for (setting, each), p in zip(made.items(), adjusted, strict=True)
    ]
    return Table(
        name="ablations_over_models", columns=("setting", "n", "difference", "p", "p_holm"),
        rows=tuple(rows), title="Over models",
        note="The mean of the models' differences, n of them; its interval draws episodes with all "
        "their models. The test takes models as the sample: with fewer than six, no p is below 0.05.",
    )  # fmt: skip


# -- how cases are drawn -----------------------------------------------------------------------


def independent_cases(evidence: Evidence) -> Analysis:
    """Cases drawn with control of flips against cases drawn freely, both without drift."""
    blank = Analysis(
        key="iid", title="Sampling of cases",
        question="Does it matter that half of the cases are chosen to flip?")  # fmt: skip
    found = dict(_freely_drawn(evidence))
    if not found:
        return replace(
            blank, absent=f"needs scored episodes under both {CONTROLLED} and {INDEPENDENT}"
        )
    adjusted = dict(zip(found, holm([c.test.p for _, c in found.values()]), strict=True))
    title = f"CA under {INDEPENDENT} against {CONTROLLED}"
    return replace(
        blank,
        reading=_largest(found),
        tables=(comparison_table("iid", found, adjusted, ("setting", CONTROLLED), title),),
        figures=difference_figures(evidence, found, "iid", f"Difference in CA from {CONTROLLED}"),
        warnings=power_warnings(found),
    )


def _largest(found: Found) -> str:
    sizes = [abs(c.difference.value) for _, c in found.values() if isfinite(c.difference.value)]
    if not sizes:
        return "No difference is defined."
    return f"The two differ by at most {shown(max(sizes))} in calibrated accuracy for any model."


def _freely_drawn(
    evidence: Evidence,
) -> Iterable[tuple[tuple[str, str], tuple[Pairs, Comparison]]]:
    for model in evidence.models:
        runs = [evidence.records.get((model, s), ()) for s in (CONTROLLED, INDEPENDENT)]
        metric = evidence.memory.of(metrics.CALIBRATED_ACCURACY)
        pairs = comparisons.pair(metric, *runs, same_cases=False)
        if pairs.episodes:
            rng = stream("iid", model)
            yield (model, INDEPENDENT), (pairs, comparisons.compare(pairs, rng=rng))
