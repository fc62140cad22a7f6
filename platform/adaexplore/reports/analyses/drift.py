"""Drift: the course of accuracy around the change, what is lost at it and what comes back.

Source: paper, figure 3 and the analysis beside it.
"""

from dataclasses import replace
from math import isfinite

from adaexplore.benchmark.scores import adaptation
from adaexplore.benchmark.scores.adaptation import Adaptation
from adaexplore.benchmark.scores.estimates import Estimate
from adaexplore.benchmark.scores.significance import holm
from adaexplore.experiments.tables import P, Table, Value
from adaexplore.reports import layouts
from adaexplore.reports.evidence import Evidence, stream
from adaexplore.reports.sections import Analysis, Figure, Panel, Point, Series, extremes, told

PLACEBO = "stationary"


def curves(evidence: Evidence) -> Analysis:
    """Calibrated accuracy by batch, aligned at the change."""
    blank = Analysis(
        key="curves", title="Accuracy around the drift",
        question="How far do models climb, and how deep do they fall when the rule drifts?")  # fmt: skip
    if not evidence.scored:
        return replace(blank, absent="no episode run is scored yet")
    rows = [
        (*group, point.offset, point.accuracy)
        for group, runs in evidence.records.items()
        for point in adaptation.curve(runs, rng=stream("curve", *group))
    ]
    played = [row for row in rows if row[3].n]
    table = Table(
        name="curves", columns=("model", "setting", "offset", "ca"), rows=tuple(played),
        title="Calibrated accuracy by batches after the change",
        note="Offset 0 is the last batch under the old rule, 1 the first under the new one. Without drift "
        "the same batches of the same cases are shown. n counts episode runs.",
    )  # fmt: skip
    figure = Figure(
        name="curves", kind="curves", title="Calibrated accuracy, aligned at the change",
        told="One panel a setting, one line with its 95 % band a model; the dashed line is the drift.",
        panels=tuple(
            _panel(evidence, s, played) for s in evidence.settings if any(r[1] == s for r in played)
        ),
        x_label="batches after the change", y_label="calibrated accuracy", marks=(0.0,), change=0.5,
    )  # fmt: skip
    figures = (figure,) if figure.drawn else ()
    return replace(blank, reading=_climb(evidence, played), tables=(table,), figures=figures)


def _climb(evidence: Evidence, rows: list[tuple[str, str, int, Estimate]]) -> str:
    aligned = (
        "Every episode is aligned at its own change, on the four batches before it and the four after it "
        "that all episodes have."
    )
    last = {r[0]: r[3] for r in rows if r[1] == evidence.focus and r[2] == 0}
    ends = extremes(last)
    if ends is None:
        return aligned
    best = ends[0]
    first = next(r[3] for r in rows if r[:3] == (best, evidence.focus, 1))
    return (
        f"{aligned} Under {evidence.focus}, {best} stands highest in the last batch before the drift, at "
        f"{told(last[best])}, and at {told(first)} in the first one after it."
    )


def _panel(evidence: Evidence, setting: str, rows: list[tuple[str, str, int, Estimate]]) -> Panel:
    series = []
    for look, model in enumerate(evidence.models):
        points = tuple(Point(x=r[2], value=r[3]) for r in rows if r[:2] == (model, setting))
        if points:
            series.append(Series(name=model, look=look, points=points))
    return Panel(title=setting, series=tuple(series))


# -- what is lost and what comes back ----------------------------------------------------------


def drop_and_recovery(evidence: Evidence) -> Analysis:
    """The drop at the change and the recovery from it, tested; without drift as a placebo."""
    blank = Analysis(
        key="drop_and_recovery", title="Drop and recovery",
        question="What does the drift cost at once, and how much of it comes back?")  # fmt: skip
    if evidence.focus is None:
        return replace(blank, absent="no scored episode run has a drift")
    found = {
        (model, setting): adaptation.adaptation(runs, rng=stream("adaptation", model, setting))
        for setting in dict.fromkeys((evidence.focus, PLACEBO))
        for model, runs in evidence.under(setting).items()
    }
    return replace(
        blank,
        reading=_reading(found, evidence.focus),
        tables=(_levels(found), _differences(found)),
        figures=_figures(evidence, found, evidence.focus),
    )


Found = dict[tuple[str, str], Adaptation]


def _levels(found: Found) -> Table:
    return Table(
        name="drop_levels", columns=("model", "setting", "plateau", "first_after", "final"),
        rows=tuple((*key, a.plateau, a.first_after, a.final) for key, a in found.items()),
        title="Calibrated accuracy in three windows",
        note=f"Plateau: the last {adaptation.PLATEAU_BATCHES} batches up to the change. First after: the first "
        f"batch after it. Final: the last {adaptation.FINAL_BATCHES} batches. n counts episode runs.",
    )  # fmt: skip


def _differences(found: Found) -> Table:
    adjusted = iter(holm([p for a in found.values() for p in a.p_values]))
    rows: list[tuple[Value, ...]] = []
    for key, a in found.items():
        cells: list[Value] = []
        for comparison in (a.drop, a.regained, a.recovery):
            cells += [comparison.difference, P(next(adjusted)), comparison.rank_biserial]
        rows.append((*key, a.drop.difference.n, *cells))
    columns = (
        "model", "setting", "n", "drop", "p_drop", "rank_biserial_drop", "regained", "p_regained",
        "rank_biserial_regained", "remaining", "p_remaining", "rank_biserial_remaining",
    )  # fmt: skip
    return Table(
        name="drop_and_recovery", columns=columns, rows=tuple(rows), title="Differences between the windows",
        note="Drop: first after minus plateau. Regained: final minus first after. Remaining: final minus "
        "plateau, so that 0 is full recovery. All paired within episodes; each p is that of a Wilcoxon "
        "signed-rank test, adjusted after Holm over the whole table. n counts episodes. "
        f"{PLACEBO} has the same cases and no drift: it is the placebo.",
    )  # fmt: skip


def _reading(found: Found, setting: str) -> str:
    own = {
        model: a
        for (model, s), a in found.items()
        if s == setting and isfinite(a.drop.difference.value)
    }
    if not own:
        return "No model has scored batches on both sides of the change."
    deepest = min(own, key=lambda model: own[model].drop.difference.value)
    a = own[deepest]
    return (
        f"Under {setting} the first batch after the drift costs {deepest} most: "
        f"{told(a.drop.difference, signed=True)} of calibrated accuracy; at the end "
        f"{told(a.recovery.difference, signed=True)} remain against its plateau."
    )


def _figures(evidence: Evidence, found: Found, setting: str) -> tuple[Figure, ...]:
    own = {model: a for (model, s), a in found.items() if s == setting}
    panels = {
        "drop at the change": {m: a.drop.difference for m, a in own.items()},
        "remaining at the end": {m: a.recovery.difference for m, a in own.items()},
    }
    figure = layouts.by_model(
        evidence.models, panels, name="drop_and_recovery", title=f"Drop and what remains of it under {setting}",
        told="One row a model; left of the dotted line accuracy is lost against the plateau. 95 % intervals.",
        x_label="difference in CA", marks=(0.0,),
    )  # fmt: skip
    return (figure,) if figure.drawn else ()
