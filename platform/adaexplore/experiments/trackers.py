"""The seam to a tracker: a projection of the store that people can look at and compare.

The store is the source of truth. A tracker is told of cells and records, keeps its own pace, and
may fail without stopping or changing anything; what it missed, the next launch tells it again.
"""

from pathlib import Path
from typing import Any, Protocol

from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.experiments.grids import Cell


class Tracker(Protocol):
    """Runs of one sweep: sweep, cells and episodes, nested."""

    def episode(self, cell: Cell, record: EpisodeRecord) -> None:
        """Show one finished episode run; returns at once."""

    def cell(self, cell: Cell, values: dict[str, float]) -> None:
        """Show the metrics of a cell; returns at once."""

    def finish(self, values: dict[str, float], artifacts: list[Path]) -> None:
        """Show the sweep's own metrics and files, last; returns at once."""

    def wait(self, seconds: float) -> bool:
        """Whether everything is shown, after waiting at most so long."""

    def pending(self) -> int:
        """Runs that are still to be shown."""

    def where(self) -> str | None:
        """The command or address that opens it; None if there is nothing to open."""

    def trouble(self) -> str | None:
        """What went wrong, in one line; None if nothing did."""


class NoTracker:
    """Tracks nothing."""

    def episode(self, cell: Cell, record: EpisodeRecord) -> None:
        """Nothing is shown."""

    def cell(self, cell: Cell, values: dict[str, float]) -> None:
        """Nothing is shown."""

    def finish(self, values: dict[str, float], artifacts: list[Path]) -> None:
        """Nothing is shown."""

    def wait(self, seconds: float) -> bool:  # noqa: ARG002 (there is nothing to wait for)
        """Always True."""
        return True

    def pending(self) -> int:
        """Always 0."""
        return 0

    def where(self) -> str | None:
        """Always None."""
        return None

    def trouble(self) -> str | None:
        """Always None."""
        return None


def params(cell: Cell) -> dict[str, Any]:
    """What a tracker shows as parameters of a cell and of its episodes."""
    return {"model": cell.model, "setting": cell.setting.name, "seed": cell.seed}
