"""What is looked at before a hostile reply is parsed: its depth, by a scan that is quick and exact."""

import json
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adaexplore.benchmark.game import replies
from adaexplore.benchmark.game.environment import Environment
from adaexplore.benchmark.game.replies import MAX_DEPTH, Call, RejectedError
from players import points_of


def refusal(text):
    with pytest.raises(RejectedError) as caught:
        replies.read_object(text, parsing="strict", max_chars=1_000_000)
    return caught.value.reasons[0]


def called_deep(text):
    try:
        replies.read_object(text, parsing="strict", max_chars=1_000_000)
    except RejectedError as rejected:
        return "nested deeper" in rejected.reasons[0]
    return False


def deepest(text):
    """Depth character by character: the definition."""
    depth = most = 0
    inside = escaped = False
    for char in text:
        if inside:
            inside = escaped or char != '"'
            escaped = char == "\\" and not escaped
        elif char == '"':
            inside = True
        elif char in "[{":
            depth += 1
            most = max(most, depth)
        elif char in "]}":
            depth -= 1
    return most


@given(tail=st.text('"\\[]{}a\n', max_size=40))
@example(tail='"\\')
@example(tail='"\\"[')
@example(tail='"\\\\"[')
@example(tail="]" * 30 + "[" * 31)
def test_the_scan_agrees_with_the_definition(tail):
    """None of these texts is JSON, so the reason tells whether they were found too deep."""
    text = "[" * MAX_DEPTH + tail + "a"

    assert (deepest(text) > MAX_DEPTH) == ("nested deeper" in refusal(text))


NESTED = st.recursive(
    st.sampled_from(['"a"', '"[{"', '"}]"', "0"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: f"[{','.join(parts)}]"),
        st.lists(inner, max_size=3).map(
            lambda parts: "{" + ",".join(f'"{i}]":{part}' for i, part in enumerate(parts)) + "}"
        ),
    ),
    max_leaves=40,
)


@given(text=NESTED, around=st.integers(0, MAX_DEPTH + 2), opening=st.sampled_from("[{"))
def test_no_document_is_called_flat_that_is_too_deep(text, around, opening):
    """Whole documents, most of which are told to be flat without a scan; their strings hold brackets."""
    before, after = ("[", "]") if opening == "[" else ('{"a":', "}")
    document = before * around + text + after * around

    assert (deepest(document) > MAX_DEPTH) == called_deep(document)


@pytest.mark.parametrize("mark", ["", "\\n"])
@pytest.mark.parametrize("levels", [MAX_DEPTH, MAX_DEPTH + 1])
def test_brackets_in_strings_hide_no_depth(levels, mark):
    """Counted with those in strings, every level would be closed at once."""
    document = f'["]{mark}",' * levels + "0" + ',"["]' * levels

    assert (levels > MAX_DEPTH) == called_deep(document)


@pytest.mark.parametrize("part", ['"', '\\"', '"\\', "[", '"[', '"a\\\\"'])
def test_the_scan_takes_no_longer_than_the_text_is_long(part):
    """A scan that tried again from every quote would take minutes."""
    start_s = time.process_time()
    refusal(part * (400_000 // len(part)) + "a")

    assert time.process_time() - start_s < 20.0


@pytest.mark.parametrize("base", [["probe_001"], {}, None, 1, "probe_002"])
def test_only_a_known_name_is_a_base(base, world, settings, protocol):
    environment = Environment(world, settings["default"], protocol)
    first = [{"values": points_of(world)[0]}]
    environment.apply(Call(tool="probe_batch", arguments={"probes": exact(first)}))
    environment.apply(
        Call(tool="submit_action_batch", arguments={"batch_id": "batch_01", "actions": {}})
    )
    again = [{"base_context_id": base, "changes": {}}]
    with pytest.raises(RejectedError) as caught:
        environment.apply(Call(tool="probe_batch", arguments={"probes": again}))

    assert [f"probes[0]: {replies.quoted(base)} is not the id of an earlier probe result"] == list(
        caught.value.reasons
    )


def exact(probes):
    """Numbers as they are read from a reply."""
    text = json.dumps({"probes": probes})
    return replies.read_object(text, parsing="strict", max_chars=10_000)["probes"]
