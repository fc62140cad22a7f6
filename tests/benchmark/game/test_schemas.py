"""Reply forms: they take every legal reply, tell nothing, and never change within an episode."""

import json
from dataclasses import replace

import pytest

from adaexplore.benchmark.game import schemas
from adaexplore.benchmark.game.protocol import Protocol
from adaexplore.benchmark.world.episodes import World
from players import bad_probes, belief, call, drive, is_fork, points_of, restless

KINDS = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}
KEYWORDS = {
    "type", "enum", "anyOf", "properties", "required", "additionalProperties", "items", "minItems",
    "maxItems",
}  # fmt: skip


def fits(schema, value):
    """Whether a value satisfies a schema of the keywords above."""
    assert set(schema) <= KEYWORDS
    if "anyOf" in schema:
        return any(fits(option, value) for option in schema["anyOf"])
    if not KINDS[schema["type"]](value) or value not in schema.get("enum", [value]):
        return False
    if isinstance(value, list):
        most = schema.get("maxItems", len(value))
        short_enough = schema.get("minItems", 0) <= len(value) <= most
        return short_enough and all(fits(schema["items"], item) for item in value)
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema["additionalProperties"]
        return set(schema.get("required", ())) <= set(value) and all(
            fits(known[key], item) if key in known else others and fits(others, item)
            for key, item in value.items()
        )
    return True


@pytest.fixture
def transcripts(stage):
    """Plays without fault, under every setting."""
    return [
        drive(world, setting, restless(2, points_of(world), faults=0.0))
        for world in stage.worlds[:4]
        for setting in stage.settings.values()
    ]


def test_every_accepted_reply_fits_the_form_it_was_asked_for(transcripts):
    """Also the other way round for forms: each reply fits the one of its own request only."""
    for transcript in transcripts:
        assert not transcript.record.faults
        others = {True: transcript.schemas[0], False: transcript.schemas[-1]}
        turns = zip(transcript.requests, transcript.replies, transcript.schemas, strict=True)
        for messages, reply, schema in turns:
            value = json.loads(reply.text)
            assert fits(schema["schema"], value)
            assert not fits(others[is_fork(messages)]["schema"], value)


def test_the_form_is_the_same_for_every_turn_and_branch(stage):
    """One form for calls and one for assessments, in all settings, whatever is hidden."""
    for world in stage.worlds[:4]:
        episode = world.episode
        changed = replace(
            episode,
            episode_id="another",
            pre=episode.post,
            post=episode.pre,
            change_batch=13 - episode.change_batch,
            cases=episode.iid_cases,
        )
        forms = {True: set(), False: set()}
        for twin in (world, World(domain=world.domain, episode=changed)):
            for setting in stage.settings.values():
                transcript = drive(twin, setting, restless(2, points_of(world)))
                for messages, schema in zip(transcript.requests, transcript.schemas, strict=True):
                    forms[is_fork(messages)].add(json.dumps(schema))

        assert [1, 1] == [len(found) for found in forms.values()]
        assert forms[True] != forms[False]


def test_replies_at_fault_do_not_fit(world):
    """What a form can tell: tools, keys, fields, kinds of values, and how many."""
    protocol = Protocol(max_probes=2, max_expressions=2)
    schema = schemas.call_schema(world, protocol)["schema"]
    point = points_of(world)[0]
    good = {"values": point}

    assert fits(schema, json.loads(call("probe_batch", probes=[good, good])))
    assert fits(schema, json.loads(call("calculator", expressions=["1", "2"])))
    for text in (
        belief(),
        call("finish"),
        call("request_next_batch", why=""),
        call("probe_batch", probes=[]),
        call("probe_batch", probes=[good] * 3),
        call("calculator", expressions=["1"] * 3),
        call("calculator", expressions=[1]),
        call("submit_action_batch", batch_id="batch_01"),
        call("submit_action_batch", batch_id="batch_01", actions={"case_001": "action_4"}),
        json.dumps({"tool": "request_next_batch"}),
    ):
        assert not fits(schema, json.loads(text)), text
    told_by_form = ("missing", "unknown field", "expected")
    spoilt = [
        probe for probe, reason in bad_probes(point) if any(p in reason for p in told_by_form)
    ]
    assert len(spoilt) > 10
    for probe in spoilt:
        assert not fits(schema, json.loads(call("probe_batch", probes=[probe]))), probe


def test_beliefs_at_fault_do_not_fit(world):
    schema = schemas.assessment_schema(world)["schema"]
    fields = world.episode.visible_fields

    assert fits(schema, json.loads(belief(**dict.fromkeys(fields, "negative"))))
    assert fits(schema, json.loads(belief()))
    for text in (
        belief(no_such_field="positive"),
        belief(**{fields[0]: "up"}),
        '{"relevant_fields": []}',
        '{"relevant_fields": [], "field_directions": [], "why": ""}',
        call("request_next_batch"),
    ):
        assert not fits(schema, json.loads(text)), text
