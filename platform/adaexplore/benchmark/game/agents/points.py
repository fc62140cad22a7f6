"""Points to ask about: rows on the grid that satisfy the constraints.

Agents think in normalised values, every field on [-1, 1]; the environment takes rows in the fields'
own units, on a grid, and refuses a call with one infeasible row. So points are snapped to the grid,
a field that an equality fixes is computed from the others, and what breaks a constraint is left out.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from adaexplore.benchmark.game.agents.reading import ShownField, View
from adaexplore.benchmark.world import constraints, seeds
from adaexplore.benchmark.world.constraints import Expression
from adaexplore.benchmark.world.episodes import Row
from adaexplore.benchmark.world.fields import Floats, Hundredths

_SHRINK: Final = (1.0, 0.75, 0.5, 0.25)
_TRIES: Final = 1000
_ROUNDS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Where points may lie: the fields with their ranges and the constraints as infix text."""

    fields: tuple[ShownField, ...]
    constraints: tuple[str, ...]


def space(view: View) -> Space:
    """The space of a conversation."""
    return Space(fields=view.fields, constraints=view.constraints)


def normalised(fields: tuple[ShownField, ...], rows: tuple[Row, ...]) -> Floats:
    """Rows (hundredths) on [-1, 1], shape (n, fields)."""
    values = np.asarray(rows, dtype=np.float64).reshape(len(rows), len(fields))
    low, high = _bounds(fields)
    return 2.0 * (values - low) / (high - low) - 1.0


def feasible(where: Space, points: Floats) -> tuple[Row, ...]:
    """Grid rows of those points, shape (n, fields), that satisfy every constraint, in their order."""
    low, high = _bounds(where.fields)
    step = np.asarray([100 if f.whole else 1 for f in where.fields])
    raw = (low + (points + 1.0) * (high - low) / 2.0) / step
    values = np.clip(np.rint(raw).astype(np.int64) * step, low.astype(int), high.astype(int))
    columns = {f.field_id: values[:, i] for i, f in enumerate(where.fields)}
    good = np.ones(len(values), dtype=bool)
    for expression in _expressions(where.constraints):
        _fix(where, expression, columns)
    for i, field in enumerate(where.fields):
        good &= (field.low <= values[:, i]) & (values[:, i] <= field.high)
    for expression in _expressions(where.constraints):
        good &= constraints.hold_all(expression, columns)
    return tuple(map(tuple, values[good].tolist()))


@lru_cache(maxsize=128)
def sample(where: Space, count: int, purpose: str) -> tuple[Row, ...]:
    """Up to `count` feasible rows, denser near the middle of every range, where cases are."""
    rng = seeds.generator("agent points", purpose)
    found: tuple[Row, ...] = ()
    for _ in range(_ROUNDS):
        first, second = rng.uniform(-0.5, 0.5, size=(2, count, len(where.fields)))
        found += feasible(where, first + second)
        if len(found) >= count:
            break
    return found[:count]


@lru_cache(maxsize=16)
def middle(where: Space) -> Row | None:
    """The feasible row nearest to the middle of all ranges; None when none is found."""
    rows = feasible(where, np.zeros((1, len(where.fields)))) or sample(where, _TRIES, "middle")
    if not rows:
        return None
    distances = np.abs(normalised(where.fields, rows)).max(axis=1)
    return rows[int(np.argmin(distances))]


def varied(where: Space, base: Row, changes: dict[int, float]) -> Row | None:
    """`base` with some columns moved to normalised values, or as near to them as is feasible."""
    start = normalised(where.fields, (base,))[0]
    points = np.stack([start] * len(_SHRINK))
    for column, target in changes.items():
        points[:, column] = [start[column] + (target - start[column]) * part for part in _SHRINK]
    rows = feasible(where, points)
    return next((row for row in rows if row != base), None)


def _fix(where: Space, expression: Expression, columns: dict[str, Hundredths]) -> None:
    """Compute, in place, a field that an equality fixes."""
    if expression["op"] != "eq":
        return
    for own, other in (
        (expression["left"], expression["right"]),
        (expression["right"], expression["left"]),
    ):
        name = own.get("field")
        if name and name not in constraints.fields(other):
            step = next(100 if f.whole else 1 for f in where.fields if f.field_id == name)
            wanted = np.nan_to_num(constraints.approximate(other, columns)) * 100.0
            columns[name][:] = np.rint(wanted / step).astype(np.int64) * step
            return


@lru_cache(maxsize=16)
def _expressions(texts: tuple[str, ...]) -> tuple[Expression, ...]:
    return tuple(constraints.from_text(text) for text in texts)


def _bounds(fields: tuple[ShownField, ...]) -> tuple[Floats, Floats]:
    low = np.asarray([f.low for f in fields], dtype=np.float64)
    return low, np.asarray([f.high for f in fields], dtype=np.float64)
