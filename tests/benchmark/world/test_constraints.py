"""The grammar of constraints, and the line of text that an agent sees and can read back."""

import pytest
from hypothesis import given

from adaexplore.benchmark.world import constraints
from strategies import EXPRESSIONS

A, B, C = ({"field": name} for name in "abc")
ONE = {"const": 1}
LESS = {"op": "le", "left": A, "right": B}


def node(op, *args):
    return {"op": op, "args": list(args)}


def less(left, right=B):
    return {"op": "le", "left": left, "right": right}


@given(EXPRESSIONS)
def test_legal_trees_have_no_faults(expression):
    assert [] == constraints.faults(expression)


@given(EXPRESSIONS)
def test_text_reads_back_as_the_same_tree(expression):
    """Brackets, chains, negative and tiny constants, and every boolean node survive."""
    assert expression == constraints.from_text(constraints.to_text(expression))


DEEP_CLAUSE = node("and", LESS, node("or", LESS, LESS))
TWO_LEVELS = node("add", node("mul", A, B), ONE)
ILLEGAL = [
    (None, "e: expected a mapping with 'op', got None"),
    ([LESS], "e: expected a mapping with 'op'"),
    ({}, "e: expected a comparison, not, and, or, implies"),
    (A, "e: expected a comparison, not, and, or, implies"),
    (node("add", A, B), "got 'add'"),
    (node("xor", LESS, LESS), "got 'xor'"),
    ({"op": ["le"], "left": A, "right": B}, "got \"['le']\""),
    ({"op": "le", "left": A}, "e: expected exactly the keys ['left', 'op', 'right']"),
    ({**LESS, "note": ""}, "e: expected exactly the keys"),
    ({"op": "not", "args": [LESS]}, "e: expected exactly the keys ['arg', 'op']"),
    ({"op": "and", "arg": LESS}, "e: expected exactly the keys ['args', 'op']"),
    ({"op": "implies", "if": LESS}, "e: expected exactly the keys ['if', 'op', 'then']"),
    (node("and", LESS), "e.and.args: expected a list of 2 to 8"),
    (node("or", *[LESS] * 9), "e.or.args: expected a list of 2 to 8"),
    ({"op": "and", "args": "ab"}, "e.and.args: expected a list of 2 to 8"),
    (node("and", LESS, A), "e.and.args[1]: expected a comparison"),
    (node("and", LESS, "a"), "e.and.args[1]: expected a mapping"),
    (node("and", LESS, node("or", LESS, "a")), "e.and.args[1].or.args[1]: expected a comparison"),
    (node("and", LESS, DEEP_CLAUSE), "args[1]: expected a comparison at this depth, got 'or'"),
    ({"op": "not", "arg": {"op": "not", "arg": DEEP_CLAUSE}}, "got 'and'"),
    ({"op": "implies", "if": DEEP_CLAUSE, "then": LESS}, "e.implies.if.and.args[1]: expected"),
    ({"op": "implies", "if": LESS, "then": DEEP_CLAUSE}, "e.implies.then.and.args[1]: expected"),
    (node("and", LESS, {"op": "implies", "if": LESS, "then": LESS}), "got 'implies'"),
    (less(A, 3), "e.le.right: expected a field, a const or an arithmetic node, got 3"),
    (less({"field": 3}), "e.le.left.field: expected an id"),
    (less({"field": "a", "unit": "h"}), "e.le.left: expected exactly the keys ['field']"),
    (less({"const": "3"}), "e.le.left.const: expected a number"),
    (less({"const": True}), "e.le.left.const: expected a number"),
    (less({"const": float("nan")}), "e.le.left.const: expected a number"),
    (less({"const": float("-inf")}), "e.le.left.const: expected a number"),
    (less({"const": 10**400}), "e.le.left.const: expected a number"),
    (less({"const": 1, "unit": "h"}), "e.le.left: expected exactly the keys ['const']"),
    (less({"op": "pow", "args": [A, B]}), "e.le.left: expected a field, a const or add/sub"),
    (less({"op": {}, "args": [A, B]}), "e.le.left: expected a field, a const or add/sub"),
    (less({"op": "add", "args": [A, B], "x": 1}), "e.le.left: expected exactly the keys"),
    (less(node("add", A)), "e.le.left.add.args: expected a list of 2 to 8"),
    (less(node("mul", *[A] * 9)), "e.le.left.mul.args: expected a list of 2 to 8"),
    (less(node("sub", A, B, C)), "e.le.left.sub.args: expected a list of 2 to 2"),
    (less(node("div", A, B, C)), "e.le.left.div.args: expected a list of 2 to 2"),
    (less(node("sub", node("add", A, ONE), B)), "add.args[1]: expected a field at this depth"),
    (
        less(node("sub", node("add", node("mul", A, B), C), B)),
        "add.args[0]: expected a field, a const or add/sub",
    ),
    (less(LESS), "e.le.left: expected a field, a const or add/sub/mul/div (two levels), got 'le'"),
]


@pytest.mark.parametrize(("expression", "message"), ILLEGAL)
def test_breaches_of_the_grammar_are_named_with_their_path(expression, message):
    (fault,) = constraints.faults(expression, where="e")

    assert message in fault


def test_the_deepest_legal_tree_is_legal():
    """Two arithmetic levels on both sides, inside a clause on both sides of an implication."""
    comparison = less(TWO_LEVELS, node("div", node("add", A, B), C))
    clause = node("or", comparison, comparison)

    assert [] == constraints.faults({"op": "implies", "if": clause, "then": clause})


def test_all_faults_of_a_tree_are_listed():
    """One bad operand does not hide another."""
    broken = node("and", less({"const": None}), {"op": "le", "left": A}, less(A, node("add", A)))

    assert 3 == len(constraints.faults(broken))


def test_fields_are_found_in_every_corner():
    expression = {
        "op": "implies",
        "if": {"op": "not", "arg": less(A, node("add", B, node("mul", C, {"field": "d"})))},
        "then": node("or", less({"field": "e"}), less(ONE, {"field": "f"})),
    }

    assert frozenset("abcdef") == constraints.fields(expression)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (less(node("add", A, B), C), "a + b <= c"),
        (less(node("sub", node("add", A, B), C), ONE), "(a + b) - c <= 1"),
        ({"op": "not", "arg": {"op": "eq", "left": A, "right": B}}, "not (a == b)"),
        (node("and", LESS, {"op": "gt", "left": C, "right": {"const": -0.5}}),
         "(a <= b) and (c > -0.5)"),
        ({"op": "implies", "if": LESS, "then": {"op": "lt", "left": B, "right": C}},
         "if a <= b then b < c"),
    ],
)  # fmt: skip
def test_text_as_the_agent_sees_it(expression, text):
    assert text == constraints.to_text(expression)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("a + b + c <= 1", less(node("add", A, B, C), ONE)),
        ("(a + b) + c <= 1", less(node("add", node("add", A, B), C), ONE)),
        ("a + (b + c) <= 1", less(node("add", A, node("add", B, C)), ONE)),
        (" a - b <= -1 ", less(node("sub", A, B), {"const": -1})),
    ],
)
def test_brackets_and_spaces_in_text(text, expression):
    assert expression == constraints.from_text(text)


@pytest.mark.parametrize(
    "text",
    ["", "a <=", "a <= b <= c", "a != b", "a ** b <= c", "f(a) <= b", "'a' <= b", "a <= -b",
     "a <= +1", "a.b <= c", "if a <= b", "if a <= b then", "[a] <= b", "a <= b; a <= c"],
)  # fmt: skip
def test_other_text_is_refused(text):
    with pytest.raises(ValueError, match="expected"):
        constraints.from_text(text)
