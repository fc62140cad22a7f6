"""Plots: figures drawn from their descriptions, once for files and once for the page.

A file is one picture (PNG, SVG) with its key in it. On the page each panel is a picture of its own, so
that panels flow below one another on a phone, in colours that follow the page's theme.
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from adaexplore.reports import panels
from adaexplore.reports.markup import Markup, element, join
from adaexplore.reports.sections import Figure

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

THEMED: Final = {
    panels.INK: "currentColor",
    panels.MUTED: "var(--soft)",
    panels.GRID: "var(--grid)",
    panels.PAPER: "var(--raised)",
    **{colour: f"var(--s{i})" for i, colour in enumerate(panels.PALETTE)},
}
"""What the colours of a picture become on the page."""
MOST_ACROSS: Final = 4
KEY_COLUMNS: Final = 5
PLOT_INCHES: Final = 2.9
"""Width of a plot without what surrounds it; the others are heights, but for the gap."""
HEAD_INCHES: Final = 0.3
FOOT_INCHES: Final = 0.46
GAP_INCHES: Final = 0.32
NAMESPACES: Final = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
STYLE: Final[dict[str, Any]] = {
    "svg.fonttype": "none", "svg.hashsalt": "adaexplore", "font.size": 9, "text.color": panels.INK,
    "axes.edgecolor": panels.MUTED, "axes.labelcolor": panels.INK, "xtick.color": panels.MUTED,
    "ytick.color": panels.MUTED, "xtick.labelcolor": panels.INK, "ytick.labelcolor": panels.INK,
    "axes.titlecolor": panels.INK, "axes.titlesize": 10, "axes.titleweight": "bold",
    "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.7, "legend.frameon": False,
}  # fmt: skip


# -- whole pictures ----------------------------------------------------------------------------


@contextmanager
def _canvas(width: float, height: float) -> Iterator["Canvas"]:
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        canvas = Canvas(figsize=(width, height))
        FigureCanvasAgg(canvas)
        yield canvas


def _axes(canvas: "Canvas", left: float, top: float, width: float, height: float) -> "Axes":
    """Axes at a place in inches from the upper left corner: a layout of our own is drawn once."""
    across, down = canvas.get_size_inches()
    return canvas.add_axes(
        (left / across, 1.0 - (top + height) / down, width / across, height / down)
    )


def files(figure: Figure) -> dict[str, bytes]:
    """The figure as PNG and SVG, by ending; the same bytes for the same numbers."""
    across = min(len(figure.panels), MOST_ACROSS)
    down = ceil(len(figure.panels) / across)
    margin, step = panels.margin(figure), PLOT_INCHES + GAP_INCHES
    row = panels.height(figure) + HEAD_INCHES + FOOT_INCHES
    key_rows = ceil(len(series_of(figure)) / KEY_COLUMNS) if figure.keyed else 0
    width, height = margin + across * step, down * row + 0.35 + 0.24 * key_rows
    with _canvas(width, height) as canvas:
        for place, panel in enumerate(figure.panels):
            below, beside = divmod(place, across)
            corner = margin + beside * step, 0.3 + below * row + HEAD_INCHES
            axes = _axes(canvas, *corner, PLOT_INCHES, panels.height(figure))
            panels.draw(axes, figure, panel, labelled=beside == 0)
        canvas.text(0.12 / width, 1.0 - 0.22 / height, panels.plain(figure.title), fontsize=11)
        if figure.keyed:
            _key(canvas, figure)
        return {
            "png": _saved(canvas, "png", dpi=144, facecolor="white"),
            "svg": _saved(canvas, "svg", facecolor="white"),
        }


def _key(canvas: "Canvas", figure: Figure) -> None:
    handles: dict[str, Artist] = {}
    for axes in canvas.axes:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    names = [name for name, _ in series_of(figure) if name in handles]
    canvas.legend(
        handles=[handles[name] for name in names],
        labels=[panels.plain(name) for name in names],
        loc="lower center",
        ncols=min(len(names), KEY_COLUMNS),
    )


def series_of(figure: Figure) -> list[tuple[str, int]]:
    """(name, look) of every series, once."""
    found = {s.name: s.look for panel in figure.panels for s in panel.series}
    return list(found.items())


def _saved(canvas: "Canvas", kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    canvas.savefig(buffer, format=kind, metadata=metadata, **options)
    return buffer.getvalue()


# -- on the page -------------------------------------------------------------------------------


def inline(figure: Figure) -> list[Markup]:
    """The panels of a figure as SVG elements in the page's colours."""
    return [_inlined(figure, number) for number in range(len(figure.panels))]


def _inlined(figure: Figure, number: int) -> Markup:
    panel = figure.panels[number]
    margin, height = panels.margin(figure), panels.height(figure)
    head = HEAD_INCHES if panel.title else 0.08
    with _canvas(margin + PLOT_INCHES + 0.15, head + height + FOOT_INCHES) as canvas:
        panels.draw(_axes(canvas, margin, head, PLOT_INCHES, height), figure, panel, labelled=True)
        svg = _saved(canvas, "svg", transparent=True).decode()
    start = svg.index(">", svg.index("<svg")) + 1
    box = re.search(r'viewBox="[^"]*"', svg[:start])
    inside = _themed(svg[start:], f"{figure.name}-{number}-")
    name = f"{figure.title}: {panel.title}" if panel.title else figure.title
    told = join(element("title", name), element("desc", figure.told))
    return Markup(f'<svg {box and box[0]} {NAMESPACES} role="img">{told}{inside}')


def _themed(svg: str, mark: str) -> str:
    """The inside of a picture with ids of its own, the page's font and the page's colours."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{mark}", svg)
    svg = re.sub(r"font: (bold|700) ([\d.]+)px [^;\"]*", r"font-size: \2px; font-weight: bold", svg)
    svg = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", svg)
    svg = re.sub(r"\s*\n\s*", " ", svg)
    for colour_, themed in THEMED.items():
        svg = svg.replace(colour_, themed)
    return svg


def sample(look: int, kind: str) -> Markup:
    """A look as a small picture for a key."""
    ink = f"var(--s{look % len(panels.PALETTE)})"
    if kind == "shares":
        box = f'<rect width="20" height="11" fill="{ink}" />'
        return Markup(f'<svg viewBox="0 0 20 11" aria-hidden="true">{box}</svg>')
    shape = SHAPES[panels.marker(look)]
    line = f'<path d="M0 6H22" stroke="{ink}" stroke-width="1.6"/>' if kind == "curves" else ""
    mark = f'<path d="{shape}" fill="{ink}"/>'
    return Markup(f'<svg viewBox="0 0 22 12" aria-hidden="true">{line}{mark}</svg>')


SHAPES: Final = {
    "o": "M7 6a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z", "s": "M7 2h8v8h-8Z", "^": "M11 1l5 9h-10Z",
    "D": "M11 0.5l5.5 5.5l-5.5 5.5l-5.5 -5.5Z", "v": "M11 11l5 -9h-10Z",
    "P": "M9 1h4v3h3v4h-3v3h-4v-3h-3v-4h3Z",
    "X": "M7 1l4 3l4 -3l2 2l-4 3l4 3l-2 2l-4 -3l-4 3l-2 -2l4 -3l-4 -3Z",
    "<": "M6 6l9 -5v10Z", ">": "M16 6l-9 -5v10Z", "p": "M11 1l5 4l-2 6h-6l-2 -6Z",
    "h": "M11 0.5l5 2.8v5.4l-5 2.8l-5 -2.8v-5.4Z",
}  # fmt: skip
"""The markers of the plots as paths around (11, 6), for keys."""
