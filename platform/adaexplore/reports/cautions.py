"""Cautions: what a reader has to know before believing any number of a report."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from adaexplore.benchmark.scores import estimates
from adaexplore.reports.analyses import gaps
from adaexplore.reports.evidence import Evidence
from adaexplore.reports.sections import listed

FEW: Final = 30
"""Episodes below which intervals and tests are rough (a decision of ours)."""
COMMON: Final = {
    "protocol_version": "protocol versions",
    "prompts": "prompts",
    "dataset": "datasets",
    "identity_version": "identity schemes",
    "protocol": "limits of play",
}
"""What all cells of a report should have in common: key of the semantic configuration and its name."""


def cautions(evidence: Evidence) -> tuple[str, ...]:
    """Warnings about the whole report, the gravest first."""
    return (*_mixed(evidence), *_missing(evidence), *_unbalanced(evidence), *_small(evidence))


def _mixed(evidence: Evidence) -> Iterator[str]:
    for key, name in COMMON.items():
        values: dict[str, list[str]] = {}
        for label, semantic in evidence.origin.cells.items():
            values.setdefault(_short(semantic, key), []).append(label)
        if len(values) > 1:
            told = [f"{value} ({listed(labels, 2)})" for value, labels in values.items()]
            yield f"Mixed {name}: {listed(told)}. Numbers that rest on different ones cannot be compared."


def _short(semantic: Mapping[str, Any], key: str) -> str:
    value = semantic.get(key)
    if isinstance(value, dict):
        return ", ".join(f"{name}={part}" for name, part in sorted(value.items()))
    return str(value)[:12]


def _missing(evidence: Evidence) -> Iterator[str]:
    if not evidence.scored:
        yield (
            "No episode run is scored: there is nothing to show yet. Launch the sweep, or look at its "
            "failures with 'adaexplore status'."
        )
        return
    counts = gaps.missing_counts(evidence)
    if not counts:
        return
    unscored, without = (sum(c[i] for c in counts.values()) for i in (1, 2))
    worst = sorted(counts, key=lambda group: -sum(counts[group][1:]))
    told = [
        f"{model} under {setting} {sum(counts[model, setting][1:])} of {counts[model, setting][0]}"
        for model, setting in worst
    ]
    yield (
        f"Data are missing: {without} planned episode runs have no result and {unscored} ended unscored "
        f"({listed(told, 4)}). Every table leaves them out but that of missing runs."
    )


def _unbalanced(evidence: Evidence) -> Iterator[str]:
    for setting in evidence.settings:
        sets = {
            m: frozenset(r.episode_id for r in runs) for m, runs in evidence.under(setting).items()
        }
        if len(set(sets.values())) > 1:
            common = len(frozenset.intersection(*sets.values()))
            most = max(map(len, sets.values()))
            yield (
                f"Unbalanced: under {setting} models have different scored episodes, of up to {most} only "
                f"{common} in common. Compare models in the paired tables."
            )
    played = {frozenset(evidence.under(setting)) for setting in evidence.settings}
    if len(played) > 1:
        yield "Unbalanced: not every model has scored runs under every setting."


def _small(evidence: Evidence) -> Iterator[str]:
    episodes = {
        r.episode_id for found in evidence.records.values() for r in estimates.scored(found)
    }
    if not episodes:
        return
    if len(episodes) == 1:
        yield "There is one scored episode: no interval and no test can be made."
    elif len(episodes) < FEW:
        yield f"There are {len(episodes)} scored episodes: below {FEW}, intervals and tests are rough."
    if len(evidence.models) == 1:
        yield "There is one model: nothing can be said across models."
