"""The seams between a client and what all clients of a sweep share: the pace and the purse.

In one process they are the governor and the budget themselves; where many processes play one sweep,
they are lines to the place where both are kept.
"""

from typing import Any, Protocol

from adaexplore.models.budget import Cost
from adaexplore.models.governor import Permit


class Pace(Protocol):
    """Leave to call one account (see `governor.Governor`)."""

    name: str
    history: list[dict[str, Any]]

    async def permit(self, tokens: int) -> Permit:
        """Leave to make a call of about so many tokens; AccountStoppedError if there is none."""

    def permit_at_once(self, tokens: int) -> Permit | None:
        """The same without waiting; None if it would have to be waited for."""

    def release(self) -> None:
        """Give a permit back, whatever became of the call."""

    def succeeded(self, permit: Permit) -> None:
        """A call was answered."""

    def rate_limited(self, permit: Permit, wait_s: float | None) -> None:
        """A call met a rate limit, and was asked to wait."""

    def stop(self, reason: str) -> None:
        """The quota is used up."""

    def ready_in(self) -> float:
        """Seconds until the pause ends, as far as known here; 0 when there is none."""


class Purse(Protocol):
    """What may still be spent (see `budget.Budget`)."""

    async def reserve(self, most: Cost) -> None:
        """Reserve the highest cost of a call; BudgetError at the cap."""

    def reserve_at_once(self, most: Cost) -> bool:
        """The same without waiting; False if it would have to be waited for."""

    def settle(self, most: Cost, actual: Cost) -> None:
        """Give back a reservation and book what the call really cost."""
