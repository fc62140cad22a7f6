"""The backlog: episode runs that wait for a worker, taken in batches, each model in its turn."""

import asyncio
from collections import deque
from collections.abc import Sequence

from adaexplore.backends.ray.messages import Batch, Run
from adaexplore.models.hosts import Served


class Backlog:
    """Batches are taken from the models in rotation, so that a slow one holds up none."""

    def __init__(self, size: int) -> None:
        """Hand out at most `size` runs at once."""
        self._size = size
        self._served: dict[str, Served | None] = {}
        self._runs: dict[str, deque[Run]] = {}
        self._turns: deque[str] = deque()
        self._more = asyncio.Event()

    def open(self, model: str, served: Served | None, runs: Sequence[Run]) -> None:
        """Add a model with all its runs."""
        self._served[model] = served
        self._runs[model] = deque()
        self.add(model, runs)

    def add(self, model: str, runs: Sequence[Run]) -> None:
        """Add runs of a model that is open."""
        self._runs[model].extend(runs)
        if self._runs[model] and model not in self._turns:
            self._turns.append(model)
        self._more.set()

    async def take(self) -> Batch:
        """The next batch, waiting until there is one."""
        while not self._turns:
            self._more.clear()
            await self._more.wait()
        model = self._turns.popleft()
        runs = self._runs[model]
        taken = tuple(runs.popleft() for _ in range(min(self._size, len(runs))))
        if runs:
            self._turns.append(model)
        return Batch(model=model, served=self._served[model], runs=taken)
