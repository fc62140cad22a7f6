"""The player: all jobs of a launch on Ray, outcomes as they come (see `backends.local.Player`).

Jobs are played in lanes, one a model: a lane opens its model, gives the backlog its runs, and closes
the model when the last of them has ended. A run that another launcher plays comes back later. Results
are read from the store, which is where the workers put them.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Final

from adaexplore.backends.ray.backlog import Backlog
from adaexplore.backends.ray.crew import Crew, Orders
from adaexplore.backends.ray.messages import Batch, Run, Summary
from adaexplore.backends.ray.workers import together
from adaexplore.errors import StoreError
from adaexplore.experiments import attempts
from adaexplore.experiments.playing import Outcome
from adaexplore.experiments.stores import Store
from adaexplore.experiments.sweeps import Job
from adaexplore.models.hosts import Served

LOOK_AGAIN_S: Final = (0.5, 1.5)
"""Between two looks at an episode that another launcher plays: at least, at most."""
Histories = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """The jobs of one model and what opens the model."""

    model: str
    jobs: Sequence[Job]
    open: Callable[[], AbstractAsyncContextManager[Served | None]]


@dataclass(slots=True)
class _Playing:
    """A lane that is open: what is left of it."""

    left: dict[Run, Job]
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Player:
    """Plays lanes on a crew."""

    def __init__(self, store: Store, orders: Orders) -> None:
        """Read results from a store that the crew writes to."""
        self._store = store
        self._orders = orders
        self._lanes: dict[str, _Playing] = {}
        self._queue: asyncio.Queue[tuple[Job, Summary] | None] = asyncio.Queue()
        self.histories: Histories = {}
        """Of the accounts' concurrency, when all is over."""

    async def outcomes(self, lanes: Sequence[Lane]) -> AsyncIterator[Outcome]:
        """Play lanes side by side; yield outcomes as they come.

        Raises:
            StoreError: The store cannot be read or written.
            ClusterError: The cluster loses its workers again and again.
        """
        playing = asyncio.create_task(self._play(lanes))
        playing.add_done_callback(lambda _: self._queue.put_nowait(None))
        try:
            while (ended := await self._queue.get()) is not None:
                yield await asyncio.to_thread(self._outcome, *ended)
            await playing
        finally:
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)

    async def _play(self, lanes: Sequence[Lane]) -> None:
        backlog = Backlog(self._orders.config.batch)
        crew = Crew(self._orders, backlog, lambda *ended: self._book(backlog, *ended))
        try:
            working = asyncio.create_task(crew.work())
            played = asyncio.create_task(together(self._play_lane(lane, backlog) for lane in lanes))
            try:
                await asyncio.wait({working, played}, return_when=asyncio.FIRST_COMPLETED)
                (working if working.done() else played).result()
            finally:
                working.cancel()
                played.cancel()
                await asyncio.gather(working, played, return_exceptions=True)
        finally:
            self.histories = await crew.dismiss()

    async def _play_lane(self, lane: Lane, backlog: Backlog) -> None:
        playing = _Playing({(j.key.cell_id, j.key.episode_id): j for j in lane.jobs})
        async with lane.open() as served:
            self._lanes[lane.model] = playing
            backlog.open(lane.model, served, list(playing.left))
            await playing.over.wait()

    def _book(self, backlog: Backlog, batch: Batch, summaries: Sequence[Summary]) -> None:
        playing = self._lanes[batch.model]
        for summary in summaries:
            if (
                summary.status == "elsewhere"
            ):  # at odd times, so that two launchers do not meet again
                pause_s = random.uniform(*LOOK_AGAIN_S)
                loop = asyncio.get_running_loop()
                loop.call_later(pause_s, backlog.add, batch.model, (summary.run,))
            elif (job := playing.left.pop(summary.run, None)) is not None:
                self._queue.put_nowait((job, summary))
        if not playing.left:
            playing.over.set()

    def _outcome(self, job: Job, summary: Summary) -> Outcome:
        record = None
        if summary.status == "done":
            found = attempts.listed(self._store, job.key.prefix).get(job.key.episode_id, [])
            key = attempts.result_of(found)
            if key is None:
                raise StoreError(
                    f"{self._store.locate(job.key.prefix)}: expected the result that a worker has "
                    "written, got none: driver and workers must share one store (a folder that all "
                    "machines mount, or a bucket)"
                )
            digest = job.key.hidden_digest
            record = attempts.read_result(self._store, key, hidden_digest=digest)
        return Outcome(
            job=job,
            record=record,
            failure=summary.failure,
            calls=summary.calls,
            replayed=summary.replayed,
            torn=summary.torn,
        )
