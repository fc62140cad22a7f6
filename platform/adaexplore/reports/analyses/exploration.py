"""Exploration: does asking again what was known before the drift go with noticing the drift?

Within models the points are episode runs; a model whose change recognition is at the floor has nothing
left to vary, and is shown apart. Across models the points are models.
Source: paper, tables 3 and 8.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from math import inf, isfinite
from typing import Final

import numpy as np

from adaexplore.benchmark.scores import correlations, metrics, model_correlations
from adaexplore.benchmark.scores.correlations import LEAST, Correlation, Points
from adaexplore.benchmark.scores.estimates import Estimate, draws
from adaexplore.benchmark.scores.metrics import Metric
from adaexplore.benchmark.scores.model_correlations import (
    RECOGNITION_FLOOR,
    Groups,
    OutcomeCorrelations,
)
from adaexplore.benchmark.scores.significance import holm
from adaexplore.benchmark.world.fields import Floats
from adaexplore.experiments.tables import P, Table, Value
from adaexplore.reports.evidence import Evidence, stream
from adaexplore.reports.sections import Analysis, Figure, Panel, Point, Series, listed, told

MEASURES: Final = {
    "raw": metrics.RE_PROBES,
    "normalised": correlations.NORMALISED_RE_PROBES,
}
CR: Final = metrics.CHANGE_RECOGNITION
POOLED: Final = "all above the floor, centred"
BINS: Final = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, inf)
"""Edges of the groups of episodes in the figure, by points asked again."""
FEWEST: Final = 5
"""Episode runs below which a group is not drawn."""

Found = Mapping[tuple[str, str], Correlation]
"""Correlations by (row, measure)."""


def within(evidence: Evidence) -> Analysis:
    """Re-probing against change recognition over the episode runs of each model, and pooled."""
    blank = Analysis(
        key="reprobing_within", title="Re-probing and noticing, within models",
        question="In episodes where a model asks again, does it recognise the change better?",
    )  # fmt: skip
    if evidence.focus is None:
        return replace(blank, absent="no scored episode run has a drift")
    groups = evidence.under(evidence.focus)
    above, below = model_correlations.split_by_floor(groups)
    found = _within(evidence, groups, above)
    if not any(isfinite(c.estimate.value) for c in found.values()):
        return replace(
            blank,
            absent="no correlation is defined: re-probing or change recognition does not vary in any model",
        )
    note = (f"Below the floor, where nothing is left to vary: {listed(below)}.",) if below else ()
    return replace(
        blank,
        reading=_within_reading(found, above),
        tables=(_within_table(evidence, found, above, groups),),
        figures=_binned(evidence, groups),
        warnings=note,
    )


def _points(evidence: Evidence, groups: Groups, name: str) -> dict[str, Points]:
    x, y = evidence.memory.of(MEASURES[name]), evidence.memory.of(CR)
    return {model: correlations.points(x, y, runs) for model, runs in groups.items()}


def _within(
    evidence: Evidence, groups: Groups, above: tuple[str, ...]
) -> dict[tuple[str, str], Correlation]:
    found = {}
    for name in MEASURES:
        points = _points(evidence, groups, name)
        for model, own in points.items():
            found[model, name] = correlations.within(own, rng=stream("within", name, model))
        pooled = {model: points[model] for model in above}
        found[POOLED, name] = correlations.pooled(pooled, rng=stream("pooled", name))
    return found


def _within_table(
    evidence: Evidence, found: Found, above: tuple[str, ...], groups: Groups
) -> Table:
    adjusted = {
        name: dict(
            zip(
                [*groups, POOLED],
                holm([found[row, name].p for row in (*groups, POOLED)]),
                strict=True,
            )
        )
        for name in MEASURES
    }
    points = _points(evidence, groups, "raw")
    rows: list[tuple[Value, ...]] = []
    for row in (*groups, POOLED):
        cells: list[Value] = []
        for name in MEASURES:
            cells += [found[row, name].estimate, P(found[row, name].p), P(adjusted[name][row])]
        rank = (
            correlations.ranked(points[row], rng=stream("ranked", row)).estimate
            if row in points
            else Estimate.undefined(0)
        )
        place = "above" if row in above else "below" if row in groups else ""
        rows.append((row, place, *cells, rank))
    columns = (
        "model", "floor", "r", "p", "p_holm", "r_normalised", "p_normalised", "p_holm_normalised", "rho",
    )  # fmt: skip
    return Table(
        name="reprobing_within", columns=columns, rows=tuple(rows),
        title=f"Correlation of re-probes with change recognition under {evidence.focus}",
        note="r: Pearson's, of re-probed points (raw) and of their share in the points known before the change "
        "(normalised, undefined where none were). rho: Spearman's, raw. p: slope with errors clustered by "
        f"episode; Holm over the rows. Floor: change recognition of {RECOGNITION_FLOOR:g}. n counts runs.",
    )  # fmt: skip


def _within_reading(found: Found, above: tuple[str, ...]) -> str:
    if not above:
        return "No model's change recognition is above the floor."
    positive = [m for m in above if found[m, "raw"].p < 0.05 and found[m, "raw"].estimate.value > 0]
    pooled = found[POOLED, "raw"].estimate
    return (
        f"{len(positive)} of {len(above)} models above the floor show a positive correlation at 0.05 before "
        f"correction; pooled and centred by model it is {told(pooled, signed=True)}."
    )


def _binned(evidence: Evidence, groups: Groups) -> tuple[Figure, ...]:
    series = []
    for model, points in _points(evidence, groups, "raw").items():
        marks = tuple(_marks(points, model))
        if len(marks) > 1:
            look = evidence.models.index(model)
            series.append(Series(name=model, look=look, points=marks))
    figure = Figure(
        name="reprobing_within", kind="curves", title="Change recognition by points asked again",
        told="One line a model over groups of its episode runs, with 95 % intervals; groups of "
        f"fewer than {FEWEST} runs are left out.",
        panels=(Panel(title="", series=tuple(series)),),
        x_label="points from before the drift asked again", y_label="change recognition",
    )  # fmt: skip
    return (figure,) if figure.drawn else ()


def _marks(points: Points, model: str) -> list[Point]:
    marks = []
    for low, high in pairwise(BINS):
        inside = (points.x >= low) & (points.x < high)
        if inside.sum() >= FEWEST:
            episodes = [e for e, kept in zip(points.episodes, inside, strict=True) if kept]
            value = _mean(points.y[inside], episodes, model, str(low))
            marks.append(Point(x=float(points.x[inside].mean()), value=value))
    return marks


def _mean(values: Floats, episodes: list[str], *names: str) -> Estimate:
    counts = draws(episodes, stream("bin", *names))
    resamples = metrics.ratio(counts @ values, counts.sum(axis=-1))
    return Estimate.resampled(float(np.mean(values)), resamples, len(values))


# -- across models -----------------------------------------------------------------------------


def across(evidence: Evidence) -> Analysis:
    """Re-probing against change recognition, one point a model."""
    blank = Analysis(
        key="reprobing_across", title="Re-probing and noticing, across models",
        question="Do the models that ask again more recognise the change better?",
    )  # fmt: skip
    groups = evidence.under(evidence.focus or "")
    if len(groups) < LEAST:
        return replace(blank, absent=_too_few(groups))
    found = {
        name: model_correlations.across(
            evidence.memory.of(metric), evidence.memory.of(CR), groups, rng=stream("across", name)
        )
        for name, metric in MEASURES.items()
    }
    rows = tuple((name, c.estimate, P(c.p)) for name, c in found.items())
    table = Table(
        name="reprobing_across", columns=("re_probes", "r", "p"), rows=rows,
        title="Correlation of models' re-probes with their change recognition",
        note="n counts models. The interval draws episodes, so it speaks of these models; p takes the "
        "models as a sample.",
    )  # fmt: skip
    value = found["raw"].estimate
    reading = (
        f"Over {value.n} models the correlation is {told(value, signed=True)}."
        if isfinite(value.value)
        else "The correlation is undefined: one side does not vary over models."
    )
    return replace(blank, reading=reading, tables=(table,), figures=_scattered(evidence, groups))


def _too_few(groups: Groups) -> str:
    return f"needs {LEAST} models or more with scored episodes under a drift, got {len(groups)}"


def _scattered(evidence: Evidence, groups: Groups) -> tuple[Figure, ...]:
    known = evidence.scores()
    series = []
    for model in groups:
        x, y = (known[(model, evidence.focus or ""), m.name] for m in (metrics.RE_PROBES, CR))
        if isfinite(x.value) and isfinite(y.value):
            point = Point(x=x.value, value=y, across=x)
            series.append(Series(name=model, look=evidence.models.index(model), points=(point,)))
    figure = Figure(
        name="reprobing_across", kind="scatter", title="Re-probes and change recognition of models",
        told="One mark a model, with 95 % intervals both ways.",
        panels=(Panel(title="", series=tuple(series)),), x_label="mean re-probes an episode",
        y_label="change recognition",
    )  # fmt: skip
    return (figure,) if figure.drawn else ()


CORRELATED: Final[tuple[Metric, ...]] = (
    metrics.UNIQUE_PROBES, metrics.RE_PROBES, metrics.FACTOR_RECOGNITION, metrics.CHANGE_RECOGNITION,
)  # fmt: skip


def with_outcomes(evidence: Evidence) -> Analysis:
    """Which metrics separate models that do well from those that do not."""
    blank = Analysis(
        key="model_correlations", title="Metrics and outcomes, across models",
        question="Which metrics separate strong models from weak ones?",
    )  # fmt: skip
    groups = evidence.under(evidence.focus or "")
    if len(groups) < LEAST:
        return replace(blank, absent=_too_few(groups))
    found = [_with_outcomes(evidence, groups, m) for m in CORRELATED]
    table = Table(
        name="model_correlations", columns=("metric", "r_ea", "p_ea", "r_ca", "p_ca", "average"),
        rows=tuple((c.metric, c.ea.estimate, P(c.ea.p), c.ca.estimate, P(c.ca.p), c.average) for c in found),
        title="Correlations of metrics with exact and calibrated accuracy over models",
        note="n counts models; the average is that of the two coefficients. p takes models as a sample and "
        "is not adjusted: with so few models it is a hint.",
    )  # fmt: skip
    averages = {c.metric.replace("_", " "): c.average for c in found if isfinite(c.average.value)}
    if not averages:
        return replace(blank, reading="No correlation is defined.", tables=(table,))
    best = max(averages, key=lambda name: averages[name].value)
    reading = (
        f"Of these metrics, {best} goes with the outcomes most, "
        f"{told(averages[best], signed=True)} on average."
    )
    return replace(blank, reading=reading, tables=(table,))


def _with_outcomes(evidence: Evidence, groups: Groups, metric: Metric) -> OutcomeCorrelations:
    ea, ca = (evidence.memory.of(outcome) for outcome in model_correlations.OUTCOMES)
    own, rng = evidence.memory.of(metric), stream("outcomes", metric.name)
    return model_correlations.with_outcomes(own, groups, rng=rng, outcomes=(ea, ca))
