"""Rules: how three relevant fields make one number, the raw evidence.

Four families (paper, rule function): a weighted sum; the weakest of three oriented margins; the
strongest of them; or the first decisive one in priority order. A rule is data: a family and three
slots in priority order. A *slot* is a place in the rule; at the drift one field hands its slot to
another and one retained field turns its direction.

All functions take normalised columns, `{field_id: array of shape (n,)}` on [-1, 1], and use only
elementwise arithmetic in a fixed order, so results are the same to the last bit on every machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from adaexplore.benchmark.world import fields as field_module
from adaexplore.benchmark.world.fields import Family, Floats

Columns = Mapping[str, Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One relevant field with its direction and parameters."""

    field_id: str
    direction: Literal[1, -1]
    weight: float
    """Size of the additive weight, positive; the sizes of a rule sum to 1 before the change."""
    threshold: float
    """Normalised threshold of the other families, on [-1, 1]; 0 in additive rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A family and its three slots, in priority order."""

    family: Family
    slots: tuple[Slot, ...]
    band: float
    """Indifference band of a lexicographic rule (normalised units); 0 in the other families."""

    @property
    def field_ids(self) -> tuple[str, ...]:
        """Ids of the relevant fields, in slot order."""
        return tuple(slot.field_id for slot in self.slots)

    @property
    def directions(self) -> dict[str, int]:
        """Direction (+1 or -1) by relevant field."""
        return {slot.field_id: slot.direction for slot in self.slots}


def margin(slot: Slot, columns: Columns) -> Floats:
    """Oriented margin `d (x - t)` of one slot, shape (n,)."""
    return slot.direction * (columns[slot.field_id] - slot.threshold)


def evidence(rule: Rule, columns: Columns) -> Floats:
    """Raw evidence of each row, shape (n,) (paper, rule function; the bias is 0)."""
    if rule.family == field_module.ADDITIVE:
        return _weighted_sum(rule, columns)
    margins = [margin(slot, columns) for slot in rule.slots]
    if rule.family == field_module.CONJUNCTIVE:
        return np.minimum(np.minimum(margins[0], margins[1]), margins[2])
    if rule.family == field_module.DISJUNCTIVE:
        return np.maximum(np.maximum(margins[0], margins[1]), margins[2])
    first = np.where(np.abs(margins[1]) > rule.band, margins[1], margins[2])
    return np.where(np.abs(margins[0]) > rule.band, margins[0], first)


def _weighted_sum(rule: Rule, columns: Columns) -> Floats:
    terms = [slot.direction * slot.weight * columns[slot.field_id] for slot in rule.slots]
    return (terms[0] + terms[1]) + terms[2]


def drift(rule: Rule, *, outgoing: str, incoming: str, threshold: float, reversed_: str) -> Rule:
    """The rule after the change: exactly one replacement and one reversal, nothing else.

    Args:
        rule: The rule before the change.
        outgoing: Relevant field that leaves its slot.
        incoming: Field that takes the slot with its direction, weight and priority.
        threshold: Normalised threshold of the incoming field.
        reversed_: Another relevant field, whose direction flips.

    Raises:
        ValueError: `outgoing` or `reversed_` is not relevant, `incoming` already is, or
            `outgoing` and `reversed_` are the same field.
    """
    if outgoing == reversed_ or not {outgoing, reversed_} <= set(rule.field_ids):
        raise ValueError(f"expected two different relevant fields, got {outgoing} and {reversed_}")
    if incoming in rule.field_ids:
        raise ValueError(f"expected an incoming field outside the rule, got {incoming}")
    return replace(
        rule, slots=tuple(_drifted(s, outgoing, incoming, threshold, reversed_) for s in rule.slots)
    )


def _drifted(slot: Slot, outgoing: str, incoming: str, threshold: float, reversed_: str) -> Slot:
    if slot.field_id == outgoing:
        return replace(slot, field_id=incoming, threshold=threshold)
    if slot.field_id == reversed_:
        return replace(slot, direction=1 if slot.direction == -1 else -1)
    return slot
