"""The governor: how fast one account is asked, for the whole sweep.

One for each (provider, account, model). Concurrency adapts: it grows while it is used to the full,
is cut once when a rate limit is met (all calls that were under way then count as one episode), and
grows again. Known limits of requests and tokens are kept by buckets. A used-up quota stops the
account. Waiting calls stand in one queue, first come first served, so nothing is woken in vain.

Adaptive concurrency: additive increase, multiplicative decrease (Chiu and Jain 1989), with a
doubling start until the first cut.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from adaexplore.models.profiles import Limits

CUT: Final = 0.7
"""Share of the concurrency that is left after a rate limit."""
SHORTEST_PAUSE_S: Final = 0.5
MINUTE_S: Final = 60.0


class AccountStoppedError(Exception):
    """The account's quota is used up; the argument says when it resets, as far as known."""


@dataclass(slots=True, kw_only=True)
class Bucket:
    """What may be taken in a minute, spread over it.

    It refills with time and holds at most one second's worth, so that calls come evenly. What was
    taken is remembered for a minute, so that no minute, wherever it begins, sees more than is
    allowed; only a single call that is larger by itself is let through, alone in its minute.
    """

    per_minute: float
    at_s: float
    """When the level was last brought up to date."""
    level: float = field(init=False)
    taken: float = 0.0
    """Sum of what was taken in the last minute."""
    _takes: deque[tuple[float, float]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.level = self.burst

    @property
    def burst(self) -> float:
        """The most that can be taken at one moment; a larger amount counts as this."""
        return max(1.0, self.per_minute / MINUTE_S)

    def ready_in(self, amount: float, now_s: float) -> float:
        """Seconds until `amount` can be taken."""
        refill = (now_s - self.at_s) * self.per_minute / MINUTE_S
        self.level = min(self.burst, self.level + refill)
        self.at_s = now_s
        while self._takes and self._takes[0][0] <= now_s - MINUTE_S:
            self.taken -= self._takes.popleft()[1]
        short = min(amount, self.burst) - self.level
        refilled_s = max(0.0, short * MINUTE_S / self.per_minute)
        return max(refilled_s, self._room_in(amount, now_s))

    def _room_in(self, amount: float, now_s: float) -> float:
        """Seconds until so much of the last minute has passed that `amount` fits into one."""
        excess = self.taken + min(amount, self.per_minute) - self.per_minute
        for at_s, took in self._takes:
            if excess <= 0.0:
                break
            excess -= took
            if excess <= 0.0:
                return at_s + MINUTE_S - now_s
        return 0.0

    def take(self, amount: float, now_s: float) -> None:
        """Take an amount; the level may go below zero, which delays the next."""
        self.level -= amount
        self.taken += amount
        self._takes.append((now_s, amount))


@dataclass(slots=True)
class Permit:
    """Leave to make one call."""

    started_s: float
    tokens: int
    saturated: bool
    """Whether all places were taken when it was given."""


@dataclass(slots=True)
class Governor:
    """Leave to call, given one at a time."""

    name: str
    limits: Limits
    clock: Callable[[], float]
    """Monotonic seconds."""
    history: list[dict[str, Any]] = field(default_factory=list)
    """Every change of the concurrency, with its reason; stored with the sweep."""
    in_flight: int = 0
    concurrency: float = field(init=False)
    _starting: bool = True
    _cut_s: float = float("-inf")
    _paused_until_s: float = float("-inf")
    _stopped: str | None = None
    _buckets: list[tuple[Bucket, bool]] = field(init=False)
    _queue: deque[tuple[int, asyncio.Future[Permit]]] = field(default_factory=deque)
    _timer: asyncio.TimerHandle | None = None

    def __post_init__(self) -> None:
        self.concurrency = float(min(self.limits.concurrency_start, self.limits.concurrency_max))
        now_s = self.clock()
        rates = ((self.limits.requests_per_minute, False), (self.limits.tokens_per_minute, True))
        self._buckets = [
            (Bucket(per_minute=rate, at_s=now_s), by_token)
            for rate, by_token in rates
            if rate is not None
        ]

    async def permit(self, tokens: int) -> Permit:
        """Wait for leave to make a call of about so many tokens.

        Raises:
            AccountStoppedError: The account's quota is used up.
        """
        at_once = self.permit_at_once(tokens)
        if at_once is not None:
            return at_once
        future: asyncio.Future[Permit] = asyncio.get_running_loop().create_future()
        self._queue.append((tokens, future))
        self._pump()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self.release()  # leave was given to one who left
            self._pump()  # the next in line may need to wait for less
            raise

    def permit_at_once(self, tokens: int) -> Permit | None:
        """Leave to make a call, or None if it would have to be waited for; raises as `permit`."""
        if self._stopped is not None:
            raise AccountStoppedError(self._stopped)
        if not self._queue and self._has_room and self._delay(tokens) <= 0.0:
            return self._grant(tokens)
        return None

    def release(self) -> None:
        """Give a permit back, whatever became of the call."""
        self.in_flight -= 1
        self._pump()

    def succeeded(self, permit: Permit) -> None:
        """A call was answered: grow, if the concurrency was used to the full."""
        if not permit.saturated or permit.started_s <= self._cut_s:
            return
        step = 1.0 if self._starting else 1.0 / max(self.concurrency, 1.0)
        before = int(self.concurrency)
        self.concurrency = min(self.concurrency + step, float(self.limits.concurrency_max))
        if int(self.concurrency) != before:
            self._note("grow")
        self._pump()

    def rate_limited(self, permit: Permit, wait_s: float | None) -> None:
        """A call met a rate limit: pause, and cut once for all calls that were under way."""
        now_s = self.clock()
        pause_s = wait_s or SHORTEST_PAUSE_S
        self._paused_until_s = max(self._paused_until_s, now_s + pause_s)
        if permit.started_s > self._cut_s:
            self._cut_s = now_s
            self._starting = False
            self.concurrency = max(1.0, self.concurrency * CUT)
            self._note("rate limit", pause_s=round(pause_s, 3))
        self._pump()

    def stop(self, reason: str) -> None:
        """The quota is used up: nobody gets leave any more."""
        self._stopped = reason
        self._note("stopped")
        while self._queue:
            _, future = self._queue.popleft()
            if not future.done():
                future.set_exception(AccountStoppedError(reason))

    def ready_in(self) -> float:
        """Seconds until the pause ends; 0 when there is none."""
        return max(0.0, self._paused_until_s - self.clock())

    # -- the queue -----------------------------------------------------------------------------

    def _pump(self) -> None:
        """Give leave to as many as there is room for; come back when time will make room."""
        while self._queue:
            tokens, future = self._queue[0]
            if future.done():
                self._queue.popleft()
                continue
            if not self._has_room:
                return  # a release will come
            delay_s = self._delay(tokens)
            if delay_s > 0.0:
                self._come_back(delay_s)
                return
            self._queue.popleft()
            future.set_result(self._grant(tokens))

    @property
    def _has_room(self) -> bool:
        return self.in_flight < max(1, int(self.concurrency))

    def _delay(self, tokens: int) -> float:
        now_s = self.clock()
        waits = [b.ready_in(tokens if by_token else 1.0, now_s) for b, by_token in self._buckets]
        return max(self._paused_until_s - now_s, 0.0, *waits)

    def _grant(self, tokens: int) -> Permit:
        now_s = self.clock()
        for bucket, by_token in self._buckets:
            bucket.take(tokens if by_token else 1.0, now_s)
        self.in_flight += 1
        saturated = self.in_flight >= int(self.concurrency)
        return Permit(started_s=now_s, tokens=tokens, saturated=saturated)

    def _come_back(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(delay_s, 0.001), self._pump)

    def _note(self, reason: str, **more: Any) -> None:
        entry = {
            "at_s": round(self.clock(), 3),
            "concurrency": round(self.concurrency, 2),
            "why": reason,
        }
        self.history.append(entry | more)
