"""Reading a reply: exactly one JSON object with the keys `tool` and `arguments`.

What the agent wrote is hostile input. It is read under limits of size and depth, duplicate keys and
numbers that JSON does not have are refused, and every refusal is a list of reasons that the agent
is told. Decimals are kept exact, so that "two decimal places" can be checked truly.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from typing import Any, Final, Literal

from adaexplore.benchmark.game.protocol import TOOLS

MAX_DEPTH: Final = 24
MAX_REASONS: Final = 12
MAX_DIGITS: Final = 400
"""Of an integer; a limit of our own, because the interpreter's can be switched off."""
_FENCE: Final = re.compile(r"\s*```(?:json|JSON)?[ \t]*\n(.*?)\n?```\s*", re.DOTALL)
# A bracket, or a whole string, whose brackets are none. An unclosed string runs to the end, so that no
# input is scanned twice.
_STRUCTURE: Final = re.compile(r'"[^"\\]*(?:\\(?:.|\Z)[^"\\]*)*(?:"|\Z)|([\[{\]}])', re.DOTALL)
_BOM: Final = "\ufeff"
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[{]}"))
_DEEPER: Final = {"": 0, "[": 1, "{": 1, "]": -1, "}": -1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call as the agent wrote it; the environment checks the arguments."""

    tool: str
    arguments: dict[str, Any]


class RejectedError(Exception):
    """A reply or a call that is refused; `reasons` is what the agent is told."""

    def __init__(self, reasons: Sequence[str]) -> None:
        """Keep the first reasons, each shortened: the agent's own words may be endless."""
        super().__init__("; ".join(reasons[:2]))
        kept = [reason[:300] for reason in reasons[:MAX_REASONS]]
        more = len(reasons) - len(kept)
        self.reasons = (*kept, f"and {more} more") if more else tuple(kept)


def read_call(text: str, *, parsing: Literal["strict", "lenient"], max_chars: int) -> Call:
    """The call in a reply; RejectedError with reasons if there is not exactly one."""
    document = read_object(text, parsing=parsing, max_chars=max_chars)
    if set(document) != {"tool", "arguments"}:
        raise RejectedError(
            [f"expected exactly the keys 'tool' and 'arguments', got {_names(document)}"]
        )
    tool, arguments = document["tool"], document["arguments"]
    if tool not in TOOLS:
        raise RejectedError([f"unknown tool {quoted(tool)}; the tools are {', '.join(TOOLS)}"])
    if not isinstance(arguments, dict):
        raise RejectedError([f"expected 'arguments' to be an object, got {quoted(arguments)}"])
    return Call(tool=tool, arguments=arguments)


def read_object(
    text: str, *, parsing: Literal["strict", "lenient"], max_chars: int
) -> dict[str, Any]:
    """The one JSON object that a reply consists of; decimals as `Decimal`.

    Raises:
        RejectedError: Anything else: too long, too deep, not JSON, duplicate keys, NaN, prose.
    """
    if len(text) > max_chars:
        raise RejectedError([f"the reply has {len(text)} characters; the limit is {max_chars}"])
    fenced = _FENCE.fullmatch(text) if parsing == "lenient" else None
    body = fenced[1] if fenced else text
    if not _is_flat(body) and _depth(body) > MAX_DEPTH:
        raise RejectedError([f"the reply is nested deeper than {MAX_DEPTH} levels"])
    try:
        document = json.loads(body) if body.startswith(_BOM) else _read(body)
    except json.JSONDecodeError as error:
        raise RejectedError(
            [
                f"not one JSON object: {error.msg} at character {error.pos}; send the object and nothing else"
            ]
        ) from None
    except ValueError as error:
        raise RejectedError([f"not one JSON object: {quoted(str(error))}"]) from None
    if not isinstance(document, dict):
        raise RejectedError([f"expected one JSON object, got {quoted(document)}"])
    return document


def would_be_lenient(text: str, *, max_chars: int) -> bool:
    """Whether a reply that strict reading refuses holds one call inside a Markdown fence."""
    try:
        read_call(text, parsing="lenient", max_chars=max_chars)
    except RejectedError:
        return False
    return _FENCE.fullmatch(text) is not None


def quoted(value: object) -> str:
    """A short printable form of something the agent wrote."""
    shown = ascii(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def _names(document: dict[str, Any]) -> str:
    return ", ".join(quoted(key) for key in list(document)[:6]) or "none"


def _is_flat(text: str) -> bool:
    """Whether a text is surely not too deep, which is quick to see of nearly every reply."""
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return True
    if "\\" in text:
        return False
    outside = "".join(text.split('"')[::2])  # of strings, where no quote is escaped
    brackets = outside.encode("ascii", "ignore").translate(None, _NO_BRACKETS)
    for _ in range(MAX_DEPTH // 2):  # a round takes away two levels at most
        if not brackets:
            break
        brackets = brackets.replace(b"{}", b"").replace(b"[]", b"")
    return not brackets


def _depth(text: str) -> int:
    steps = map(_DEEPER.__getitem__, _STRUCTURE.findall(text))
    return max(accumulate(steps), default=0)


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number has more than {MAX_DIGITS} digits")
    return int(text)


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError:
        raise ValueError("a number has an exponent out of bounds") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("an object has the same key twice")
    return document


_read: Final = json.JSONDecoder(
    parse_int=_integer,
    parse_float=_decimal,
    parse_constant=_refuse_constant,
    object_pairs_hook=_unique,
).decode
"""As `json.loads` with these arguments, which makes a decoder anew for every text."""
