"""Comparing: whether a run in MLflow says what the store says."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from adaexplore.backends.mlflow import limits
from adaexplore.backends.mlflow.service import Run, Service
from adaexplore.experiments.contents import Content

BATCH: Final = "batch/"
"""Start of the names of series, whose every point is compared."""


def differences(service: Service, content: Content, run: Run) -> Iterator[str]:
    """What a run says otherwise than it must: its name, params, tags and points, a line each."""
    pairs = {
        "name": (content.place.name, run.name),
        **_pairs("param", limits.params(content.params), run.params),
        **_pairs("tag", limits.tags(content.tags), {k: run.tags.get(k) for k in content.tags}),
    }
    yield from told(pairs)
    yield from _differing_points(service, content, run)


def told(pairs: Mapping[str, tuple[str | None, str | None]]) -> Iterator[str]:
    """A line for each pair, (stored, shown), that is not equal."""
    for what, (stored, shown) in pairs.items():
        if stored != shown:
            yield f"{what}: stored {stored!r}, MLflow says {shown!r}"


def _pairs(
    kind: str, stored: Mapping[str, str], shown: Mapping[str, str | None]
) -> dict[str, tuple[str | None, str | None]]:
    keys = sorted(stored.keys() | shown.keys())
    return {f"{kind} {key}": (stored.get(key), shown.get(key)) for key in keys}


def _differing_points(service: Service, content: Content, run: Run) -> Iterator[str]:
    """Every point of the series, and the one value of all other metrics."""
    series: dict[str, list[tuple[int, float]]] = {}
    for name, value, step in limits.points(content.points):
        series.setdefault(name, []).append((step, value))
    for name in sorted(series.keys() | run.metrics.keys()):
        stored = sorted(series.get(name, []))
        if name.startswith(BATCH) and name in run.metrics:
            shown = service.history(run.run_id, name)
        else:
            shown = [(0, run.metrics[name])] if name in run.metrics else []
        if not _same(stored, shown):
            yield f"metric {name}: stored {_values(stored)}, MLflow says {_values(shown)}"


def _same(one: Sequence[tuple[int, float]], other: Sequence[tuple[int, float]]) -> bool:
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(
        a == c and math.isclose(b, d, rel_tol=1e-12, abs_tol=1e-12) for (a, b), (c, d) in pairs
    )


def _values(points: Sequence[tuple[int, float]]) -> str:
    shown = ", ".join(f"{value:g}" for _, value in points[:12])
    return shown or "nothing"
