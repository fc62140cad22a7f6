"""The calculator tool: arithmetic for agents that would rather not do it in their head.

Expressions come from an agent and are hostile until shown otherwise: they are parsed into a syntax
tree of which only numbers, names, operators and a fixed list of functions are walked, with limits
on length and depth. All values are floats, so nothing grows without bound and no input takes long.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

MAX_CHARS: Final = 1000
MAX_DEPTH: Final = 50
MAX_TOKENS: Final = 400

_ASSIGNMENT: Final = re.compile(
    r"\s*([A-Za-z_][A-Za-z0-9_]{0,63})\s*=(?!=)(.*)", re.DOTALL | re.ASCII
)
# The parser sees nothing else, so what it makes of strings, comments, hexadecimal numbers or words
# glued to numbers (and which of these it warns of) differs on no version of Python.
_TOKEN: Final = re.compile(
    r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[A-Za-z_]\w*|\*\*|//|[-+*/%(),\[\]]", re.ASCII
)
_FOREIGN: Final = "only numbers, + - * / // % **, parentheses and the listed functions"
_FAILURES: Final = (
    (ZeroDivisionError, "division by zero"),
    (OverflowError, "a number is too large"),
    (TypeError, "a function has the wrong number of arguments"),
    (ValueError, "not defined for these numbers"),
)
"""Reasons of our own: the words of Python's errors change from version to version."""
_OPERATORS: Final[dict[type[ast.AST], Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: math.pow,
}


def _round(value: float, digits: float = 0.0) -> float:
    if not (digits.is_integer() and abs(digits) <= 15):
        raise ExpressionError("round takes a whole number of digits from -15 to 15")
    return float(round(value, int(digits)))


FUNCTIONS: Final[dict[str, Callable[..., float]]] = {
    "abs": abs,
    "sqrt": math.sqrt,
    "min": lambda *values: min(values),
    "max": lambda *values: max(values),
    "sum": lambda *values: math.fsum(values),
    "mean": lambda *values: math.fsum(values) / len(values),
    "round": _round,
    "floor": lambda value: float(math.floor(value)),
    "ceil": lambda value: float(math.ceil(value)),
    "log": math.log,
    "log10": math.log10,
    "exp": math.exp,
    "pow": math.pow,
}


class ExpressionError(ValueError):
    """An expression that cannot be evaluated, with the reason the agent is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Outcome of one expression."""

    value: int | float | None
    error: str | None
    variable: str | None


def calculate(expressions: Sequence[str]) -> list[Answer]:
    """One answer for each expression, in order.

    `name = expression` assigns; names are local to the call and may be used before the expression
    that assigns them. An expression that fails has its own error and fails those that use it.
    """
    parsed = [_split(text) for text in expressions]
    assigned: dict[str, int] = {}
    for index, (name, _) in enumerate(parsed):
        if name is not None and name not in FUNCTIONS:
            assigned.setdefault(name, index)
    evaluator = _Evaluator(parsed, assigned)
    return [evaluator.answer(index) for index in range(len(parsed))]


def _split(text: str) -> tuple[str | None, str]:
    match = _ASSIGNMENT.fullmatch(text) if len(text) <= MAX_CHARS else None
    return (match[1], match[2]) if match else (None, text)


class _Evaluator:
    """Evaluates expressions in the order in which they need each other."""

    def __init__(self, parsed: list[tuple[str | None, str]], assigned: dict[str, int]) -> None:
        self._parsed = parsed
        self._assigned = assigned
        self._done: dict[int, float | ExpressionError] = {}
        self._open: set[int] = set()

    def answer(self, index: int) -> Answer:
        name = self._parsed[index][0]
        if name is not None and name in FUNCTIONS:
            return Answer(
                value=None, error=f"'{name}' is a function, not a variable", variable=name
            )
        if name is not None and self._assigned[name] != index:
            return Answer(value=None, error=f"'{name}' is assigned twice", variable=name)
        try:
            value = self._value(index)
        except ExpressionError as error:
            return Answer(value=None, error=str(error), variable=name)
        return Answer(value=_shown(value), error=None, variable=name)

    def _value(self, index: int) -> float:
        if index in self._open:
            raise ExpressionError("variables refer to each other in a circle")
        if index not in self._done:
            self._open.add(index)
            try:
                self._done[index] = self._evaluate(self._parsed[index][1])
            except ExpressionError as error:
                self._done[index] = error
            finally:
                self._open.discard(index)
        result = self._done[index]
        if isinstance(result, ExpressionError):
            raise result
        return result

    def _evaluate(self, text: str) -> float:
        tokens = _tokens(text)
        for name in tokens:  # before the walk, so that the stack stays shallow on a chain of names
            if name in self._assigned:
                self._name(name)
        try:
            return self._walk(_parse(tokens), 0)
        except ExpressionError:
            raise
        except tuple(kind for kind, _ in _FAILURES) as error:
            reasons = (reason for kind, reason in _FAILURES if isinstance(error, kind))
            raise ExpressionError(next(reasons)) from None

    def _walk(self, node: ast.expr, depth: int) -> float:
        if depth > MAX_DEPTH:
            raise ExpressionError(f"nested deeper than {MAX_DEPTH} levels")
        value = self._part(node, depth)
        if not math.isfinite(value):
            raise ExpressionError("the result is not a finite number")
        return value

    def _part(self, node: ast.expr, depth: int) -> float:
        match node:
            case ast.Constant(value=bool()):
                raise ExpressionError("only numbers are values")
            case ast.Constant(value=int() | float() as value):
                return float(value)
            case ast.Name(id=name):
                return self._name(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._walk(operand, depth + 1)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self._walk(operand, depth + 1)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](
                    self._walk(left, depth + 1), self._walk(right, depth + 1)
                )
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
                return FUNCTIONS[name](*self._arguments(args, depth))
        raise ExpressionError(_FOREIGN)

    def _arguments(self, args: list[ast.expr], depth: int) -> list[float]:
        """Arguments of a call; one list or tuple stands for its elements, as in sum([1, 2])."""
        if len(args) == 1 and isinstance(args[0], ast.List | ast.Tuple):
            args = args[0].elts
        return [self._walk(arg, depth + 1) for arg in args]

    def _name(self, name: str) -> float:
        if name not in self._assigned:
            raise ExpressionError(f"unknown name '{name}'")
        return self._value(self._assigned[name])


def _tokens(text: str) -> list[str]:
    if len(text) > MAX_CHARS:
        raise ExpressionError(f"longer than {MAX_CHARS} characters")
    tokens = _TOKEN.findall(text)
    if not text.isascii() or "".join(tokens) != "".join(text.split()):
        raise ExpressionError(_FOREIGN)
    if len(tokens) > MAX_TOKENS:
        raise ExpressionError(f"more than {MAX_TOKENS} parts")
    return tokens


def _parse(tokens: list[str]) -> ast.expr:
    depth = 0
    for part in tokens:
        depth += (part in "([") - (part in ")]")
        if depth > MAX_DEPTH:
            raise ExpressionError(f"nested deeper than {MAX_DEPTH} levels")
    try:
        return ast.parse(" ".join(tokens), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ExpressionError("not an arithmetic expression") from None


def _shown(value: float) -> int | float:
    return int(value) if value.is_integer() and abs(value) < 1e15 else value
