"""Constraints are evaluated exactly: one case in fractions, whole populations row by row the same."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import twins
from adaexplore.benchmark.world import constraints
from strategies import EXPRESSIONS, FIELD_IDS, GRID_ROWS, NUMERICS

ROWS = st.lists(GRID_ROWS, min_size=1, max_size=10)
SUM = {"op": "add", "args": [{"field": "a"}, {"field": "b"}]}
C = {"field": "c"}


def columns(rows):
    return {name: np.array([row[name] for row in rows]) for name in FIELD_IDS}


def difference_of_products(op):
    products = [
        {"op": "mul", "args": [{"field": first}, {"field": second}]}
        for first, second in ("ab", "cd")
    ]
    return {"op": op, "left": {"op": "sub", "args": products}, "right": {"const": 0}}


EQUAL_PRODUCTS = {"a": 615464, "b": 329850, "c": 627448, "d": 323550, "e": 0}
"""a * b equals c * d, and in floating point it does not."""
SHARE = {"op": "div", "args": [{"field": "a"}, {"op": "add", "args": [*SUM["args"], C]}]}
CANCELLING = {"a": 10, "b": 20, "c": -30, "d": 0, "e": 0}
"""a + b + c is zero, and in floating point it is not."""


def product_of_products(names):
    """64 factors, eight at a time: the deepest legal product."""
    atoms = [{"field": name} for name in names]
    return {
        "op": "mul",
        "args": [{"op": "mul", "args": atoms[i : i + 8]} for i in range(0, 64, 8)],
    }


CYCLED = list(FIELD_IDS * 12 + FIELD_IDS[:4])
REORDERED = {
    "op": "eq",
    "left": product_of_products(CYCLED),
    "right": product_of_products(sorted(CYCLED)),
}
ROUNDED = {"a": 45646, "b": 92222, "c": 24323, "d": 83599, "e": 92419}
"""The order of 64 factors changes the product by a dozen units in the last place."""
NOWHERE = {"op": "le", "left": {"op": "div", "args": [{"const": 1}, {"const": 0}]}, "right": C}


@given(EXPRESSIONS, GRID_ROWS)
def test_one_case_equals_its_twin(expression, row):
    """Against numerators compared crosswise; what is undefined does not hold."""
    assert bool(twins.holds(expression, row)) == constraints.holds(expression, row)


@given(EXPRESSIONS, ROWS)
@example(difference_of_products("le"), [EQUAL_PRODUCTS])
@example(difference_of_products("eq"), [EQUAL_PRODUCTS])
@example({"op": "ge", "left": SHARE, "right": {"const": 0}}, [CANCELLING])
@example(REORDERED, [ROUNDED])
@example(NOWHERE, [CANCELLING, EQUAL_PRODUCTS])
@example({"op": "lt", "left": {"const": 1}, "right": {"const": 2}}, [CANCELLING, EQUAL_PRODUCTS])
def test_whole_columns_equal_single_cases(expression, rows):
    """Near-equality, cancellation, division by zero: floating point never decides a case."""
    expected = [constraints.holds(expression, row) for row in rows]

    assert expected == constraints.hold_all(expression, columns(rows)).tolist()


@given(st.sampled_from(("le", "lt", "ge", "gt", "eq")), ROWS, st.integers(-1, 1))
def test_columns_around_equality_equal_single_cases(op, rows, gap):
    """A total that is the exact sum of its parts, or one hundredth off."""
    expression = {"op": op, "left": SUM, "right": C}
    near = [{**row, "c": row["a"] + row["b"] + gap} for row in rows]
    expected = {"le": gap >= 0, "lt": gap > 0, "ge": gap <= 0, "gt": gap < 0, "eq": gap == 0}[op]

    assert [expected] * len(near) == constraints.hold_all(expression, columns(near)).tolist()


@pytest.mark.parametrize(
    ("op", "expected"), [("le", True), ("ge", True), ("eq", True), ("lt", False), ("gt", False)]
)
def test_a_tenth_and_two_tenths_are_three_tenths(op, expected):
    """The known trap: in floating point 0.1 + 0.2 is greater than 0.3."""
    assert 0.1 + 0.2 > 0.3
    case = {"a": 10, "b": 20}
    constant = {"op": op, "left": SUM, "right": {"const": 0.3}}

    assert expected == constraints.holds(constant, case)
    assert expected == constraints.holds({"op": op, "left": SUM, "right": C}, {**case, "c": 30})
    rows = {name: np.array([value]) for name, value in case.items()}
    assert [expected] == constraints.hold_all(constant, rows).tolist()


DIVIDED = {
    "op": "le", "left": {"op": "div", "args": [{"field": "a"}, {"field": "b"}]},
    "right": {"const": 2},
}  # fmt: skip
TRUE = {"op": "ge", "left": C, "right": {"const": 0}}
FALSE = {"op": "lt", "left": C, "right": {"const": 0}}


@pytest.mark.parametrize(
    "expression",
    [
        DIVIDED,
        {"op": "not", "arg": DIVIDED},
        {"op": "or", "args": [TRUE, DIVIDED]},
        {"op": "not", "arg": {"op": "and", "args": [FALSE, DIVIDED]}},
        {"op": "implies", "if": FALSE, "then": DIVIDED},
        {"op": "implies", "if": DIVIDED, "then": TRUE},
    ],
)
def test_division_by_zero_makes_a_case_invalid(expression):
    """Wherever it stands: no other part of the expression can make up for it."""
    for numerator in (100, 0, -100):
        case = {"a": numerator, "b": 0, "c": 0}
        rows = {name: np.array([value, 100]) for name, value in case.items()}
        assert not constraints.holds(expression, case)
        first, second = constraints.hold_all(expression, rows).tolist()
        assert not first
        assert constraints.holds(expression, {"a": 100, "b": 100, "c": 100}) == second


@given(NUMERICS, ROWS)
def test_approximate_value_is_the_exact_one_or_undefined(expression, rows):
    """Near the exact value wherever it is defined and no sum cancels nearly all of its parts."""
    values = constraints.approximate(expression, columns(rows))
    assert (len(rows),) == values.shape
    for row, value in zip(rows, values.tolist(), strict=True):
        exact = twins._value(expression, row)
        if exact is None or _cancels(expression, row):
            continue
        assert exact[0] / exact[1] == pytest.approx(value, rel=1e-9, abs=1e-9)


def _cancels(expression, row):
    """Whether a sum is far smaller than its largest part, so that few digits are left."""
    if "args" not in expression:
        return False
    own, *parts = (abs(_ratio(node, row)) for node in (expression, *expression["args"]))
    total = expression["op"] in ("add", "sub") and own < 1e-6 * max(parts)
    return total or any(_cancels(arg, row) for arg in expression["args"])


def _ratio(node, row):
    top, bottom = twins._value(node, row)
    return top / bottom
