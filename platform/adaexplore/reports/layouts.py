"""Layouts that several figures share: models in rows, with a value and its interval in each panel."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Final

from adaexplore.benchmark.scores.estimates import Estimate
from adaexplore.reports.sections import Figure, Panel, Point, Series

PARTS: Final = (2, 0, 4, 1)
"""Looks of the parts of a division, from the best to the worst."""


def by_model(
    models: Sequence[str],
    panels: Mapping[str, Mapping[str, Estimate]],
    *,
    name: str,
    title: str,
    told: str,
    x_label: str,
    marks: tuple[float, ...] = (),
) -> Figure:
    """Models in rows, one panel a name in `panels`, which holds estimates by model.

    `models` are all of the report, whose places are their looks; those without a value have no row.
    """
    present = [m for m in models if any(_has(found, m) for found in panels.values())]
    return Figure(
        name=name, kind="intervals", title=title, told=told, x_label=x_label, marks=marks,
        rows=tuple(present), keyed=False,
        panels=tuple(
            Panel(
                title=panel,
                series=tuple(
                    Series(
                        name=model,
                        look=models.index(model),
                        points=(Point(x=row, value=found[model]),),
                    )
                    for row, model in enumerate(present)
                    if _has(found, model)
                ),
            )
            for panel, found in panels.items()
        ),
    )  # fmt: skip


def divided(
    panels: Mapping[str, Mapping[str, Sequence[Estimate]]],
    parts: Sequence[str],
    *,
    name: str,
    title: str,
    told: str,
) -> Figure:
    """Rows that are divided into `parts`, whose shares sum to 1: panels hold shares by row."""
    rows = tuple(dict.fromkeys(row for found in panels.values() for row in found))
    return Figure(
        name=name, kind="shares", title=title, told=told, x_label="share", rows=rows,
        panels=tuple(
            Panel(
                title=panel,
                series=tuple(
                    Series(
                        name=part,
                        look=PARTS[number],
                        points=tuple(
                            Point(x=rows.index(row), value=shares[number])
                            for row, shares in found.items()
                        ),
                    )
                    for number, part in enumerate(parts)
                ),
            )
            for panel, found in panels.items()
        ),
    )  # fmt: skip


def _has(found: Mapping[str, Estimate], model: str) -> bool:
    return model in found and isfinite(found[model].value)
