"""Rule families: each against its brute-force twin, its monotonicity, and what a drift changes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import twins
from adaexplore.benchmark.world import calibration
from adaexplore.benchmark.world import rules as rule_module
from adaexplore.benchmark.world.calibration import Calibration
from adaexplore.benchmark.world.fields import FAMILIES
from adaexplore.benchmark.world.rules import Rule, Slot
from strategies import FIELD_IDS, calibrations, dyadic, points, rules

MONOTONE = ("additive_aggregation", "conjunctive_gating", "disjunctive_sufficiency")


def evidence(rule, cases):
    """Evidence of cases by the code under test."""
    columns = {name: np.array([case[name] for case in cases]) for name in FIELD_IDS}
    return rule_module.evidence(rule, columns).tolist()


def slot(field_id, direction=1, threshold=0.0):
    return Slot(field_id=field_id, direction=direction, weight=0.0, threshold=threshold)


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data(), cases=st.lists(points(), min_size=1, max_size=12))
def test_evidence_equals_its_twin(family, data, cases):
    """Every family, row by row, against exact fractions; ties at the band included."""
    rule = data.draw(rules((family,)))

    assert [float(twins.evidence(rule, case)) for case in cases] == evidence(rule, cases)


def test_evidence_by_hand():
    """One case, worked out on paper for each family."""
    case = {"a": 0.5, "b": -0.25, "c": 0.75, "d": 1.0, "e": 1.0}
    slots = (slot("a", threshold=0.25), slot("b", -1, 0.25), slot("c", -1, 0.5))  # .25, .5, -.25
    weighted = tuple(
        replace(s, weight=w, threshold=0.0) for s, w in zip(slots, (0.5, 0.25, 0.25), strict=True)
    )
    expected = {
        "additive_aggregation": 0.5 * 0.5 + 0.25 * 0.25 - 0.25 * 0.75,
        "conjunctive_gating": -0.25,
        "disjunctive_sufficiency": 0.5,
        "lexicographic_priority": 0.5,  # 0.25 is not outside the band, 0.5 is
    }
    for family, value in expected.items():
        rule = Rule(family=family, slots=slots, band=0.25)
        additive = family == "additive_aggregation"
        assert [value] == evidence(replace(rule, slots=weighted) if additive else rule, [case])


def test_lexicographic_last_field_decides_when_none_is_decisive():
    rule = Rule(
        family="lexicographic_priority", slots=(slot("a"), slot("b"), slot("c", -1)), band=0.5
    )
    case = dict.fromkeys(FIELD_IDS, 0.25)

    assert [-0.25] == evidence(rule, [case])


# -- monotonicity ------------------------------------------------------------------------------


@given(rules(MONOTONE), points(), st.integers(0, 2), dyadic())
def test_evidence_is_weakly_monotone_in_each_relevant_field(rule, case, index, other):
    """Additive, conjunctive and disjunctive rules never move against a field's direction."""
    name, direction = rule.slots[index].field_id, rule.slots[index].direction
    low, high = sorted((case[name], other))
    before, after = evidence(rule, [{**case, name: low}, {**case, name: high}])

    assert direction * (after - before) >= 0.0


@given(rules(("lexicographic_priority",)), points(), dyadic())
def test_lexicographic_evidence_is_monotone_in_the_last_field(rule, case, other):
    name, direction = rule.slots[2].field_id, rule.slots[2].direction
    low, high = sorted((case[name], other))
    before, after = evidence(rule, [{**case, name: low}, {**case, name: high}])

    assert direction * (after - before) >= 0.0


@given(rules(("lexicographic_priority",)), points(), st.integers(0, 2), dyadic())
def test_lexicographic_evidence_is_monotone_while_one_field_decides(rule, case, index, other):
    name, direction = rule.slots[index].field_id, rule.slots[index].direction
    low, high = ({**case, name: value} for value in sorted((case[name], other)))
    assume(twins.decisive(rule, low) == twins.decisive(rule, high))
    before, after = evidence(rule, [low, high])

    assert direction * (after - before) >= 0.0


def test_lexicographic_evidence_can_fall_when_another_field_becomes_decisive():
    """The family's nature: a rising first field takes over from a stronger second one."""
    rule = Rule(family="lexicographic_priority", slots=(slot("a"), slot("b"), slot("c")), band=0.25)
    below = {"a": 0.25, "b": 0.75, "c": 0.0, "d": 0.0, "e": 0.0}
    above = {**below, "a": 0.5}
    fitted = Calibration(q25=-1.0, q50=0.0, q75=1.0)

    assert (1, 0) == (twins.decisive(rule, below), twins.decisive(rule, above))
    assert [0.75, 0.5] == evidence(rule, [below, above])
    assert [0.375, 0.25] == calibration.score(fitted, np.array([0.75, 0.5])).tolist()


@given(rules(MONOTONE), calibrations(), points(), st.integers(0, 2), dyadic())
def test_score_is_weakly_monotone_in_each_relevant_field(rule, fitted, case, index, other):
    """Calibration keeps the order that the evidence has."""
    name, direction = rule.slots[index].field_id, rule.slots[index].direction
    low, high = sorted((case[name], other))
    both = evidence(rule, [{**case, name: low}, {**case, name: high}])
    before, after = calibration.score(fitted, np.array(both))

    assert direction * (after - before) >= 0.0


@given(rules(), points(), points())
def test_distractors_never_change_the_evidence(rule, case, other):
    """Whatever the fields outside the rule say, the evidence stays to the last bit."""
    mixed = {name: (case if name in rule.field_ids else other)[name] for name in FIELD_IDS}
    before, after = evidence(rule, [case, mixed])

    assert before == after


# -- drift -------------------------------------------------------------------------------------


@given(rules(), st.permutations(range(3)), dyadic())
def test_drift_changes_exactly_what_it_declares(rule, order, threshold):
    """One slot gets another field and threshold, another turns, the third and the rest stay."""
    leaving, turning, staying = order
    incoming = next(name for name in FIELD_IDS if name not in rule.field_ids)
    after = rule_module.drift(
        rule, outgoing=rule.field_ids[leaving], incoming=incoming, threshold=threshold,
        reversed_=rule.field_ids[turning],
    )  # fmt: skip

    assert (rule.family, rule.band) == (after.family, after.band)
    was, now = rule.slots[leaving], after.slots[leaving]
    assert (incoming, was.direction, was.weight, threshold) == (
        now.field_id, now.direction, now.weight, now.threshold,
    )  # fmt: skip
    was, now = rule.slots[turning], after.slots[turning]
    assert (was.field_id, -was.direction, was.weight, was.threshold) == (
        now.field_id, now.direction, now.weight, now.threshold,
    )  # fmt: skip
    assert rule.slots[staying] == after.slots[staying]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outgoing": "d"}, "two different relevant fields"),
        ({"reversed_": "d"}, "two different relevant fields"),
        ({"reversed_": "a"}, "two different relevant fields"),
        ({"incoming": "c"}, "incoming field outside the rule"),
        ({"incoming": "a"}, "incoming field outside the rule"),
    ],
)
def test_impossible_drifts_are_refused(change, message):
    rule = Rule(family="conjunctive_gating", slots=(slot("a"), slot("b"), slot("c")), band=0.0)
    legal = {"outgoing": "a", "incoming": "e", "reversed_": "b", "threshold": 0.0}

    assert ("e", "b", "c") == rule_module.drift(rule, **legal).field_ids
    with pytest.raises(ValueError, match=message):
        rule_module.drift(rule, **{**legal, **change})


def test_directions_and_ids_are_in_slot_order():
    rule = Rule(family="conjunctive_gating", slots=(slot("c"), slot("a", -1), slot("b")), band=0.0)

    assert ("c", "a", "b") == rule.field_ids
    assert [("c", 1), ("a", -1), ("b", 1)] == list(rule.directions.items())
