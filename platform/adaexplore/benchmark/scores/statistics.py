"""Intervals that respect how the data came about.

Cases of one episode share a hidden rule, and seeds of one episode share its cases, so what is
resampled is the episode, with all its runs: a cluster bootstrap (Davison and Hinkley 1997, section
3.8; percentile intervals, Efron and Tibshirani 1993, section 13.3). Every function takes its
generator, states its n through the clusters given, and returns nan where there is too little data.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from adaexplore.benchmark.world.fields import Floats

RESAMPLES: Final = 2000
LEVEL: Final = 0.95

Interval = tuple[float, float]
Value = Callable[[Floats], Floats]


def cluster_sums(rows: Floats, clusters: Sequence[str]) -> Floats:
    """Sums of rows, shape (n, k), by cluster in sorted order of names; shape (clusters, k)."""
    index = cluster_index(clusters)
    sums = np.zeros((int(index.max(initial=-1)) + 1, rows.shape[1]))
    np.add.at(sums, index, rows)
    return sums


def cluster_index(clusters: Sequence[str]) -> npt.NDArray[np.intp]:
    """Place of each row's cluster in sorted order of names, shape (n,).

    As `np.unique` finds it, without its arrays of text, which take four bytes a character and row.
    """
    places = {name: place for place, name in enumerate(sorted(set(clusters)))}
    return np.array([places[name] for name in clusters], dtype=np.intp)


def bootstrap_values(sums: Floats, value: Value, rng: np.random.Generator) -> Floats:
    """Values of `RESAMPLES` cluster resamples of contributions, shape (clusters, k)."""
    clusters = len(sums)
    counts = rng.multinomial(clusters, np.full(clusters, 1.0 / clusters), size=RESAMPLES)
    return value(counts.astype(np.float64) @ sums)


def percentile_interval(values: Floats, level: float = LEVEL) -> Interval:
    """(low, high) percentiles of resampled values; undefined resamples are left out."""
    defined = values[np.isfinite(values)]
    if not len(defined):
        return float("nan"), float("nan")
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(defined, (tail, 1.0 - tail))
    return float(low), float(high)


def interval(
    rows: Floats, clusters: Sequence[str], value: Value, *, rng: np.random.Generator
) -> Interval:
    """Bootstrap interval of a metric.

    Args:
        rows: Contributions, shape (n, k), one row an episode run.
        clusters: The episode of each row.
        value: What the summed contributions are worth.
        rng: Generator to draw resamples from.

    Returns:
        (low, high), or (nan, nan) with fewer than two episodes: one says nothing about spread.
    """
    if len(set(clusters)) < 2:
        return float("nan"), float("nan")
    return percentile_interval(bootstrap_values(cluster_sums(rows, clusters), value, rng))


def paired_interval(
    first: Floats, second: Floats, value: Value, *, rng: np.random.Generator
) -> Interval:
    """Bootstrap interval of the difference `second - first` of one metric over the same episodes.

    Args:
        first: Summed contributions by episode, shape (episodes, k).
        second: The same for the other condition, rows in the same order.
        value: What summed contributions are worth.
        rng: Generator to draw resamples from.

    Raises:
        ValueError: The two do not have the same episodes.
    """
    if first.shape != second.shape:
        raise ValueError(
            f"expected paired contributions, got shapes {first.shape} and {second.shape}"
        )
    if len(first) < 2:
        return float("nan"), float("nan")
    width = first.shape[1]
    both = np.concatenate([first, second], axis=1)
    differences = bootstrap_values(
        both, lambda s: value(s[..., width:]) - value(s[..., :width]), rng
    )
    return percentile_interval(differences)
