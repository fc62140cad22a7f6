"""Markup: HTML and SVG as nested calls, in which a text cannot become a tag.

Pages show what models wrote, and a model may write anything. So there is one way from text to
markup, and it escapes: what is not `Markup` already is text. Characters that would turn the reading
direction, move the cursor or break the encoding are shown by their number instead of obeyed.
"""

import html
import unicodedata
from typing import Final

VOID: Final = frozenset(("br", "hr", "link", "meta", "input"))
"""HTML elements without an end tag."""
_STEERING: Final = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
_HIDDEN: Final = frozenset(("Cc", "Cs", "Zl", "Zp"))


class Markup(str):
    """Text that is markup already; made by `element`, `text` and `join` only."""

    __slots__ = ()


def text(value: object) -> Markup:
    """A value as text between tags or in an attribute's quotes."""
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(visible(str(value))))


def visible(value: str) -> str:
    """A text in which every character is to be seen or is a space, a tab or the end of a line."""
    return value if value.isprintable() else "".join(map(_visible, value))


def _visible(char: str) -> str:
    if char in "\n\t":
        return char
    hidden = char in _STEERING or unicodedata.category(char) in _HIDDEN
    return f"<U+{ord(char):04X}>" if hidden else char


def join(*parts: object) -> Markup:
    """Parts one after another; None is left out."""
    return Markup("".join(text(part) for part in parts if part is not None))


def element(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element with its children.

    Args:
        name: Of the tag, with the case that SVG wants.
        children: Markup or text; None is left out.
        attributes: `class_` and `for_` lose their trailing line, other lines become hyphens;
            True is an attribute without a value, None and False are left out.
    """
    start = f"<{name}{_attributes(attributes)}>"
    return Markup(start if name in VOID else f"{start}{join(*children)}</{name}>")


def _attributes(attributes: dict[str, object]) -> str:
    shown = ((name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items())
    return "".join(
        f" {name}" if value is True else f' {name}="{text(value)}"'
        for name, value in shown
        if value is not None and value is not False
    )
