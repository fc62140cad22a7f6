"""The governor in virtual time: never too many, never too fast, back to full speed, and fair."""

import asyncio
import contextlib
import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import virtual_time
from adaexplore.models.governor import CUT, AccountStoppedError, Governor
from adaexplore.models.profiles import Limits

MINUTE_S = 60.0


def governor(**limits):
    return Governor("acme (KEY) m", Limits(**limits), virtual_time.clock)


async def call(own, *, takes_s=1.0, tokens=1, limited=lambda: False, wait_s=None):
    """One call with its retries; the server answers after `takes_s` and may be limited."""
    while True:
        permit = await own.permit(tokens)
        try:
            await asyncio.sleep(takes_s)
            if not limited():
                own.succeeded(permit)
                return
            own.rate_limited(permit, wait_s)
        finally:
            own.release()


async def calls(count, own, **how):
    await asyncio.gather(*(call(own, **how) for _ in range(count)))


def reasons(own):
    return [entry["why"] for entry in own.history]


# -- concurrency -------------------------------------------------------------------------------


def test_never_more_in_flight_than_the_concurrency_of_the_moment():
    async def main():
        own = governor(concurrency_start=3, concurrency_max=9)
        seen = []

        def limited():
            seen.append((own.in_flight, own.concurrency))
            return len(seen) in (5, 30, 31)

        await calls(100, own, limited=limited)
        return own, seen

    own, seen = virtual_time.run(main())

    assert all(in_flight <= 9 for in_flight, _ in seen)
    assert 9 == max(in_flight for in_flight, _ in seen)
    assert 0 == own.in_flight


def test_it_grows_only_while_it_is_used_to_the_full():
    async def main():
        idle, busy = governor(concurrency_start=4), governor(concurrency_start=4)
        for _ in range(50):
            await calls(3, idle)
        await calls(50, busy)
        return idle, busy

    idle, busy = virtual_time.run(main())

    assert (4.0, []) == (idle.concurrency, idle.history)
    assert busy.concurrency > 20


def test_it_never_grows_over_the_maximum():
    async def main():
        own = governor(concurrency_start=50, concurrency_max=8)
        await calls(200, own)
        return own

    own = virtual_time.run(main())

    assert (8.0, []) == (own.concurrency, own.history)


def test_fifty_calls_that_fail_at_once_are_one_episode_and_one_cut():
    async def main():
        own = governor(concurrency_start=50)
        await calls(50, own, limited=lambda: virtual_time.clock() < 5.0, wait_s=5.0)
        return own

    own = virtual_time.run(main())

    assert 1 == reasons(own).count("rate limit")
    assert {
        "at_s": 1.0,
        "concurrency": 50 * CUT,
        "why": "rate limit",
        "pause_s": 5.0,
    } == own.history[0]


def test_a_second_episode_is_a_second_cut():
    async def main():
        own = governor(concurrency_start=10)
        await calls(10, own, limited=lambda: virtual_time.clock() < 3.5, wait_s=1.0)
        return own

    own = virtual_time.run(main())

    assert [10 * CUT, 10 * CUT**2] == pytest.approx(
        [e["concurrency"] for e in own.history if e["why"] == "rate limit"], abs=0.11
    )


def test_nothing_starts_during_a_pause_and_all_of_it_after():
    async def main():
        own, starts = governor(concurrency_start=2), []

        async def started(index):
            permit = await own.permit(1)
            starts.append(virtual_time.clock())
            if index == 0:
                own.rate_limited(permit, 89.0)
            own.release()

        await asyncio.gather(*(started(index) for index in range(6)))
        return starts, own.ready_in()

    starts, ready_in = virtual_time.run(main())

    assert [0.0, 89.0, 89.0, 89.0, 89.0, 89.0] == starts
    assert 0.0 == ready_in


def test_of_several_waits_that_are_asked_for_the_longest_counts():
    async def main():
        own = governor(concurrency_start=3)
        first, second = await own.permit(1), await own.permit(1)
        own.rate_limited(first, 30.0)
        own.rate_limited(second, 10.0)
        return own.ready_in()

    assert 30.0 == virtual_time.run(main())


def test_a_single_place_is_left_however_long_the_limit_lasts():
    async def main():
        own = governor(concurrency_start=16)
        await calls(4, own, limited=lambda: virtual_time.clock() < 300.0, wait_s=2.0)
        return own

    own = virtual_time.run(main())

    assert min(entry["concurrency"] for entry in own.history) >= 1.0


def test_full_speed_comes_back_after_the_rate_limit_ends():
    """400 callers, calls of 1 s; the account is limited from 20 s to 50 s, with `Retry-After: 2`.

    The same shape each time: a doubling start, one cut a pause, then a place a second.
    """

    async def main():
        own = governor(concurrency_start=16, concurrency_max=64)

        def limited():
            return 20.0 <= virtual_time.clock() < 50.0

        async def caller():
            while virtual_time.clock() < 200.0:
                await call(own, limited=limited, wait_s=2.0)

        await asyncio.gather(*(caller() for _ in range(400)))
        return own

    own = virtual_time.run(main())
    cuts = [entry for entry in own.history if entry["why"] == "rate limit"]
    regrown = next(
        entry["at_s"] for entry in own.history if entry["at_s"] > 50 and entry["concurrency"] == 64
    )

    assert [20.0, 23.0, 26.0, 29.0, 32.0, 35.0, 38.0, 41.0, 44.0, 47.0] == [c["at_s"] for c in cuts]
    assert [44.8, 31.36, 21.95, 15.37, 10.76, 7.53, 5.27, 3.69, 2.58, 1.81] == [
        c["concurrency"] for c in cuts
    ]
    assert (3, 115) == (sum(e["at_s"] < 20 for e in own.history) // 16, round(regrown))
    assert 64.0 == own.concurrency


# -- buckets -----------------------------------------------------------------------------------


def worst_minute(takes):
    """The most that any half-open minute saw, by brute force over every beginning."""
    return max(
        sum(amount for at, amount in takes if start <= at < start + MINUTE_S) for start, _ in takes
    )


async def taken(own, amounts):
    """(moment, tokens) of each call, in order of start."""
    found = []

    async def one(tokens):
        await own.permit(tokens)
        found.append((virtual_time.clock(), tokens))
        own.release()

    await asyncio.gather(*(one(tokens) for tokens in amounts))
    return found


@pytest.mark.parametrize("rate", [1, 7, 60, 600, 1234.5])
def test_requests_per_minute_hold_in_every_minute_and_are_used(rate):
    count = int(rate * 2.5) + 2
    takes = virtual_time.run(taken_with(count * [1], requests_per_minute=rate))
    minutes = (takes[-1][0] - takes[0][0]) / MINUTE_S

    assert worst_minute([(at, 1) for at, _ in takes]) <= rate
    assert minutes <= 1.03 * (count - 1) / int(rate)


async def taken_with(amounts, **limits):
    return await taken(
        governor(concurrency_start=10_000, concurrency_max=10_000, **limits), amounts
    )


@given(
    amounts=st.lists(st.integers(1, 600) | st.just(5), min_size=1, max_size=60),
    rate=st.integers(600, 3000),
)
def test_tokens_per_minute_hold_in_every_minute_for_any_mixture(amounts, rate):
    takes = virtual_time.run(taken_with(amounts, tokens_per_minute=rate))

    assert worst_minute(takes) <= rate
    assert amounts == [tokens for _, tokens in takes]


def test_a_call_larger_than_the_limit_is_let_through_alone():
    takes = virtual_time.run(taken_with([10, 5000, 10], tokens_per_minute=600))

    assert [(0.0, 10), (60.0, 5000)] == takes[:2]
    assert takes[2][0] >= 120.0


def test_both_limits_hold_at_once():
    amounts = [100, 1, 1, 100] * 30
    takes = virtual_time.run(taken_with(amounts, tokens_per_minute=3000, requests_per_minute=100))

    assert worst_minute(takes) <= 3000
    assert worst_minute([(at, 1) for at, _ in takes]) <= 100


def test_calls_are_spread_over_the_minute_rather_than_bunched_at_its_start():
    takes = virtual_time.run(taken_with(300 * [1], requests_per_minute=600))
    by_second = [len(list(group)) for _, group in itertools.groupby(int(at) for at, _ in takes)]

    assert max(by_second[1:]) <= 11


# -- the queue ---------------------------------------------------------------------------------


def test_first_come_first_served_also_for_unequal_calls():
    async def main():
        own, order = governor(concurrency_start=2, tokens_per_minute=60_000), []

        async def one(index):
            await own.permit(random.Random(index).choice((1, 5000)))
            order.append(index)
            await asyncio.sleep(random.Random(-index).random())
            own.release()

        await asyncio.gather(*(one(index) for index in range(40)))
        return order

    assert list(range(40)) == virtual_time.run(main())


def test_a_used_up_quota_stops_those_who_wait_and_those_who_come():
    async def main():
        own = governor(concurrency_start=1)
        await own.permit(1)
        waiting = [asyncio.ensure_future(own.permit(1)) for _ in range(5)]
        await asyncio.sleep(0)
        own.stop("the quota of acme is used up")
        told = await asyncio.gather(*waiting, return_exceptions=True)
        with pytest.raises(AccountStoppedError, match="the quota of acme is used up"):
            await own.permit(1)
        own.release()
        return own, told

    own, told = virtual_time.run(main())

    assert 5 * [AccountStoppedError] == [type(error) for error in told]
    assert (0, ["stopped"]) == (own.in_flight, reasons(own))


def test_when_the_first_in_line_leaves_the_next_need_not_wait_for_it():
    async def main():
        own = governor(concurrency_start=9, tokens_per_minute=600)
        large = asyncio.ensure_future(own.permit(10))
        await asyncio.sleep(0)
        larger = asyncio.ensure_future(own.permit(600))
        small = asyncio.ensure_future(own.permit(1))
        await asyncio.sleep(0)
        larger.cancel()
        await small
        return large.done(), virtual_time.clock()

    done, at_s = virtual_time.run(main())

    assert done
    assert at_s <= 0.2


def test_leave_given_to_one_who_is_just_leaving_goes_to_the_next():
    """Cancelled in the moment between being given leave and waking up with it."""

    async def main():
        own = governor(concurrency_start=1)
        await own.permit(1)
        leaving, next_one = (asyncio.ensure_future(own.permit(1)) for _ in range(2))
        await asyncio.sleep(0)
        own.release()
        leaving.cancel()
        await next_one
        own.release()
        return own.in_flight, leaving.cancelled()

    assert (0, True) == virtual_time.run(main())


steps = st.lists(
    st.tuples(
        st.sampled_from(("ask", "cancel", "finish", "limit", "wait")),
        st.integers(0, 30),
        st.sampled_from((0.0, 0.3, 1.0, 7.0)),
    ),
    max_size=60,
)


@settings(max_examples=150)
@given(steps=steps, per_minute=st.none() | st.integers(1, 100))
def test_no_permit_is_lost_whatever_happens_in_whatever_order(steps, per_minute):
    """A model of the governor's users: those who asked, hold leave, and gave it back."""

    async def main():
        own = governor(concurrency_start=3, concurrency_max=5, requests_per_minute=per_minute)
        asking = []

        def holding():
            return [task for task in asking if task.done() and not task.cancelled()]

        for action, index, amount in steps:
            held = holding()
            if action == "ask":
                asking.append(asyncio.ensure_future(own.permit(index)))
            elif action == "cancel" and asking:
                asking[index % len(asking)].cancel()
            elif action in ("finish", "limit") and held:
                task = held[index % len(held)]
                asking.remove(task)
                if action == "limit":
                    own.rate_limited(task.result(), amount)
                else:
                    own.succeeded(task.result())
                own.release()
            elif action == "wait":
                await asyncio.sleep(amount)
            assert own.in_flight <= 5
        await asyncio.sleep(0)
        while asking:
            task = asking.pop(0)
            with contextlib.suppress(asyncio.CancelledError):
                await task
                own.release()
        await asyncio.sleep(0)
        return own

    own = virtual_time.run(main())

    assert 0 == own.in_flight
    assert 1.0 <= own.concurrency <= 5.0
