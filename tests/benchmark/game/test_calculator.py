"""The calculator: Python's arithmetic on floats, order-free names, and an answer to anything."""

import math
import operator
import statistics
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adaexplore.benchmark.game import calculator

OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}
FUNCTIONS = {
    "abs": (abs, 1),
    "sqrt": (math.sqrt, 1),
    "floor": (math.floor, 1),
    "ceil": (math.ceil, 1),
    "exp": (math.exp, 1),
    "log": (math.log, 1),
    "log10": (math.log10, 1),
    "pow": (operator.pow, 2),
    "round": (lambda a, n: round(a, int(n)), 2),
    "min": (min, 3),
    "max": (max, 3),
    "sum": (lambda *values: float(sum(map(Fraction, values))), 3),
    "mean": (lambda *values: statistics.fmean(values), 3),
}


def _finite(value):
    if isinstance(value, complex) or not math.isfinite(value):
        raise ValueError(value)
    return float(value)


def _binary(children):
    def build(parts):
        (left, left_value), sign, (right, right_value) = parts
        compute = OPERATORS[sign]
        return f"({left}) {sign}({right})", lambda: _finite(compute(left_value(), right_value()))

    return st.tuples(children, st.sampled_from(sorted(OPERATORS)), children).map(build)


def _negated(children):
    return children.map(lambda part: (f"-({part[0]})", lambda: -part[1]()))


def _called(children):
    def build(parts):
        name, arguments = parts
        compute, count = FUNCTIONS[name]
        texts = [text for text, _ in arguments[:count]]
        values = [value for _, value in arguments[:count]]
        if name == "round":
            texts[1], values[1] = "2", lambda: 2.0
        return f"{name}({', '.join(texts)})", lambda: _finite(compute(*(v() for v in values)))

    names = st.sampled_from(sorted(FUNCTIONS))
    return st.tuples(names, st.lists(children, min_size=3, max_size=3)).map(build)


def _number(value):
    return repr(value), lambda: float(value)


def expressions():
    """(text, function that gives its value or raises) of random expressions."""
    numbers = st.integers(0, 10**6) | st.floats(0.0, 1e9) | st.sampled_from([0, 1, 2, 0.5, 1e-9])
    return st.recursive(
        numbers.map(_number),
        lambda children: _binary(children) | _negated(children) | _called(children),
        max_leaves=14,
    )


def answer(text):
    (only,) = calculator.calculate([text])
    return only


def is_error(only):
    return only.value is None and isinstance(only.error, str) and only.error != ""


@given(expressions())
def test_values_are_those_of_python(expression):
    """Every step is Python's own; where Python raises or leaves the finite numbers is an error."""
    text, compute = expression
    try:
        expected = compute()
    except (ArithmeticError, ValueError):
        expected = None
    actual = answer(text)

    if expected is None:
        assert is_error(actual)
    else:
        assert (expected, None) == (actual.value, actual.error)
        assert (expected.is_integer() and abs(expected) < 1e15) == isinstance(actual.value, int)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-2**2", -4),
        ("2**3**2", 512),
        ("2**-1", 0.5),
        ("10-3-4", 3),
        ("7//2*2", 6),
        ("-7%3", 2),
        ("-7//2", -4),
        ("2+3*4", 14),
        ("+-+1", -1),
        ("sum([1, 2, 3])", 6),
        ("mean((1, 2))", 1.5),
        ("max([4])", 4),
        ("sum()", 0),
        (f"sum({','.join(['0.1'] * 10)})", 1),
        ("sum(1e16, 1, -1e16)", 1),
        ("round(2.5)", 2),
        ("round(1234.5, -2)", 1200),
        ("log(8, 2)", 3),
        ("0.1+0.2", 0.1 + 0.2),
        (".5+1.", 1.5),
        ("1.5e3 + 2E-1", 1500.2),
        (" \t1\n+ 2 ", 3),
        ("-0.0", 0),
        ("1e15", 1e15),
        ("+".join(["1"] * 51), 51),
        (f"sum({','.join(['1'] * 198)})", 198),
    ],
)
def test_precedence_and_forms(text, expected):
    """Precedence, associativity, unary chains, lists as arguments, and the limits just kept."""
    assert (expected, None) == (answer(text).value, answer(text).error)


# -- names -------------------------------------------------------------------------------------


@given(st.data())
def test_assignments_are_free_of_order(data):
    """Values do not depend on the order of the expressions, and names reach each other."""
    count = data.draw(st.integers(1, 12))
    needs = [
        data.draw(st.sets(st.integers(0, i - 1)) if i else st.just(set())) for i in range(count)
    ]
    values = []
    for i in range(count):
        values.append(i + 1 + sum(values[j] for j in needs[i]))
    texts = [f"v{i} = {i + 1}" + "".join(f" + v{j}" for j in needs[i]) for i in range(count)]
    order = data.draw(st.permutations(range(count)))

    expected = [(values[i], None, f"v{i}") for i in order]
    answers = calculator.calculate([texts[i] for i in order])
    assert expected == [(a.value, a.error, a.variable) for a in answers]


@given(st.integers(1, 8), st.permutations(range(10)))
def test_circles_fail_with_all_that_use_them(size, order):
    """A ring of names fails, what uses it fails, what stands beside it does not."""
    ring = [f"r{i} = r{(i + 1) % size} + 1" for i in range(size)]
    texts = [*ring, "user = r0 * 2", "beside = 7", *["1"] * (8 - size)]
    answers = calculator.calculate([texts[i] for i in order])

    failed = {order.index(i) for i in range(size + 1)}
    assert failed == {i for i, a in enumerate(answers) if is_error(a)}
    assert all("circle" in answers[i].error for i in failed)
    assert 7 == answers[order.index(size + 1)].value


def test_a_second_assignment_fails_and_the_first_stands():
    first, second, user = calculator.calculate(["x = 1", "x = 2", "x + 1"])

    assert (1, "x", 2) == (first.value, first.variable, user.value)
    assert is_error(second)
    assert "twice" in second.error


def test_an_error_fails_those_that_use_it_and_no_others():
    broken, user, beside = calculator.calculate(["x = 1 / 0", "x + 1", "y = 2"])

    assert ["division by zero"] * 2 == [broken.error, user.error]
    assert ("x", None, "y", 2) == (broken.variable, user.variable, beside.variable, beside.value)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_function_names_cannot_be_assigned(name):
    """Nor does the refused assignment serve those that use the name."""
    refused, user, call = calculator.calculate([f"{name} = 3", f"{name} + 1", "sqrt(4)"])

    assert is_error(refused)
    assert "function" in refused.error
    assert f"unknown name '{name}'" == user.error
    assert 2 == call.value


def test_names_are_gone_after_the_call():
    calculator.calculate(["x = 1"])

    assert "unknown name 'x'" == answer("x + 1").error


# -- hostile input -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 / 0", "division by zero"),
        ("1 // 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("mean()", "division by zero"),
        ("9**9**9", "a number is too large"),
        ("exp(1000)", "a number is too large"),
        ("9" * 400, "a number is too large"),
        ("sqrt(-1)", "not defined for these numbers"),
        ("log(0)", "not defined for these numbers"),
        ("0 ** -1", "not defined for these numbers"),
        ("(-8) ** (1 / 3)", "not defined for these numbers"),
        ("min()", "not defined for these numbers"),
        ("abs(1, 2)", "a function has the wrong number of arguments"),
        ("floor(1, 2)", "a function has the wrong number of arguments"),
        ("pow(2)", "a function has the wrong number of arguments"),
        ("1e400", "the result is not a finite number"),
        ("1e308 * 10", "the result is not a finite number"),
        ("min(3, 1e400 - 1e400)", "the result is not a finite number"),
        ("1 / 1e400", "the result is not a finite number"),
        ("nan", "unknown name 'nan'"),
        ("inf", "unknown name 'inf'"),
        ("round(1, 0.5)", "round takes a whole number of digits from -15 to 15"),
        ("round(1, 400)", "round takes a whole number of digits from -15 to 15"),
    ],
)
def test_reasons_are_our_own_words(text, reason):
    """The same on every version of Python, whose own words change and name our internals."""
    assert reason == answer(text).error


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "()", "[]", "[1, 2]", "(1, 2)", "1,", "1 2", "1 +", "= 1", "x =", "x = y = 1",
        "(" * 500 + "1" + ")" * 499, "(" * 60 + "1" + ")" * 60, "-" * 60 + "1",
        "+".join(["1"] * 52), "+".join(["1"] * 450), "1" * 1001, f"max({'1,' * 400})",
        "**".join(["9"] * 40), "factorial(170)", "9**9**9**9", "exp(exp(exp(9)))", "1e308**9",
        "pow(pow(9, 99), 99)", "(1).real", "1 .real", "x.y", "sqrt.__class__", "(1).__class__",
        "lambda: 1", "(lambda: 1)()", "[x for x in (1, 2)]", "sum(x for x in [1])", "{1: 2}", "{1}",
        "'1'", '"a" * 9', "b'1'", "f'{1}'", "f'{9**9}'", "'\\d'", "x := 1", "(x := 1)", "1 if 1 else 2",
        "1if 1else 2", "1or 2", "0xfor 1", "1 < 2", "1 == 1", "not 1", "~1", "1 & 1", "1 << 99999",
        "1 @ 2", "True", "None", "...", "1j", "0x10", "0b1", "1_000", "007", "1 # comment", "1 \\\n + 1",
        "1; 2", "1\n2", "import os", "__import__('os')", "__import__(1)", "sqrt", "sqrt()", "abs(*[1])",
        "abs(x=1)", "min(key=1)", "sqrt(1)(2)", "sqrt(1)[0]", "[1][0]", "sum([[1], [2]])", "sum([1], [2])",
        "await 1", "yield 1", "del x", "\x001", "1\x00", "\ud800", "\u0661 + 1", "\uff11", "\u2075",
        "\u03c0", "\u212f", "\ufb01", "\uff53qrt(4)", "\u20031", "\u2003x = 1", "1 \u00d7 2", "\u22121",
    ],
)  # fmt: skip
def test_hostile_inputs_get_an_error(text):
    """Whatever is not arithmetic is an error of its own; no warning is raised on the way."""
    good, only, _ = calculator.calculate(["1 + 1", text, f"other = {text}"])

    assert 2 == good.value
    assert is_error(only)


ALPHABET = "0123456789.+-*/%(),[] \n=_abejlmnoprsuxN'\"\\{}:#~<>@"


@given(st.lists(st.text() | st.text(ALPHABET, max_size=40), max_size=8))
@example(["x" * 64 + " = 1", "x" * 65 + " = 1"])
def test_any_text_has_an_answer(texts):
    """Each expression has a finite value or a reason; what is not plain ASCII has a reason."""
    answers = calculator.calculate(texts)

    assert len(texts) == len(answers)
    for text, only in zip(texts, answers, strict=True):
        assert is_error(only) or (only.error is None and math.isfinite(only.value))
        assert text.isascii() or is_error(only)
        assert only.variable is None or (only.variable.isascii() and only.variable.isidentifier())
