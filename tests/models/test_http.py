"""The whole client over real sockets, against a server that breaks the rules."""

import asyncio
import json

import pytest

import refusals
from adaexplore.benchmark.game.agents import AGENTS
from adaexplore.benchmark.game.play import play
from adaexplore.benchmark.game.protocol import Reply
from adaexplore.errors import ConfigError
from adaexplore.models import preflight
from adaexplore.models.endpoints import ModelError
from adaexplore.models.transport import HttpTransport
from fault_server import FaultServer, always, script
from remotes import REQUEST, account, endpoint, profile

CANARY = "canary-Ub3rS3cret42"
HASTE = {"backoff_base_s": 0.001}
"""No wait between attempts; a call may take as long as a busy machine needs."""
SILENCE = {**HASTE, "call_timeout_s": 3.0}
"""Where a server says nothing for ever, and is asked again after this."""
REFUSALS = refusals.at(0.0)
MENDED = {
    **{name: REFUSALS[name].kind for name in (
        "rate_seconds", "rate_date", "rate_milliseconds", "rate_duration", "rate_told", "rate_info",
        "broken_500", "broken_502", "busy_503", "busy_529",
    )},
    "reset": "network", "cut": "network", "lost": "network", "stall": "timeout",
    "truncated_json": "junk", "wrong_type": "junk", "no_choice": "junk", "endless": "junk", "upstream": "rate",
}  # fmt: skip
WORKED = {"cut", "lost", "truncated_json", "wrong_type", "endless", "no_choice"}
"""Faults whose work the server did, and so may charge for."""


@pytest.fixture
def messages(world, settings, protocol):
    """What a game asks first, so that the agents understand it."""
    return next(play(world, settings["default"], protocol))


def asked(server, request, *, secrets=(), model="random", **sections):
    """(answer or error, account) of one request to a server."""

    async def main():
        own = profile(model=model, **{"patience": HASTE, **sections})
        async with HttpTransport(own.route, own.patience) as transport:
            shared = account(own, transport, secrets=secrets)
            try:
                return await endpoint(shared, url=server.url).ask(request), shared
            except ModelError as error:
                return error, shared

    return asyncio.run(main())


@pytest.mark.parametrize("fault", MENDED)
def test_a_recoverable_fault_costs_an_attempt_and_changes_nothing(fault, messages):
    with FaultServer(script(fault, fault)) as server:
        patience = SILENCE if fault == "stall" else HASTE
        answer, shared = asked(server, messages, patience=patience)
    expected = AGENTS["random"].reply(messages.messages, 0)

    assert expected == answer.reply.text
    assert 2 * [MENDED[fault]] == [attempt["kind"] for attempt in answer.attempts]
    assert [fault, fault, None] == server.faults
    assert [fault in WORKED, fault in WORKED, True] == [work.done for work in server.work]
    assert 0 == shared.budget.reserved_tokens


@pytest.mark.parametrize("fault", sorted(WORKED))
def test_what_is_charged_is_at_least_the_work_that_was_done(fault, messages):
    """The work of a lost answer is unknown; its prompt is booked, as a bit more than it is."""
    with FaultServer(script(fault)) as server:
        answer, shared = asked(server, messages)
    lost, served = server.work
    reply = answer.reply

    assert (served.prompt_tokens, served.completion_tokens) == (
        reply.input_tokens, reply.output_tokens,
    )  # fmt: skip
    booked = shared.budget.spent_tokens - served.prompt_tokens - served.completion_tokens
    assert lost.prompt_tokens <= booked <= 2 * lost.prompt_tokens


@pytest.mark.parametrize(
    "fault", ["auth_key", "bad_field", "quota_spent", "quota_day", "quota_balance", "moved"]
)
def test_a_final_fault_is_asked_once(fault, messages):
    with FaultServer(always(fault)) as server:
        error, _ = asked(server, messages)

    assert REFUSALS[fault].kind == error.kind
    assert [fault] == server.faults


@pytest.mark.parametrize(
    ("finish", "fault"),
    [
        ("overflow", "overflow_code"), ("overflow", "overflow_serving"),
        ("overflow", "overflow_count"), ("content_filter", "filter_policy"),
        ("content_filter", "filter_risk"), ("length", "capped_as_stop"), ("length", "thoughts_cut"),
    ],
)  # fmt: skip
def test_what_is_no_stop_is_not_taken_for_one(finish, fault, messages):
    with FaultServer(always(fault)) as server:
        answer, _ = asked(server, messages)

    assert finish == answer.reply.finish_reason
    assert [fault] == server.faults


@pytest.mark.parametrize("form", ["think_block", "reasoning_apart"])
def test_reasoning_is_kept_apart_and_the_reply_is_the_same(form, messages):
    with FaultServer(always(form)) as server:
        answer, _ = asked(server, messages)

    assert ("let me see", "stop") == (answer.reply.reasoning, answer.reply.finish_reason)
    assert AGENTS["random"].reply(messages.messages, 0) == answer.reply.text


def test_a_slow_first_byte_is_waited_for(messages):
    with FaultServer(always("slow")) as server:
        answer, _ = asked(server, messages)

    assert [] == answer.attempts
    assert answer.seconds >= 0.05


def test_a_server_that_is_gone_is_a_network_fault_in_the_end(messages):
    with FaultServer() as server:
        pass
    error, _ = asked(server, messages, patience={**HASTE, "attempts": 3})

    assert ("network", 3) == (error.kind, len(error.attempts))
    assert "gave up after 3 attempts" in str(error)


def test_a_whole_episode_over_the_wire_is_the_episode_in_memory(world, settings, protocol):
    """Prefix-cached bodies, reused connections, a fault every third call; record by record."""

    async def remote():
        own = profile(model="one_factor", patience=HASTE)
        async with HttpTransport(own.route, own.patience) as transport:
            one = endpoint(account(own, transport), url=server.url)
            playing = play(world, settings["default"], protocol)
            request = next(playing)
            try:
                while True:
                    answer = await one.ask(request)
                    request = playing.send(Reply(text=answer.reply.text))
            except StopIteration as stop:
                return stop.value

    def local():
        playing = play(world, settings["default"], protocol)
        request = next(playing)
        try:
            while True:
                request = playing.send(Reply(text=AGENTS["one_factor"].reply(request.messages, 0)))
        except StopIteration as stop:
            return stop.value

    with FaultServer(lambda number: ("reset", None, None)[number % 3]) as server:
        over_the_wire = asyncio.run(remote())

    assert local() == over_the_wire
    assert over_the_wire.counts.turns == server.faults.count(None)


def test_cancelling_while_the_server_is_silent_closes_the_connection(messages):
    async def main():
        own = profile(model="random", patience=HASTE)
        async with HttpTransport(own.route, own.patience) as transport:
            shared = account(own, transport)
            task = asyncio.ensure_future(endpoint(shared, url=server.url).ask(messages))
            while not server.work:  # noqa: ASYNC110 (the server is another thread)
                await asyncio.sleep(0.001)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return task.cancelled(), shared

    with FaultServer(always("stall")) as server:
        cancelled, shared = asyncio.run(main())

    assert cancelled
    assert (0, 0) == (shared.governor.in_flight, shared.budget.reserved_tokens)


# -- secrets and preflight ---------------------------------------------------------------------


def test_a_key_that_the_server_echoes_is_in_no_message(messages):
    with FaultServer(key="another") as server:
        error, _ = asked(server, messages, secrets=[CANARY])

    assert "auth" == error.kind
    assert CANARY not in json.dumps([str(error), error.attempts])
    assert "bad key: Bearer ***" in str(error)


def test_headers_that_the_server_echoes_are_in_no_attempt(messages):
    with FaultServer(script("echo")) as server:
        answer, _ = asked(server, messages, secrets=[CANARY])

    assert f"Bearer {CANARY}" == server.work[0].headers["authorization"]
    assert CANARY not in json.dumps(answer.attempts)


def checked(url, *, secrets=(), **sections):
    """What the preflight says of an address, or None."""

    async def main():
        own = profile(**{"model": "random", "patience": HASTE, **sections})
        async with HttpTransport(own.route, own.patience) as transport:
            try:
                await preflight.check_endpoint(
                    "mine", account(own, transport, secrets=secrets), url
                )
            except ConfigError as error:
                return str(error)

    return asyncio.run(main())


def test_preflight_passes_an_endpoint_that_answers_and_knows_the_model():
    with FaultServer(key=CANARY) as server:
        assert None is checked(server.url, secrets=[CANARY])


def test_preflight_names_a_model_that_the_endpoint_does_not_have():
    with FaultServer() as server:
        told = checked(server.url, model="gpt-0")

    assert told.startswith(f"model 'mine': {server.url} has no model 'gpt-0'; it has constant, ")


def test_preflight_names_the_variable_of_a_refused_key_and_not_the_key():
    with FaultServer(key="another") as server:
        told = checked(server.url, secrets=[CANARY], auth={"key_env": "MY_KEY"})

    assert told.startswith(f"model 'mine': {server.url} refuses the key (MY_KEY): HTTP 401")
    assert CANARY not in told


def test_preflight_names_an_address_that_nobody_answers_at():
    with FaultServer() as server:
        pass
    told = checked(server.url)

    assert told.startswith(f"model 'mine': {server.url} does not answer: ")
    assert "\n" not in told


def test_preflight_lets_an_endpoint_pass_that_keeps_no_list():
    with FaultServer() as server:
        assert None is checked(server.url.removesuffix("/v1"), model="anything")


def test_what_arrives_is_the_body_of_the_profile():
    with FaultServer(always("bad_field")) as server:
        asked(server, REQUEST)
    (work,) = server.work

    assert {"model", "temperature", "seed", "max_tokens", "messages", "response_format"} == set(
        work.body
    )
    assert "application/json" == work.headers["content-type"]
