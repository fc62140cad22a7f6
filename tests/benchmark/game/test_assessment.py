"""Assessments: fields that are visible, each once, with exactly one direction."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.benchmark.game import assessment
from adaexplore.benchmark.game.replies import RejectedError
from writings import json_values, mutated

VISIBLE = tuple(f"field_{i}" for i in range(8))


def read(text, parsing="strict", limit=200_000):
    return assessment.read(text, VISIBLE, parsing=parsing, max_chars=limit)


def written(fields, directions):
    entries = [{"field_id": name, "direction": word} for name, word in directions]
    return json.dumps({"relevant_fields": fields, "field_directions": entries})


@st.composite
def beliefs(draw):
    """(fields, directions in another order) of a well-formed answer."""
    fields = draw(st.lists(st.sampled_from(VISIBLE), unique=True))
    words = {name: draw(st.sampled_from(("positive", "negative"))) for name in fields}
    return fields, draw(st.permutations(sorted(words.items())))


@given(beliefs())
def test_an_answer_is_read_as_written(belief):
    """Any number of fields, none among them, in any order, with or without a fence."""
    fields, directions = belief
    text = written(fields, directions)

    expected = {name: 1 if word == "positive" else -1 for name, word in directions}
    assert expected == read(text)
    assert expected == read(f"```json\n{text}\n```", "lenient")


ONE = [("field_0", "positive")]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (written(["field_9"], [("field_9", "positive")]), "'field_9' is not a listed field"),
        (written(["field_0", "field_0"], ONE), "a field is named twice"),
        (written(["field_0"], [*ONE, ("field_0", "negative")]), "two directions"),
        (written(["field_0"], [*ONE, *ONE]), "two directions"),
        (written(["field_0"], []), "exactly one direction"),
        (written([], ONE), "exactly one direction"),
        (written(["field_0", "field_1"], ONE), "exactly one direction"),
        (written(["field_1"], ONE), "exactly one direction"),
        (written(["field_0"], [("field_0", "up")]), "'positive' or 'negative'"),
        (written(["field_0"], [("field_0", 1)]), "'positive' or 'negative'"),
        (written(["field_0"], [("field_0", ["positive"])]), "'positive' or 'negative'"),
        (written([["field_0"]], ONE), "is not a listed field"),
        (written([{}], ONE), "is not a listed field"),
        (written([None], ONE), "is not a listed field"),
        (written(["\ud800"], ONE), "'\\ud800' is not a listed field"),
        (written("field_0", ONE), "to be lists"),
        ('{"relevant_fields": [], "field_directions": {}}', "to be lists"),
        ('{"relevant_fields": [], "field_directions": ["field_0"]}', "'field_id' and 'direction'"),
        ('{"relevant_fields": [], "field_directions": [{"field_id": 1}]}', "'field_id' and"),
        ('{"relevant_fields": []}', "exactly the keys"),
        ('{"relevant_fields": [], "field_directions": [], "why": ""}', "exactly the keys"),
        ("[]", "expected one JSON object"),
        ("", "not one JSON object"),
        (f"```json\n{written([], [])}\n```", "not one JSON object"),
        ('{"relevant_fields": [], "relevant_fields": [], "field_directions": []}', "key twice"),
    ],
)
def test_anything_else_is_refused_with_the_reason(text, part):
    with pytest.raises(RejectedError) as caught:
        read(text)

    assert part in "; ".join(caught.value.reasons)


def assert_belief_or_rejected(text, parsing):
    try:
        directions = read(text, parsing)
    except RejectedError as rejected:
        "".join(rejected.reasons).encode()
    else:
        assert set(directions) <= set(VISIBLE)
        assert set(directions.values()) <= {1, -1}


@given(json_values(), json_values())
def test_any_json_is_a_belief_or_rejected(fields, directions):
    for document in (fields, {"relevant_fields": fields, "field_directions": directions}):
        assert_belief_or_rejected(json.dumps(document), "strict")


@given(mutated(beliefs().map(lambda belief: written(*belief))))
def test_any_mutation_is_a_belief_or_rejected(text):
    for parsing in ("strict", "lenient"):
        assert_belief_or_rejected(text, parsing)


def test_length_is_bounded():
    with pytest.raises(RejectedError, match="the limit is 20"):
        read(written([], []), limit=20)
