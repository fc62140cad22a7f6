"""What each episode run is doing right now: calling, waiting, and for how long still.

Waiting is booked while it lasts, so that a person can see it, and apart from working time, so that
a deadline on work is never used up by a provider's rate limit.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Doing:
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

    @contextmanager
    def doing(self, key: str, what: str, for_s: float | None = None) -> Iterator[None]:
        """Show an activity while the block runs; everything but calling is booked as waiting."""
        start_s = self.clock()
        until_s = None if for_s is None else start_s + for_s
        self.now[key] = Doing(what=what, since_s=start_s, until_s=until_s)
        try:
            yield
        finally:
            self.now.pop(key, None)
            if what != CALLING:
                self.waited_s[key] = self.waited_s.get(key, 0.0) + self.clock() - start_s

    def longest_waits(self, count: int) -> list[str]:
        """The runs that have waited longest, as lines such as `a/b: retrying (rate) in 45 s`."""
        now_s = self.clock()
        waiting = [(key, d) for key, d in self.now.items() if d.what != CALLING]
        waiting.sort(key=lambda pair: pair[1].since_s)
        return [f"{key}: {d.what}{_left(d, now_s)}" for key, d in waiting[:count]]


CALLING: Final = "calling"


def _left(doing: Doing, now_s: float) -> str:
    if doing.until_s is None:
        return f" for {now_s - doing.since_s:.0f} s"
    return f" in {max(0.0, doing.until_s - now_s):.0f} s"
