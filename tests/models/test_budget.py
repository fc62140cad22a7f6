"""The cap holds whatever a thousand episodes do at once, and nobody is refused too early."""

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import virtual_time
from adaexplore.benchmark.game.protocol import Reply
from adaexplore.errors import BudgetError
from adaexplore.models import budget
from adaexplore.models.budget import Budget, Cost
from adaexplore.models.profiles import Prices

PRICES = Prices(input_usd_per_mtok=2.0, cached_usd_per_mtok=0.5, output_usd_per_mtok=10.0)


# -- what a call costs -------------------------------------------------------------------------


def test_a_call_costs_its_fresh_its_cached_and_its_written_tokens():
    """(1,000 x 2 + 500 x 0.5 + 300 x 10) USD a million."""
    cost = budget.cost(PRICES, input_tokens=1500, cached_tokens=500, output_tokens=300)

    assert Cost(usd=pytest.approx(0.00525), tokens=1800) == cost


def test_cached_tokens_without_a_price_of_their_own_cost_as_much_as_others():
    prices = Prices(input_usd_per_mtok=2.0, output_usd_per_mtok=10.0)
    reply = Reply(text="", input_tokens=1500, cached_tokens=500, output_tokens=300)

    assert Cost(usd=pytest.approx(0.006), tokens=1800) == budget.cost_of(prices, reply)


@pytest.mark.parametrize(
    "prices", [Prices(), Prices(input_usd_per_mtok=1.0), Prices(output_usd_per_mtok=1.0)]
)
def test_an_unknown_price_is_unknown_and_not_nothing(prices):
    cost = budget.cost(prices, input_tokens=10, cached_tokens=0, output_tokens=5)

    assert Cost(usd=None, tokens=15) == cost


def test_a_price_of_nothing_is_known():
    free = Prices(input_usd_per_mtok=0.0, output_usd_per_mtok=0.0)

    assert 0.0 == budget.cost(free, input_tokens=9, cached_tokens=0, output_tokens=9).usd


def test_tokens_without_a_price_are_counted_apart_from_money():
    own = Budget(cap_usd=1.0)
    virtual_time.run(own.reserve(Cost(usd=None, tokens=100)))
    own.settle(Cost(usd=None, tokens=100), Cost(usd=None, tokens=70))

    assert (0.0, 70, 70, 0) == (
        own.spent_usd, own.spent_tokens, own.unpriced_tokens, own.reserved_tokens,
    )  # fmt: skip


# -- the cap -----------------------------------------------------------------------------------


async def episode(own, rng, *, most, low, high, calls=40):
    """An episode that calls until it is done or refused; how many calls it made."""
    for number in range(calls):
        try:
            await own.reserve(most)
        except BudgetError:
            return number
        actual = Cost(usd=rng.uniform(low, high) * most.usd, tokens=most.tokens)
        try:
            await asyncio.sleep(rng.random())
        finally:
            own.settle(most, actual)
    return calls


async def thousand(own, **how):
    """1,000 episodes, 64 of them running at once."""
    places = asyncio.Semaphore(64)

    async def one(index):
        async with places:
            return await episode(own, random.Random(index), **how)

    return await asyncio.gather(*(one(index) for index in range(1000)))


def test_a_thousand_episodes_whose_estimates_are_never_too_low_stay_below_the_cap():
    own, most = Budget(cap_usd=100.0), Cost(usd=0.05, tokens=1000)
    made = virtual_time.run(thousand(own, most=most, low=0.1, high=1.0))

    assert own.spent_usd <= 100.0
    assert own.spent_usd > 99.9
    assert own.reached
    assert (0.0, 0) == (pytest.approx(own.reserved_usd, abs=1e-9), own.reserved_tokens)
    assert 0 < sum(made) < 40_000


def test_a_thousand_episodes_with_estimates_too_low_overspend_by_a_call_a_running_episode():
    own, most = Budget(cap_usd=100.0), Cost(usd=0.05, tokens=1000)
    virtual_time.run(thousand(own, most=most, low=0.5, high=3.0))

    assert 100.0 < own.spent_usd <= 100.0 + 64 * 3.0 * 0.05
    assert own.reached


def test_a_cap_of_tokens_holds_as_one_of_money_does():
    own, most = Budget(cap_tokens=50_000), Cost(usd=0.05, tokens=1000)
    virtual_time.run(thousand(own, most=most, low=0.1, high=1.0))

    assert (50_000, True) == (own.spent_tokens, own.reached)


def test_without_a_cap_nobody_is_refused():
    own = Budget()
    made = virtual_time.run(thousand(own, most=Cost(usd=1e9, tokens=10**9), low=1, high=1, calls=2))

    assert ({2}, False) == (set(made), own.reached)


def test_what_earlier_launches_spent_counts():
    own = Budget(cap_usd=5.0, spent_usd=4.99)
    with pytest.raises(BudgetError, match=r"4\.9900 of 5 USD spent\): raise budget\.cap_usd"):
        virtual_time.run(own.reserve(Cost(usd=0.02, tokens=1)))


def test_a_call_waits_while_others_may_give_back_what_they_reserved():
    """The second fits only because the first costs a tenth of what was reserved for it."""

    async def main():
        own, most, order = Budget(cap_usd=1.0), Cost(usd=0.9, tokens=10), []

        async def one(name, takes_s):
            await own.reserve(most)
            order.append((name, virtual_time.clock()))
            await asyncio.sleep(takes_s)
            own.settle(most, Cost(usd=0.09, tokens=1))

        await asyncio.gather(one("first", 3.0), one("second", 1.0))
        return own, order

    own, order = virtual_time.run(main())

    assert [("first", 0.0), ("second", 3.0)] == order
    assert not own.reached


def test_those_who_waited_in_vain_are_all_refused_when_nothing_is_left_to_wait_for():
    async def main():
        own, most = Budget(cap_usd=1.0), Cost(usd=0.9, tokens=10)
        await own.reserve(most)
        waiting = [asyncio.ensure_future(own.reserve(most)) for _ in range(5)]
        await asyncio.sleep(1.0)
        assert not any(task.done() for task in waiting)
        own.settle(most, most)
        return await asyncio.gather(*waiting, return_exceptions=True)

    assert 5 * [BudgetError] == [type(error) for error in virtual_time.run(main())]


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(("ask", "cancel", "settle", "lose", "yield")),
            st.integers(0, 20),
            st.integers(1, 40),
        ),
        max_size=60,
    )
)
def test_reservations_are_never_lost_nor_doubled(steps):
    """In any order of asking, leaving and settling; sums by hand beside the budget's own."""

    async def main():
        own, asking, spent = Budget(cap_tokens=100), [], 0
        for action, index, amount in steps:
            held = [
                (task, most)
                for task, most in asking
                if task.done() and not task.cancelled() and task.exception() is None
            ]
            if action == "ask":
                most = Cost(usd=None, tokens=amount)
                asking.append((asyncio.ensure_future(own.reserve(most)), most))
            elif action == "cancel" and asking:
                asking[index % len(asking)][0].cancel()
            elif action in ("settle", "lose") and held:
                task, most = held[index % len(held)]
                asking.remove((task, most))
                actual = most.tokens if action == "settle" else 0
                own.settle(most, Cost(usd=None, tokens=actual))
                spent += actual
            else:
                await asyncio.sleep(0.1)
            assert own.spent_tokens == spent
            assert spent + own.reserved_tokens <= 100
        while asking:
            task, most = asking.pop(0)
            (error,) = await asyncio.gather(task, return_exceptions=True)
            if error is None:
                own.settle(most, Cost(usd=None, tokens=0))
        return own

    assert 0 == virtual_time.run(main()).reserved_tokens
