"""The desk and the lines to it, without Ray: what is given, counted, taken back and told again."""

import asyncio

import pytest

from adaexplore.backends.ray.backlog import Backlog
from adaexplore.backends.ray.desk import Desk, Shared
from adaexplore.backends.ray.lines import Line, LineLostError, LinePace, LinePurse
from adaexplore.errors import BudgetError
from adaexplore.models.budget import Budget, Cost
from adaexplore.models.governor import AccountStoppedError, Governor
from adaexplore.models.profiles import Limits

MOST, ACTUAL = Cost(usd=2.0, tokens=20), Cost(usd=0.5, tokens=5)


class Office:
    """A desk in this process, with its calls counted; it can die, as an actor does."""

    def __init__(self, *, places=4, cap_usd=None, spent_usd=0.0):
        self.budget = Budget(cap_usd=cap_usd, spent_usd=spent_usd)
        limits = Limits(concurrency_start=places, concurrency_max=places)
        self.governor = Governor("a", limits, lambda: 1.0)
        shared = Shared(budget=self.budget, governors={"a": self.governor})
        self.desk = Desk(lambda: shared)
        self.calls, self.dead = [], asyncio.Event()

    async def call(self, method, *arguments):
        if self.dead.is_set():
            raise LineLostError("dead")
        self.calls.append(method)
        asked = asyncio.create_task(getattr(self.desk, method)(*arguments))
        death = asyncio.create_task(self.dead.wait())
        await asyncio.wait({asked, death}, return_when=asyncio.FIRST_COMPLETED)
        death.cancel()
        if not asked.done():
            asked.cancel()
            raise LineLostError("died")
        return asked.result()

    @property
    def reserved(self):
        return self.budget.reserved_usd, self.budget.reserved_tokens


async def opened(**more):
    office = Office(**more)
    await office.desk.open()
    return office


def lined(office, worker="w"):
    line = Line(worker)
    line.tie(office.call)
    return line, LinePace("a", line), LinePurse(line)


async def one_call(pace, purse):
    """What a client does for one model call."""
    permit = await pace.permit(10)
    try:
        await purse.reserve(MOST)
        await asyncio.sleep(0)
        pace.succeeded(permit)
        purse.settle(MOST, ACTUAL)
    finally:
        pace.release()


def test_many_calls_are_few_calls_of_the_desk_and_all_is_booked():
    async def scenario():
        office = await opened(places=64)
        line, pace, purse = lined(office)
        await asyncio.gather(*(one_call(pace, purse) for _ in range(64)))
        await line.drain()
        return office

    office = asyncio.run(scenario())
    assert (32.0, 320) == (office.budget.spent_usd, office.budget.spent_tokens)
    assert (0, (0.0, 0)) == (office.governor.in_flight, office.reserved)
    assert len(office.calls) < 64 / 3


def test_places_are_shared_by_all_workers():
    async def scenario():
        office = await opened(places=3)
        paces = [lined(office, worker)[1] for worker in ("v", "w")]
        asked = [asyncio.create_task(pace.permit(1)) for pace in paces for _ in range(4)]
        for _ in range(50):
            await asyncio.sleep(0)
        given = [task for task in asked if task.done()]
        for task in asked:
            task.cancel()
        return len(given), office.governor.in_flight

    assert (3, 3) == asyncio.run(scenario())


def test_the_cap_holds_and_is_told():
    async def scenario():
        office = await opened(places=64, cap_usd=5.0)
        _, pace, purse = lined(office)
        calls = [one_call(pace, purse) for _ in range(20)]
        return office, await asyncio.gather(*calls, return_exceptions=True)

    office, ends = asyncio.run(scenario())
    refused = [end for end in ends if isinstance(end, BudgetError)]
    assert 0 < len(refused) < 20
    assert 5.0 - MOST.usd < office.budget.spent_usd <= 5.0


def test_a_used_up_quota_is_told_to_every_worker():
    async def scenario():
        office = await opened()
        line, pace, _ = lined(office, "v")
        pace.stop("no more until noon")
        await line.drain()
        with pytest.raises(AccountStoppedError, match="no more until noon"):
            await lined(office, "w")[1].permit(1)

    asyncio.run(scenario())


def test_what_a_dead_worker_held_is_there_for_others_and_its_late_news_are_not_heard():
    async def scenario():
        office = await opened(places=1)
        line, pace, purse = lined(office, "dead")
        await pace.permit(1)
        await purse.reserve(MOST)
        _, other, _ = lined(office, "alive")
        waiting = asyncio.create_task(other.permit(1))
        await asyncio.sleep(0.01)
        before = waiting.done(), office.reserved
        await office.desk.forget("dead")
        await waiting
        pace.release()
        purse.settle(MOST, ACTUAL)
        await line.drain()
        return before, office

    before, office = asyncio.run(scenario())
    assert (False, (2.0, 20)) == before
    assert (1, (0.0, 0), 0.0) == (
        office.governor.in_flight,
        office.reserved,
        office.budget.spent_usd,
    )


def test_a_permit_that_comes_for_a_worker_that_died_waiting_is_given_on():
    async def scenario():
        office = await opened(places=1)
        first = await office.desk.permits("v", "a", [1])
        late = asyncio.create_task(office.desk.permits("dead", "a", [1]))
        await asyncio.sleep(0)
        await office.desk.forget("dead")
        await office.desk.forget("v")
        return first, await late, office.governor.in_flight

    first, late, in_flight = asyncio.run(scenario())
    assert (1, 0, 0) == (len(first.permits), len(late.permits), in_flight)


def test_a_new_desk_learns_what_is_held_and_hears_what_the_old_one_did_not():
    async def scenario():
        old = await opened(places=8)
        line, pace, purse = lined(old)
        for _ in range(3):
            await pace.permit(1)
            await purse.reserve(MOST)
        old.dead.set()
        pace.release()
        purse.settle(MOST, ACTUAL)
        new = await opened(places=8, spent_usd=7.0)
        await asyncio.sleep(0.01)
        line.tie(new.call)
        await line.drain()
        held = new.governor.in_flight, new.reserved, new.budget.spent_usd
        for _ in range(2):
            pace.release()
            purse.settle(MOST, ACTUAL)
        await line.drain()
        return held, new

    held, new = asyncio.run(scenario())
    assert (2, (4.0, 40), 7.5) == held
    assert (0, (0.0, 0), 8.5) == (new.governor.in_flight, new.reserved, new.budget.spent_usd)


def test_who_leaves_while_waiting_takes_nothing():
    async def scenario():
        office = await opened(places=1)
        line, pace, purse = lined(office)
        await pace.permit(1)
        leaving = asyncio.create_task(pace.permit(1))
        await asyncio.sleep(0.01)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        pace.release()
        await asyncio.sleep(0.01)
        await line.drain()
        await asyncio.wait_for(one_call(pace, purse), 60)
        await line.drain()
        return office.governor.in_flight

    assert 0 == asyncio.run(scenario())


def test_models_are_taken_in_turn_and_no_run_is_lost():
    async def scenario():
        backlog = Backlog(2)
        backlog.open("slow", None, [("s", str(n)) for n in range(5)])
        backlog.open("fast", None, [("f", str(n)) for n in range(2)])
        taken = [await backlog.take() for _ in range(3)]
        backlog.add("slow", taken[0].runs)
        return [*taken, *[await backlog.take() for _ in range(2)]]

    batches = asyncio.run(scenario())
    assert ["slow", "fast", "slow", "slow", "slow"] == [batch.model for batch in batches]
    assert [2, 2, 2, 2, 1] == [len(batch.runs) for batch in batches]
    kept = {run for batch in (batches[0], *batches[2:]) for run in batch.runs}
    assert {("s", str(n)) for n in range(5)} == kept
