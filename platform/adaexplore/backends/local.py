"""The local backend: every job in this process, many at once."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import islice

from adaexplore.benchmark.game.protocol import Protocol
from adaexplore.experiments.playing import Outcome, play_job
from adaexplore.experiments.stores import Store
from adaexplore.experiments.sweeps import Job
from adaexplore.models.endpoints import Endpoint


async def outcomes(
    jobs: Sequence[Job],
    connect: Callable[[Job], Endpoint],
    store: Store,
    protocol: Protocol,
    *,
    concurrency: int,
    on_call: Callable[[], None],
) -> AsyncIterator[Outcome]:
    """Play jobs, at most `concurrency` at once, in order of start; yield outcomes as they come.

    Raises:
        StoreError: The store cannot be written; every other job is cancelled first, none half-done
            in a way that its journal does not tell.
    """
    waiting = iter(jobs)
    running: set[asyncio.Task[Outcome]] = set()
    try:
        while True:
            for job in islice(waiting, concurrency - len(running)):
                playing = play_job(job, connect(job), store, protocol, on_call=on_call)
                running.add(asyncio.create_task(playing))
            if not running:
                return
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
