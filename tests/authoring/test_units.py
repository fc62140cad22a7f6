"""Units of constraints: like is compared with like, and a constant may convert anything."""

import pytest

from adaexplore.authoring import units
from adaexplore.authoring.domain_files import path_of, read

UNITS = {"beds": "Beds", "more_beds": " beds", "hours": "h", "wait": "h", "rate": "beds per h"}
BEDS, MORE, HOURS, WAIT = ({"field": name} for name in ("beds", "more_beds", "hours", "wait"))
TEN = {"const": 10}


def node(op, *args):
    return {"op": op, "args": list(args)}


def less(left, right):
    return {"op": "le", "left": left, "right": right}


@pytest.mark.parametrize(
    "expression",
    [
        less(BEDS, MORE),
        less(node("add", BEDS, MORE, TEN), MORE),
        less(BEDS, TEN),
        less(node("mul", BEDS, TEN), HOURS),
        less(node("div", BEDS, HOURS), node("div", MORE, WAIT)),
        less(node("mul", BEDS, HOURS), node("mul", WAIT, MORE)),
        less(node("div", HOURS, WAIT), node("div", BEDS, MORE)),
        {"op": "not", "arg": less(HOURS, WAIT)},
        {"op": "implies", "if": less(HOURS, WAIT), "then": less(BEDS, MORE)},
    ],
)
def test_units_that_fit(expression):
    """Case and spaces aside; powers cancel; what a constant multiplies it may convert."""
    assert [] == units.faults(expression, UNITS, "e")


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        (less(BEDS, HOURS), "e.le: 'beds' meets 'h'; convert one exactly"),
        (less(node("add", BEDS, TEN, HOURS), MORE), "e.left.add: 'beds' meets 'h'"),
        (less(node("sub", HOURS, BEDS), TEN), "e.left.sub: 'h' meets 'beds'"),
        (less(node("div", BEDS, HOURS), MORE), "e.le: 'beds h^-1' meets 'beds'"),
        (less(node("mul", HOURS, WAIT), HOURS), "e.le: 'h^2' meets 'h'"),
        (less(node("div", HOURS, WAIT), BEDS), "e.le: '1' meets 'beds'"),
        (
            less(node("div", node("add", BEDS, HOURS), TEN), WAIT),
            "e.left.args[0].add: 'beds' meets",
        ),
        ({"op": "not", "arg": less(BEDS, HOURS)}, "e.arg.le: 'beds' meets 'h'"),
        (node("or", less(BEDS, MORE), less(HOURS, BEDS)), "e.args[1].le: 'h' meets 'beds'"),
        (
            {"op": "implies", "if": less(BEDS, MORE), "then": less(HOURS, MORE)},
            "e.then.le: 'h' meets",
        ),
    ],
)
def test_units_that_do_not_fit_are_named_with_their_place(expression, fault):
    (found,) = units.faults(expression, UNITS, "e")

    assert found.startswith(fault)


def test_every_place_is_named():
    """One mistake does not hide the next."""
    expression = less(node("add", BEDS, HOURS), node("add", WAIT, MORE, WAIT))

    assert 3 == len(units.faults(expression, UNITS, "e"))


def test_shipped_constraints_compare_like_with_like():
    domain = read(path_of("hospital_bed_flow"))
    named = {field.field_id: field.unit for field in domain.fields}

    assert domain.constraints
    for constraint in domain.constraints:
        assert [] == units.faults(constraint.expression, named, "e")
