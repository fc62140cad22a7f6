"""No input makes the calculator work long: bounded in steps, not by the clock."""

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaexplore.benchmark.game import calculator

MOST = 32
STEPS_EACH = 1_500
"""Function calls for one expression, some thirty times what an ordinary one takes: a millisecond."""


def steps(texts):
    """(function calls that `calculate` makes, its answers)."""
    count = 0

    def counted(_frame, event, _argument):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        answers = calculator.calculate(texts)
    finally:
        sys.setprofile(before)
    return count, answers


def _filled(text):
    return (text * 1000)[:1000]


@pytest.mark.parametrize(
    "text",
    [
        "+".join(["1"] * 200), "1.1e1+" * 150, f"max({','.join(['1'] * 198)})", "max(1," * 60,
        "-" * 49 + "1", "(" * 50 + "1" + ")" * 50, _filled("(1,"), _filled("sum(["), _filled("1**"),
        _filled("a[b::"), _filled("lambda:"), _filled("f(**{"), _filled("x if y else "),
        _filled("[x for x in "), _filled("{{"), _filled("f'{"), _filled(" "), _filled("1 "),
        _filled("0_"), _filled("1."), _filled("1e"), _filled(".1.e+"), _filled("a"), "=" * 1000,
        "a =" + " " * 997, " " * 999 + "=", "x" * 10_000_000, "9" * 1000, "1" + "0" * 398 + ".0",
    ],
)  # fmt: skip
def test_no_text_takes_many_steps(text):
    count, answers = steps([text] * MOST)

    assert MOST == len(answers)
    assert count <= MOST * STEPS_EACH


PIECES = ["1", "1.", "e", *"x()[],+-=:{ ", "**", "//", "sum(", "max(", "lambda ", " for "]


@given(st.lists(st.sampled_from(PIECES)))
@settings(max_examples=60)
def test_no_repetition_takes_many_steps(pieces):
    text = _filled("".join(pieces) or "1")

    assert steps([text, f"x = {text[:990]}"])[0] <= 2 * STEPS_EACH


def test_a_chain_of_names_is_walked_once_and_keeps_the_stack_shallow():
    """Each name deep and used twice: neither the stack nor the work grows with the chain."""
    deep = [f"x{i} = {'-' * 48}(x{i + 1} + x{i + 1})" for i in range(MOST - 1)]
    texts = [*deep, f"x{MOST - 1} = 1"]
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(_depth() + 400)
    try:
        count, answers = steps(texts)
    finally:
        sys.setrecursionlimit(limit)

    assert [2 ** (MOST - 1 - i) for i in range(MOST)] == [a.value for a in answers]
    assert count <= MOST * STEPS_EACH


def test_a_chain_of_errors_is_walked_once():
    texts = [*(f"x{i} = x{i + 1} + x{i + 1}" for i in range(MOST - 1)), f"x{MOST - 1} = 1/0"]
    count, answers = steps(texts)

    assert ["division by zero"] * MOST == [a.error for a in answers]
    assert count <= MOST * STEPS_EACH


def _depth():
    frame, depth = sys._getframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth
