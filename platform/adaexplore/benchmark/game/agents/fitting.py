"""Fitting a swarm of hypotheses to observations, all at once.

An observation confines the score to an interval. The residual is the distance from the predicted
score, *before* its clip, to that interval: censored answers (the clipped ends) are then ordinary
intervals with one open end, and a hypothesis that is far off still has a slope to descend. Huber's
loss keeps single large residuals from ruling the rest. Steps are damped least squares (Levenberg
1944, Marquardt 1963) with a damping of each hypothesis's own; a residual of zero pulls at nothing,
so a fit stops at the first consistent place it meets.

Only elementwise arithmetic and sums over the first axis (row by row) are used, because matrix
products and solvers differ in their last bits between processors.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from adaexplore.benchmark.game.agents import hypotheses
from adaexplore.benchmark.game.agents.hypotheses import PARAMETERS, Swarm
from adaexplore.benchmark.game.agents.observations import Observation
from adaexplore.benchmark.world.constraints import Flags
from adaexplore.benchmark.world.fields import ADDITIVE, Floats

HUBER: Final = 0.3
"""Residual, in units of the score, beyond which the loss grows linearly."""
_DAMPING: Final = 0.02
_LEAST_DAMPING: Final = 1e-5
_SLOPES: Final = (0.4, 12.0)
_RATIO: Final = (0.15, 7.0)
_ZERO: Final = 1.6
_WEIGHT: Final = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Observations as arrays: points of shape (n, 8), interval ends of shape (n, 1)."""

    points: Floats
    low: tuple[Floats, Floats]
    high: tuple[Floats, Floats]
    single: Flags
    """Shape (n,): whether an observation has one interval only."""


def data(points: Floats, observations: Sequence[Observation]) -> Data:
    """Observations with their normalised points, shape (n, 8)."""
    ends = np.asarray([(*o.first, *o.second) for o in observations]).reshape(-1, 4)
    low1, high1, low2, high2 = (ends[:, i : i + 1] for i in range(4))
    return Data(
        points=points,
        low=(low1, low2),
        high=(high1, high2),
        single=np.asarray([o.first == o.second for o in observations], dtype=bool),
    )


def residuals(known: Data, scores: Floats) -> Floats:
    """What to add to each score, shape (n, N), to reach the nearer interval; 0 inside."""
    first = _reach(scores, known.low[0], known.high[0])
    if known.single.all():
        return first
    second = _reach(scores, known.low[1], known.high[1])
    return np.where(np.abs(second) < np.abs(first), second, first)


def losses(residual: Floats) -> Floats:
    """Huber's loss of each hypothesis, shape (N,), from residuals of shape (n, N)."""
    size = np.abs(residual)
    each = np.where(size < HUBER, residual * residual, HUBER * (2.0 * size - HUBER))
    total: Floats = np.add.reduce(each, axis=0)
    return total


def loss_of(many: Swarm, known: Data) -> Floats:
    """Loss of each hypothesis, shape (N,), rounded so that last bits decide no comparison."""
    return np.round(losses(residuals(known, hypotheses.scores(many, known.points))), 9)


def polish(many: Swarm, known: Data, steps: int) -> Swarm:
    """The swarm after some damped least squares steps of its values."""
    x = hypotheses.columns(many, known.points)
    damping = np.full(many.band.shape, _DAMPING)
    residual, gradient = _evaluate(many, known, x)
    loss = losses(residual)
    for _ in range(steps):
        values = _bounded(many, many.values + _step(residual, gradient, damping))
        trial = replace(many, values=values)
        residual_, gradient_ = _evaluate(trial, known, x)
        loss_ = losses(residual_)
        better = loss_ < loss
        damping = np.maximum(np.where(better, damping * 0.2, damping * 6.0), _LEAST_DAMPING)
        many = replace(many, values=np.where(better, values, many.values))
        loss = np.where(better, loss_, loss)
        residual = np.where(better, residual_, residual)
        gradient = [np.where(better, b, a) for a, b in zip(gradient, gradient_, strict=True)]
    return many


def _reach(scores: Floats, low: Floats, high: Floats) -> Floats:
    reach: Floats = np.maximum(low - scores, 0.0) - np.maximum(scores - high, 0.0)
    return reach


def _evaluate(many: Swarm, known: Data, x: Sequence[Floats]) -> tuple[Floats, list[Floats]]:
    """Residuals, shape (n, N), and derivatives of the scores by the five values, each (n, N)."""
    z, by_depth = hypotheses.depth(many, x)
    below, above = hypotheses.slopes(many)
    negative = z < 0.0
    slope = np.where(negative, below, above)
    down, up = np.where(negative, z, 0.0), np.where(negative, 0.0, z)
    bends = [-slope, up] if many.family == ADDITIVE else [down, up]
    return residuals(known, z * slope), [slope * d for d in by_depth] + bends


def _step(residual: Floats, gradient: Sequence[Floats], damping: Floats) -> Floats:
    """Damped least squares steps, shape (5, N)."""
    size = np.abs(residual)
    weight = np.where(size > 0.0, HUBER / np.maximum(size, HUBER), 0.0)
    weighted = [weight * g for g in gradient]
    system = np.empty((PARAMETERS, PARAMETERS + 1, residual.shape[1]))
    for i in range(PARAMETERS):
        for j in range(i, PARAMETERS):
            system[i, j] = system[j, i] = np.add.reduce(weighted[i] * gradient[j], axis=0)
        system[i, PARAMETERS] = np.add.reduce(weighted[i] * residual, axis=0)
        system[i, i] += damping * (1.0 + system[i, i])
    return _solve(system)


def _solve(system: Floats) -> Floats:
    """Solutions, shape (5, N), of positive definite systems [A | b], shape (5, 6, N), in place."""
    for k in range(PARAMETERS):
        factor = system[k + 1 :, k] / system[k, k]
        system[k + 1 :] -= factor[:, None] * system[k]
    solution = np.empty((PARAMETERS, system.shape[2]))
    for k in reversed(range(PARAMETERS)):
        rest = system[k, PARAMETERS].copy()
        for j in range(k + 1, PARAMETERS):
            rest -= system[k, j] * solution[j]
        solution[k] = rest / system[k, k]
    return solution


def _bounded(many: Swarm, values: Floats) -> Floats:
    if many.family == ADDITIVE:
        values[:4] = np.clip(values[:4], -_WEIGHT, _WEIGHT)
        values[4] = np.clip(values[4], *_RATIO)
        return values
    values[:3] = np.clip(values[:3], -_ZERO, _ZERO)
    values[3:] = np.clip(values[3:], *_SLOPES)
    return values
