"""Lines: how a worker's clients deal with the desk, in groups.

Asking the desk is a call between processes, and a sweep makes many thousands of model calls. So the
wants of all episodes of a worker are put together: while one group is under way the next one gathers,
and what the desk has to hear is told in the same manner. A line that breaks is tied again: the new
desk is told first what this worker holds, then what the old one did not hear.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Generic, TypeVar

from adaexplore.backends.ray.desk import NOTHING
from adaexplore.backends.ray.messages import (
    Granted,
    Held,
    Limited,
    News,
    Released,
    Reserved,
    Settled,
    Stopped,
    Succeeded,
)
from adaexplore.errors import BudgetError, ClusterError
from adaexplore.models.budget import Cost
from adaexplore.models.governor import SHORTEST_PAUSE_S, AccountStoppedError, Permit

W = TypeVar("W")
G = TypeVar("G")
GROUP: Final = 16
"""The most that is asked for at once."""
PATIENCE_S: Final = 120.0
"""How long a lost desk may stay away."""
AGAIN_S: Final = 0.1

Call = Callable[..., Awaitable[Any]]
"""Asks the desk: name of the method, then its arguments."""


class LineLostError(Exception):
    """The desk is not there (any more)."""


class Grouped(Generic[W, G]):
    """Wants that are put forward in groups, one group at a time, first come first served."""

    def __init__(
        self, ask: Callable[[list[W]], Awaitable[Sequence[G]]], give_back: Callable[[W, G], None]
    ) -> None:
        """Put wants to `ask`, which answers the first of them, at least one, or raises for the first.

        `give_back` gets what came for somebody who has left.
        """
        self._ask = ask
        self._give_back = give_back
        self._waiting: deque[tuple[W, asyncio.Future[G]]] = deque()
        self._pumping: asyncio.Task[None] | None = None

    async def take(self, want: W) -> G:
        """What was wanted, or the error with which it was refused."""
        future: asyncio.Future[G] = asyncio.get_running_loop().create_future()
        self._waiting.append((want, future))
        if self._pumping is None:
            self._pumping = asyncio.create_task(self._pump())
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._give_back(want, future.result())
            raise

    async def _pump(self) -> None:
        try:
            await asyncio.sleep(0)  # who asks in the same moment is in the same group
            while self._waiting:
                await self._put_forward()
        except (ClusterError, OSError) as error:  # no desk: nobody gets anything
            for _, future in self._waiting:
                if not future.done():
                    future.set_exception(error)
            self._waiting.clear()
        finally:
            self._pumping = None

    async def _put_forward(self) -> None:
        while self._waiting and self._waiting[0][1].cancelled():
            self._waiting.popleft()
        group = [self._waiting[n] for n in range(min(GROUP, len(self._waiting)))]
        if not group:
            return
        try:
            answers = await self._ask([want for want, _ in group])
        except (AccountStoppedError, BudgetError) as refused:
            _, future = self._waiting.popleft()
            if not future.done():
                future.set_exception(refused)
            return
        for answer in answers:
            want, future = self._waiting.popleft()
            if future.done():
                self._give_back(want, answer)
            else:
                future.set_result(answer)


class Line:
    """One worker's line to the desk of its sweep."""

    def __init__(self, worker: str) -> None:
        """Speak as a worker; wait where there is no desk yet."""
        self._worker = worker
        self._next: Call | None = None
        self._desk: Call | None = None
        self._tying = asyncio.Lock()
        self._permits: dict[str, Grouped[int, Permit]] = {}
        self._money: Grouped[Cost, None] = Grouped(self._reserve, self._unreserve)
        self._news: list[News] = []
        self._telling: asyncio.Task[None] | None = None
        self._held: Counter[str] = Counter()
        self._usd, self._tokens = 0.0, 0

    def tie(self, desk: Call) -> None:
        """Speak to this desk from now on; its calls raise LineLostError when it is dead."""
        self._next, self._desk = desk, None

    def permits(self, account: str) -> Grouped[int, Permit]:
        """Where permits of an account are taken, by number of tokens."""

        async def ask(tokens: list[int]) -> Sequence[Permit]:
            """Permits for the first of those who wait."""
            granted: Granted = await self._call("permits", account, tokens)
            if granted.refused is not None:
                raise AccountStoppedError(granted.refused)
            self._held[account] += len(granted.permits)
            return granted.permits

        if account not in self._permits:
            give_back = lambda *_: self.tell(Released(account=account))  # noqa: E731
            self._permits[account] = Grouped(ask, give_back)
        return self._permits[account]

    @property
    def money(self) -> Grouped[Cost, None]:
        """Where reservations are taken."""
        return self._money

    def tell(self, news: News) -> None:
        """Let the desk know, soon."""
        self._news.append(news)
        if self._telling is None:
            self._telling = asyncio.create_task(self._tell())

    async def drain(self) -> None:
        """Wait until the desk has heard everything."""
        if self._telling is not None:
            await self._telling

    async def _reserve(self, costs: list[Cost]) -> Sequence[None]:
        reserved: Reserved = await self._call("reserve", costs)
        if reserved.refused is not None:
            raise BudgetError(reserved.refused)
        for cost in costs[: reserved.count]:
            self._usd += cost.usd or 0.0
            self._tokens += cost.tokens
        return [None] * reserved.count

    def _unreserve(self, most: Cost, _: None) -> None:
        self.tell(Settled(most=most, actual=NOTHING))

    async def _tell(self) -> None:
        try:
            await asyncio.sleep(0)
            while self._news:
                told = tuple(self._news)
                await self._call("tell", told)
                del self._news[: len(told)]
                self._written_off(told)  # only now: a new desk must know of what it will hear again
        finally:
            self._telling = None

    def _written_off(self, told: Sequence[News]) -> None:
        for news in told:
            if isinstance(news, Released):
                self._held[news.account] -= 1
            elif isinstance(news, Settled):
                self._usd -= news.most.usd or 0.0
                self._tokens -= news.most.tokens

    async def _call(self, method: str, *arguments: Any) -> Any:
        """Ask the desk, and a new one if it is lost; ClusterError if none comes."""
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            tied = self._desk
            try:
                tied = tied or await self._tied()
                return await tied(method, self._worker, *arguments)
            except LineLostError as lost:
                if self._desk is tied:
                    self._desk = None
                if time.monotonic() > deadline_s:
                    raise ClusterError(
                        f"the sweep's governor is lost ({lost}), and no other came within "
                        f"{PATIENCE_S:.0f} s: look at the driver, and launch again"
                    ) from None
            await asyncio.sleep(AGAIN_S)

    async def _tied(self) -> Call:
        async with self._tying:
            if self._desk is None:
                found = self._next
                if found is None:
                    raise LineLostError("there is none yet")
                held = Held(permits=dict(+self._held), usd=self._usd, tokens=self._tokens)
                await found("enrol", self._worker, held)
                self._desk = found
            return self._desk


class LinePace:
    """The pace of one account, kept at the desk (see `models.pacing.Pace`)."""

    def __init__(self, name: str, line: Line) -> None:
        """Speak for one account over a worker's line."""
        self.name = name
        self.history: list[dict[str, Any]] = []
        """Empty: it is kept at the desk."""
        self._line = line
        self._paused_until_s = float("-inf")

    async def permit(self, tokens: int) -> Permit:
        """Wait for leave to call; AccountStoppedError if there will be none."""
        return await self._line.permits(self.name).take(tokens)

    def permit_at_once(self, tokens: int) -> Permit | None:  # noqa: ARG002
        """Nothing: the desk is elsewhere, and has to be asked."""
        return None

    def release(self) -> None:
        """Give a permit back."""
        self._line.tell(Released(account=self.name))

    def succeeded(self, permit: Permit) -> None:
        """A call was answered."""
        self._line.tell(Succeeded(account=self.name, permit=permit))

    def rate_limited(self, permit: Permit, wait_s: float | None) -> None:
        """A call met a rate limit."""
        pause_s = wait_s or SHORTEST_PAUSE_S
        self._paused_until_s = max(self._paused_until_s, time.monotonic() + pause_s)
        self._line.tell(Limited(account=self.name, permit=permit, wait_s=wait_s))

    def stop(self, reason: str) -> None:
        """The quota is used up."""
        self._line.tell(Stopped(account=self.name, reason=reason))

    def ready_in(self) -> float:
        """Seconds until the pause ends that this worker met itself."""
        return max(0.0, self._paused_until_s - time.monotonic())


class LinePurse:
    """The budget, kept at the desk (see `models.pacing.Purse`)."""

    def __init__(self, line: Line) -> None:
        """Speak over a worker's line."""
        self._line = line

    async def reserve(self, most: Cost) -> None:
        """Reserve the highest cost of a call; BudgetError at the cap."""
        await self._line.money.take(most)

    def reserve_at_once(self, most: Cost) -> bool:  # noqa: ARG002
        """Nothing: the desk is elsewhere, and has to be asked."""
        return False

    def settle(self, most: Cost, actual: Cost) -> None:
        """Give back a reservation and book what the call really cost."""
        self._line.tell(Settled(most=most, actual=actual))
