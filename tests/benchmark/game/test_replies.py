"""Replies: exactly one JSON object with exactly two keys, or a list of reasons."""

import json
import string
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adaexplore.benchmark.game import replies
from adaexplore.benchmark.game.protocol import TOOLS
from adaexplore.benchmark.game.replies import Call, RejectedError
from writings import json_values, mutated

LIMIT = 200_000
PARSINGS = ("strict", "lenient")
PLAIN = '{"tool": "request_next_batch", "arguments": {}}'


def read(text, parsing="strict", limit=LIMIT):
    return replies.read_call(text, parsing=parsing, max_chars=limit)


def reasons(text, parsing="strict", limit=LIMIT):
    with pytest.raises(RejectedError) as caught:
        read(text, parsing, limit)
    assert_tellable(caught.value)
    return "; ".join(caught.value.reasons)


def assert_tellable(rejected):
    """Reasons can be sent: at least one, few, short, and no character that UTF-8 does not have."""
    assert 1 <= len(rejected.reasons) <= replies.MAX_REASONS + 1
    assert all(0 < len(reason) <= 300 for reason in rejected.reasons)
    "".join(rejected.reasons).encode()


def exact(value):
    """The data with every float as the decimal that was written."""
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, list):
        return [exact(item) for item in value]
    if isinstance(value, dict):
        return {key: exact(item) for key, item in value.items()}
    return value


def calls():
    """Arguments of any shape for any tool."""
    arguments = st.dictionaries(st.text(max_size=8), json_values(), max_size=4)
    return st.fixed_dictionaries({"tool": st.sampled_from(TOOLS), "arguments": arguments})


@given(calls(), st.booleans(), st.sampled_from((None, 2)), st.sampled_from(PARSINGS))
def test_a_call_is_read_as_written(call, ascii_only, indent, parsing):
    """Whatever the layout; decimals keep every digit, in both parsings."""
    text = json.dumps(call, ensure_ascii=ascii_only, indent=indent)

    expected = Call(tool=call["tool"], arguments=exact(call["arguments"]))
    assert expected == read(f" \n{text}\t", parsing)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "not one JSON object"),
        ("   \n", "not one JSON object"),
        ("null", "expected one JSON object, got None"),
        ("[]", "expected one JSON object"),
        ('"tool"', "expected one JSON object"),
        ("1", "expected one JSON object"),
        ("{}", "exactly the keys"),
        ('{"tool": "calculator"}', "exactly the keys"),
        ('{"arguments": {}}', "exactly the keys"),
        ('{"tool": "calculator", "arguments": {}, "why": 1}', "exactly the keys"),
        ('{"Tool": "calculator", "arguments": {}}', "exactly the keys"),
        ('{"tool": "finish", "arguments": {}}', "unknown tool 'finish'"),
        ('{"tool": null, "arguments": {}}', "unknown tool None"),
        ('{"tool": ["calculator"], "arguments": {}}', "unknown tool"),
        ('{"tool": "calculator", "arguments": []}', "expected 'arguments' to be an object"),
        ('{"tool": "calculator", "arguments": null}', "expected 'arguments' to be an object"),
        (f"Here it is: {PLAIN}", "not one JSON object"),
        (f"{PLAIN} That reveals it.", "not one JSON object"),
        (f"{PLAIN}{PLAIN}", "not one JSON object"),
        (f"{PLAIN},", "not one JSON object"),
        (f"\ufeff{PLAIN}", "not one JSON object: Unexpected UTF-8 BOM"),
        (f"\u00a0{PLAIN}", "not one JSON object"),
        (PLAIN.replace('"', "'"), "not one JSON object"),
        (PLAIN[:-1], "not one JSON object"),
        (f"{PLAIN} // done", "not one JSON object"),
        ('{"tool": "calculator", "arguments": {"a": NaN}}', "NaN is not a JSON number"),
        ('{"tool": "calculator", "arguments": {"a": [-Infinity]}}', "-Infinity is not a JSON"),
        ('{"tool": "calculator", "arguments": {"a": Infinity}}', "Infinity is not a JSON number"),
        ('{"tool": "calculator", "arguments": {"a": \u0661}}', "not one JSON object"),
        ('{"tool": "calculator", "arguments": {"a": 1\u0661}}', "not one JSON object"),
        ('{"tool": "calculator", "arguments": {"a": 01}}', "not one JSON object"),
        ('{"tool": "calculator", "arguments": {"a": +1}}', "not one JSON object"),
        ('{"tool": "calculator", "arguments": {"a": .5}}', "not one JSON object"),
        ('{"tool": "calculator", "arguments": {"a": 1,}}', "not one JSON object"),
        ('{"tool": "calculator", "arguments": {"a": "\n"}}', "not one JSON object"),
        (f'{{"tool": "calculator", "arguments": {{"a": {"9" * 401}}}}}', "more than 400 digits"),
        (f'{{"tool": "calculator", "arguments": {{"a": 1e{"9" * 30}}}}}', "exponent out of bounds"),
        ('{"tool": "\\ud800", "arguments": {}}', "unknown tool '\\ud800'"),
        ('{"\\ud800": 1, "arguments": {}}', "exactly the keys"),
        ("\ud800", "not one JSON object"),
    ],
)
@pytest.mark.parametrize("parsing", PARSINGS)
def test_anything_else_is_refused_with_the_reason(text, part, parsing):
    assert part in reasons(text, parsing)


@given(st.integers(0, 18), st.data())
def test_duplicate_keys_are_refused_at_any_depth(depth, data):
    """Also where both values are equal, and where one key is written with an escape."""
    inner = data.draw(st.sampled_from(['{"a": 1, "a": 1}', '{"a": 1, "b": 2, "\\u0061": 3}']))
    for _ in range(depth):
        inner = data.draw(st.sampled_from(["[0, %s]", '{"k": %s, "l": 0}'])) % inner

    assert "same key twice" in reasons(f'{{"tool": "calculator", "arguments": {{"x": {inner}}}}}')
    assert "same key twice" in reasons('{"tool": "calculator", "arguments": {}, "arguments": {}}')


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"k": ', "}")])
def test_depth_is_bounded(opening, closing):
    """24 levels with the two of the call itself; brackets inside strings are no levels."""
    form = '{"tool": "calculator", "arguments": {"x": %s}}'

    assert "calculator" == read(form % (opening * 22 + "1" + closing * 22)).tool
    assert "deeper than 24" in reasons(form % (opening * 23 + "1" + closing * 23))
    assert "deeper than 24" in reasons(form % (opening * 30_000))
    assert "calculator" == read(form % json.dumps('\\"' + opening * 100)).tool
    assert "calculator" == read(form % ("[" + "[],{}," * 1000 + "0]")).tool


def test_length_is_bounded_and_a_longer_reply_is_not_read():
    padded = PLAIN + " " * (LIMIT - len(PLAIN))

    assert "request_next_batch" == read(padded).tool
    assert "200001 characters; the limit is 200000" in reasons(f"{padded} ")
    assert "10000047 characters" in reasons(PLAIN + "x" * 10_000_000)
    assert "the limit is 10" in reasons(PLAIN, limit=10)


# -- lenient -----------------------------------------------------------------------------------

FENCED = [
    f"```\n{PLAIN}\n```",
    f"```json\n{PLAIN}\n```",
    f"```JSON \t\n{PLAIN}```",
    f"\n ```json\n\n{PLAIN}\n\n```\n ",
]
NOT_FENCED_ONCE = [
    f"```{PLAIN}```",
    f"```python\n{PLAIN}\n```",
    f"Sure:\n```json\n{PLAIN}\n```",
    f"```json\n{PLAIN}\n```\nDone.",
    f"```json\n```json\n{PLAIN}\n```\n```",
    f"```json\n{PLAIN}\n```\n```json\n{PLAIN}\n```",
    f"~~~\n{PLAIN}\n~~~",
    f"```json\n{PLAIN}",
    "```\n```",
    "``````",
]


@pytest.mark.parametrize("text", FENCED)
def test_lenient_takes_off_one_fence(text):
    assert Call(tool="request_next_batch", arguments={}) == read(text, "lenient")
    assert "not one JSON object" in reasons(text, "strict")
    assert replies.would_be_lenient(text, max_chars=LIMIT)


@pytest.mark.parametrize("text", NOT_FENCED_ONCE)
def test_lenient_takes_nothing_else(text):
    assert "not one JSON object" in reasons(text, "lenient")
    assert not replies.would_be_lenient(text, max_chars=LIMIT)


def test_only_what_strict_reading_refuses_would_be_lenient():
    """A call without a fence is no case for leniency, whatever the environment says to it."""
    assert not replies.would_be_lenient(PLAIN, max_chars=LIMIT)
    assert not replies.would_be_lenient(FENCED[0], max_chars=10)


def test_a_fence_inside_a_string_is_text():
    text = '{"tool": "calculator", "arguments": {"expressions": ["```\\n1\\n```"]}}'

    expected = {"expressions": ["```\n1\n```"]}
    assert [expected] * 2 == [read(text, p).arguments for p in PARSINGS]


# -- anything at all ---------------------------------------------------------------------------


def assert_call_or_rejected(text, parsing):
    try:
        call = read(text, parsing)
    except RejectedError as rejected:
        assert_tellable(rejected)
    else:
        assert call.tool in TOOLS
        assert isinstance(call.arguments, dict)


@given(st.text(st.characters()) | st.text('{}[]",:\\`\n 019.eE-+truefalsnNI'))
def test_any_text_is_a_call_or_rejected(text):
    for parsing in PARSINGS:
        assert_call_or_rejected(text, parsing)
    replies.would_be_lenient(text, max_chars=LIMIT)


@given(mutated(calls().map(json.dumps) | st.sampled_from(FENCED)))
@example('{"tool":"submit_action_batch","arguments":{"\\ud800":1,"\\ud800":2}}')
def test_any_mutation_of_a_call_is_a_call_or_rejected(text):
    for parsing in PARSINGS:
        assert_call_or_rejected(text, parsing)


@given(json_values())
def test_any_json_is_a_call_or_rejected(value):
    text = json.dumps(value)
    for wrapped in (text, f'{{"tool": {text}, "arguments": {{}}}}', f'{{"tool": 1, "x": {text}}}'):
        assert_call_or_rejected(wrapped, "strict")


PIECES = ["[", "]", '"', "\\", '\\"', "```", "\n", " ", "1", '{"a":', "1,", "```\n", "\n```"]


@pytest.mark.parametrize("piece", PIECES)
def test_long_texts_are_read_in_one_pass(piece):
    """200,000 characters of anything; a scan that starts over at each would take hours."""
    for before in ("", '{"tool":"', "```json\n", "```"):
        text = (before + piece * LIMIT)[:LIMIT]
        assert_call_or_rejected(text, "lenient")
        assert_call_or_rejected(text[:-4] + "\n```", "lenient")


@given(st.text(string.printable, max_size=400) | json_values())
def test_quotations_are_short_and_plain(value):
    shown = replies.quoted(value)

    assert len(shown) <= 80
    assert shown.isascii()
    assert shown.isprintable()
