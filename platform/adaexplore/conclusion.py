"""Conclusion: what a launch shows when it has ended, and where everything is."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from adaexplore import display, publish
from adaexplore.experiments.config import SweepConfig
from adaexplore.experiments.playing import Outcome
from adaexplore.experiments.stores import Store
from adaexplore.experiments.tables import Scores, Table
from adaexplore.experiments.trackers import Tracker

NAMED: Final = 10
"""Failed runs that are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A launch that has played what it could."""

    sweep: str
    config: SweepConfig
    store: Store
    scores: Scores
    """Of all cells that the sweep has ever had."""
    made: Sequence[Table]
    failures: Sequence[Outcome]


def show(output: Console, ended: Ended, tracker: Tracker) -> None:
    """Show the tables, what failed, and where to look next."""
    display.show_main(output, ended.scores)
    display.show_rates(output, ended.scores)
    display.show_ablation(output, next(table for table in ended.made if table.name == "ablation"))
    lines = [*_failed(ended.failures), *_tracked(ended, tracker), *_places(ended)]
    display.show_lines(output, lines)


def _failed(failures: Sequence[Outcome]) -> list[str]:
    lines = [
        f"failed: {o.job.cell.label} {o.job.key.episode_id}: {o.failure}" for o in failures[:NAMED]
    ]
    if failures:
        lines.append(
            f"{len(failures)} episodes failed and are in no table; launch again to go on with them"
        )
    return lines


def _tracked(ended: Ended, tracker: Tracker) -> list[str]:
    if (trouble := tracker.trouble()) is not None:
        behind = f"MLflow is behind ({trouble}); the sweep is complete without it: "
        return [f"{behind}'adaexplore sync {ended.sweep}' completes it"]
    where = tracker.where()
    return [] if where is None else [f"look at the runs:  {where}"]


def _places(ended: Ended) -> list[str]:
    locate, base = ended.store.locate, f"sweeps/{ended.sweep}"
    lines = [
        f"frozen config:     {locate(publish.frozen_key(ended.sweep))}",
        f"figure:            {locate(f'{base}/figures/ca_by_batch.png')}",
        f"tables:            {locate(f'{base}/tables')}",
    ]
    if ended.config.report:
        page = locate(publish.report_key(ended.sweep))
        lines.append(f"report:            {page}")
        if ended.config.store.kind == "folder":
            uri = Path(page).absolute().as_uri()
            lines.append(f"open the report:   python3 -m webbrowser {uri}")
    return lines
