"""Several servers of one model at once: watched while they are played, started and stopped together."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol


class Watched(Protocol):
    """A server that is kept going."""

    async def watch(self) -> None:
        """Keep it going until cancelled; raises the reason where that is given up."""


@asynccontextmanager
async def watched(servers: Sequence[Watched]) -> AsyncIterator[None]:
    """Watch servers while the body runs; the first that is given up ends the body."""
    try:
        async with asyncio.TaskGroup() as group:
            watches = [group.create_task(server.watch()) for server in servers]
            yield
            for watch in watches:
                watch.cancel()
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None


async def together(acts: Iterable[Coroutine[None, None, None]]) -> None:
    """Do things side by side; the first error cancels the others and is raised alone."""
    try:
        async with asyncio.TaskGroup() as group:
            for act in acts:
                group.create_task(act)
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
