"""What each stage asks, refuses and adds; the shapes of answers; proposals and selection.

Answers are a model's words and so hostile: whatever they hold, judging them ends in a list of faults.
"""

import asyncio
import json
import math
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import greenhouse
import writings
from adaexplore.authoring import calls, candidates, drafts, shapes, stages
from adaexplore.authoring.calls import Call
from adaexplore.authoring.candidates import Candidate
from adaexplore.authoring.ideas import Minimum
from adaexplore.authoring.stages import audit, events, review
from adaexplore.benchmark.game.protocol import Reply
from adaexplore.benchmark.world.episodes import Review
from adaexplore.benchmark.world.fields import FAMILIES
from adaexplore.errors import SearchError

PLAN = greenhouse.idea().plan
DRAFTS = asyncio.run(greenhouse.grown(greenhouse.asker(greenhouse.Model(), greenhouse.Shelf())))
"""The document before each stage, by the stage's index, and after the last."""
OPEN = {
    call.name: call
    for stage, draft in zip(stages.STAGES, DRAFTS, strict=False)
    for call in stage.calls(draft, PLAN)
}
"""Every call of the first seven stages."""
GOOD = {
    name: greenhouse.stored(name, 2 if name == "03-priors-2" else 1) for name in OPEN
}  # fmt: skip


@pytest.fixture(scope="module")
def found():
    """Two candidates of one family."""
    domain = drafts.domain(DRAFTS[-1])
    return candidates.found(domain, "disjunctive_sufficiency", PLAN.seed, 2)


def judged(call: Call, answer):
    """Faults of an answer."""
    return calls.judge(call, Reply(text=json.dumps(answer))).faults


def at(answer, path):
    """The place in an answer that a path of keys leads to, and the last key."""
    *steps, last = path
    for step in steps:
        answer = answer[step]
    return answer, last


def changed(name, path, value):
    """A good answer with another value at a path; `...` takes the key away."""
    answer = json.loads(json.dumps(GOOD[name]))
    place, key = at(answer, path)
    if value is ...:
        del place[key]
    else:
        place[key] = value
    return answer


# -- faults ------------------------------------------------------------------------------------

FIELD, TRIPLE, GROUP, EVENT = (
    ("fields", 0), ("ordered_triples", 0), ("replacement_groups", 0), ("events", 0),
)  # fmt: skip
LIMIT = ("feasibility_constraints", 0)
FAULTS = [
    ("01-inventory", ("fields",), [], "fields: expected at least 24, got 0"),
    ("01-inventory", (*FIELD, "unit"), "", "fields.air_humidity_pct.unit: expected text"),
    ("01-inventory", (*FIELD, "type"), "float", "expected one of integer, decimal, got 'float'"),
    ("01-inventory", (*FIELD, "pressure_direction"), 0, "expected one of 1, -1, got 0"),
    ("01-inventory", (*FIELD, "pressure_direction"), True, "expected an integer, got True"),
    ("01-inventory", (*FIELD, "field_id"), "Air", "the id is not lower case"),
    ("01-inventory", (*FIELD, "extra"), 1, "fields[0].extra: there is no such key"),
    ("01-inventory", (*FIELD, "unit"), ..., "fields[0].unit: missing"),
    ("02-semantics", (*FIELD, "field_id"), "air", "'air_humidity_pct' is missing"),
    ("02-semantics", (*FIELD, "field_id"), "air", "'air' was not asked for"),
    ("02-semantics", (*FIELD, "effect_strength"), 1.2, "effect_strength: 1.2 is outside"),
    ("02-semantics", (*FIELD, "eligible_families"), [], "name at least one"),
    ("02-semantics", (*FIELD, "eligible_families"), ["lexicographic_priority"], "expected one of"),
    ("02-semantics", (*FIELD, "is_reversal"), True, "reversal.trigger: expected a sentence"),
    ("03-priors-1", (*FIELD,), ..., "'air_humidity_pct' is missing"),
    ("03-priors-1", (*FIELD, "minimum"), 99, "expected minimum <= typical_range[0]"),
    ("03-priors-1", (*FIELD, "minimum"), 1e300, "expected a number"),
    ("03-priors-1", (*FIELD, "typical_range"), [1], "expected 2 items, got 1"),
    ("03-priors-1", (*FIELD, "populations", "low"), {"alpha": 1, "beta": 1}, "a sum of 4 to 12"),
    ("03-priors-1", (*FIELD, "populations", "low"), {"alpha": 4, "beta": 1}, "must rise"),
    ("03-priors-1", (*FIELD, "parameter_basis"), " ", "parameter_basis: expected text"),
    ("04-triples", (*TRIPLE, "fields", 0), "vent_opening_pct", "expected three different fields"),
    ("04-triples", (*TRIPLE, "fields", 0), "vents", "unknown field 'vents'"),
    ("04-triples", (*TRIPLE, "order_id"), "disease_then_slabs", "stands 2 times"),
    ("04-triples", (*TRIPLE, "rationale"), "", "rationale: expected text"),
    ("05-feasibility", (*LIMIT, "expression", "op"), "near", "expected one of le, lt, ge, gt, eq"),
    ("05-feasibility", (*LIMIT, "expression", "left"), {"const": 1}, "expected a relation"),
    ("05-feasibility", (*LIMIT, "expression", "left", "field"), "fan_minutes", "meets"),
    ("05-feasibility", (*LIMIT, "expression", "op"), "eq", "no mixture"),
    ("06-replacements", (*GROUP, "coupling_strength"), 0.7, "0.7 is outside (0.0, 0.6)"),
    ("06-replacements", (*GROUP, "members", 1), "fan_minutes", "expected one pressure direction"),
    ("06-replacements", (*GROUP, "transitions", 0, "outgoing"), "co2_ppm", "one in each direction"),
    ("06-replacements", (*GROUP, "relation_type"), "twin", "expected one of same_metric"),
    ("06-replacements", ("capacity_findings",), "", "expected an account of the search"),
    ("07-events-1", (*EVENT, "change_id"), "a--b--c", "'a--b--c' was not asked for"),
    ("07-events-1", (*EVENT, "coherent"), False, "decline_reason: expected text"),
    ("07-events-1", (*EVENT, "trigger_event"), "", "trigger_event: expected text"),
    ("07-events-1", (*EVENT, "decline_reason"), "No.", "decline_reason: expected nothing"),
]


@pytest.mark.parametrize("name", OPEN)
def test_good_answers_have_no_faults(name):
    assert [] == judged(OPEN[name], GOOD[name])


@pytest.mark.parametrize(("name", "path", "value", "told"), FAULTS)
def test_a_fault_is_named(name, path, value, told):
    """With its place and what would be right."""
    assert any(told in fault for fault in judged(OPEN[name], changed(name, path, value)))


def test_a_constraint_over_many_fields_is_refused_at_once():
    """Its mixtures could not be tried: three populations each of two dozen fields."""
    ids = [field["field_id"] for field in DRAFTS[-1]["fields"]]
    sums = [{"op": "add", "args": [{"field": i} for i in ids[k : k + 8]]} for k in (0, 8, 16)]
    both = {"op": "add", "args": sums[1:]}
    wide = {"op": "le", "left": sums[0], "right": both}
    answer = changed("05-feasibility", (*LIMIT, "expression"), wide)

    assert any(
        "expected at most 8 fields, got 24" in f for f in judged(OPEN["05-feasibility"], answer)
    )


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply(text=""), "not one JSON object"),
        (Reply(text="Here you are: {}"), "not one JSON object"),
        (Reply(text='{"fields": []}', finish_reason="length"), "ended with 'length'"),
        (Reply(text='{"fields": [], "fields": []}'), "fields"),
        (Reply(text='{"fields": [NaN]}'), "NaN"),
        (Reply(text='{"fields": ["\\ud800"]}'), "surrogate"),
        (Reply(text="[" * 100_000), "nested deeper"),
    ],
)
def test_junk_is_told_from_an_answer(reply, told):
    """Prose, cut replies, duplicate keys and what JSON does not have."""
    found = calls.judge(OPEN["01-inventory"], reply).faults

    assert found
    assert told in found[0] or "JSON" in found[0]


def test_a_fence_is_taken_off():
    """The answer is what counts here, unlike in an episode."""
    text = f"```json\n{json.dumps(GOOD['04-triples'])}\n```"

    assert not calls.judge(OPEN["04-triples"], Reply(text=text)).faults


@st.composite
def damaged(draw):
    """(call name, reply text): a good answer with some subtree replaced, or its text mutated."""
    name = draw(st.sampled_from(sorted(OPEN)))
    answer = json.loads(json.dumps(GOOD[name]))
    if draw(st.booleans()):
        return name, draw(writings.mutated(st.just(json.dumps(answer)[:4000])))
    place, key = answer, draw(st.sampled_from(sorted(answer)))
    while isinstance(place[key], dict | list) and place[key] and draw(st.integers(0, 3)):
        place = place[key]
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        key = draw(st.sampled_from(list(keys)))
    odd = st.sampled_from((10**400, -(10**13), 1e308, "air_humidity_pct", "", [], {}, None, True))
    place[key] = draw(odd | writings.json_values(4))
    return name, json.dumps(answer)


@settings(max_examples=150)
@given(damaged())
def test_judging_never_breaks(case):
    """Any answer is either without faults, and can be merged, or has a list of them."""
    name, text = case
    call = OPEN[name]

    seen = calls.judge(call, Reply(text=text))

    assert all(isinstance(fault, str) and fault for fault in seen.faults)
    if not seen.faults:
        stage = stages.STAGES[int(name[:2]) - 1]
        stage.merged(DRAFTS[stage.number - 1], [seen.answer])


# -- shapes ------------------------------------------------------------------------------------


def schemas():
    """Every schema that is sent."""
    yield from (call.schema for call in OPEN.values())
    yield from (audit.schema(again=again) for again in (False, True))
    yield review.SCHEMA


def nodes(schema):
    """Every node of a schema."""
    yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    inner += [*schema.get("$defs", {}).values(), *([schema["items"]] if "items" in schema else [])]
    for node in inner:
        yield from nodes(node)


def test_schemas_are_strict():
    """Objects are closed and require every key; references lead somewhere; the root is an object."""
    for schema in schemas():
        assert "object" == schema["type"]
        json.dumps(schema, allow_nan=False)
        for node in nodes(schema):
            if node.get("type") == "object":
                assert node["additionalProperties"] is False
                assert list(node["properties"]) == node["required"]
            if "$ref" in node:
                assert node["$ref"].removeprefix("#/$defs/") in schema["$defs"]


def test_the_schema_goes_with_the_request():
    """As the `json_schema` of a response format, under the name of the call."""
    call = OPEN["01-inventory"]
    request = call.request(call.opening())

    assert {"name": "01-inventory", "strict": True, "schema": call.schema} == request.schema
    assert json.dumps(call.schema, separators=(",", ":")) in request.messages[0].content


def values(schema):
    """Values of a shape without references."""
    kind = schema["type"]
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if kind == "object":
        return st.fixed_dictionaries({k: values(v) for k, v in schema["properties"].items()})
    if kind == "array":
        least, most = schema.get("minItems", 0), schema.get("maxItems", 3)
        return st.lists(values(schema["items"]), min_size=least, max_size=most)
    return {
        "string": st.text(max_size=5),
        "integer": st.integers(-(10**12), 10**12),
        "number": st.floats(-1e12, 1e12),
        "boolean": st.booleans(),
    }[kind]


SHAPE = shapes.record(
    a=shapes.array(shapes.record(b=shapes.choice(1, -1), c=shapes.text()), least=1, most=2),
    d=shapes.number(),
    e=shapes.boolean(),
    f=shapes.choice("x", "y"),
)


def fits(value, schema):
    """Whether a value is of the shape, by another hand."""
    kind = schema["type"]
    if "enum" in schema:
        return any(type(value) is type(option) and value == option for option in schema["enum"])
    if kind == "object":
        inner = schema["properties"]
        return (
            type(value) is dict
            and value.keys() == inner.keys()
            and all(fits(value[key], inner[key]) for key in inner)
        )
    if kind == "array":
        return (
            type(value) is list
            and schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", math.inf)
            and all(fits(item, schema["items"]) for item in value)
        )
    types = {"string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,)}
    return type(value) in types[kind] and (kind != "number" or abs(value) <= 1e12)


@given(values(SHAPE) | writings.json_values())
def test_what_fits_a_shape_has_no_faults_and_nothing_else(value):
    assert fits(value, SHAPE) == (not shapes.faults(value, SHAPE))


@given(values(SHAPE), st.data())
def test_a_changed_value_is_judged_as_by_hand(value, data):
    key = data.draw(st.sampled_from(sorted(value)))
    value[key] = data.draw(writings.json_values(3))

    assert fits(value, SHAPE) == (not shapes.faults(value, SHAPE))


@given(values(SHAPE), st.randoms(use_true_random=False))
def test_answers_are_put_in_the_order_of_the_schema(value, random):
    """Whatever order a model writes keys in, the document has one."""
    keys = list(value)
    random.shuffle(keys)

    arranged = shapes.arranged({key: value[key] for key in keys}, SHAPE)

    assert value == arranged
    assert list(SHAPE["properties"]) == list(arranged)


# -- proposals ---------------------------------------------------------------------------------


def usable(domain, family, change):
    """Whether a family can use a change, by another hand."""
    outgoing, incoming, turned = change
    if family != "lexicographic_priority":
        return all(family in domain.catalog[name].eligible_families for name in change)
    authored = {triple.fields for triple in domain.ordered_triples}
    return any(
        outgoing in triple
        and turned in triple
        and incoming not in triple
        and tuple(incoming if name == outgoing else name for name in triple) in authored
        for triple in authored
    )


@pytest.mark.parametrize("each", [1, 4, 10, 1000])
def test_every_family_gets_enough_proposals(each):
    """As many as asked for, or all that there are; each an authored handoff and another reversal."""
    domain = drafts.domain(DRAFTS[6])
    every = {
        (handoff.outgoing, handoff.incoming, field.field_id)
        for group in domain.replacement_groups
        for handoff in group.transitions
        for field in domain.fields
        if field.reversal.is_reversal and field.field_id not in group.members
    }
    made = events.proposals(DRAFTS[6], replace(PLAN, events_each=each))
    proposed = [(event.outgoing, event.incoming, event.reversed) for event in made]

    assert len(set(proposed)) == len(proposed)
    assert set(proposed) <= every
    for family in FAMILIES:
        there = sum(usable(domain, family, change) for change in every)
        assert min(each, there) <= sum(usable(domain, family, change) for change in proposed)
    assert made == events.proposals(DRAFTS[6], replace(PLAN, events_each=each))


def test_proposals_are_spread_over_pairs_and_turns():
    """Twelve changes of seven groups: no pair and no turned field is used much."""
    made = events.proposals(DRAFTS[6], replace(PLAN, events_each=12))
    pairs = Counter((event.outgoing, event.incoming) for event in made)

    assert len(pairs) >= 8
    assert max(pairs.values()) <= 3
    assert len({event.reversed for event in made}) >= 5


# -- audit, review, selection ------------------------------------------------------------------


def test_the_audit_is_told_the_change_and_no_reason(found):
    """Eight fields, the core before and after, and no event: that is for the review."""
    call = audit.call("08-audit", found, again=False)
    told = call.payload["candidates"][0]
    episode = found[0].world.episode

    assert 8 == len(told["fields"])
    assert list(episode.pre.field_ids) == [slot["field_id"] for slot in told["core_before"]]
    assert {"replaced", "replaced_by", "direction_reversed"} == set(told["change"])
    assert 4 == len(told["distractors"])
    assert episode.transition.trigger_event not in json.dumps(call.payload)
    reviewed = review.call("09-review", found).payload["episodes"][0]
    assert episode.transition.trigger_event == reviewed["change"]["trigger_event"]


def decisions(found, **more):
    """An answer of the audit that accepts everything."""
    made = [{"candidate_id": c.candidate_id, "verdict": "accept", "reason": "Fine."} for c in found]
    made[0].update(more)
    return {"decisions": made}


def test_a_settled_core_cannot_be_rejected(found):
    """The second audit has two verdicts only."""
    first, again = (audit.call("08-audit", found, again=again) for again in (False, True))
    answer = decisions(found, verdict="reject_core")

    assert [] == judged(first, answer)
    assert "expected one of accept, reject_distractors" in judged(again, answer)[0]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"candidate_id": "other"}, "'disjunctive_sufficiency-01' is missing"),
        ({"candidate_id": "disjunctive_sufficiency-02"}, "is answered 2 times"),
        ({"reason": ""}, "reason: expected a sentence"),
    ],
)
def test_every_candidate_is_judged_once_with_a_reason(found, more, told):
    call = audit.call("08-audit", found, again=False)

    assert any(told in fault for fault in judged(call, decisions(found, **more)))


@pytest.mark.parametrize(
    ("score", "reason", "right"),
    [
        (0.0, "x", True), (5.0, "x" * 240, True), (3.3, "x", True), (4.7, "x", True),
        (5.1, "x", False), (-0.1, "x", False), (3.25, "x", False), (3, "x" * 241, False),
        (3, " ", False),
    ],
)  # fmt: skip
def test_scores_are_steps_of_a_tenth_with_a_short_reason(found, score, reason, right):
    """0.0 to 5.0, and one sentence of at most 240 characters."""
    scored = {key: {"score": score, "reason": reason} for key in review.DIMENSIONS}
    answer = {"reviews": [{"episode_id": c.candidate_id, **scored} for c in found]}

    assert right == (not judged(review.call("09-review", found), answer))


def test_redrawn_distractors_are_new_and_reproducible(found):
    """The core stays, what was refused is remembered, and the same seed gives the same candidate."""
    first = found[0]
    second = candidates.redrawn(first, PLAN.seed)
    third = candidates.redrawn(second, PLAN.seed)
    before = first.world.episode

    assert {first.distractors, second.distractors} == third.refused
    assert third.distractors not in third.refused
    assert second.distractors != first.distractors
    for other in (second, third):
        now = other.world.episode
        assert (before.episode_id, before.transition) == (now.episode_id, now.transition)
        assert before.pre.directions == now.pre.directions
        assert before.post.directions == now.post.directions
    assert second.world.episode == candidates.redrawn(first, PLAN.seed).world.episode


def test_no_refused_set_comes_again(found):
    """A set that the redraw would come to is passed over when it has been refused."""
    first = found[0]
    world = first.world
    finder = candidates.searcher(world.domain, first.family, PLAN.seed)
    core = {*world.episode.pre.field_ids, *world.episode.post.field_ids}
    free = finder.redraw(world, set(), 1)
    come = frozenset(free.episode.visible_fields) - core

    other = finder.redraw(world, {come}, 1)

    assert come != frozenset(other.episode.visible_fields) - core


SCORES = st.integers(0, 50).map(lambda tenths: tenths / 10)
REVIEWS = st.builds(
    Review, field_realism=SCORES, rule_change_realism=SCORES, distractor_quality=SCORES
)


@given(st.lists(REVIEWS, max_size=8), SCORES)
def test_qualified_candidates_are_ranked_by_their_sum(reviews, least):
    """All dimensions must be above the minimum; equal sums keep their order."""
    made = [
        Candidate(world=SimpleNamespace(episode=SimpleNamespace(review=r, number=n)))
        for n, r in enumerate(reviews)
    ]
    minimum = Minimum(field_realism=least, rule_change_realism=least, distractor_quality=least)
    expected = sorted(
        (-round(10 * (r.field_realism + r.rule_change_realism + r.distractor_quality)), n)
        for n, r in enumerate(reviews)
        if min(r.field_realism, r.rule_change_realism, r.distractor_quality) > least
    )

    ranked = candidates.qualified(made, minimum)

    assert [n for _, n in expected] == [c.world.episode.number for c in ranked]


@given(st.lists(st.integers(0, 5), min_size=4, max_size=4), st.integers(1, 4))
def test_equal_numbers_of_each_family_are_selected(counts, each):
    """In rounds; a family with fewer ends the run, and is named with its number."""
    ranked = {
        family: [f"{family}-{n}" for n in range(count)]
        for family, count in zip(FAMILIES, counts, strict=True)
    }
    short = [f"{f} {n}" for f, n in zip(FAMILIES, counts, strict=True) if n < each]
    if short:
        with pytest.raises(SearchError, match=", ".join(short)):
            candidates.selected(ranked, each, "here")
        return

    chosen = candidates.selected(ranked, each, "here")

    assert [f"{family}-{n}" for n in range(each) for family in FAMILIES] == chosen
