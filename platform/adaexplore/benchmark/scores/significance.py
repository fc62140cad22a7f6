"""Tests whose p-values are exact: signed ranks of pairs, counts of two groups, families of tests.

Scores are bounded, skewed and full of ties, groups are small, and failures are rare, so no test here
leans on a normal approximation while the exact distribution can be had. All are two-sided, a decision
of ours: a benchmark may be wrong in both directions.
Source: Wilcoxon (1945), Pratt (1959), Fisher (1935), Holm (1979).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, erfc, nan, sqrt
from typing import Final

import numpy as np

from adaexplore.benchmark.scores import ranks
from adaexplore.benchmark.world.fields import Floats

EXACT_PAIRS: Final = 400
"""The exact distribution of so many pairs takes about 0.1 s, growing as the cube."""
DIGITS: Final = 12
"""Differences are rounded to these: ties must not hang on the last bit of a processor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRank:
    """Wilcoxon's signed-rank test."""

    p: float
    """Two-sided; nan without pairs, 1 where no pair differs."""
    plus: float
    """Sum of the ranks of positive differences."""
    minus: float
    n: int
    """Pairs."""
    zeros: int
    """Pairs without a difference."""

    @property
    def rank_biserial(self) -> float:
        """`(plus - minus) / (plus + minus)`, in [-1, 1]; nan where no pair differs."""
        total = self.plus + self.minus
        return (self.plus - self.minus) / total if total else nan


def signed_rank(differences: Floats) -> SignedRank:
    """Wilcoxon's signed-rank test of paired differences, shape (n,), against symmetry about 0.

    Zero differences are ranked and then dropped (Pratt), so that many pairs without a difference
    weaken the evidence. p is exact given the ranks, ties included, up to `EXACT_PAIRS` pairs that
    differ, and the normal approximation beyond.

    Raises:
        ValueError: A difference is not finite.

    Source: Wilcoxon (1945); zeros as in Pratt (1959); exact given the ranks, as in Lehmann (1975).
    """
    if not np.isfinite(differences).all():
        raise ValueError("expected finite differences, got nan or infinity: drop undefined pairs")
    rounded = np.round(differences, DIGITS)
    all_ranks = ranks.mid_ranks(np.abs(rounded), np.ones(len(rounded)))
    plus = float(all_ranks[rounded > 0.0].sum())
    minus = float(all_ranks[rounded < 0.0].sum())
    p = _two_sided(all_ranks[rounded != 0.0], min(plus, minus)) if len(rounded) else nan
    zeros = int((rounded == 0.0).sum())
    return SignedRank(p=p, plus=plus, minus=minus, n=len(rounded), zeros=zeros)


def _two_sided(signed: Floats, smaller: float) -> float:
    """Twice the probability that random signs give a rank sum of at most the smaller one."""
    if len(signed) > EXACT_PAIRS:
        z = (smaller - signed.sum() / 2.0) / sqrt(float((signed**2).sum()) / 4.0)
        return erfc(-z / sqrt(2.0))
    mass = np.ones(1)
    for step in np.rint(2.0 * signed).astype(int):  # mid-ranks are halves
        flipped = np.zeros(len(mass) + step)
        flipped[: len(mass)] += mass / 2.0
        flipped[step:] += mass / 2.0
        mass = flipped
    return min(1.0, 2.0 * float(mass[: round(2.0 * smaller) + 1].sum()))


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjusted p-values of a family of tests, in the order given.

    Args:
        p_values: One a test; nan is a test that could not be made and is not part of the family.

    Returns:
        Each at most the level where its hypothesis is rejected with that family-wise error rate.

    Source: Holm (1979).
    """
    given = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(given, kind="stable")[: int(np.isfinite(given).sum())]
    steps = given[order] * np.arange(len(order), 0, -1)
    adjusted = np.full(len(given), nan)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return tuple(adjusted.tolist())


def fisher(first: tuple[int, int], second: tuple[int, int]) -> float:
    """Fisher's exact test that two groups have the same share.

    Args:
        first: (hits, size) of a group.
        second: The same for the other.

    Returns:
        Two-sided p: the probability, with all totals fixed, of tables no likelier than this one; nan
        where a group is empty.

    Source: Fisher (1935); two-sided as in Irwin (1935).
    """
    (hits, size), (others, other_size) = first, second
    if not size or not other_size:
        return nan
    total = hits + others
    least, most = max(0, total - other_size), min(size, total)
    # Counts of arrangements are whole numbers, so "no likelier" needs no tolerance.
    ways = [comb(size, k) * comb(other_size, total - k) for k in range(least, most + 1)]
    return sum(w for w in ways if w <= ways[hits - least]) / sum(ways)
