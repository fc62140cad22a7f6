"""Bodies say what the profile says and no more; replies are believed as far as they are consistent."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.benchmark.game.protocol import Message, Reply, Request
from adaexplore.models import wire
from adaexplore.models.faults import CallFaultError, FaultKind
from remotes import REQUEST, profile

SCHEMA = {"name": "call", "strict": True, "schema": {"type": "object"}}


def sent(own, request=REQUEST, seed=3):
    return json.loads(wire.Body(own, seed).of(request).whole())


def received(message, own=None, **more):
    choice = {"message": {"role": "assistant", **message}, "finish_reason": "stop", **more}
    usage = choice.pop("usage", None)
    body = json.dumps({"choices": [choice], "usage": usage, "model": "m-1"})
    return wire.read(body.encode(), own or profile()).reply


# -- bodies ------------------------------------------------------------------------------------


def test_a_body_holds_what_the_profile_says_and_nothing_else():
    assert {
        "model": "m",
        "temperature": 0.0,
        "seed": 3,
        "max_tokens": 8192,
        "messages": [
            {"role": "system", "content": "You play."},
            {"role": "user", "content": "Your move."},
        ],
        "response_format": {"type": "json_object"},
    } == sent(profile())


def test_null_fields_and_refused_fields_are_left_out():
    own = profile(
        sampling={"temperature": None, "top_p": 0.5, "send_seed": False, "reply_format": "text"},
        dialect={"refused": ["top_p"], "output_limit_field": "max_completion_tokens"},
    )

    assert {"model", "max_completion_tokens", "messages"} == set(sent(own))


def test_every_field_may_be_refused():
    """An endpoint that names the model in its address may take nothing but messages."""
    refused = ["model", "temperature", "seed", "max_tokens", "response_format"]

    assert {"messages"} == set(sent(profile(dialect={"refused": refused})))


def test_further_fields_are_sent_as_given_and_may_replace_ours():
    body = {"reasoning": {"effort": "low"}, "temperature": 0.7, "top_k": None}
    found = sent(profile(sampling={"body": body, "reasoning_effort": "high"}))

    assert ({"effort": "low"}, 0.7, "high") == (
        found["reasoning"], found["temperature"], found["reasoning_effort"],
    )  # fmt: skip
    assert "top_k" not in found


@pytest.mark.parametrize(
    ("expected", "reply_format", "schema"),
    [
        (None, "text", SCHEMA),
        ({"type": "json_object"}, "json_object", SCHEMA),
        ({"type": "json_schema", "json_schema": SCHEMA}, "json_schema", SCHEMA),
        ({"type": "json_object"}, "json_schema", None),
    ],
)
def test_the_form_of_the_reply_is_asked_for(expected, reply_format, schema):
    own = profile(sampling={"reply_format": reply_format})

    assert expected == sent(own, Request(REQUEST.messages, schema)).get("response_format")


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
messages = st.builds(Message, st.sampled_from(("system", "user", "assistant")), texts)


@st.composite
def histories(draw):
    """Conversations as a game has them: they grow, are forked and given up, and are rewritten."""
    current, found = draw(st.lists(messages, min_size=1, max_size=3)), []
    for _ in range(draw(st.integers(1, 8))):
        keep = draw(st.integers(0, len(current)) | st.just(len(current)))
        current = current[:keep] + draw(st.lists(messages, max_size=3))
        found.append(tuple(current))
    return found


@given(history=histories())
def test_kept_prefixes_change_nothing(history):
    """Against serialising everything anew each time."""
    body = wire.Body(profile(), 0)
    for conversation in history:
        content = body.of(Request(conversation))
        kept = content.whole()

        assert wire.Body(profile(), 0).of(Request(conversation)).whole() == kept
        assert len(kept) == content.size
        assert [{"role": role, "content": content} for role, content in conversation] == json.loads(
            kept
        )["messages"]


# -- replies -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "told"),
    [
        ("stop", "stop"), ("stop", None), ("stop", "eos_token"), ("length", "length"),
        ("length", "max_tokens"), ("length", "MAX_TOKENS"), ("content_filter", "content_filter"),
        ("content_filter", "SAFETY"),
    ],
)  # fmt: skip
def test_finish_reasons_of_several_dialects(expected, told):
    assert expected == received({"content": "{}"}, finish_reason=told).finish_reason


def test_a_reply_that_used_the_whole_limit_is_truncated_whatever_it_says():
    own = profile(sampling={"max_output_tokens": 100})
    usage = [{"completion_tokens": n, "prompt_tokens": 7} for n in (99, 100, 101)]

    assert ["stop", "length", "length"] == [
        received({"content": "{}"}, own, usage=counts).finish_reason for counts in usage
    ]


@pytest.mark.parametrize(
    ("text", "reasoning", "finish", "message"),
    [
        ("{}", "", "stop", {"content": "{}"}),
        ("{}", "hm", "stop", {"content": "<think>hm</think>\n{}"}),
        ("{}", "hm", "stop", {"content": "\n<thinking>hm</thinking>{}"}),
        ("{}", "hm\n", "stop", {"content": "hm\n</think>\n\n{}"}),
        ('{"a":"</think>"}', "", "stop", {"content": '{"a":"</think>"}'}),
        ("{}", "apart", "stop", {"content": "{}", "reasoning_content": "apart"}),
        ("{}", "apart", "stop", {"content": "{}", "reasoning": "apart", "reasoning_content": ""}),
        ("{}", "apart", "stop", {"content": "<think>in</think>{}", "reasoning": "apart"}),
        ("", "<think>hm {", "length", {"content": "<think>hm {"}),
        ("", "cut of", "stop", {"content": None, "reasoning": "cut of"}),
        ("ab", "", "stop", {"content": [{"type": "text", "text": "a"}, {"text": "b"}, 7]}),
        ("", "", "stop", {"content": 7}),
        ("", "", "stop", {"refusal": "no"}),
    ],
)
def test_reasoning_is_parted_from_the_reply(text, reasoning, finish, message):
    found = received(message)

    assert (text, reasoning, finish) == (found.text, found.reasoning, found.finish_reason)


def test_think_tags_stay_where_the_profile_says_that_there_are_none():
    own = profile(dialect={"think_tags": False})

    assert "<think>x" == received({"content": "<think>x"}, own).text


@pytest.mark.parametrize(
    ("expected", "usage"),
    [
        ((0, 0, 0, 0), None),
        ((0, 0, 0, 0), "much"),
        ((0, 0, 0, 0), {"prompt_tokens": "9", "completion_tokens": -1}),
        ((0, 0, 0, 0), {"prompt_tokens": 1e308}),
        ((9, 0, 4, 0), {"prompt_tokens": 9, "completion_tokens": 4}),
        ((9, 6, 4, 3), {
            "prompt_tokens": 9, "completion_tokens": 4,
            "prompt_tokens_details": {"cached_tokens": 6},
            "completion_tokens_details": {"reasoning_tokens": 3},
        }),
        ((9, 6, 4, 0), {"prompt_tokens": 9, "completion_tokens": 4, "prompt_cache_hit_tokens": 6}),
        ((9, 0, 4, 0), {
            "prompt_tokens": 9, "completion_tokens": 4,
            "prompt_tokens_details": None, "completion_tokens_details": None,
        }),
    ],
)  # fmt: skip
def test_usage_in_several_dialects(expected, usage):
    found = received({"content": "{}"}, usage=usage)

    assert (
        Reply(
            text="{}",
            input_tokens=expected[0],
            cached_tokens=expected[1],
            output_tokens=expected[2],
            reasoning_tokens=expected[3],
        )
        == found
    )


def test_what_the_server_says_of_itself_is_kept():
    body = b'{"choices":[{"message":{"content":""}}],"model":"m-2026","system_fingerprint":"fp_1"}'

    assert {"model": "m-2026", "system_fingerprint": "fp_1"} == wire.read(body, profile()).served_by


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"{}", b"null", b"<html>", b'{"choices":[]}', b'{"choices":{}}',
        b'{"choices":[7]}', b'{"choices":[{}]}', b'{"choices":[{"message":null}]}',
        b'{"choices":[{"message":{"content":"{}"}', b"\xff\xfe", b"[" * 100_000,
    ],
)  # fmt: skip
def test_a_body_that_is_no_chat_completion_is_junk(body):
    with pytest.raises(CallFaultError, match="no chat completion") as caught:
        wire.read(body, profile())

    assert FaultKind.JUNK == caught.value.fault.kind


@given(body=st.binary() | st.text().map(str.encode))
def test_any_body_is_a_reply_or_junk(body):
    with pytest.raises(CallFaultError):
        wire.read(body, profile())


@given(content=st.text(st.characters(exclude_categories=["Cs"])))
def test_a_reply_without_tags_arrives_as_it_was_sent(content):
    found = received({"content": content}, profile(dialect={"think_tags": False}))

    assert content == found.text


@pytest.mark.parametrize(
    ("expected", "body"),
    [
        (429, b'{"error":{"code":429,"message":"busy"}}'),
        (503, b'{"error":{"code":"503"}}'),
        (None, b'{"error":{"code":"server_error"}}'),
        (None, b'{"error":{"code":200}}'),
        (None, b'{"error":"429"}'),
        (None, b"{"),
        (None, b"[]"),
    ],
)
def test_a_gateway_may_pass_on_an_error_as_a_success(expected, body):
    assert expected == wire.error_status(body)
