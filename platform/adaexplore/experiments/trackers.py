"""The seam to a tracker: a projection of the store that people can look at and compare.

The store is the source of truth. A tracker is told of cells and records, keeps its own pace, and
may fail without stopping or changing anything; what it missed, it reads from the store at the end,
or the next launch does.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from adaexplore.benchmark.game.records import EpisodeRecord

Artifacts = Mapping[str, Callable[[], bytes]]
"""Files of a run by path; each is made when it is sent, since it may be large or far away."""
Read = Callable[[], EpisodeRecord]
"""Reads a record from the store: a tracker that is behind keeps none of those that wait."""


class ShownCell(Protocol):
    """What a tracker needs to know of a cell; a cell of a grid is one."""

    @property
    def cell_id(self) -> str:
        """Its id."""

    @property
    def label(self) -> str:
        """`model/setting/seed`."""

    @property
    def semantic(self) -> Mapping[str, Any]:
        """What its id is the digest of."""


class Tracker(Protocol):
    """Runs of one sweep: sweep, cells and episodes, nested. What shows returns at once."""

    def episode(self, cell: ShownCell, episode_id: str, read: Read) -> None:
        """Show one finished episode run, whose record is read when it is its turn."""

    def cell(self, cell: ShownCell, values: Mapping[str, float], artifacts: Artifacts) -> None:
        """Show the metrics and files of a cell; a `missing` above 0 says that it is not complete."""

    def finish(self, values: Mapping[str, float], artifacts: Artifacts) -> None:
        """Show the sweep's own metrics and files, last; then what only the store knows of."""

    def stop(self) -> None:
        """The launch ends early: mark as ended what was under way, within seconds, and give up."""

    def wait(self, seconds: float) -> bool:
        """Whether it is over, after waiting at most so long: all is shown, or `trouble` says why not."""

    def pending(self) -> int:
        """Runs that are still to be shown."""

    def where(self) -> str | None:
        """The command or address that opens it; None if there is nothing to open."""

    def trouble(self) -> str | None:
        """Why something is not shown, in one line; None if nothing is missing."""


class NoTracker:
    """Tracks nothing."""

    def episode(self, cell: ShownCell, episode_id: str, read: Read) -> None:
        """Nothing is shown."""

    def cell(self, cell: ShownCell, values: Mapping[str, float], artifacts: Artifacts) -> None:
        """Nothing is shown."""

    def finish(self, values: Mapping[str, float], artifacts: Artifacts) -> None:
        """Nothing is shown."""

    def stop(self) -> None:
        """Nothing is under way."""

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
