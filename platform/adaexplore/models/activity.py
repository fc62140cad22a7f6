"""What each episode run is doing right now: calling, waiting, and for how long still.

Waiting is booked while it lasts, so that a person can see it, and apart from working time, so that
a deadline on work is never used up by a provider's rate limit.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple


class Doing(NamedTuple):
    """One run's present activity."""

    what: str
    """`calling`, `queued`, or what is waited for, such as `retrying (rate)`."""
    since_s: float
    until_s: float | None = None


@dataclass(slots=True)
class Activity:
    """A board of runs; times are monotonic seconds."""

    clock: Callable[[], float] = time.monotonic
    now: dict[str, Doing] = field(default_factory=dict)
    waited_s: dict[str, float] = field(default_factory=dict)
    """Total waiting of each run that waits or has waited, the present wait included when it ends."""

    def doing(self, key: str, what: str, for_s: float | None = None) -> "Shown":
        """Shows an activity while its block runs; everything but calling is booked as waiting."""
        return Shown(self, key, what, for_s)

    def longest_waits(self, count: int) -> list[str]:
        """The runs that have waited longest, as lines such as `a/b: retrying (rate) in 45 s`."""
        now_s = self.clock()
        return [f"{key}: {d.what}{_left(d, now_s)}" for key, d in self.longest(count)]

    def longest(self, count: int) -> list[tuple[str, Doing]]:
        """The runs that have waited longest, with what they wait for."""
        waiting = [(key, d) for key, d in self.now.items() if d.what != CALLING]
        return sorted(waiting, key=lambda pair: pair[1].since_s)[:count]


CALLING: Final = "calling"


@dataclass(slots=True)
class Shown:
    """One run's activity on the board for as long as a block runs."""

    board: Activity
    key: str
    what: str
    for_s: float | None
    start_s: float = 0.0

    def __enter__(self) -> None:
        self.start_s = self.board.clock()
        until_s = None if self.for_s is None else self.start_s + self.for_s
        self.board.now[self.key] = Doing(what=self.what, since_s=self.start_s, until_s=until_s)

    def __exit__(self, *error: object) -> None:
        board, key = self.board, self.key
        board.now.pop(key, None)
        if self.what != CALLING:
            board.waited_s[key] = board.waited_s.get(key, 0.0) + board.clock() - self.start_s


def _left(doing: Doing, now_s: float) -> str:
    if doing.until_s is None:
        return f" for {now_s - doing.since_s:.0f} s"
    return f" in {max(0.0, doing.until_s - now_s):.0f} s"
