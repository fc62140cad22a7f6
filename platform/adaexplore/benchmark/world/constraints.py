"""Feasibility constraints: small expression trees over fields, evaluated in exact decimals.

A constraint says what cannot be otherwise (a part is at most its whole). It is written as a tree of
plain mappings, shown to the agent as a line of infix text, and evaluated exactly: grid values are
hundredths, so `0.1 + 0.2 <= 0.3` holds here. Whole populations are first compared in floating
point with a bound of its rounding error, and rows within that bound are evaluated exactly.

Grammar (paper, appendix prompt on feasibility): atom `{field}`; term = atom, `{const}`, or one of
add/mul (2 to 8 atoms), sub/div (2 atoms); numeric = term or one arithmetic node over terms;
comparison le/lt/ge/gt/eq; clause = comparison, not of one, and/or over 2 to 8; whole = clause, not
of one clause, and/or over 2 to 8 clauses, or implies with clauses `if` and `then`. Division by zero
makes the case invalid.
"""

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from adaexplore.benchmark.world.fields import Floats, Hundredths

Expression = Mapping[str, Any]
Flags = npt.NDArray[np.bool_]

ARITHMETIC: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
}
COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "le": operator.le,
    "lt": operator.lt,
    "ge": operator.ge,
    "gt": operator.gt,
    "eq": operator.eq,
}
SYMBOLS: Final = {
    "add": "+", "sub": "-", "mul": "*", "div": "/",
    "le": "<=", "lt": "<", "ge": ">=", "gt": ">", "eq": "==",
}  # fmt: skip
MAX_ARGS: Final = 8
MAX_CONST: Final = 1e12
ROUNDING: Final = 1e-15
"""Bound of the relative error of one floating-point operation (2 ** -53), with room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """One relation that every case and every probe must satisfy."""

    constraint_id: str
    description: str
    expression: dict[str, Any]


# -- grammar -----------------------------------------------------------------------------------


def faults(expression: object, *, where: str = "expression") -> list[str]:
    """Every breach of the grammar as `path: what is wrong`; empty when the tree is legal."""
    return _boolean_faults(expression, where, clause_allowed=True)


def _boolean_faults(node: object, where: str, *, clause_allowed: bool) -> list[str]:
    if not isinstance(node, Mapping):
        return [f"{where}: expected a mapping with 'op', got {node!r}"]
    op = _op(node)
    below = f"{where}.{op}"
    if op in COMPARISONS:
        return _keys(node, {"op", "left", "right"}, where) or (
            _numeric_faults(node["left"], f"{below}.left", depth=2)
            + _numeric_faults(node["right"], f"{below}.right", depth=2)
        )
    inner_clause = clause_allowed
    if op == "not":
        return _keys(node, {"op", "arg"}, where) or _inside(node["arg"], below, inner_clause)
    if op in ("and", "or"):
        return _keys(node, {"op", "args"}, where) or _many(
            node["args"], below, lambda arg, path: _inside(arg, path, inner_clause)
        )
    if op == "implies" and clause_allowed:
        return _keys(node, {"op", "if", "then"}, where) or (
            _inside(node["if"], f"{below}.if", inner_clause)
            + _inside(node["then"], f"{below}.then", inner_clause)
        )
    return [
        f"{where}: expected a comparison, not, and, or, implies (not nested deeper), got {op!r}"
    ]


def _inside(node: object, where: str, clause_allowed: bool) -> list[str]:
    """Faults of a node inside a boolean one: a clause at the outer level, a comparison below."""
    if clause_allowed:
        return _boolean_faults(node, where, clause_allowed=False)
    if isinstance(node, Mapping) and _op(node) in COMPARISONS:
        return _boolean_faults(node, where, clause_allowed=False)
    return [f"{where}: expected a comparison at this depth, got {_op(node)!r}"]


def _numeric_faults(node: object, where: str, *, depth: int) -> list[str]:
    if not isinstance(node, Mapping):
        return [f"{where}: expected a field, a const or an arithmetic node, got {node!r}"]
    if "field" in node:
        bad = not isinstance(node["field"], str)
        return _keys(node, {"field"}, where) or ([f"{where}.field: expected an id"] if bad else [])
    if "const" in node:
        value = node["const"]
        bad = isinstance(value, bool) or not isinstance(value, int | float)
        bad = bad or not -MAX_CONST <= value <= MAX_CONST  # nan is neither
        if depth == 0:
            return [f"{where}: expected a field at this depth, got a const"]
        return _keys(node, {"const"}, where) or (
            [f"{where}.const: expected a number within {MAX_CONST:g}"] if bad else []
        )
    op = _op(node)
    if op not in ARITHMETIC or depth == 0:
        return [f"{where}: expected a field, a const or add/sub/mul/div (two levels), got {op!r}"]
    pair = op in ("sub", "div")
    return _keys(node, {"op", "args"}, where) or _many(
        node["args"],
        f"{where}.{op}",
        lambda arg, path: _numeric_faults(arg, path, depth=depth - 1),
        most=2 if pair else MAX_ARGS,
    )


def _many(
    args: object, where: str, check: Callable[[object, str], list[str]], *, most: int = MAX_ARGS
) -> list[str]:
    if not isinstance(args, Sequence) or isinstance(args, str) or not 2 <= len(args) <= most:
        return [f"{where}.args: expected a list of 2 to {most}, got {args!r}"]
    return [fault for i, arg in enumerate(args) for fault in check(arg, f"{where}.args[{i}]")]


def _keys(node: Mapping[str, Any], expected: set[str], where: str) -> list[str]:
    if set(node) == expected:
        return []
    return [f"{where}: expected exactly the keys {sorted(expected)}, got {sorted(map(str, node))}"]


def _op(node: object) -> str | None:
    """The operation of a node, or what stands in its place as text that can be looked up."""
    op = node.get("op") if isinstance(node, Mapping) else node
    return op if op is None or isinstance(op, str) else repr(op)


def fields(expression: Expression) -> frozenset[str]:
    """Ids of all fields that an expression refers to."""
    if "field" in expression:
        return frozenset((expression["field"],))
    return frozenset().union(*(fields(child) for child in _children(expression)))


def _children(node: Expression) -> list[Expression]:
    named = [node[key] for key in ("left", "right", "arg", "if", "then") if key in node]
    return named + list(node.get("args", ()))


# -- evaluation --------------------------------------------------------------------------------


def holds(expression: Expression, values: Mapping[str, int]) -> bool:
    """Whether one case, given in hundredths by field id, satisfies the expression, exactly."""
    try:
        return _holds(expression, values)
    except ZeroDivisionError:
        return False


def _holds(node: Expression, values: Mapping[str, int]) -> bool:
    op = node["op"]
    if op in COMPARISONS:
        left, right = _exact(node["left"], values), _exact(node["right"], values)
        return bool(COMPARISONS[op](left, right))
    # No short circuit: a division by zero anywhere makes the case invalid.
    results = [_holds(child, values) for child in _children(node)]
    return bool(_combine(op, results))


def _combine(op: str, results: list[Any]) -> Any:
    if op == "not":
        return ~results[0] if isinstance(results[0], np.ndarray) else not results[0]
    if op == "and":
        return reduce(operator.and_, results)
    if op == "or":
        return reduce(operator.or_, results)
    antecedent, consequent = results
    return _combine("not", [antecedent]) | consequent


def _exact(node: Expression, values: Mapping[str, int]) -> Fraction:
    if "field" in node:
        return Fraction(int(values[node["field"]]), 100)
    if "const" in node:
        return Fraction(str(node["const"]))
    return reduce(ARITHMETIC[node["op"]], (_exact(arg, values) for arg in node["args"]))


def hold_all(expression: Expression, columns: Mapping[str, Hundredths]) -> Flags:
    """Whether each row of the columns (hundredths, shape (n,)) satisfies it; shape (n,)."""
    names = sorted(fields(expression))
    with np.errstate(all="ignore"):
        flags, near = _rough(expression, columns)
    for row in np.flatnonzero(near):
        flags[row] = holds(expression, {name: int(columns[name][row]) for name in names})
    return flags


def _rough(node: Expression, columns: Mapping[str, Hundredths]) -> tuple[Flags, Flags]:
    """(holds, too near to tell) for each row, in floating point."""
    op = node["op"]
    if op in COMPARISONS:
        left, left_error = _bounded(node["left"], columns)
        right, right_error = _bounded(node["right"], columns)
        near = ~(np.abs(left - right) > left_error + right_error)  # also true for nan
        return COMPARISONS[op](left, right), near
    parts = [_rough(child, columns) for child in _children(node)]
    flags = _combine(op, [part[0] for part in parts])
    return flags, reduce(operator.or_, (part[1] for part in parts))


def approximate(expression: Expression, columns: Mapping[str, Hundredths]) -> Floats:
    """Value of a numeric expression for each row, shape (n,), in units; nan where undefined."""
    with np.errstate(all="ignore"):
        value, _ = _bounded(expression, columns)
    return np.where(np.isfinite(value), value, np.nan)


def _bounded(node: Expression, columns: Mapping[str, Hundredths]) -> tuple[Floats, Floats]:
    """(value, bound of its rounding error) for each row; not finite where undefined."""
    if "op" in node:
        return reduce(partial(_step, node["op"]), (_bounded(arg, columns) for arg in node["args"]))
    if "field" in node:
        value = columns[node["field"]] / 100.0
    else:
        value = np.full(len(next(iter(columns.values()))), float(node["const"]))
    return value, ROUNDING * np.abs(value)


def _step(
    op: str, left: tuple[Floats, Floats], right: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """One operation on values with error bounds: differences and quotients can magnify errors."""
    (x, dx), (y, dy) = left, right
    value = ARITHMETIC[op](x, y)
    error = dx + dy
    if op == "mul":
        error = np.abs(x) * dy + np.abs(y) * dx + dx * dy
    elif op == "div":
        room = np.abs(y) - dy
        error = np.where(room > 0.0, (dx + np.abs(value) * dy) / room, np.inf)
    return value, error + ROUNDING * np.abs(value)


# -- text --------------------------------------------------------------------------------------


def to_text(expression: Expression) -> str:
    """The expression as one line of infix text, as the agent sees it."""
    if "field" in expression:
        return str(expression["field"])
    if "const" in expression:
        return str(expression["const"])
    op = expression["op"]
    if op in COMPARISONS:
        return f"{to_text(expression['left'])} {SYMBOLS[op]} {to_text(expression['right'])}"
    if op == "implies":
        return f"if {to_text(expression['if'])} then {to_text(expression['then'])}"
    if op == "not":
        return f"not ({to_text(expression['arg'])})"
    joiner = f" {SYMBOLS.get(op, op)} "
    return joiner.join(_bracketed(arg) for arg in expression["args"])


def _bracketed(node: Expression) -> str:
    return to_text(node) if "field" in node or "const" in node else f"({to_text(node)})"


def from_text(text: str) -> dict[str, Any]:
    """The expression of a line made by `to_text`; ValueError for anything else."""
    if text.startswith("if "):
        antecedent, _, consequent = text.removeprefix("if ").partition(" then ")
        return {"op": "implies", "if": from_text(antecedent), "then": from_text(consequent)}
    try:
        return _from_ast(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, KeyError) as error:
        raise ValueError(f"expected a constraint such as 'a + b <= c', got {text!r}") from error


_FROM_AST: Final = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div",
    ast.LtE: "le", ast.Lt: "lt", ast.GtE: "ge", ast.Gt: "gt", ast.Eq: "eq",
    ast.And: "and", ast.Or: "or",
}  # fmt: skip


def _from_ast(node: ast.expr) -> dict[str, Any]:  # noqa: PLR0911 (one case a node type)
    if isinstance(node, ast.Name):
        return {"field": node.id}
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return {"const": node.value}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return {"const": -_from_ast(node.operand)["const"]}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return {"op": "not", "arg": _from_ast(node.operand)}
    if isinstance(node, ast.BoolOp):
        return {"op": _FROM_AST[type(node.op)], "args": [_from_ast(v) for v in node.values]}
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = _from_ast(node.left), _from_ast(node.comparators[0])
        return {"op": _FROM_AST[type(node.ops[0])], "left": left, "right": right}
    if isinstance(node, ast.BinOp):
        return {"op": _FROM_AST[type(node.op)], "args": _operands(node)}
    raise ValueError(f"expected an arithmetic or boolean node, got {ast.dump(node)}")


def _operands(node: ast.BinOp) -> list[dict[str, Any]]:
    """Operands of a chain such as a + b + c; what stands in brackets stays a node of its own."""
    left, op = node.left, type(node.op)
    same = isinstance(left, ast.BinOp) and type(left.op) is op and op in (ast.Add, ast.Mult)
    if isinstance(left, ast.BinOp) and same and left.col_offset == node.col_offset:  # no bracket
        return [*_operands(left), _from_ast(node.right)]
    return [_from_ast(left), _from_ast(node.right)]
