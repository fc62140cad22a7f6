"""Usage: what attempts spent, for caps and for accounting.

Scores come from results; usage comes from attempts, failed ones included, and so may differ between
two ways to the same result. An attempt books its usage when it ends; one that was killed before is
read from its journal.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from adaexplore.benchmark.game.protocol import Reply
from adaexplore.errors import StoreError
from adaexplore.experiments import journals, reading
from adaexplore.experiments.stores import Store
from adaexplore.models import budget
from adaexplore.models.profiles import Prices

UNPRICED = Prices()


@dataclass(slots=True, kw_only=True)
class Usage:
    """Sums over calls; tokens as the endpoint told them."""

    calls: int = 0
    failed_attempts: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    lost_tokens: int = 0
    """Input tokens of calls whose answer was lost: the provider may have charged for them."""
    usd: float = 0.0
    unpriced_tokens: int = 0
    """Tokens of models without a known price; they are in no amount of money."""
    seconds: float = 0.0
    """Time of the calls themselves, waiting apart."""

    def add(self, other: "Usage") -> None:
        """Add another usage to this one."""
        for field in fields(Usage):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def book_answer(self, reply: Reply, meta: dict[str, Any], prices: Prices) -> None:
        """Book one journaled reply with the failed attempts before it."""
        self.calls += 1
        self.seconds += float(meta.get("seconds", 0.0))
        self.input_tokens += reply.input_tokens
        self.cached_tokens += reply.cached_tokens
        self.output_tokens += reply.output_tokens
        self.reasoning_tokens += reply.reasoning_tokens
        self._pay(budget.cost_of(prices, reply))
        self.book_failures(meta.get("attempts", ()), prices)

    def book_failures(self, attempts: Iterable[dict[str, Any]], prices: Prices) -> None:
        """Book failed attempts."""
        for attempt in attempts:
            lost = int(attempt.get("lost_tokens", 0))
            self.failed_attempts += 1
            self.lost_tokens += lost
            self._pay(budget.cost(prices, input_tokens=lost, cached_tokens=0, output_tokens=0))

    def _pay(self, cost: budget.Cost) -> None:
        if cost.usd is None:
            self.unpriced_tokens += cost.tokens
        else:
            self.usd += cost.usd

    @property
    def tokens(self) -> int:
        """Tokens that count against a cap."""
        return self.input_tokens + self.output_tokens + self.lost_tokens


def of_cell(store: Store, cell_id: str, prices: Prices) -> Usage:
    """What all attempts of a cell have spent, over all launches."""
    total = Usage()
    attempts: dict[str, set[str]] = {}
    for key in store.keys(f"cells/{cell_id}/"):
        folder, _, file = key.rpartition("/")
        attempts.setdefault(folder, set()).add(file)

    def read(attempt: tuple[str, set[str]]) -> Usage:
        return _of_attempt(store, *attempt, prices)

    for usage in reading.ahead(read, sorted(attempts.items())):
        total.add(usage)
    return total


def _of_attempt(store: Store, folder: str, files: set[str], prices: Prices) -> Usage:
    if "usage.json" in files:
        where = store.locate(f"{folder}/usage.json")
        try:
            return Usage(**json.loads(store.get(f"{folder}/usage.json") or b""))
        except (ValueError, TypeError):
            raise StoreError(
                f"{where}: damaged; remove it, and it is made again from the journal"
            ) from None
    usage = Usage()
    data = store.get(f"{folder}/journal.jsonl")
    journal = None if data is None else journals.read(data, store.locate(f"{folder}/journal.jsonl"))
    if journal is not None:
        for entry in journal.own_entries:
            usage.book_answer(Reply(**entry["reply"]), entry["meta"], prices)
    return usage
