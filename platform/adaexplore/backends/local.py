"""The local backend: every job in this process, many at once.

Jobs are played in lanes, one a model: a lane opens its model (which may mean starting a server),
plays its jobs, and closes it. Lanes run side by side; what they share (GPUs, money, places) is kept
by those who own it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from itertools import islice

from adaexplore.benchmark.game.protocol import Protocol
from adaexplore.experiments.playing import Outcome, play_job
from adaexplore.experiments.stores import Store
from adaexplore.experiments.sweeps import Job
from adaexplore.models.endpoints import Endpoint

Connect = Callable[[Job], Endpoint]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """The jobs of one model and what opens the model."""

    jobs: Sequence[Job]
    open: Callable[[], AbstractAsyncContextManager[Connect]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Player:
    """What all jobs of a launch have in common."""

    store: Store
    protocol: Protocol
    concurrency: int
    """Episodes under way at once in one lane."""
    on_call: Callable[[], None]

    async def outcomes(self, lanes: Sequence[Lane]) -> AsyncIterator[Outcome]:
        """Play lanes side by side; yield outcomes as they come.

        Raises:
            StoreError: The store cannot be written. As with any error, every other job is
                cancelled first, none half-done in a way that its journal does not tell.
        """
        queue: asyncio.Queue[Outcome] = asyncio.Queue()
        running = {asyncio.create_task(self._play_lane(lane, queue)) for lane in lanes}
        done: set[asyncio.Task[None]] = set()
        try:
            while running or not queue.empty():
                while not queue.empty():
                    yield queue.get_nowait()
                if running:
                    done = await self._wait(running, queue)
                    running -= done
                    for task in done:
                        task.result()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, *done, return_exceptions=True)

    async def _wait(
        self, lanes: set[asyncio.Task[None]], queue: asyncio.Queue[Outcome]
    ) -> set[asyncio.Task[None]]:
        """Wait for an outcome or the end of a lane; returns the lanes that ended."""
        getter = asyncio.create_task(queue.get())
        try:
            await asyncio.wait({getter, *lanes}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if getter.done():
                queue.put_nowait(getter.result())  # the caller empties the queue
            getter.cancel()
        return {lane for lane in lanes if lane.done()}

    async def _play_lane(self, lane: Lane, queue: asyncio.Queue[Outcome]) -> None:
        async with lane.open() as connect:
            async for outcome in self._play_jobs(lane.jobs, connect):
                await queue.put(outcome)

    async def _play_jobs(self, jobs: Sequence[Job], connect: Connect) -> AsyncIterator[Outcome]:
        waiting = iter(jobs)
        running: set[asyncio.Task[Outcome]] = set()
        done: set[asyncio.Task[Outcome]] = set()
        try:
            while True:
                for job in islice(waiting, self.concurrency - len(running)):
                    playing = play_job(
                        job, connect(job), self.store, self.protocol, on_call=self.on_call
                    )
                    running.add(asyncio.create_task(playing))
                if not running:
                    return
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    yield task.result()
        finally:
            for task in running:
                task.cancel()
            # `done` too: a full disk fails several tasks at once, and each must be heard.
            await asyncio.gather(*running, *done, return_exceptions=True)
