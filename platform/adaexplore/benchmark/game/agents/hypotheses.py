"""Hypotheses about the rule: the four families as curves over normalised fields.

The score is one two-slope line of a *depth* z, the same for all families: `below * z` where z is
negative and `above * z` where it is positive, clipped to [-1, 1]. The families differ in the depth:

- additive: a weighted sum of the fields minus an offset;
- conjunctive, disjunctive: the smallest, the largest of the fields' own depths `sign (x - zero)`;
- lexicographic: the depth of the first field in order that lies outside a band of its own centre.

`zero` is where a field alone would put the score at 0, so slopes and zeros are the same few numbers
in every family. A *swarm* holds many hypotheses of one family as arrays, one column each.
Source: the families as the prompt words them, and `world.rules` and `world.calibration` for the
form: a reference agent may know the textbook, but not the page.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from adaexplore.benchmark.world.constraints import Flags
from adaexplore.benchmark.world.fields import (
    ADDITIVE,
    CONJUNCTIVE,
    LEXICOGRAPHIC,
    Family,
    Floats,
)

Indices = npt.NDArray[np.intp]
PARAMETERS: Final = 5
"""Three weights or zeros, and two that bend the line; see `Swarm.values`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """One rule that may be in force. Fields are column indices, in priority order."""

    family: Family
    fields: tuple[int, int, int]
    signs: tuple[int, int, int]
    values: tuple[float, ...]
    """As `Swarm.values`, for one hypothesis."""
    band: float
    shift: float

    @property
    def directions(self) -> dict[int, int]:
        """Direction (+1 or -1) by column."""
        if self.family != ADDITIVE:
            return dict(zip(self.fields, self.signs, strict=True))
        return {f: 1 if v > 0 else -1 for f, v in zip(self.fields, self.values, strict=False)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Swarm:
    """Hypotheses of one family, N of them."""

    family: Family
    fields: Indices
    """Shape (3, N): columns of the relevant fields, in priority order."""
    signs: Floats
    """Shape (3, N): +1 or -1; all +1 in additive swarms, whose weights carry the sign."""
    values: Floats
    """Shape (5, N). Margin families: three zeros, slope below, slope above. Additive: three
    weights (they absorb the slope below), offset, and the ratio of the slopes."""
    band: Floats
    shift: Floats
    """Shape (N,), lexicographic only: a field with depth z decides where `abs(z + shift) > band`."""

    def pick(self, chosen: Indices) -> "Swarm":
        """The hypotheses at these positions."""
        return Swarm(
            family=self.family,
            fields=self.fields[:, chosen],
            signs=self.signs[:, chosen],
            values=self.values[:, chosen],
            band=self.band[chosen],
            shift=self.shift[chosen],
        )

    def one(self, index: int) -> Hypothesis:
        """One of them, rounded so that last bits never decide anything later."""
        a, b, c = (int(f) for f in self.fields[:, index])
        d, e, f = (int(s) for s in self.signs[:, index])
        return Hypothesis(
            family=self.family,
            fields=(a, b, c),
            signs=(d, e, f),
            values=tuple(round(float(v), 9) for v in self.values[:, index]),
            band=round(float(self.band[index]), 9),
            shift=round(float(self.shift[index]), 9),
        )


def swarm(family: Family, members: Sequence[Hypothesis]) -> Swarm:
    """The members as arrays; all of one family."""
    return Swarm(
        family=family,
        fields=np.asarray([m.fields for m in members], dtype=np.intp).reshape(-1, 3).T,
        signs=np.asarray([m.signs for m in members], dtype=np.float64).reshape(-1, 3).T,
        values=np.asarray([m.values for m in members], dtype=np.float64).reshape(-1, PARAMETERS).T,
        band=np.asarray([m.band for m in members], dtype=np.float64),
        shift=np.asarray([m.shift for m in members], dtype=np.float64),
    )


def join(parts: Sequence[Swarm]) -> Swarm:
    """Swarms of one family as one."""
    return replace(
        parts[0],
        fields=np.concatenate([p.fields for p in parts], axis=1),
        signs=np.concatenate([p.signs for p in parts], axis=1),
        values=np.concatenate([p.values for p in parts], axis=1),
        band=np.concatenate([p.band for p in parts]),
        shift=np.concatenate([p.shift for p in parts]),
    )


def depth(many: Swarm, x: Sequence[Floats]) -> tuple[Floats, tuple[Floats, Floats, Floats]]:
    """Depths, shape (n, N), and their derivatives by the three weights or zeros.

    Args:
        many: The hypotheses.
        x: Normalised values of each one's three fields, three arrays of shape (n, N).
    """
    if many.family == ADDITIVE:
        terms = [many.values[j] * x[j] for j in range(3)]
        return terms[0] + terms[1] + terms[2] - many.values[3], (x[0], x[1], x[2])
    own = [many.signs[j] * (x[j] - many.values[j]) for j in range(3)]
    first, second = _deciding(many, own)
    z = np.where(first, own[0], np.where(second, own[1], own[2]))
    third = ~first & ~second
    second &= ~first
    return z, (-many.signs[0] * first, -many.signs[1] * second, -many.signs[2] * third)


def _deciding(many: Swarm, own: Sequence[Floats]) -> tuple[Flags, Flags]:
    """Where the first field decides, and where the second does if the first does not, (n, N)."""
    if many.family == LEXICOGRAPHIC:
        return np.abs(own[0] + many.shift) > many.band, np.abs(own[1] + many.shift) > many.band
    if many.family == CONJUNCTIVE:
        return (own[0] <= own[1]) & (own[0] <= own[2]), own[1] <= own[2]
    return (own[0] >= own[1]) & (own[0] >= own[2]), own[1] >= own[2]


def slopes(many: Swarm) -> tuple[Floats, Floats]:
    """Slopes of the score below and above zero depth, each shape (N,)."""
    if many.family == ADDITIVE:
        return np.ones_like(many.band), many.values[4]
    return many.values[3], many.values[4]


def columns(many: Swarm, points: Floats) -> list[Floats]:
    """Values of each hypothesis's three fields at points, shape (n, 8): three arrays (n, N)."""
    return [points[:, many.fields[j]] for j in range(3)]


def scores(many: Swarm, points: Floats) -> Floats:
    """Scores before the clip, shape (n, N), at normalised points, shape (n, 8)."""
    z, _ = depth(many, columns(many, points))
    below, above = slopes(many)
    result: Floats = z * np.where(z < 0.0, below, above)
    return result
