"""What an episode has probed so far, in little memory: thousands of episodes are under way at once.

A record for each probe, with its tuple and its numbers, would take four times as much, so there are none
before the episode's end.
"""

from array import array
from collections.abc import Sequence
from typing import Final

from adaexplore.benchmark.game.records import ProbeRecord
from adaexplore.benchmark.world.episodes import Row, probe_id
from adaexplore.benchmark.world.utility import ACTIONS, Utilities

_PLACES: Final[dict[str, int]] = {}
"""Places of probes by their ids, which are the same words in every episode."""


class ProbeLog:
    """The accepted probes of one episode, in order."""

    def __init__(self) -> None:
        """None yet."""
        self._windows: list[int] = []
        self._bases: list[str | None] = []
        self._rows: list[Row] = []
        self._utilities = array("d")

    def __len__(self) -> int:
        """How many there are."""
        return len(self._rows)

    def add(
        self,
        window: int,
        bases: Sequence[str | None],
        rows: Sequence[Row],
        utilities: Sequence[Utilities],
    ) -> list[str]:
        """Add the probes of one call, one of each a probe; returns their ids."""
        numbers = range(len(self) + 1, len(self) + len(rows) + 1)
        for number in range(len(_PLACES) + 1, numbers.stop):
            _PLACES[probe_id(number)] = number - 1
        self._windows += [window] * len(rows)
        self._bases += bases
        self._rows += rows
        for values in utilities:
            self._utilities.extend(values)
        return [probe_id(number) for number in numbers]

    def known(self, context_id: str) -> tuple[str, Row] | None:
        """(id, row) of the probe with this id, if there is one."""
        place = _PLACES.get(context_id)
        if place is None or place >= len(self):
            return None
        return probe_id(place + 1), self._rows[place]  # not the agent's own copy of the id

    def records(self) -> tuple[ProbeRecord, ...]:
        """All of them, as they are recorded."""
        values = iter(self._utilities)
        utilities = zip(*[values] * len(ACTIONS), strict=True)
        told = zip(self._windows, self._bases, self._rows, utilities, strict=True)
        return tuple(
            ProbeRecord(
                context_id=probe_id(number),
                batch_number=window,
                base_context_id=base,
                row=row,
                utilities=worth,
            )
            for number, (window, base, row, worth) in enumerate(told, start=1)
        )
