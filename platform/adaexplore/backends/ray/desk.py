"""The desk: where the workers of a sweep ask for leave and for money.

It keeps the governors of all accounts and the budget of the whole sweep, and knows what each worker
holds of them, so that what a dead worker held is there for the others. It lives in an actor. If that is
lost another is started, which reads from the store what was spent; the workers then say what they
hold, and nothing else of it has to survive. What a worker's or the desk's death leaves unbooked are
the calls that were under way: at most one a running episode, as when a launch in one process is killed.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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
from adaexplore.errors import BudgetError
from adaexplore.models.budget import Budget, Cost
from adaexplore.models.governor import AccountStoppedError, Governor, Permit

NOTHING = Cost(usd=0.0, tokens=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What all workers of a sweep have in common."""

    budget: Budget
    governors: Mapping[str, Governor]
    """By the name of the account."""


@dataclass(slots=True)
class _Ledger:
    """What one worker holds."""

    permits: Counter[str] = field(default_factory=Counter)
    usd: float = 0.0
    tokens: int = 0


class Desk:
    """The one desk of a sweep; asked by name of the worker."""

    def __init__(self, furnish: Callable[[], Shared]) -> None:
        """Keep in mind how to find out what is shared; nothing is read before `open`."""
        self._furnish = furnish
        self._held: dict[str, _Ledger] = {}
        self._gone: set[str] = set()

    async def open(self) -> None:
        """Read what was spent; raises what reading the store raises."""
        self._shared = await asyncio.to_thread(self._furnish)

    async def last(self) -> None:
        """Never return: who waits for this is told when the desk is lost."""
        await asyncio.Event().wait()

    # -- asked by workers ----------------------------------------------------------------------

    async def enrol(self, worker: str, held: Held) -> None:
        """Take a worker's word for what it holds."""
        own = self._ledger(worker)
        for account, governor in self._shared.governors.items():
            governor.in_flight += held.permits.get(account, 0) - own.permits[account]
        budget = self._shared.budget
        budget.reserved_usd += held.usd - own.usd
        budget.reserved_tokens += held.tokens - own.tokens
        own.permits, own.usd, own.tokens = Counter(held.permits), held.usd, held.tokens

    async def permits(self, worker: str, account: str, tokens: Sequence[int]) -> Granted:
        """Permits for calls of so many tokens: wait for the first, add what can be had at once."""
        governor = self._shared.governors[account]
        granted: list[Permit] = []
        try:
            granted.append(await governor.permit(tokens[0]))
            for more in tokens[1:]:
                permit = governor.permit_at_once(more)
                if permit is None:
                    break
                granted.append(permit)
        except AccountStoppedError as stopped:
            return Granted(refused=str(stopped))
        if worker in self._gone:  # it died waiting
            for _ in granted:
                governor.release()
            return Granted()
        self._ledger(worker).permits[account] += len(granted)
        return Granted(permits=tuple(granted))

    async def reserve(self, worker: str, costs: Sequence[Cost]) -> Reserved:
        """Reserve the highest costs of calls: wait for the first, add what fits at once."""
        budget = self._shared.budget
        try:
            await budget.reserve(costs[0])
        except BudgetError as reached:
            return Reserved(refused=str(reached))
        count = 1
        while count < len(costs) and budget.reserve_at_once(costs[count]):
            count += 1
        if worker in self._gone:
            for most in costs[:count]:
                budget.settle(most, NOTHING)
            return Reserved()
        self._book(worker, costs[:count], 1)
        return Reserved(count=count)

    async def tell(self, worker: str, news: Sequence[News]) -> None:
        """Book what became of calls."""
        if worker not in self._gone:
            for one in news:
                self._hear(worker, one)

    # -- asked by the driver -------------------------------------------------------------------

    async def forget(self, worker: str) -> None:
        """Take back what a dead worker held."""
        self._gone.add(worker)
        own = self._held.pop(worker, _Ledger())
        for account, count in own.permits.items():
            for _ in range(count):
                self._shared.governors[account].release()
        self._shared.budget.settle(Cost(usd=own.usd, tokens=own.tokens), NOTHING)

    async def histories(self) -> dict[str, list[dict[str, Any]]]:
        """Every change of each account's concurrency."""
        return {name: governor.history for name, governor in self._shared.governors.items()}

    # ------------------------------------------------------------------------------------------

    def _hear(self, worker: str, news: News) -> None:
        governors = self._shared.governors
        match news:
            case Released(account=account):
                self._ledger(worker).permits[account] -= 1
                governors[account].release()
            case Succeeded(account=account, permit=permit):
                governors[account].succeeded(permit)
            case Limited(account=account, permit=permit, wait_s=wait_s):
                governors[account].rate_limited(permit, wait_s)
            case Stopped(account=account, reason=reason):
                governors[account].stop(reason)
            case Settled(most=most, actual=actual):
                self._book(worker, [most], -1)
                self._shared.budget.settle(most, actual)

    def _book(self, worker: str, costs: Sequence[Cost], sign: int) -> None:
        own = self._ledger(worker)
        own.usd += sign * sum(cost.usd or 0.0 for cost in costs)
        own.tokens += sign * sum(cost.tokens for cost in costs)

    def _ledger(self, worker: str) -> _Ledger:
        return self._held.setdefault(worker, _Ledger())
