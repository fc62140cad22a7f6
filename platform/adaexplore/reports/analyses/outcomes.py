"""Outcomes: the main table, and the same numbers by rule family and by domain.

Source: paper, table 2 and the appendix on metrics.
"""

from collections.abc import Callable
from dataclasses import replace
from math import isfinite, nan
from typing import Final

from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.scores import estimates, metrics
from adaexplore.benchmark.scores.estimates import Estimate
from adaexplore.experiments.tables import Table, Value
from adaexplore.reports import layouts
from adaexplore.reports.evidence import Evidence
from adaexplore.reports.sections import Analysis, Figure, counted, extremes, listed, told

HEADLINES: Final = {
    "ea": "exact accuracy",
    "ca": "calibrated accuracy",
    "factor_recognition": "factor recognition",
    "change_recognition": "change recognition",
}
"""Metrics that a figure shows side by side: all lie between 0 and 1, or a little below."""
BROKEN_DOWN: Final = (
    metrics.EXACT_ACCURACY, metrics.CALIBRATED_ACCURACY, metrics.FACTOR_RECOGNITION,
    metrics.CHANGE_RECOGNITION,
)  # fmt: skip
CA: Final = metrics.CALIBRATED_ACCURACY.name


def main(evidence: Evidence) -> Analysis:
    """The main table with every interval, and its headline metrics as a figure."""
    blank = Analysis(
        key="main",
        title="Main results",
        question="How well does each model explore, decide and adapt?",
    )
    if not evidence.scored:
        return replace(blank, absent="no episode run is scored yet")
    known = evidence.scores()
    measured = (*metrics.MAIN, *metrics.BESIDE)
    rows: list[tuple[Value, ...]] = [
        (*group, len(estimates.scored(found)), *(known[group, m.name] for m in measured))
        for group, found in evidence.records.items()
    ]
    table = Table(
        name="main_results", columns=("model", "setting", "n", *(m.name for m in measured)), rows=tuple(rows),
        title="Every model under every setting",
        note="n counts scored episode runs. Intervals of 95 % are bootstrapped over episodes, each drawn "
        "with all its seeds. The last three columns are rates that qualify the others.",
    )  # fmt: skip
    setting = evidence.focus or evidence.settings[0]
    return replace(
        blank,
        reading=_reading(evidence, setting),
        tables=(table,),
        figures=_headlines(evidence, setting),
    )


def _of_setting(evidence: Evidence, setting: str, metric: str) -> dict[str, Estimate]:
    known = evidence.scores()
    return {m: known[(m, setting), metric] for m in evidence.under(setting)}


def _reading(evidence: Evidence, setting: str) -> str:
    found = _of_setting(evidence, setting, CA)
    ends = extremes(found)
    if ends is None:
        return (
            "; ".join(
                f"{model} has a calibrated accuracy of {told(e)} under {setting}"
                for model, e in found.items()
            )
            + "."
        )
    best, worst = ends
    return (
        f"Under {setting}, {best} has the highest calibrated accuracy, {told(found[best])}, and "
        f"{worst} the lowest, {told(found[worst])}; chance is 0 and the oracle 1."
    )


def _headlines(evidence: Evidence, setting: str) -> tuple[Figure, ...]:
    panels = {label: _of_setting(evidence, setting, name) for name, label in HEADLINES.items()}
    panels = {k: v for k, v in panels.items() if any(isfinite(e.value) for e in v.values())}
    figure = layouts.by_model(
        evidence.models, panels, name="main_results", title=f"Headline metrics under {setting}",
        told="One row a model, one panel a metric, with 95 % intervals; the main table has the numbers.",
        x_label="value", marks=(0.0, 1.0),
    )  # fmt: skip
    return (figure,) if figure.drawn else ()


# -- broken down -------------------------------------------------------------------------------


def by_family(evidence: Evidence) -> Analysis:
    """The headline metrics by rule family."""
    return _broken_down(
        evidence, "family", lambda r: r.family, "Rule families", "Which kinds of rule are hard?"
    )


def by_domain(evidence: Evidence) -> Analysis:
    """The headline metrics by domain."""
    return _broken_down(
        evidence,
        "domain",
        lambda r: r.domain_id,
        "Domains",
        "Does the setting of the story matter?",
    )


def _broken_down(
    evidence: Evidence, key: str, part_of: Callable[[EpisodeRecord], str], title: str, question: str
) -> Analysis:
    setting = evidence.focus or next(iter(evidence.settings), None)
    blank = Analysis(key=f"by_{key}", title=title, question=question)
    parts = _parts(evidence, setting, part_of)
    if setting is None or not parts:
        return replace(blank, absent="no episode run is scored yet")
    rows: list[tuple[Value, ...]] = [
        (model, part, *(found[m.name] for m in BROKEN_DOWN))
        for (model, part), found in parts.items()
    ]
    table = Table(
        name=f"by_{key}", columns=("model", key, *(m.name for m in BROKEN_DOWN)), rows=tuple(rows),
        title=f"Under {setting}", note="n of each number counts episode runs.",
    )  # fmt: skip
    panels: dict[str, dict[str, Estimate]] = {}
    for (model, part), found in parts.items():
        panels.setdefault(part.replace("_", " "), {})[model] = found[CA]
    figure = layouts.by_model(
        evidence.models, panels, name=f"by_{key}", title=f"Calibrated accuracy by {key} under {setting}",
        told=f"One panel a {key}, one row a model, with 95 % intervals.",
        x_label="calibrated accuracy", marks=(0.0, 1.0),
    )  # fmt: skip
    return replace(
        blank,
        reading=_part_reading(panels, key),
        tables=(table,),
        figures=(figure,) if figure.drawn else (),
        warnings=_thin(parts),
    )


Parts = dict[tuple[str, str], dict[str, Estimate]]


def _parts(
    evidence: Evidence, setting: str | None, part_of: Callable[[EpisodeRecord], str]
) -> Parts:
    found: Parts = {}
    for model, runs in evidence.under(setting or "").items():
        for part in sorted({part_of(run) for run in runs}):
            own = [run for run in runs if part_of(run) == part]
            found[model, part] = evidence.estimates(BROKEN_DOWN, own, "part", model, part)
    return found


def _part_reading(panels: dict[str, dict[str, Estimate]], key: str) -> str:
    means = {
        part: sum(e.value for e in found.values()) / len(found) for part, found in panels.items()
    }
    means = {part: mean for part, mean in means.items() if isfinite(mean)}
    if len(means) < 2:
        return f"All scored episodes are of one {key}: {listed(list(panels))}."
    best, worst = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    return (
        f"Averaged over models, calibrated accuracy is highest for {best} ({means[best]:.2f}) and "
        f"lowest for {worst} ({means[worst]:.2f})."
    )


def _thin(parts: Parts) -> tuple[str, ...]:
    least = min((found[CA].n for found in parts.values()), default=nan)
    if least >= 10:
        return ()
    runs = counted(int(least), "episode run")
    return (f"Some parts rest on {runs} only: their intervals are rough.",)
