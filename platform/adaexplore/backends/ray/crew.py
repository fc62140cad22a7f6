"""The crew: the actors of a sweep, kept at work while some of them die.

Ray restarts nothing here. A dead worker's batches go back to the backlog and another worker is
started in its place; a dead desk is replaced under its name. Deaths in a row without a single model
call between them are not bad luck, and end the sweep.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import ray
from ray.exceptions import RayActorError, RayError

from adaexplore.backends.ray.backlog import Backlog
from adaexplore.backends.ray.desk import Desk, Shared
from adaexplore.backends.ray.messages import Batch, Report, Summary
from adaexplore.backends.ray.results import first_line, result
from adaexplore.backends.ray.workers import Equip, Worker, together
from adaexplore.errors import ClusterError
from adaexplore.experiments.placements import RayConfig
from adaexplore.models.activity import Activity, Doing

REPORT_S: Final = 1.0
LOSSES: Final = 5
"""Deaths in a row, for each worker of the crew, after which no more are started."""
LEAVE_S: Final = 10.0
"""How long a worker may take to leave in order."""
START_S: Final = 120.0
"""How long an actor may take to start."""
_ASYNC: Final = {"max_restarts": 0, "max_task_retries": 0, "max_concurrency": 10_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What a crew works by."""

    name: str
    """Of the launch; no other on the cluster has it."""
    config: RayConfig
    workers: int
    concurrency: int
    """Episodes under way at once on each worker."""
    equip: Equip
    furnish: Callable[[], Shared] | None
    """What the desk is opened with; None where no model is asked over a network."""
    on_call: Callable[[], None]
    notify: Callable[[str], None]
    activity: Activity


@dataclass(slots=True)
class _Hand:
    """One worker actor, as the driver knows it."""

    name: str
    actor: Any
    calls: int = 0
    shown: set[str] = field(default_factory=set)
    """Keys that it has on the board."""


class Crew:
    """The actors of one launch."""

    def __init__(
        self, orders: Orders, backlog: Backlog, done: Callable[[Batch, Sequence[Summary]], None]
    ) -> None:
        """Take batches from a backlog and say what became of each."""
        self._orders = orders
        self._backlog = backlog
        self._done = done
        self._hands: dict[str, _Hand] = {}
        self._hired = self._losses = 0
        self._desk: Any = None

    async def work(self) -> None:
        """Start the actors and keep them at work until cancelled.

        Raises:
            AdaExploreError: The store, a model's address or the dataset cannot be used there.
            ClusterError: Workers or the desk die again and again.
        """
        acts = [self._man() for _ in range(self._orders.workers)]
        if self._orders.furnish is not None:
            await self._open_desk(self._orders.furnish)
            acts.append(self._keep_desk(self._orders.furnish))
        await together(acts)

    async def dismiss(self) -> dict[str, list[dict[str, Any]]]:
        """Let everybody leave in order, as far as they still can; the desk's histories."""
        hands = list(self._hands.values())
        await asyncio.gather(*(self._dismissed(hand) for hand in hands))
        found: dict[str, list[dict[str, Any]]] = {}
        if self._desk is not None:
            with suppress(RayError, TimeoutError):
                found = await asyncio.wait_for(result(self._desk.histories.remote()), LEAVE_S)
            ray.kill(self._desk)
        return found

    # -- workers -------------------------------------------------------------------------------

    async def _man(self) -> None:
        """Fill one place with one worker after another."""
        while True:
            hand = self._hire()
            try:
                await started(hand.actor.open.remote(), "a worker")
                slots = math.ceil(self._orders.concurrency / self._orders.config.batch)
                await together([self._watch(hand), *(self._feed(hand) for _ in range(slots))])
            except RayActorError as died:
                await self._lost(hand, died)

    def _hire(self) -> _Hand:
        self._hired += 1
        name = f"{self._orders.name}-{self._hired}"
        actor = (
            ray.remote(Worker)
            .options(**_ASYNC, num_cpus=self._orders.config.cpus, scheduling_strategy="SPREAD")
            .remote(name, self._orders.equip, self._desk)
        )
        hand = self._hands[name] = _Hand(name, actor)
        return hand

    async def _feed(self, hand: _Hand) -> None:
        """Give a worker one batch after another; what it does not end goes back."""
        while True:
            batch = await self._backlog.take()
            try:
                summaries = await result(hand.actor.play.remote(batch))
            except BaseException:
                self._backlog.add(batch.model, batch.runs)
                raise
            self._losses = 0
            self._done(batch, summaries)

    async def _watch(self, hand: _Hand) -> None:
        """Show a worker's calls and waits."""
        while True:
            self._show(hand, await result(hand.actor.report.remote()))
            await asyncio.sleep(REPORT_S)

    def _show(self, hand: _Hand, report: Report) -> None:
        if report.calls > hand.calls:
            self._losses = 0
        for _ in range(report.calls - hand.calls):
            self._orders.on_call()
        hand.calls = report.calls
        board = self._orders.activity
        self._clear(hand)
        now_s = board.clock()
        for waiting in report.waiting:
            until_s = None if waiting.left_s is None else now_s + waiting.left_s
            since_s = now_s - waiting.since_s
            board.now[waiting.key] = Doing(what=waiting.what, since_s=since_s, until_s=until_s)
            hand.shown.add(waiting.key)

    def _clear(self, hand: _Hand) -> None:
        for key in hand.shown:
            self._orders.activity.now.pop(key, None)
        hand.shown.clear()

    async def _lost(self, hand: _Hand, died: RayActorError) -> None:
        del self._hands[hand.name]
        self._clear(hand)
        self._losses += 1
        if self._losses > LOSSES * self._orders.workers:
            raise ClusterError(
                f"{self._losses} workers died in a row without a model call between them; the last: "
                f"{first_line(died)}; look at the cluster's logs, then launch again"
            )
        self._orders.notify("a worker was lost; another takes its episodes")
        if self._desk is not None:
            with suppress(RayError):  # a new desk knows nothing of it anyway
                await result(self._desk.forget.remote(hand.name))

    async def _dismissed(self, hand: _Hand) -> None:
        with suppress(RayError, TimeoutError):
            await asyncio.wait_for(result(hand.actor.leave.remote()), LEAVE_S)
        ray.kill(hand.actor)
        self._clear(hand)

    # -- the desk ------------------------------------------------------------------------------

    async def _open_desk(self, furnish: Callable[[], Shared]) -> None:
        """Start a desk, and tell the workers where it is."""
        desk = ray.remote(Desk).options(**_ASYNC, num_cpus=0).remote(furnish)
        await started(desk.open.remote(), "the governor")
        self._desk = desk
        for hand in self._hands.values():
            hand.actor.deal_with.remote(desk)

    async def _keep_desk(self, furnish: Callable[[], Shared]) -> None:
        for _ in range(LOSSES * 10):
            try:
                await result(self._desk.last.remote())
            except RayActorError:
                self._orders.notify("the governor was lost; another reads what was spent")
            with suppress(RayActorError):  # it died at once: the next round sees it
                await self._open_desk(furnish)
        raise ClusterError(
            "the sweep's governor died again and again: look at the cluster's logs, then launch again"
        )


async def started(reference: Any, what: str) -> Any:
    """What an actor's first method returns; ClusterError if it does not get so far in time."""
    try:
        return await asyncio.wait_for(result(reference), START_S)
    except TimeoutError:
        raise ClusterError(
            f"{what} did not start within {START_S:.0f} s: expected a free place on the cluster; "
            "lower backend.ray.num_workers or backend.ray.cpus, or wait for others to end"
        ) from None
