"""The intervention score of one case: what `population`, `rules` and `calibration` make of many at once.

An agent asks about a handful of cases in a turn. Arrays of a handful cost several times what they
compute, and more where many episodes take turns, so here the same steps are taken with plain numbers, in
the same order and so to the same last bit.
"""

from collections.abc import Callable, Sequence

from adaexplore.benchmark.world import fields as field_module
from adaexplore.benchmark.world.calibration import Calibration
from adaexplore.benchmark.world.fields import Field
from adaexplore.benchmark.world.rules import Rule

Row = Sequence[int]
"""A value for each visible field, in hundredths."""


def scorer(
    visible: Sequence[Field], rule: Rule, calibration: Calibration
) -> Callable[[Row], float]:
    """The function from a row to its score in [-1, 1] under a rule."""
    evidence = _evidence(rule)
    ids = [field.field_id for field in visible]
    places = [ids.index(name) for name in rule.field_ids]
    i, j, k = places
    (low_i, span_i), (low_j, span_j), (low_k, span_k) = (
        (visible[place].minimum, visible[place].maximum - visible[place].minimum)
        for place in places
    )
    middle = calibration.q50
    below, above = middle - calibration.q25, calibration.q75 - middle

    def score(row: Row) -> float:
        centred = (
            evidence(
                2.0 * (row[i] / 100.0 - low_i) / span_i - 1.0,
                2.0 * (row[j] / 100.0 - low_j) / span_j - 1.0,
                2.0 * (row[k] / 100.0 - low_k) / span_k - 1.0,
            )
            - middle
        )
        return min(max(0.5 * centred / (below if centred < 0.0 else above), -1.0), 1.0)

    return score


def _evidence(rule: Rule) -> Callable[[float, float, float], float]:
    """Raw evidence from the three normalised values, in slot order (see `rules.evidence`)."""
    a, b, c = rule.slots
    if rule.family == field_module.ADDITIVE:
        u, v, w = (slot.direction * slot.weight for slot in rule.slots)
        return lambda x, y, z: (u * x + v * y) + w * z

    def margins(x: float, y: float, z: float) -> tuple[float, float, float]:
        return (
            a.direction * (x - a.threshold),
            b.direction * (y - b.threshold),
            c.direction * (z - c.threshold),
        )

    if rule.family == field_module.CONJUNCTIVE:
        return lambda x, y, z: min(margins(x, y, z))
    if rule.family == field_module.DISJUNCTIVE:
        return lambda x, y, z: max(margins(x, y, z))
    return lambda x, y, z: _first_decisive(margins(x, y, z), rule.band)


def _first_decisive(margins: tuple[float, float, float], band: float) -> float:
    first, second, last = margins
    if abs(first) > band:
        return first
    return second if abs(second) > band else last
