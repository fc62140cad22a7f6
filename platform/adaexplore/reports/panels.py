"""Panels: one plot on its axes, for each kind of figure.

Marks differ in shape as well as in colour, since a reader may see neither colours nor a screen.
Source: palette after Okabe and Ito (2008), darkened where it would be faint on white.
"""

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Final

from adaexplore.reports.markup import visible
from adaexplore.reports.sections import Figure, Panel, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PALETTE: Final = (
    "#0072b2", "#d55e00", "#00805f", "#b8558b", "#8a6d00", "#3a8fc4", "#5d4a99", "#6b6b6b",
)  # fmt: skip
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h")
"""A prime number of shapes, so that shape and colour together repeat late."""
INK: Final = "#1b1f24"
MUTED: Final = "#59636e"
GRID: Final = "#e4e8ec"
PAPER: Final = "#ffffff"
ROW_INCHES: Final = 0.24
"""Height of one row of a plot with rows."""


def colour(look: int) -> str:
    """Colour of a look."""
    return PALETTE[look % len(PALETTE)]


def marker(look: int) -> str:
    """Shape of a look."""
    return MARKERS[look % len(MARKERS)]


def height(figure: Figure) -> float:
    """Inches of a plot without what surrounds it."""
    return ROW_INCHES * max(len(figure.rows), 2) if figure.rows else 2.0


def margin(figure: Figure) -> float:
    """Inches left of a plot, for the names of its rows."""
    return 0.2 + 0.072 * max(map(len, figure.rows), default=5) if figure.rows else 0.62


def draw(axes: "Axes", figure: Figure, panel: Panel, *, labelled: bool) -> None:
    """Draw a panel of a figure; its rows are named where it is `labelled`."""
    drawers = {"curves": _curves, "intervals": _intervals, "shares": _shares, "scatter": _scatter}
    for line in figure.marks:
        across = axes.axvline if figure.rows else axes.axhline
        across(line, color=MUTED, linewidth=0.8, linestyle=":", zorder=1)
    if figure.change is not None:
        axes.axvline(figure.change, color=MUTED, linewidth=1.0, linestyle="--", zorder=1)
    drawers[figure.kind](axes, panel.series)
    axes.grid(axis="x" if figure.rows else "y", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.set_title(plain(panel.title), loc="left", y=1.0, pad=5)
    axes.set_xlabel(figure.x_label)
    _scale(axes, figure)
    if figure.rows:
        names = [plain(row) for row in figure.rows] if labelled else [""] * len(figure.rows)
        axes.set_yticks(range(len(figure.rows)), names)
        axes.set_ylim(len(figure.rows) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
    elif labelled:
        axes.set_ylabel(figure.y_label)


def _scale(axes: "Axes", figure: Figure) -> None:
    """The same scale in all panels, so that they can be compared."""
    values = [p.value for panel in figure.panels for s in panel.series for p in s.points]
    ends = [x for e in values for x in (e.value, e.low, e.high) if isfinite(x)]
    if figure.kind == "shares":
        axes.set_xlim(0.0, 1.0)
    elif figure.kind in ("intervals", "curves"):
        low, high = min([*ends, *figure.marks]), max([*ends, *figure.marks])
        room = 0.05 * (high - low or 1.0)
        (axes.set_xlim if figure.rows else axes.set_ylim)(low - room, high + room)


def _curves(axes: "Axes", series: Sequence[Series]) -> None:
    for one in series:
        x = [point.x for point in one.points]
        values = [point.value for point in one.points]
        ink = colour(one.look)
        low, high = [v.low for v in values], [v.high for v in values]
        axes.fill_between(x, low, high, color=ink, alpha=0.14, linewidth=0)
        axes.plot(
            x, [v.value for v in values], color=ink, linewidth=1.6, marker=marker(one.look),
            markersize=4, label=one.name,
        )  # fmt: skip


def _intervals(axes: "Axes", series: Sequence[Series]) -> None:
    rows = max(
        (sum(p.x == q.x for s in series for q in s.points) for s in series for p in s.points),
        default=1,
    )
    seen: dict[float, int] = {}
    for one in series:
        for point in one.points:
            place = seen.setdefault(point.x, 0)
            seen[point.x] += 1
            y = point.x + (0.0 if rows == 1 else 0.5 * ((place + 0.5) / rows - 0.5) * 1.3)
            e, ink = point.value, colour(one.look)
            if isfinite(e.low):
                axes.plot([e.low, e.high], [y, y], color=ink, linewidth=1.5, solid_capstyle="butt")
            axes.plot(
                [e.value], [y], color=ink, marker=marker(one.look), markersize=5.5, linestyle="",
                label=one.name,
            )  # fmt: skip


def _shares(axes: "Axes", series: Sequence[Series]) -> None:
    lefts: dict[float, float] = {}
    for one in series:
        for point in one.points:
            value = point.value.value
            if not isfinite(value):
                continue
            left = lefts.get(point.x, 0.0)
            axes.barh(
                point.x, value, left=left, height=0.72, color=colour(one.look), zorder=2,
                label=one.name, edgecolor=PAPER, linewidth=0.8,
            )  # fmt: skip
            if value >= 0.09:
                axes.text(
                    left + value / 2, point.x, f"{100 * value:.0f}", color=PAPER, fontsize=7.5,
                    ha="center", va="center",
                )  # fmt: skip
            lefts[point.x] = left + value


def _scatter(axes: "Axes", series: Sequence[Series]) -> None:
    for one in series:
        for point in one.points:
            ink, e, across = colour(one.look), point.value, point.across
            if isfinite(e.low):
                axes.plot([point.x, point.x], [e.low, e.high], color=ink, linewidth=1.1, alpha=0.7)
            if across is not None and isfinite(across.low):
                axes.plot(
                    [across.low, across.high],
                    [e.value, e.value],
                    color=ink,
                    linewidth=1.1,
                    alpha=0.7,
                )
            axes.plot(
                [point.x], [e.value], color=ink, marker=marker(one.look), markersize=6.5,
                linestyle="", label=one.name,
            )  # fmt: skip


def plain(name: str) -> str:
    """A name in which nothing steers the text and a dollar sign does not begin a formula."""
    return visible(name).replace("$", r"\$")
