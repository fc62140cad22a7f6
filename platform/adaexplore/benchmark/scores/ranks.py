"""Ranks of resampled values, without resampling the values.

A bootstrap resample of a sample is the same values with other multiplicities, so its mid-ranks follow
from one sort and the counts: 2000 resamples are ranked at once. Ties share the mean of their ranks
(Kendall 1948), as in every rank statistic here.
"""

import numpy as np

from adaexplore.benchmark.world.fields import Floats


def mid_ranks(values: Floats, counts: Floats) -> Floats:
    """Mid-ranks of values that occur several times each.

    Args:
        values: Shape (n,), finite.
        counts: Shape (..., n): how often each value occurs in each resample; 0 is allowed.

    Returns:
        Shape (..., n), from 1: the rank that any copy of the value has. The entry of a value that
        does not occur means nothing.
    """
    if not len(values):
        return np.zeros(counts.shape)
    levels, place = np.unique(values, return_inverse=True)
    order = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[order], np.arange(len(levels)))
    totals = np.add.reduceat(counts[..., order], starts, axis=-1)
    level_ranks = np.cumsum(totals, axis=-1) - totals + (totals + 1.0) / 2.0
    ranks: Floats = level_ranks[..., place]
    return ranks
