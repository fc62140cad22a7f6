"""The local backend: every job in this process, many at once.

Jobs are played in lanes, one a model: a lane opens its model (which may mean starting a server),
plays its jobs, and closes it. Lanes run side by side; what they share (GPUs, money, places) is kept
by those who own it. A job that another launcher is playing is put off until it is done there, or its
writer is gone.
"""

import asyncio
import gc
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from typing import Final

from adaexplore.benchmark.game.protocol import Protocol
from adaexplore.experiments.playing import Outcome, play_job
from adaexplore.experiments.stores import Store
from adaexplore.experiments.sweeps import Job
from adaexplore.models.endpoints import Endpoint

Connect = Callable[[Job], Endpoint]
LOOK_AGAIN_S: Final = (0.5, 1.5)
"""Between two looks at an episode that another launcher plays: at least, at most."""

BEGIN_S: Final = 0.001
"""Between the beginnings of two episodes, about what one costs. Begun all at once, they would make their
connections together, and their replies would come together too."""


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
        with _many_alive():
            async for outcome in self._outcomes(lanes):
                yield outcome

    async def _outcomes(self, lanes: Sequence[Lane]) -> AsyncIterator[Outcome]:
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
        waiting = deque(lane.jobs)
        async with lane.open() as connect:
            try:
                async with asyncio.TaskGroup() as group:
                    async for _ in _paced(min(self.concurrency, len(waiting))):
                        group.create_task(self._play_jobs(waiting, connect, queue))
            except BaseExceptionGroup as faults:  # a full disk fails several at once
                raise faults.exceptions[0] from None

    async def _play_jobs(
        self, waiting: deque[Job], connect: Connect, queue: asyncio.Queue[Outcome]
    ) -> None:
        """Play one job after the other while any wait."""
        while waiting:
            outcome = await self._play_job(waiting.popleft(), connect)
            if outcome.elsewhere:
                waiting.append(outcome.job)
            else:
                queue.put_nowait(outcome)

    async def _play_job(self, job: Job, connect: Connect) -> Outcome:
        outcome = await play_job(job, connect(job), self.store, self.protocol, on_call=self.on_call)
        if outcome.elsewhere:  # at odd times, so that two launchers do not meet again and again
            await asyncio.sleep(random.uniform(*LOOK_AGAIN_S))
        return outcome


async def _paced(count: int) -> AsyncIterator[int]:
    """Numbers from 0 to below `count`, one each `BEGIN_S`."""
    clock = asyncio.get_running_loop().time
    begun_s = clock()
    for number in range(count):
        await asyncio.sleep(begun_s + number * BEGIN_S - clock())
        yield number


@contextmanager
def _many_alive() -> Iterator[None]:
    """The collector's settings for thousands of live histories, which its own would walk again and again.

    What playing makes is freed without the collector, and most of it before half a million are alive.
    """
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(500_000, 50, 100)
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
