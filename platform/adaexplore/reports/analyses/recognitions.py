"""Recognition: what the scores are made of, from precision and recall to whole episodes.

Source: paper, tables 4, 10, 12 and 13.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from typing import Final

from adaexplore.benchmark.scores import recognition
from adaexplore.benchmark.scores.estimates import Estimate
from adaexplore.benchmark.scores.metrics import Metric
from adaexplore.experiments.tables import Table, Value
from adaexplore.reports import layouts
from adaexplore.reports.evidence import Evidence
from adaexplore.reports.sections import Analysis, Figure, extremes, listed, told

NOTHING: Final = "no scored episode run of a drifting rule has a completed assessment"

Found = dict[tuple[str, str], dict[str, Estimate]]
"""Estimates by (model, setting) and metric, over the settings under which the rule drifts."""


ALL: Final = (
    *recognition.PRECISION_RECALL,
    *(metric for phase in recognition.PHASES for metric in recognition.FACTOR_ERRORS[phase]),
    *recognition.RECOVERED,
    *recognition.EPISODE_SHARES,
    recognition.UNCHANGED,
)
"""Resampled together: each analysis shows a part."""


def _found(evidence: Evidence, wanted: Sequence[Metric]) -> Found:
    """Groups for which any of the wanted metrics is defined."""
    found = evidence.memory.once("recognition", lambda: _everything(evidence))
    return {
        group: own
        for group, own in found.items()
        if any(isfinite(own[metric.name].value) for metric in wanted)
    }


def _everything(evidence: Evidence) -> Found:
    return {
        (model, setting): evidence.estimates(ALL, runs, "recognition", model, setting)
        for setting in evidence.drifting
        for model, runs in evidence.under(setting).items()
    }


def _focused(evidence: Evidence, found: Found) -> dict[str, dict[str, Estimate]]:
    return {model: own for (model, setting), own in found.items() if setting == evidence.focus}


# -- precision and recall ----------------------------------------------------------------------


def precision_and_recall(evidence: Evidence) -> Analysis:
    """Precision and recall of both recognitions."""
    blank = Analysis(
        key="precision_recall", title="Precision and recall",
        question="Do models invent what is not there, or overlook what is?",
    )  # fmt: skip
    found = _found(evidence, recognition.PRECISION_RECALL)
    if not found:
        return replace(blank, absent=NOTHING)
    names = [metric.name for metric in recognition.PRECISION_RECALL]
    table = Table(
        name="precision_recall", columns=("model", "setting", *names),
        rows=tuple((*group, *(own[name] for name in names)) for group, own in found.items()),
        title="Precision and recall of factor and change recognition",
        note="Factors are pooled within a phase and averaged over phases; atoms are pooled over episodes. n "
        "counts the runs for which a number is defined alone.",
    )  # fmt: skip
    focused = _focused(evidence, found)
    panels = {n.replace("_", " "): {m: own[n] for m, own in focused.items()} for n in names}
    figure = layouts.by_model(
        evidence.models, panels, name="precision_recall", title=f"Precision and recall under {evidence.focus}",
        told="One row a model, one panel a number, with 95 % intervals.", x_label="share",
    )  # fmt: skip
    return replace(
        blank,
        reading=_overlooked(focused),
        tables=(table,),
        figures=(figure,) if figure.drawn else (),
    )


def _overlooked(focused: dict[str, dict[str, Estimate]]) -> str:
    kinds = ("factor", "change")
    counts = []
    for kind in kinds:
        pairs = [
            (own[f"{kind}_precision"].value, own[f"{kind}_recall"].value)
            for own in focused.values()
        ]
        defined = [p for p in pairs if isfinite(p[0]) and isfinite(p[1])]
        counts.append(
            f"{sum(p > r for p, r in defined)} of {len(defined)} models in {kind} recognition"
        )
    return f"Precision exceeds recall, so that more is overlooked than invented, for {' and '.join(counts)}."


# -- errors ------------------------------------------------------------------------------------


def factor_errors(evidence: Evidence) -> Analysis:
    """Kinds of error of factor recognition, by phase."""
    blank = Analysis(
        key="factor_errors", title="Errors of factor recognition",
        question="In which way are reports of the relevant fields wrong, before and after the change?",
    )  # fmt: skip
    wanted = [metric for phase in recognition.PHASES for metric in recognition.FACTOR_ERRORS[phase]]
    found = _found(evidence, wanted)
    if not found:
        return replace(blank, absent=NOTHING)
    rows: list[tuple[Value, ...]] = [
        (*group, phase, *(own[metric.name] for metric in recognition.FACTOR_ERRORS[phase]))
        for group, own in found.items()
        for phase in recognition.PHASES
    ]
    columns = ("model", "setting", "phase", *recognition.FACTOR_CATEGORIES)
    table = Table(
        name="factor_errors", columns=columns, rows=tuple(rows), title="Shares of completed assessments",
        note="An empty report leaves out everything and adds nothing: omission only. n counts assessments.",
    )  # fmt: skip
    focused = _focused(evidence, found)
    panels = {
        f"{'before' if phase == 'pre' else 'after'} the change": {
            model: [own[metric.name] for metric in recognition.FACTOR_ERRORS[phase]]
            for model, own in focused.items()
        }
        for phase in recognition.PHASES
    }
    figure = _divided(
        panels, recognition.FACTOR_CATEGORIES, "factor_errors", "Errors of factor recognition"
    )
    exact = {m: own["factors_post_exact"] for m, own in focused.items()}
    return replace(
        blank,
        reading=_ends(exact, "the relevant fields exactly after the change"),
        tables=(table,),
        figures=figure,
    )


def _divided(
    panels: dict[str, dict[str, list[Estimate]]], parts: Sequence[str], name: str, title: str
) -> tuple[Figure, ...]:
    names = [part.replace("_", " ") for part in parts]
    told_ = "One bar a model, divided into categories in the order of the key; numbers are percent."
    figure = layouts.divided(panels, names, name=name, title=title, told=told_)
    return (figure,) if figure.drawn else ()


def _ends(shares: dict[str, Estimate], what: str) -> str:
    ends = extremes(shares)
    if ends is None:
        only = [f"{model} in a share of {told(e)}" for model, e in shares.items()]
        return f"Reported {what}: {listed(only)}." if only else ""
    best, worst = ends
    return (
        f"{best} reports {what} most often, in a share of {told(shares[best])} of episodes; "
        f"{worst} least, {told(shares[worst])}."
    )


# -- the change --------------------------------------------------------------------------------


def atoms(evidence: Evidence) -> Analysis:
    """True atoms of the change that were recovered, by type."""
    blank = Analysis(
        key="atoms", title="Parts of the change",
        question="Which part of the change is found: the field that left, the one that came, the reversal?",
    )  # fmt: skip
    found = _found(evidence, recognition.RECOVERED)
    if not found:
        return replace(blank, absent=NOTHING)
    names = [metric.name for metric in recognition.RECOVERED]
    table = Table(
        name="atoms", columns=("model", "setting", *names),
        rows=tuple((*group, *(own[name] for name in names)) for group, own in found.items()),
        title="Shares of true atoms recovered, strict matching",
        note="A replacement is two atoms, a removal and an addition; a reversal is one. n counts runs with "
        "both assessments completed.",
    )  # fmt: skip
    focused = _focused(evidence, found)
    panels = {
        n.removeprefix("recovered_"): {m: own[n] for m, own in focused.items()} for n in names[1:]
    }
    figure = layouts.by_model(
        evidence.models, panels, name="atoms", title=f"Atoms recovered under {evidence.focus}",
        told="One row a model, one panel a type of atom, with 95 % intervals.", x_label="share recovered",
    )  # fmt: skip
    means = {
        panel: sum(e.value for e in own.values() if isfinite(e.value)) / max(len(own), 1)
        for panel, own in panels.items()
    }
    best, worst = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    reading = (
        f"Averaged over models, the {best} is recovered most ({means[best]:.2f}) and the {worst} least "
        f"({means[worst]:.2f})."
    )
    return replace(
        blank, reading=reading, tables=(table,), figures=(figure,) if figure.drawn else ()
    )


def episode_categories(evidence: Evidence) -> Analysis:
    """Whole episodes by what of the change was recovered, and reports that stay as they were."""
    blank = Analysis(
        key="episode_categories", title="Whole episodes",
        question="How often is the whole change understood, a part of it, or nothing?",
    )  # fmt: skip
    wanted = (*recognition.EPISODE_SHARES, recognition.UNCHANGED)
    found = _found(evidence, wanted)
    if not found:
        return replace(blank, absent=NOTHING)
    names = [metric.name for metric in wanted]
    heads = [*recognition.EPISODE_CATEGORIES, "unchanged"]
    table = Table(
        name="episode_categories", columns=("model", "setting", *heads),
        rows=tuple((*group, *(own[name] for name in names)) for group, own in found.items()),
        title="Shares of episodes with both assessments",
        note="Half a replacement counts as none. Unchanged: the second report repeats fields and directions of "
        "the first; it is part of neither. n counts episode runs.",
    )  # fmt: skip
    focused = _focused(evidence, found)
    panels = {
        f"under {evidence.focus}": {
            m: [own[metric.name] for metric in recognition.EPISODE_SHARES]
            for m, own in focused.items()
        }
    }
    figure = _divided(
        panels,
        recognition.EPISODE_CATEGORIES,
        "episode_categories",
        "Episodes by what was recovered",
    )
    complete = {m: own["episodes_complete"] for m, own in focused.items()}
    return replace(
        blank, reading=_ends(complete, "the whole change"), tables=(table,), figures=figure
    )
