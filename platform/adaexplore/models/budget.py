"""The budget of a sweep: money and tokens that may be spent, over all launches.

Before a call its highest cost is reserved, afterwards the true one is settled, so that calls under
way can never spend over the cap together. A call that does not fit waits while others may still
give back what they reserved; when nothing is left to wait for, the cap is reached and the sweep
drains.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from adaexplore.benchmark.game.protocol import Reply
from adaexplore.errors import BudgetError
from adaexplore.models.profiles import Prices


class Cost(NamedTuple):
    """What a call costs; usd is None where a price is unknown."""

    usd: float | None
    tokens: int


def cost(prices: Prices, *, input_tokens: int, cached_tokens: int, output_tokens: int) -> Cost:
    """Cost of token counts; cached tokens are part of the input tokens."""
    tokens = input_tokens + output_tokens
    if prices.input_usd_per_mtok is None or prices.output_usd_per_mtok is None:
        return Cost(usd=None, tokens=tokens)
    cached_price = (
        prices.input_usd_per_mtok
        if prices.cached_usd_per_mtok is None
        else prices.cached_usd_per_mtok
    )
    fresh = max(input_tokens - cached_tokens, 0)
    usd = (
        fresh * prices.input_usd_per_mtok
        + cached_tokens * cached_price
        + output_tokens * prices.output_usd_per_mtok
    ) / 1e6
    return Cost(usd=usd, tokens=tokens)


def cost_of(prices: Prices, reply: Reply) -> Cost:
    """Cost of a reply by its own token counts."""
    return cost(
        prices,
        input_tokens=reply.input_tokens,
        cached_tokens=reply.cached_tokens,
        output_tokens=reply.output_tokens,
    )


@dataclass(slots=True, kw_only=True)
class Budget:
    """What may be spent, is reserved, and has been spent."""

    cap_usd: float | None = None
    cap_tokens: int | None = None
    spent_usd: float = 0.0
    spent_tokens: int = 0
    unpriced_tokens: int = 0
    """Tokens of models whose price is unknown; they are in no amount of money."""
    reserved_usd: float = 0.0
    reserved_tokens: int = 0
    reached: bool = False
    """Whether a call was refused because of the cap."""
    _waiting: deque[asyncio.Future[None]] = field(default_factory=deque)

    async def reserve(self, most: Cost) -> None:
        """Reserve the highest cost of a call, waiting for others to settle if it does not fit yet.

        Raises:
            BudgetError: It does not fit, and nothing that is reserved could be given back.
        """
        while not self.reserve_at_once(most):
            if self.reserved_tokens == 0:
                self.reached = True
                raise BudgetError(self._told())
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future

    def reserve_at_once(self, most: Cost) -> bool:
        """Reserve the highest cost of a call if it fits now; whether it did."""
        if fits := self._fits(most):
            self.reserved_usd += most.usd or 0.0
            self.reserved_tokens += most.tokens
        return fits

    def settle(self, most: Cost, actual: Cost) -> None:
        """Give back a reservation and book what the call really cost."""
        self.reserved_usd = max(self.reserved_usd - (most.usd or 0.0), 0.0)
        self.reserved_tokens -= most.tokens
        self.spent_tokens += actual.tokens
        if actual.usd is None:
            self.unpriced_tokens += actual.tokens
        else:
            self.spent_usd += actual.usd
        self._wake()

    def _fits(self, most: Cost) -> bool:
        usd = self.spent_usd + self.reserved_usd + (most.usd or 0.0)
        tokens = self.spent_tokens + self.reserved_tokens + most.tokens
        return (self.cap_usd is None or usd <= self.cap_usd) and (
            self.cap_tokens is None or tokens <= self.cap_tokens
        )

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, deque()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def _told(self) -> str:
        parts = []
        if self.cap_usd is not None:
            parts.append(f"{self.spent_usd:.4f} of {self.cap_usd:g} USD")
        if self.cap_tokens is not None:
            parts.append(f"{self.spent_tokens} of {self.cap_tokens} tokens")
        return f"the budget is used up ({', '.join(parts)} spent): raise budget.cap_usd or budget.cap_tokens"
