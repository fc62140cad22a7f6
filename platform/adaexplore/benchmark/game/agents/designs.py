"""Where to ask next: points at which rules that may be in force disagree most.

A design is chosen greedily. Every rival rule predicts a score at every candidate point; the point
with the largest weighted spread of predictions comes first; what it will tell is projected out of
all predictions, and so on (the greedy D-optimal design; the projection is a pivoted Cholesky
factorisation of the predictions' covariance). Source: query by committee (Seung, Opper and
Sompolinsky 1992) and optimal design of experiments (Fedorov 1972).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from adaexplore.benchmark.game.agents.hypotheses import Hypothesis
from adaexplore.benchmark.world.episodes import VISIBLE
from adaexplore.benchmark.world.fields import ADDITIVE, Floats

_NOISE: Final = 0.05
"""Spread of the score below which a disagreement is not worth a probe."""


def spread_out(predictions: Floats, weights: Sequence[float], count: int) -> list[int]:
    """Positions of up to `count` points, most telling first.

    Args:
        predictions: Scores, shape (rivals, points).
        weights: Weight of every rival; they sum to 1.
        count: Points wanted; fewer come back when the rest would tell nothing.
    """
    share = np.asarray(weights)[:, None]
    mean = np.add.reduce(predictions * share, axis=0)
    rest = (predictions - mean) * np.sqrt(share)
    chosen: list[int] = []
    for _ in range(min(count, predictions.shape[1])):
        size: Floats = np.add.reduce(rest * rest, axis=0)
        size = np.round(size, 9)
        size[chosen] = 0.0
        best = int(np.argmax(size))
        if size[best] <= _NOISE**2:
            break
        chosen.append(best)
        axis = rest[:, best : best + 1]
        along = np.add.reduce(rest * axis, axis=0) / (size[best] + _NOISE**2)
        rest = rest - axis * along
    return chosen


def neighbours(rule: Hypothesis) -> list[Hypothesis]:
    """Rules one change away: a direction reversed, or a field replaced.

    Single changes only. What a change of the rule consists of is nothing that the prompt tells, so
    pairs of changes, which would fit the benchmark's own drifts, are left to the fit to find.
    """
    reversed_ = [_reversed(rule, place) for place in range(3)]
    return [*reversed_, *(r for place in range(3) for r in _replaced(rule, place))]


def _reversed(rule: Hypothesis, place: int) -> Hypothesis:
    if rule.family == ADDITIVE:
        values = tuple(-v if i == place else v for i, v in enumerate(rule.values))
        return replace(rule, values=values)
    a, b, c = (-s if i == place else s for i, s in enumerate(rule.signs))
    return replace(rule, signs=(a, b, c))


def _replaced(rule: Hypothesis, place: int) -> list[Hypothesis]:
    found = []
    for column in range(VISIBLE):
        if column not in rule.fields:
            a, b, c = (column if i == place else f for i, f in enumerate(rule.fields))
            found.append(replace(rule, fields=(a, b, c)))
    return found
