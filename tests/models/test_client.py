"""The client in virtual time, over a scripted transport: every fault gets the treatment of its class."""

import asyncio
import json
import random

import pytest

import refusals
import virtual_time
from adaexplore.errors import BudgetError
from adaexplore.models import client
from adaexplore.models.budget import Budget
from adaexplore.models.endpoints import ModelError
from adaexplore.models.faults import RETRIED, CallFaultError, Fault, FaultKind
from adaexplore.models.governor import Governor
from adaexplore.models.profiles import Patience
from adaexplore.models.transport import HttpAnswer
from remotes import REQUEST, Scripted, account, endpoint, profile, refused

NOW_S = 1_800_000_000.0
CANARY = "canary-Ub3rS3cret/+=42"
REFUSALS = refusals.at(NOW_S)
NO_BACKOFF = {"backoff_base_s": 1e-9}
PRICES = {"input_usd_per_mtok": 1.0, "output_usd_per_mtok": 10.0}
FINAL = [name for name, refusal in REFUSALS.items() if refusal.kind in ("auth", "bad_request")]
QUOTA = [name for name, refusal in REFUSALS.items() if refusal.kind == "quota"]
AGAIN = [name for name, refusal in REFUSALS.items() if refusal.kind in RETRIED]


def good(text="{}", **usage):
    usage = {"prompt_tokens": 40, "completion_tokens": 5} | usage
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    body = json.dumps({"choices": [choice], "usage": usage, "system_fingerprint": "fp"})
    return HttpAnswer(status=200, headers={}, body=body.encode())


def lost(kind, message="broken off"):
    return CallFaultError(Fault(kind=kind, message=message))


class Tried:
    """What became of one call, with everything it went through."""

    def __init__(self, entries, *, secrets=(), budget=None, **sections):
        self.profile = profile(**sections)
        self.transport = Scripted(entries)
        self.answer = self.error = None
        virtual_time.run(self._ask(secrets, budget or Budget()))

    async def _ask(self, secrets, budget):
        clock = virtual_time.clock
        self.account = account(
            self.profile,
            self.transport,
            clock=clock,
            secrets=secrets,
            budget=budget,
            epoch=lambda: NOW_S,
        )
        try:
            self.answer = await endpoint(self.account).ask(REQUEST)
        except (ModelError, BudgetError) as error:
            self.error = error
        self.seconds = clock()
        assert (0, 0) == (self.account.governor.in_flight, budget.reserved_tokens)
        assert {} == self.account.activity.now

    @property
    def calls(self):
        return len(self.transport.calls)

    @property
    def kinds(self):
        return [entry["kind"] for entry in (self.answer or self.error).attempts]


# -- a good answer -----------------------------------------------------------------------------


def test_a_good_answer_carries_the_reply_and_how_it_came():
    tried = Tried([[2.5, good('{"a":1}')]])
    (call,) = tried.transport.calls

    assert ('{"a":1}', 40, 5) == (
        tried.answer.reply.text, tried.answer.reply.input_tokens, tried.answer.reply.output_tokens,
    )  # fmt: skip
    assert (2.5, [], {"system_fingerprint": "fp"}) == (
        tried.answer.seconds, tried.answer.attempts, tried.answer.served_by,
    )  # fmt: skip
    assert ("POST", "http://model.invalid/v1/chat/completions", 600.0) == (
        call.method, call.url, call.timeout_s,
    )  # fmt: skip


def test_path_and_query_are_those_of_the_dialect():
    dialect = {"path": "/deployments/d/chat", "query": {"api-version": "2026-01-01", "x": "a b"}}
    (call,) = Tried([good()], dialect=dialect).transport.calls

    assert "http://model.invalid/v1/deployments/d/chat?api-version=2026-01-01&x=a+b" == call.url


# -- each fault by its class -------------------------------------------------------------------


@pytest.mark.parametrize("name", AGAIN)
def test_what_can_be_mended_is_tried_again_and_is_one_reply(name):
    tried = Tried([refused(REFUSALS[name]), refused(REFUSALS[name]), good()])

    assert (3, 2 * [REFUSALS[name].kind]) == (tried.calls, tried.kinds)
    assert "{}" == tried.answer.reply.text
    assert 1 == len({call.body.whole() for call in tried.transport.calls})


@pytest.mark.parametrize("kind", [FaultKind.NETWORK, FaultKind.TIMEOUT])
def test_lost_connections_are_tried_again(kind):
    tried = Tried([lost(kind), good()])

    assert (2, [kind]) == (tried.calls, tried.kinds)


@pytest.mark.parametrize("body", [b"", b"{", b'{"choices":[]}', b"<html>sign in</html>"])
def test_a_success_that_is_none_is_tried_again(body):
    tried = Tried([HttpAnswer(status=200, headers={}, body=body), good()])

    assert (2, ["junk"]) == (tried.calls, tried.kinds)


def test_an_error_passed_on_as_a_success_is_what_it_says():
    body = b'{"error":{"code":429,"message":"busy behind; try again in 30s"}}'
    tried = Tried([HttpAnswer(status=200, headers={}, body=body), good()])

    assert ["rate"] == tried.kinds
    assert tried.seconds >= 30.0


@pytest.mark.parametrize("name", FINAL)
def test_permanent_errors_are_tried_once(name):
    tried = Tried([refused(REFUSALS[name])])

    assert (1, [REFUSALS[name].kind]) == (tried.calls, tried.kinds)
    assert REFUSALS[name].kind == tried.error.kind
    assert str(tried.error).startswith(f"test (KEY) m: HTTP {REFUSALS[name].status}: ")
    assert 0.0 == tried.seconds


@pytest.mark.parametrize("name", QUOTA)
def test_a_used_up_quota_stops_the_account_at_once_and_names_it(name):
    tried = Tried([refused(REFUSALS[name])])
    wait_s = REFUSALS[name].wait_s
    resets = "" if wait_s is None else f"; it resets in {wait_s:.0f} s"

    assert (1, "quota", ["quota"]) == (tried.calls, tried.error.kind, tried.kinds)
    assert str(tried.error).startswith(f"the quota of test (KEY) m is used up{resets}: HTTP ")
    assert "stopped" == tried.account.governor.history[-1]["why"]


def test_a_wait_longer_than_the_longest_counts_as_quota():
    """The report of 19,288 s: nobody sits out five hours by accident."""
    limited = HttpAnswer(status=429, headers={"Retry-After": "19288"}, body=b"")
    tried = Tried([limited], patience={"retry_after_cap_s": 1800})

    assert (1, "quota", 0.0) == (tried.calls, tried.error.kind, tried.seconds)
    assert "it resets in 19288 s" in str(tried.error)


@pytest.mark.parametrize(
    ("finish", "prefix"), [("overflow", "overflow"), ("content_filter", "filter")]
)
def test_overflow_and_filter_are_replies_of_their_own_kind(finish, prefix):
    names = [name for name in REFUSALS if name.startswith(prefix)]
    for name in names:
        tried = Tried([refused(REFUSALS[name])])

        assert (1, finish, "") == (
            tried.calls, tried.answer.reply.finish_reason, tried.answer.reply.text,
        )  # fmt: skip
        assert [REFUSALS[name].kind] == tried.kinds
    assert len(names) >= 2


def test_attempts_end_and_say_how_many_there_were():
    tried = Tried([refused(REFUSALS["broken_500"])], patience={"attempts": 5})

    assert (5, 5 * ["overloaded"]) == (tried.calls, tried.kinds)
    assert "overloaded" == tried.error.kind
    assert (
        "test (KEY) m: gave up after 5 attempts; the last: HTTP 500: The server had an error."
        == str(tried.error)
    )


def test_a_stopped_account_does_not_forget_what_was_tried_before():
    """One call is limited and waits; meanwhile another finds the quota used up."""

    async def main():
        limited, spent = refused(REFUSALS["rate_seconds"]), refused(REFUSALS["quota_spent"])
        transport = Scripted([[1.0, limited], [2.0, spent]])
        own = account(profile(), transport, clock=virtual_time.clock)
        first, second = endpoint(own, key="a"), endpoint(own, key="b")
        return await asyncio.gather(first.ask(REQUEST), second.ask(REQUEST), return_exceptions=True)

    limited, spent = virtual_time.run(main())

    assert [["rate"], ["quota"]] == [[a["kind"] for a in e.attempts] for e in (limited, spent)]
    assert ["quota", "quota"] == [limited.kind, spent.kind]


# -- waits -------------------------------------------------------------------------------------


def test_backoff_is_uniform_below_a_capped_doubling():
    patience, rng = Patience(backoff_base_s=1.0, backoff_cap_s=60.0), random.Random(1)
    for attempt, ceiling in ((1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (8, 60), (99, 60)):
        waits = [client.backoff_s(attempt, patience, rng) for _ in range(4000)]

        assert 0.0 <= min(waits) < 0.01 * ceiling
        assert 0.99 * ceiling < max(waits) <= ceiling
        assert ceiling / 2 == pytest.approx(sum(waits) / len(waits), rel=0.05)


@pytest.mark.parametrize("name", [n for n in AGAIN if REFUSALS[n].wait_s is not None])
def test_the_wait_that_is_asked_for_is_kept_and_not_multiplied(name):
    tried = Tried([refused(REFUSALS[name]), good()], patience=NO_BACKOFF)

    assert 30.0 == pytest.approx(tried.seconds)


def test_a_provider_that_asks_for_no_wait_does_not_use_up_the_attempts_at_once():
    """Eight tries within a moment would fail an episode over a hiccup."""
    hurried = HttpAnswer(status=429, headers={"Retry-After": "0"}, body=b"")
    tried = Tried([hurried])

    assert 8 == tried.calls
    assert tried.seconds > 20.0


def test_all_calls_of_an_account_sit_out_the_wait_that_one_was_told():
    async def main():
        transport = Scripted([refused(REFUSALS["rate_seconds"]), good()])
        own = account(
            profile(limits={"concurrency_start": 1}, patience=NO_BACKOFF),
            transport, clock=virtual_time.clock,
        )  # fmt: skip
        await asyncio.gather(*(endpoint(own, key=str(i)).ask(REQUEST) for i in range(5)))
        return transport, virtual_time.clock()

    transport, seconds = virtual_time.run(main())

    assert (6, 1) == (len(transport.calls), transport.most_in_flight)
    assert 30.0 == pytest.approx(seconds)


def test_waiting_shows_while_it_lasts_and_is_no_work():
    async def main():
        transport = Scripted([[1.0, refused(REFUSALS["busy_503"])], [2.0, good()]])
        own = account(profile(patience=NO_BACKOFF), transport, clock=virtual_time.clock)
        asking = asyncio.ensure_future(endpoint(own, key="run").ask(REQUEST))
        seen = []
        for _ in range(4):
            await asyncio.sleep(0.5 if not seen else 10.0)
            seen += [(d.what, d.until_s) for d in own.activity.now.values()]
        return await asking, own.activity, seen

    answer, activity, seen = virtual_time.run(main())

    assert [("calling", None), *3 * [("retrying (overloaded)", 31.0)]] == seen
    assert (30.0, 2.0, 1.0) == (
        activity.waited_s["run"], answer.seconds, answer.attempts[0]["seconds"],
    )  # fmt: skip


# -- deadlines ---------------------------------------------------------------------------------


def test_each_call_has_its_own_deadline():
    (call,) = Tried([good()], patience={"call_timeout_s": 7}).transport.calls

    assert 7.0 == call.timeout_s


def test_an_episode_has_a_deadline_on_work_and_is_not_asked_again_after_it():
    """Work of 4 s, 4 s and what is left of 10 s; a wait of 30 s in between is not counted."""
    entries = [[4.0, refused(REFUSALS["busy_503"])], [4.0, refused(REFUSALS["rate_seconds"])],
               [2.0, lost(FaultKind.TIMEOUT)]]  # fmt: skip
    tried = Tried(entries, patience={"episode_deadline_s": 10, **NO_BACKOFF})

    assert [10.0, 6.0, 2.0] == [call.timeout_s for call in tried.transport.calls]
    assert ("deadline", ["overloaded", "rate", "timeout"]) == (tried.error.kind, tried.kinds)
    assert "the episode's deadline of 10 s of work has passed" in str(tried.error)
    assert 70.0 == pytest.approx(tried.seconds)


def test_an_episode_that_has_worked_long_enough_makes_no_further_call():
    async def main():
        transport = Scripted([[5.0, good()]])
        own = account(
            profile(patience={"episode_deadline_s": 5}), transport, clock=virtual_time.clock
        )
        one = endpoint(own)
        await one.ask(REQUEST)
        with pytest.raises(ModelError, match="deadline"):
            await one.ask(REQUEST)
        return transport

    assert 1 == len(virtual_time.run(main()).calls)


# -- money -------------------------------------------------------------------------------------


def test_an_answer_is_charged_by_its_own_counts():
    tried = Tried([good(prompt_tokens=1000, completion_tokens=100)], prices=PRICES)

    assert (pytest.approx(0.002), 1100) == (
        tried.account.budget.spent_usd, tried.account.budget.spent_tokens,
    )  # fmt: skip


@pytest.mark.parametrize("kind", [FaultKind.NETWORK, FaultKind.TIMEOUT, FaultKind.JUNK])
def test_a_lost_answer_is_charged_because_the_work_may_be_done(kind):
    """Its input, as estimated; the same number is in the journal."""
    tried = Tried([lost(kind), good(prompt_tokens=0, completion_tokens=0)], prices=PRICES)
    input_tokens = tried.transport.calls[0].body.size // 3
    (attempt,) = tried.answer.attempts

    assert input_tokens == tried.account.budget.spent_tokens == attempt["lost_tokens"]
    assert pytest.approx(input_tokens / 1e6) == tried.account.budget.spent_usd


@pytest.mark.parametrize("name", ["rate_plain", "broken_500", "auth_key", "overflow_code"])
def test_a_refusal_costs_nothing(name):
    tried = Tried(
        [refused(REFUSALS[name]), good(prompt_tokens=0, completion_tokens=0)], prices=PRICES
    )

    assert (0.0, 0) == (tried.account.budget.spent_usd, tried.account.budget.spent_tokens)


def test_no_call_is_made_without_money_and_what_was_tried_before_is_kept():
    """The first try is lost and paid for, after which a second does not fit."""
    own = Budget(cap_tokens=8192 + 110)
    tried = Tried([lost(FaultKind.TIMEOUT)], budget=own)

    assert BudgetError is type(tried.error)
    assert (1, ["timeout"], True) == (tried.calls, tried.kinds, own.reached)


# -- cancellation ------------------------------------------------------------------------------


@pytest.mark.parametrize("at_s", [0.0, 0.5, 1.0, 1.5, 30.0, 31.5, 40.0, 43.0, 50.0])
def test_a_cancelled_call_leaves_nothing_behind(at_s):
    """At each moment of: calling, backing off, queueing, waiting for money, calling again."""

    async def main():
        entries = [[1.0, refused(REFUSALS["busy_503"])], [1.0, refused(REFUSALS["rate_seconds"])]]
        transport = Scripted([*entries, [9.0, good()], [9.0, good()]])
        budget = Budget(cap_tokens=10_000)
        own = account(
            profile(limits={"concurrency_start": 1}, patience=NO_BACKOFF),
            transport, clock=virtual_time.clock, budget=budget,
        )  # fmt: skip
        tasks = [asyncio.ensure_future(endpoint(own, key=k).ask(REQUEST)) for k in "abc"]
        await asyncio.sleep(at_s)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return own, transport

    own, transport = virtual_time.run(main())

    assert (0, 0, 0) == (own.governor.in_flight, own.budget.reserved_tokens, transport.in_flight)
    assert {} == own.activity.now


def test_a_call_that_is_cancelled_under_way_is_charged_because_the_work_may_be_done():
    async def main():
        own = account(profile(), Scripted([[9.0, good()]]), clock=virtual_time.clock)
        task = asyncio.ensure_future(endpoint(own).ask(REQUEST))
        await asyncio.sleep(1.0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return own.budget

    own = virtual_time.run(main())

    assert own.spent_tokens > 0
    assert 0 == own.reserved_tokens


def test_a_cancelled_waiter_for_money_gives_its_place_back():
    async def main():
        clock = virtual_time.clock
        governor = Governor("g", profile().limits, clock)
        own = account(
            profile(), Scripted([[5.0, good()]]), clock=clock, governor=governor,
            budget=Budget(cap_tokens=9000),
        )  # fmt: skip
        first, second = (asyncio.ensure_future(endpoint(own, key=k).ask(REQUEST)) for k in "ab")
        await asyncio.sleep(1.0)
        shown = [doing.what for doing in own.activity.now.values()]
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        return shown, governor

    shown, governor = virtual_time.run(main())

    assert ["calling", "waiting for the budget"] == shown
    assert 0 == governor.in_flight


# -- secrets -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "entry",
    [
        HttpAnswer(
            status=401, headers={}, body=f'{{"error":{{"message":"bad {CANARY}"}}}}'.encode()
        ),
        HttpAnswer(status=429, headers={}, body=f"insufficient_quota of {CANARY}".encode()),
        HttpAnswer(status=500, headers={}, body=("x" * 278 + CANARY).encode()),
        HttpAnswer(status=200, headers={}, body=("y" * 268 + CANARY).encode()),
        lost(FaultKind.NETWORK, f"ClientError: cannot send {CANARY}"),
    ],
)
def test_a_secret_that_the_server_repeats_is_told_to_nobody(entry):
    tried = Tried([entry], secrets=[CANARY], patience={"attempts": 2})
    told = json.dumps([str(tried.error), tried.error.attempts, tried.account.governor.history])

    assert CANARY in tried.transport.calls[0].headers["Authorization"]
    assert CANARY[:9] not in told
