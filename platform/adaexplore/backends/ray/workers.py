"""The worker: one process of Ray that plays batches of episode runs, many at once.

It opens the store, the dataset and the models itself, from the resolved configuration. Every episode
is claimed through the store and journaled as it plays, so that nothing is lost with the worker; the
store's writer ends with the process, and others see that.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeVar

from adaexplore.backends.ray.lines import Line
from adaexplore.backends.ray.messages import Batch, Report, Run, Summary, Waiting
from adaexplore.backends.ray.results import calls
from adaexplore.benchmark.game.protocol import Protocol as Rules
from adaexplore.experiments.playing import Outcome, play_job
from adaexplore.experiments.stores import Store
from adaexplore.experiments.sweeps import Job
from adaexplore.models.activity import Activity
from adaexplore.models.endpoints import Endpoint
from adaexplore.models.hosts import Served

T = TypeVar("T")
SHOWN: Final = 3
"""Waiting episode runs that a report names."""


class Models(Protocol):
    """What binds episode runs to their models."""

    def connect(self, name: str, served: Served | None) -> Callable[[Job], Endpoint]:
        """What gives a job of a model its endpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """All that a worker plays with."""

    store: Store
    rules: Rules
    jobs: Mapping[Run, Job]
    opened: AbstractAsyncContextManager[Models]
    activity: Activity


Equip = Callable[[Line], Kit]
"""Makes a worker's kit; named by module, so that it can be sent. Raises AdaExploreError."""


class Worker:
    """Plays what it is given; errors of the store or of a model's address are raised as they are."""

    def __init__(self, name: str, equip: Equip, desk: Any = None) -> None:
        """Play with what `equip` makes, asking a desk, if there is one; opens nothing before `open`."""
        self._line = Line(name)
        self._equip = equip
        self._desk = desk
        self._stack = AsyncExitStack()
        self._calls = 0
        self._playing: set[asyncio.Task[object]] = set()

    async def open(self) -> None:
        """Open store and models."""
        if self._desk is not None:
            await self.deal_with(self._desk)
        self._kit = await asyncio.to_thread(self._equip, self._line)
        self._stack.callback(self._kit.store.close)
        self._models = await self._stack.enter_async_context(self._kit.opened)

    async def deal_with(self, desk: Any) -> None:
        """Ask this desk from now on."""
        self._desk = desk  # also where it comes before this worker is open
        self._line.tie(calls(desk))

    async def play(self, batch: Batch) -> list[Summary]:
        """Play a batch to its end; one summary a run."""
        connect = self._models.connect(batch.model, batch.served)
        task: asyncio.Task[object] | None = asyncio.current_task()
        assert task is not None  # noqa: S101 (for the type checker)
        self._playing.add(task)
        try:
            return await together(self._play(run, connect) for run in batch.runs)
        finally:
            self._playing.discard(task)

    async def report(self) -> Report:
        """How things stand."""
        board = self._kit.activity
        now_s = board.clock()
        waiting = tuple(
            Waiting(
                key=key,
                what=doing.what,
                since_s=now_s - doing.since_s,
                left_s=None if doing.until_s is None else doing.until_s - now_s,
            )
            for key, doing in board.longest(SHOWN)
        )
        return Report(calls=self._calls, waiting=waiting)

    async def leave(self) -> None:
        """Stop playing, and stop being a writer: what was under way can be taken over at once."""
        for task in self._playing:
            task.cancel()
        await asyncio.gather(*self._playing, return_exceptions=True)
        with suppress(Exception):  # the desk may be gone; the store is closed all the same
            await self._line.drain()
        await self._stack.aclose()

    async def _play(self, run: Run, connect: Callable[[Job], Endpoint]) -> Summary:
        kit, job = self._kit, self._kit.jobs[run]
        outcome = await play_job(job, connect(job), kit.store, kit.rules, on_call=self._count)
        return _summary(run, outcome)

    def _count(self) -> None:
        self._calls += 1


def _summary(run: Run, outcome: Outcome) -> Summary:
    status: Literal["done", "failed", "elsewhere"] = "done"
    if outcome.record is None:
        status = "elsewhere" if outcome.elsewhere else "failed"
    return Summary(
        run=run,
        status=status,
        failure=outcome.failure,
        calls=outcome.calls,
        replayed=outcome.replayed,
        torn=outcome.torn,
    )


async def together(acts: Iterable[Coroutine[None, None, T]]) -> list[T]:
    """Do things side by side; the first error cancels the others and is raised alone."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(act) for act in acts]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return [task.result() for task in tasks]
