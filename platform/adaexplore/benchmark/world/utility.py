"""From the intervention score to the utilities of the four actions.

`p_k = softmax_k(-beta (s - c_k)^2)` and `u_k = (4 p_k - 1) / 3`: an action earns more the closer its
anchor lies to the score, the best action changes at s = -0.5, 0 and 0.5, and the four utilities sum
to zero. Source: paper, utility function.

Utilities are made with scalar `math` and rounded to 12 digits, because numpy's vectorised `exp`
differs in its last bits between processors and records are compared byte for byte.
"""

import math
from collections.abc import Iterable
from itertools import chain
from typing import Final

import numpy as np

from adaexplore.benchmark.world.fields import Floats
from adaexplore.benchmark.world.rounding import rounded

ANCHORS: Final = (-0.75, -0.25, 0.25, 0.75)
BETA: Final = 8.0
BOUNDARIES: Final = (-0.5, 0.0, 0.5)
"""Scores at which the best action changes."""
DIGITS: Final = 12
"""To which utilities are rounded."""
ACTIONS: Final = ("action_0", "action_1", "action_2", "action_3")

Utilities = tuple[float, float, float, float]
_exp: Final = math.exp


def utilities(score: float) -> Utilities:
    """Utilities of the four actions at one intervention score in [-1, 1]."""
    return of_scores([score])[0]


def of_scores(scores: Iterable[float]) -> list[Utilities]:
    """Utilities of the four actions at each intervention score."""
    unrounded = chain.from_iterable(map(_unrounded, scores))
    values = iter(rounded(unrounded, DIGITS))
    return list(zip(values, values, values, values, strict=True))


def _unrounded(score: float) -> Utilities:
    # Written out: every probe and every case of a sweep comes through here.
    a0, a1, a2, a3 = ANCHORS
    l0, l1 = -BETA * (score - a0) ** 2, -BETA * (score - a1) ** 2
    l2, l3 = -BETA * (score - a2) ** 2, -BETA * (score - a3) ** 2
    top = max(l0, l1, l2, l3)
    w0, w1, w2, w3 = _exp(l0 - top), _exp(l1 - top), _exp(l2 - top), _exp(l3 - top)
    total = math.fsum((w0, w1, w2, w3))
    return (
        (4.0 * w0 / total - 1.0) / 3.0,
        (4.0 * w1 / total - 1.0) / 3.0,
        (4.0 * w2 / total - 1.0) / 3.0,
        (4.0 * w3 / total - 1.0) / 3.0,
    )


def best_actions(scores: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    """Index 0..3 of the best action at each score; a score on a boundary takes the higher one."""
    return np.searchsorted(np.asarray(BOUNDARIES), scores, side="right")


def boundary_distances(scores: Floats) -> Floats:
    """Distance of each score, shape (n,), to the nearest score where the best action changes."""
    return np.asarray(np.min(np.abs(scores[:, None] - np.asarray(BOUNDARIES)), axis=1))
