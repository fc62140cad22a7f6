"""From utilities to what they say about the intervention score.

The four utilities of a point follow from one number, its score s in [-1, 1], and are shown to two
places. So each answer confines s to an interval, about 0.002 to 0.02 wide, and where utilities no
longer change, at the clipped ends, to everything beyond. One utility alone (a case whose chosen
action was paid) confines s to one or two intervals, because an action loses on both sides of its
anchor. The inversion is a table over a fine grid of scores, so it is exact up to the grid's step.
Source: `world.utility`; the table is an idea of ours.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from adaexplore.benchmark.game.agents.reading import SeenCase, SeenProbe
from adaexplore.benchmark.game.feedback import shown
from adaexplore.benchmark.world import utility
from adaexplore.benchmark.world.episodes import Row

Interval = tuple[float, float]

OPEN: Final = 9.0
"""Stands for infinity: an interval that ends here is censored by the clip of the score."""
_STEPS: Final = 2000
"""Table entries per unit of score."""
ERROR: Final = 0.025
"""The midpoint of an interval from four utilities is never further than this from the true score
inside the clip; the interval itself contains the score up to one step of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One point with what is known of its score: it lies in one of two (maybe equal) intervals."""

    row: Row
    first: Interval
    second: Interval


def of_probe(probe: SeenProbe) -> Observation:
    """What a probe's four utilities say."""
    interval = score_interval(probe.utilities)
    return Observation(row=probe.row, first=interval, second=interval)


def of_case(case: SeenCase) -> Observation:
    """What the known utilities of a finished case say: all four of them, or one."""
    if len(case.utilities) == len(utility.ACTIONS):
        interval = score_interval(tuple(value for _, value in case.utilities))
        return Observation(row=case.row, first=interval, second=interval)
    action, value = case.utilities[0]
    first, second = score_intervals(action, value)
    return Observation(row=case.row, first=first, second=second)


@lru_cache(maxsize=4096)
def score_interval(shown: tuple[float, ...]) -> Interval:
    """Scores at which the four utilities round to those shown; ends beyond the clip are open."""
    table = _by_four()
    if shown in table:
        return table[shown]
    # Between two entries of the table two roundings can change at once: take the nearest entry.
    nearest = min(table, key=lambda key: (round(_distance(key, shown), 9), key))
    low, high = table[nearest]
    return low - 2.0 / _STEPS, high + 2.0 / _STEPS


@lru_cache(maxsize=4096)
def score_intervals(action: int, shown: float) -> tuple[Interval, Interval]:
    """Two intervals (equal when there is one) in which this action's utility rounds to `shown`."""
    table = _by_one()[action]
    value = min(table, key=lambda key: (round(abs(key - shown), 9), key))
    return table[value]


def middle_score(shown: tuple[float, ...]) -> float:
    """The score that four shown utilities tell, within `ERROR`; -1 or 1 at the clipped ends."""
    low, high = score_interval(shown)
    return (max(low, -1.0) + min(high, 1.0)) / 2.0


def _distance(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    return sum(abs(a - b) for a, b in zip(one, other, strict=True))


@lru_cache(maxsize=1)
def _shown() -> tuple[tuple[float, tuple[float, ...]], ...]:
    """(score, its four utilities as shown) on the table's grid."""
    grid = [i / _STEPS for i in range(-_STEPS, _STEPS + 1)]
    return tuple(
        (s, tuple(map(shown, u))) for s, u in zip(grid, utility.of_scores(grid), strict=True)
    )


def _span(scores: list[float]) -> Interval:
    low, high = min(scores), max(scores)
    half = 0.5 / _STEPS
    return (-OPEN if low <= -1.0 else low - half), (OPEN if high >= 1.0 else high + half)


@lru_cache(maxsize=1)
def _by_four() -> dict[tuple[float, ...], Interval]:
    found: dict[tuple[float, ...], list[float]] = {}
    for score, values in _shown():
        found.setdefault(values, []).append(score)
    return {values: _span(scores) for values, scores in found.items()}


@lru_cache(maxsize=1)
def _by_one() -> tuple[dict[float, tuple[Interval, Interval]], ...]:
    return tuple(_by_action(action) for action in range(len(utility.ACTIONS)))


def _by_action(action: int) -> dict[float, tuple[Interval, Interval]]:
    anchor = utility.ANCHORS[action]
    sides: dict[float, tuple[list[float], list[float]]] = {}
    for score, values in _shown():
        sides.setdefault(values[action], ([], []))[score >= anchor].append(score)
    return {
        value: (_span(below or above), _span(above or below))
        for value, (below, above) in sides.items()
    }
