"""JSON as the environment writes it, and documents that are written again and again.

Every model, setting and seed is shown the same cases and the same few states of the tools, so their text
is made once.
"""

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final

encode: Final[Callable[[Any], str]] = json.JSONEncoder(ensure_ascii=False).encode
"""The text of plain data, one space after each comma and colon."""


class _Kept:
    """What nobody changes, with its text."""

    @cached_property
    def text(self) -> str:
        """The document as JSON."""
        return encode(self)


class Written(_Kept, dict[str, Any]):
    """A document that nobody changes, with its text."""


class WrittenList(_Kept, list[Any]):
    """A list that nobody changes, with its text."""


class Json(str):
    """Text that is JSON already."""

    __slots__ = ()


def written(value: object) -> str:
    """The text of plain data (finite numbers), made once where it is kept."""
    if type(value) is int or type(value) is float:
        return repr(value)
    if isinstance(value, Json):
        return value
    if value is None:
        return "null"
    return value.text if isinstance(value, _Kept) else encode(value)


def members(document: Mapping[str, object]) -> Json:
    """The text of an object, of which parts may be written already."""
    items = [f'"{name}": {written(value)}' for name, value in document.items()]
    return Json(f"{{{', '.join(items)}}}")
