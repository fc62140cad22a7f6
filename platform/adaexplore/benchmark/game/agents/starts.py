"""Where fits start: fresh hypotheses, and mutants of good ones.

Least squares moves the numbers of a hypothesis but never its structure (fields, order, directions,
band). So structures are drawn: at first freely, later near those that explain most, one change at a
time, as in any evolutionary search.
"""

from typing import Final

import numpy as np

from adaexplore.benchmark.game.agents.hypotheses import Indices, Swarm
from adaexplore.benchmark.world import seeds
from adaexplore.benchmark.world.constraints import Flags
from adaexplore.benchmark.world.episodes import VISIBLE
from adaexplore.benchmark.world.fields import ADDITIVE, LEXICOGRAPHIC, Family

Triples = tuple[tuple[int, int, int], ...]
_OPERATIONS: Final = 4


def fresh(family: Family, triples: Triples, count: int, purpose: str) -> Swarm:
    """Random hypotheses: every triple about equally often, every order and direction."""
    rng = seeds.generator("inference", "fresh", family, purpose)
    chosen = np.asarray(triples, dtype=np.intp)[np.arange(count) % len(triples)]
    order = np.argsort(rng.uniform(size=(count, 3)), axis=1)
    signs = np.where(rng.uniform(size=(3, count)) < 0.5, -1.0, 1.0)
    if family == ADDITIVE:
        weights = signs * rng.uniform(0.3, 2.0, size=(3, count))
        rest = (rng.uniform(-0.5, 0.5, size=count), rng.uniform(0.6, 1.7, size=count))
        values = np.stack([*weights, *rest])
        signs = np.ones_like(signs)
    else:
        zeros = rng.uniform(-0.7, 0.7, size=(3, count))
        values = np.concatenate([zeros, rng.uniform(1.0, 4.0, size=(2, count))])
    return Swarm(
        family=family,
        fields=np.take_along_axis(chosen, order, axis=1).T,
        signs=signs,
        values=values,
        band=rng.uniform(0.08, 0.55, size=count),
        shift=rng.uniform(-0.3, 0.3, size=count),
    )


def mutants(parents: Swarm, copies: int, triples: Triples, purpose: str) -> Swarm:
    """Each parent `copies` times, each copy with one change; only possible triples.

    A change is another field in one place, another direction in one place, two places exchanged
    (lexicographic), or another band and shift; and the numbers are shaken a little in all of them.
    """
    rng = seeds.generator("inference", "mutants", parents.family, purpose)
    many = parents.pick(np.repeat(np.arange(parents.band.size), copies))
    count = many.band.size
    change = rng.integers(_OPERATIONS, size=count)
    place, other, column = rng.integers((3, 2, VISIBLE), size=(count, 3)).T
    fields = _replaced(many.fields, place, column, change == 0)
    lexicographic = parents.family == LEXICOGRAPHIC
    order = _exchanged(place, other, (change == 2) & lexicographic)
    shaken = many.values + rng.uniform(-0.15, 0.15, size=many.values.shape)
    flip = np.where((change == 1) & (np.arange(3)[:, None] == place), -1.0, 1.0)
    weights = flip if parents.family == ADDITIVE else 1.0
    values = np.concatenate([np.take_along_axis(shaken[:3] * weights, order, axis=0), shaken[3:]])
    signs = many.signs if parents.family == ADDITIVE else many.signs * flip
    wide = np.where(change == 3, 0.25, 0.05)
    result = Swarm(
        family=parents.family,
        fields=np.take_along_axis(fields, order, axis=0),
        signs=np.take_along_axis(signs, order, axis=0),
        values=values,
        band=np.maximum(many.band + wide * rng.uniform(-1, 1, size=count), 0.02),
        shift=many.shift + wide * rng.uniform(-1, 1, size=count),
    )
    return result.pick(np.flatnonzero(allowed(result.fields, triples)))


def allowed(fields: Indices, triples: Triples) -> Flags:
    """Which columns of `fields`, shape (3, N), are three different fields of a possible triple."""
    codes = [(1 << a) + (1 << b) + (1 << c) for a, b, c in triples]
    different = (fields[0] != fields[1]) & (fields[0] != fields[2]) & (fields[1] != fields[2])
    one = np.left_shift(1, fields)
    possible: Flags = different & np.isin(one[0] + one[1] + one[2], codes)
    return possible


def _replaced(fields: Indices, place: Indices, column: Indices, where: Flags) -> Indices:
    result: Indices = np.where(where & (np.arange(3)[:, None] == place), column, fields)
    return result


def _exchanged(place: Indices, other: Indices, where: Flags) -> Indices:
    """Order of the three places, shape (3, N), with two of them exchanged where asked."""
    second = (place + 1 + other) % 3
    index = np.arange(3)[:, None]
    swapped = np.where(index == place, second, np.where(index == second, place, index))
    result: Indices = np.where(where, swapped, np.broadcast_to(index, swapped.shape))
    return result
