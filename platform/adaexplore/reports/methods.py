"""Methods: how the numbers of a report came about, exactly enough to make them again."""

from collections.abc import Iterator
from typing import Any, Final

from adaexplore.benchmark.scores import (
    adaptation,
    metrics,
    missingness,
    power,
    significance,
    statistics,
)
from adaexplore.reports import page
from adaexplore.reports.evidence import Evidence
from adaexplore.reports.markup import Markup, element
from adaexplore.reports.sections import counted, listed

DIGITS: Final = 12
"""Of a digest, where people read it."""


def section(evidence: Evidence, command: str) -> Markup:
    """The methods of a report.

    Args:
        evidence: What it rests on.
        command: Makes the report again.
    """
    sweeps = evidence.origin.sweeps
    again = [element("pre", element("code", command))]
    for sweep in sweeps:
        words = " ".join(["adaexplore", "replay", sweep, *evidence.origin.options])
        again.append(element("pre", element("code", words)))
    facts = ((element("dt", name), element("dd", value)) for name, value in _facts(evidence))
    return page.section(
        "methods",
        "Methods",
        *(element("p", text, class_="reading") for text in _paragraphs(evidence)),
        element("h3", "Exact parameters and digests"),
        element("dl", *(part for pair in facts for part in pair), class_="exact"),
        element(
            "h3", "To make this report again, and to compute its records again from their journals"
        ),
        *again,
    )


def _paragraphs(evidence: Evidence) -> Iterator[str]:
    seeds = sorted({int(label.rpartition("/")[2]) for label in evidence.origin.cells})
    episodes = {episode for plan in evidence.planned.values() for episode in plan}
    yield (
        f"Played: {counted(len(evidence.models), 'model')} under "
        f"{counted(len(evidence.settings), 'setting')} ({listed(evidence.settings)}) with "
        f"{counted(len(seeds), 'seed')} on {counted(len(episodes), 'episode')}; "
        f"{counted(evidence.scored, 'episode run')} scored. "
        "Episodes that a provider, a full context or a content "
        "filter ended are in no score."
    )
    yield (
        f"Intervals are percentile intervals at {statistics.LEVEL:.0%} of {statistics.RESAMPLES} bootstrap "
        "resamples of episodes, each drawn with all its seeds, models and batches. Conditions are compared on "
        "the same episodes, joined by the digest of their hidden side, by the two-sided Wilcoxon signed-rank "
        f"test (zeros after Pratt; exact up to {significance.EXACT_PAIRS} pairs), adjusted after Holm over the "
        "family that each table names; effect sizes are the rank-biserial correlation and d_z. Correlations "
        "within models are tested with errors clustered by episode. Detectable differences are those found "
        f"with {power.POWER:.0%} probability at the observed spread of paired differences."
    )
    yield (
        f"Curves show offsets {metrics.OFFSETS[0]} to {metrics.OFFSETS[-1]} from the change; the plateau is "
        f"the last {adaptation.PLATEAU_BATCHES} batches before it, the end the last "
        f"{adaptation.FINAL_BATCHES} batches. Missing "
        f"runs are bounded by the worst and the best play; equal missingness is tested with "
        f"{missingness.DRAWS} simulated tables. Every random stream is named, so the same records "
        "give the same numbers."
    )


def _facts(evidence: Evidence) -> Iterator[tuple[str, str]]:
    yield "sweeps", listed(evidence.origin.sweeps)
    if evidence.origin.where:
        yield "kept in", evidence.origin.where
    for key in ("dataset", "prompts", "protocol_version", "identity_version"):
        values = {str(semantic.get(key)) for semantic in evidence.origin.cells.values()}
        yield key.replace("_", " "), ", ".join(sorted(map(_short, values)))
    limits = {_limits(semantic.get("protocol")) for semantic in evidence.origin.cells.values()}
    yield "limits of play", "; ".join(sorted(limits))
    yield from _code(evidence.origin.launches)


def _code(launches: tuple[Any, ...]) -> Iterator[tuple[str, str]]:
    if not launches:
        return
    last = launches[-1]
    names = {
        "adaexplore": "version", "commit": "code commit", "dirty": "uncommitted changes",
        "source_sha256": "source", "lock_sha256": "lock file", "python": "Python", "numpy": "numpy",
        "scipy": "scipy", "image": "image",
    }  # fmt: skip
    for key, name in names.items():
        if last.get(key) is not None:
            yield f"{name} (last launch)", _short(str(last[key]))


def _limits(protocol: Any) -> str:
    if not isinstance(protocol, dict):
        return "unknown"
    return ", ".join(f"{name}={value}" for name, value in sorted(protocol.items()))


def _short(value: str) -> str:
    """A digest by its first digits, anything else as it is."""
    return value[:DIGITS] if len(value) >= 40 and value.isalnum() else value
