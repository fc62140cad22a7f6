"""JSON as the environment writes it, and documents that are written again and again.

Every model, setting and seed is shown the same cases, so their text is made once an episode.
"""

import json
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

encode: Final[Callable[[Any], str]] = json.JSONEncoder(ensure_ascii=False).encode
"""The text of plain data, one space after each comma and colon."""


class Written(dict[str, Any]):
    """A document that nobody changes, with its text."""

    @cached_property
    def text(self) -> str:
        """The document as JSON."""
        return encode(self)
