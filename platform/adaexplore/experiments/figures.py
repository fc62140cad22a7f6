"""Figures: the pictures that people compare.

One figure for now: calibrated accuracy by batch, aligned at the change, one panel a setting, one
line with its 95 % band a model. The look is quiet: few inks, direct labels, no chart junk.
"""

import io
from typing import TYPE_CHECKING, Final, cast

from adaexplore.experiments.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PALETTE: Final = (
    "#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#a463f2", "#9c6b4e", "#97bbf5",
)  # fmt: skip
"""Distinct in print and under the common forms of colour blindness."""

Point = tuple[int, float, float, float]
"""(batches after the change, value, low, high)."""


def curve_figure(table: Table) -> bytes:
    """The drift-aligned curves of a curve table as PNG bytes, the same for the same table."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    settings = list(dict.fromkeys(str(row[1]) for row in table.rows))
    models = list(dict.fromkeys(str(row[0]) for row in table.rows))
    colours = {model: PALETTE[i % len(PALETTE)] for i, model in enumerate(models)}
    figure = Figure(figsize=(0.8 + 3.5 * max(len(settings), 1), 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, max(len(settings), 1), sharey=True, squeeze=False)[0]
    for ax, setting in zip(axes, settings, strict=False):
        for model in models:
            _line(ax, _points(table, model, setting), model, colours[model])
        _dress(ax, setting)
    axes[0].set_ylabel("calibrated accuracy")
    if models:
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=min(len(models), 8), frameon=False
        )
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=144, metadata={"Software": None})
    return buffer.getvalue()


def _points(table: Table, model: str, setting: str) -> list[Point]:
    rows = [row for row in table.rows if row[0] == model and row[1] == setting]
    return [cast("Point", tuple(row[2:6])) for row in rows]


def _line(ax: "Axes", points: list[Point], model: str, colour: str) -> None:
    if not points:
        return
    offsets, values, lows, highs = zip(*points, strict=True)
    ax.fill_between(offsets, lows, highs, color=colour, alpha=0.15, linewidth=0)
    ax.plot(offsets, values, color=colour, linewidth=1.8, marker="o", markersize=3, label=model)


def _dress(ax: "Axes", setting: str) -> None:
    ax.axhline(0.0, color="#999999", linewidth=0.8, linestyle=":")
    ax.axvline(0.5, color="#666666", linewidth=0.9, linestyle="--")
    ax.set_title(setting, fontsize=10)
    ax.set_xlabel("batches after the change", fontsize=9)
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#eeeeee", linewidth=0.8)
