"""Forward progress: is the engine getting on with its work, whatever its health page says?

Engines wedge with `/health` still at 200 for hours. The rule here needs no trust in that page: the
engine's counters must move. An idle engine's counters stand still too, so after half of the allowed
time a canary is sent, which must move them; if nothing has moved for the whole time, idle or not, the
engine is stuck. A long prompt may move nothing until it is read, so the time allowed is minutes.
"""

import time
from dataclasses import dataclass

import aiohttp

from adaexplore.models.engines.asking import CanaryError, Counters, Engine


@dataclass(slots=True, kw_only=True)
class Progress:
    """What was seen of one engine; times in seconds of any steady clock."""

    timeout_s: float
    moved_at: float
    last: Counters | None = None

    def note(self, counters: Counters | None, now: float) -> None:
        """Take in a sample; None (no answer) is no movement."""
        if counters is None:
            return
        if self.last is None or counters.moving != self.last.moving:
            self.moved_at = now
        self.last = counters

    def answered(self, now: float) -> None:
        """A canary came back, which is movement too."""
        self.moved_at = now

    def doubtful(self, now: float) -> bool:
        """Whether a canary is due."""
        return now - self.moved_at >= self.timeout_s / 2

    def stuck(self, now: float) -> bool:
        """Whether the engine is to be restarted."""
        return now - self.moved_at >= self.timeout_s

    def story(self) -> str:
        """The fault in words."""
        waiting = "unknown" if self.last is None else str(self.last.requests)
        return f"nothing moved for {self.timeout_s:g} s (requests in the engine: {waiting})"


async def sample(engine: Engine, served: str, progress: Progress) -> None:
    """Look at the counters once; where they stand still, see whether a canary moves them."""
    progress.note(await engine.counters(), time.monotonic())
    if not progress.doubtful(time.monotonic()):
        return
    try:
        # Short enough to look at the counters again before the server is given up.
        await engine.canary(served, timeout_s=progress.timeout_s / 4)
    except (CanaryError, TimeoutError, aiohttp.ClientError):
        return
    progress.answered(time.monotonic())
