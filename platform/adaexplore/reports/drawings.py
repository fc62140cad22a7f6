"""Drawings: the few shapes that figures are made of, as SVG.

They are drawn by hand, without a plotting library: colours follow the page's theme, every mark has a
title that tells its numbers, and each figure has a name and a description for those who cannot see it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from adaexplore.reports.markup import Markup, element

WIDTH: Final = 720
LEFT, RIGHT = 58, 96


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """A plot's window onto numbers: x from the first to the last window, y from low to high."""

    windows: int
    top: float
    height: float
    low: float
    high: float
    left: float = LEFT
    width: float = WIDTH - LEFT - RIGHT

    def x(self, window: float) -> float:
        """Across: a window's number is in the middle of its column."""
        return self.left + self.width * (window - 0.5) / self.windows

    def y(self, value: float) -> float:
        """Down."""
        return self.top + self.height * (self.high - value) / (self.high - self.low)

    @property
    def column(self) -> float:
        """Width of a window's column."""
        return self.width / self.windows

    @property
    def bottom(self) -> float:
        """Where the plot ends below."""
        return self.top + self.height


def drawing(width: float, height: float, title: str, told: str, *parts: object) -> Markup:
    """A figure that scales, with its name and its description."""
    head = (element("title", title), element("desc", told))
    return element(
        "svg", *head, *parts, viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=title,
        class_="plot",
    )  # fmt: skip


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """A straight line."""
    ends = {"x1": px(x1), "y1": px(y1), "x2": px(x2), "y2": px(y2)}
    return element("line", class_=class_, **ends)


def label(x: float, y: float, told: object, anchor: str = "middle", class_: str = "") -> Markup:
    """A word at a place."""
    return element("text", told, x=px(x), y=px(y), text_anchor=anchor, class_=class_ or None)


def bar(x: float, y: float, width: float, height: float, class_: str, told: str) -> Markup:
    """A rectangle that tells its number."""
    size = {"x": px(x), "y": px(y), "width": px(width), "height": px(max(height, 0.0))}
    return element("rect", element("title", told), class_=class_, **size)


def dot(x: float, y: float, radius: float, class_: str, told: str) -> Markup:
    """A round mark that tells its numbers."""
    at = {"cx": px(x), "cy": px(y), "r": px(radius)}
    return element("circle", element("title", told), class_=class_, **at)


def path(points: Iterable[tuple[float, float]], class_: str) -> Markup:
    """A line through points."""
    at = " ".join(f"{px(x)},{px(y)}" for x, y in points)
    return element("polyline", points=at, class_=class_)


def px(value: float) -> str:
    """A coordinate as SVG wants it, to a tenth."""
    return f"{value:.1f}".removesuffix(".0")
