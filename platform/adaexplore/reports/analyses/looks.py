"""Looks: which single episodes are worth reading, since no table shows how an agent thought."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.scores import adaptation, metrics
from adaexplore.experiments.tables import Table, Value
from adaexplore.reports.evidence import Evidence, Runs
from adaexplore.reports.sections import Analysis

MOST_MODELS: Final = 12
MOST_PAGES: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One run that is worth reading."""

    model: str
    what: str
    """Why it was chosen."""
    record: EpisodeRecord


def episodes(evidence: Evidence) -> Analysis:
    """The best, the worst and the most deeply falling episode of each model."""
    blank = Analysis(
        key="episodes", title="Episodes to read",
        question="Where would one look to see how a model explores, decides and adapts?",
    )  # fmt: skip
    found = chosen(evidence)
    if not found:
        return replace(blank, absent="no episode run is scored yet")
    setting = found[0].record.setting
    rows = [
        (look.model, look.what, *_place(look.record), *_values(evidence, look.record))
        for look in found
    ]
    sweep = evidence.origin.sweeps[0] if evidence.origin.sweeps else "SWEEP"
    words = " ".join(
        [sweep, "EPISODE", "--model MODEL", f"--setting {setting}", *evidence.origin.options]
    )
    table = Table(
        name="episodes", columns=("model", "what", "episode", "domain", "family", "ca", "change_recognition"),
        rows=tuple(rows), title=f"Under {setting}",
        note=f"Their whole course is shown by: adaexplore show {words}",
    )  # fmt: skip
    pages = evidence.origin.pages[:MOST_PAGES]
    return replace(
        blank,
        links=tuple((page.removeprefix("episodes/").removesuffix(".html"), page) for page in pages),
        reading="One best, one worst and one of the deepest fall for each model.",
        tables=(table,),
    )


def chosen(evidence: Evidence) -> list[Look]:
    """The runs that a report points out, all of one setting; none where nothing is scored."""
    setting = evidence.focus or next((s for s in evidence.settings if evidence.under(s)), None)
    if setting is None:
        return []
    return [
        Look(model=model, what=what, record=run)
        for model, runs in list(evidence.under(setting).items())[:MOST_MODELS]
        for what, run in _striking(evidence, runs)
    ]


def _place(run: EpisodeRecord) -> tuple[str, str, str]:
    return run.episode_id, run.domain_id, run.family


def _striking(evidence: Evidence, runs: Runs) -> Iterator[tuple[str, EpisodeRecord]]:
    ca = {id(run): _ca(evidence, run) for run in runs}
    yield "highest CA", max(runs, key=lambda run: ca[id(run)])
    if len(runs) > 1:
        yield "lowest CA", min(runs, key=lambda run: ca[id(run)])
    drifting = [run for run in runs if run.drifts]
    if len(drifting) > 2:
        yield "deepest fall", min(drifting, key=_fall)


def _ca(evidence: Evidence, run: EpisodeRecord) -> float:
    metric = evidence.memory.of(metrics.CALIBRATED_ACCURACY)
    return float(metric.value(metric.contribution(run)))


def _fall(run: EpisodeRecord) -> float:
    """Calibrated accuracy of the first batch after the change less that of the plateau."""
    after, before = (
        float(w.value(w.contribution(run))) for w in (adaptation.FIRST_AFTER, adaptation.PLATEAU)
    )
    return after - before if after == after and before == before else 0.0  # noqa: PLR0124 (nan differs from itself)


def _values(evidence: Evidence, run: EpisodeRecord) -> tuple[Value, ...]:
    return _ca(evidence, run), metrics.change_f1(run)
