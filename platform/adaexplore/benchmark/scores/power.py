"""Power: how small a difference could a paired comparison have found?

"No significant difference" says little where the episodes are few or their differences spread wide. So
beside every comparison stands the smallest true difference that would have been found with 80 %
probability, computed from the spread of the paired differences that were seen.

A decision of ours: the normal approximation of the signed-rank test, whose efficiency against the
paired t-test is 3 / pi for normal differences, and hardly ever less (Hodges and Lehmann 1956 bound it
by 0.864). Source: Noether (1987).
"""

from math import nan, pi, sqrt
from statistics import NormalDist
from typing import Final

import numpy as np

from adaexplore.benchmark.world.fields import Floats

POWER: Final = 0.8
LEVEL: Final = 0.05
EFFICIENCY: Final = 3.0 / pi
"""Of the signed-rank test, relative to the t-test."""


def detectable(differences: Floats, *, level: float = LEVEL) -> float:
    """The smallest true mean difference that a two-sided signed-rank test finds with `POWER`.

    Args:
        differences: Paired differences, shape (n,), finite.
        level: Error rate of the test; that of a family of k tests is at worst this over k.

    Returns:
        A size in the unit of the differences; nan with fewer than two, or where all are equal.
    """
    if len(differences) < 2:
        return nan
    spread = float(np.std(differences, ddof=1))
    if spread < 1e-12:  # equal up to rounding: nothing is known of how they vary
        return nan
    normal = NormalDist()
    quantiles = normal.inv_cdf(1.0 - level / 2.0) + normal.inv_cdf(POWER)
    return quantiles * spread / sqrt(len(differences) * EFFICIENCY)
