"""The environment's refusals: what is at fault is named, all of it, and nothing happens."""

import itertools
import json
import re

import pytest

import twins
from adaexplore.benchmark.game import prompts, replies
from adaexplore.benchmark.game.environment import Environment
from adaexplore.benchmark.game.protocol import Protocol
from adaexplore.benchmark.game.replies import Call, RejectedError
from players import bad_probes, points_of


@pytest.fixture
def environment(world, settings, protocol):
    return Environment(world, settings["default"], protocol)


def written(tool, **arguments):
    """A call as it is read from a reply, decimals exact."""
    text = json.dumps({"tool": tool, "arguments": arguments})
    return replies.read_call(text, parsing="strict", max_chars=200_000)


def refused(environment, call):
    with pytest.raises(RejectedError) as caught:
        environment.apply(call)
    return caught.value.reasons


def probe(environment, *probes):
    return json.loads(environment.apply(written("probe_batch", probes=list(probes)))["results"])


# -- probes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(19))
def test_a_bad_probe_is_refused_with_its_reason(worlds, settings, protocol, number):
    """In episodes with integer and decimal fields, alone and among good ones."""
    for world in worlds[:8]:
        environment = Environment(world, settings["default"], protocol)
        point = points_of(world)[0]
        bad, part = bad_probes(point)[number]
        good = {"values": point}

        assert part in "; ".join(refused(environment, written("probe_batch", probes=[bad])))
        (reason, *others) = refused(environment, written("probe_batch", probes=[good, bad, good]))
        assert reason.startswith("probes[1]")
        assert not others
        assert ((), "explore") == (environment.probes.records(), environment.decision)


def test_every_fault_of_a_call_is_named(environment, world):
    """Each with the place of its probe; good ones beside them are not answered."""
    point = points_of(world)[0]
    low, high = world.fields[0], world.fields[1]
    worse = {**point, low.field_id: low.minimum - 1, high.field_id: high.maximum + 1, "x": 1}
    call = written("probe_batch", probes=[{"values": point}, {}, {"values": worse}])
    reasons = refused(environment, call)

    starts = ["probes[1]: ", "probes[2]: ", f"probes[2].{low.field_id}: "]
    starts.append(f"probes[2].{high.field_id}: ")
    assert 4 == len(reasons)
    assert all(reason.startswith(start) for reason, start in zip(reasons, starts, strict=True))
    assert not len(environment.probes)


def edges(field):
    """(JSON number, whether it is legal) at and around what a field allows."""
    low, high = field.bounds
    whole = field.type == "integer"
    yield from ((str(low), True), (str(high), True), (f"{low}e0", True))
    yield from ((f"{int(low) + 1}.00", True), (f"{int(low) + 1}.0000000", True))
    yield from ((f"{int(low) + 1}.5", not whole), (f"{int(low) + 1}.25", not whole))
    yield from ((f"{int(low) + 1}.255", False), (f"{int(low) + 1}.{'0' * 40}1", False))
    yield from ((f"{int(low) + 1}.{'9' * 60}", False), (f"{int(low) + 1}.25{'0' * 90}1", False))
    yield from ((f"{high}{'' if whole else '0' * 30}1", False), (f"{float(high)}001", False))
    yield from (("1e9999", False), ("-1e9999", False), ("1" * 300, False))
    yield from (("1e-9999", False), (f"{(int(low) + 1) * 100}e-2", True))


def test_ranges_and_places_are_exact_to_any_digit(worlds, settings, protocol):
    """Bounds belong to the range; a third decimal is refused however far out it stands."""
    for world in worlds[:6]:
        point = points_of(world)[0]
        free = {f.field_id for f in world.fields}
        free -= {name for c in world.constraints for name in names_in(c.expression)}
        for field in world.fields:
            for number, legal in edges(field) if field.field_id in free else ():
                if number == "1e-9999" and field.minimum > 0:
                    continue
                values = json.dumps({**point, field.field_id: "@"}).replace('"@"', number)
                text = f'{{"tool":"probe_batch","arguments":{{"probes":[{{"values":{values}}}]}}}}'
                call = replies.read_call(text, parsing="strict", max_chars=10_000)
                environment = Environment(world, settings["default"], protocol)
                if legal:
                    environment.apply(call)
                    position = world.episode.visible_fields.index(field.field_id)
                    shown = field.from_hundredths(environment.probes.records()[0].row[position])
                    assert float(number) == shown
                else:
                    (reason,) = refused(environment, call)
                    assert reason.startswith(f"probes[0].{field.field_id}: ")


def names_in(node):
    if isinstance(node, dict):
        own = {node["field"]} if "field" in node else set()
        return own.union(*(names_in(child) for child in node.values()))
    return set().union(*map(names_in, node)) if isinstance(node, list) else set()


def test_a_probe_that_breaks_a_constraint_is_refused_by_its_text(worlds, settings, protocol):
    """The text is the one of the first message; a point that only just holds is accepted."""
    constrained = [world for world in worlds if world.constraints]
    assert constrained
    for world in constrained:
        environment = Environment(world, settings["default"], protocol)
        first = prompts.first(world, environment.card())
        point = points_of(world)[0]
        for constraint in world.constraints:
            names = sorted(names_in(constraint.expression))
            verdicts = set()
            for corner in corners(world, names):
                values = {**point, **corner}
                hundredths = {k: round(v * 100) for k, v in values.items()}
                broken = [c for c in world.constraints if not twins.holds(c.expression, hundredths)]
                verdicts.add(bool(broken))
                environment = Environment(world, settings["default"], protocol)
                if not broken:
                    assert 1 == len(probe(environment, {"values": values}))
                    continue
                reasons = refused(environment, written("probe_batch", probes=[{"values": values}]))
                texts = [re.search(r"constraint (.*)", reason)[1] for reason in reasons]
                assert len(broken) == len(texts)
                assert all(f"`{text}`" in first for text in texts)
            assert {True, False} == verdicts


def corners(world, names):
    """Extreme, middle and equal values of the named fields."""
    fields = [world.domain.catalog[name] for name in names]
    ranges = [
        {f.bounds[0], f.bounds[1], f.from_hundredths(f.to_hundredths((f.minimum + f.maximum) / 2))}
        for f in fields
    ]
    equal = max(f.bounds[0] for f in fields)
    step = 1 if any(f.type == "integer" for f in fields) else 0.01
    for values in itertools.product(*map(sorted, ranges)):
        yield dict(zip(names, values, strict=True))
    yield dict.fromkeys(names, equal)
    yield {**dict.fromkeys(names, equal), names[0]: round(equal + step, 2)}


def test_bases_are_earlier_probe_results_only(environment, world):
    """Not of the same call, not cases; changes apply to the base, which stays as it was."""
    points = points_of(world)
    new = {"values": points[0]}
    inside = {"base_context_id": "probe_001", "changes": {}}
    assert "probes[1]" in refused(environment, written("probe_batch", probes=[new, inside]))[0]

    assert [("probe_001", "new_context")] == [
        (r["context_id"], r["probe_mode"]) for r in probe(environment, new)
    ]
    environment.apply(written("submit_action_batch", batch_id="batch_01", actions={}))
    case = {"base_context_id": "case_001", "changes": {}}
    assert "'case_001'" in refused(environment, written("probe_batch", probes=[case]))[0]

    name = world.fields[0].field_id
    moved = {"base_context_id": "probe_001", "changes": {name: points[1][name]}}
    again, other, third = probe(environment, inside, {**moved, "changes": points[1]}, inside)
    rows = [probe.row for probe in environment.probes.records()[:4]]
    assert ["existing_context"] * 3 == [r["probe_mode"] for r in (again, other, third)]
    assert ["probe_001"] * 3 == [r["base_context_id"] for r in (again, other, third)]
    assert rows[0] == rows[1] == rows[3]
    assert points[1] == world.numbers(rows[2])
    assert again["utilities"] == third["utilities"]


def test_the_number_of_probes_is_bounded(world, settings):
    """From one to the protocol's limit."""
    point = {"values": points_of(world)[0]}
    for most in (1, 16):
        environment = Environment(world, settings["default"], Protocol(max_probes=most))
        for count in (0, most + 1, 600):
            call = written("probe_batch", probes=[point] * count)
            assert f"a list of 1 to {most}, got {count}" in refused(environment, call)[0]
        assert most == len(probe(environment, *[point] * most))


# -- acting and calculating --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({}, "expected exactly these arguments: actions, batch_id"),
        ({"batch_id": "batch_01"}, "expected exactly these arguments"),
        ({"batch_id": "batch_01", "actions": {}, "why": ""}, "expected exactly these arguments"),
        ({"batch_id": "batch_02", "actions": {}}, "expected batch_id 'batch_01'"),
        ({"batch_id": 1, "actions": {}}, "expected batch_id 'batch_01'"),
        ({"batch_id": "batch_01", "actions": []}, "expected 'actions' to be an object"),
        ({"batch_id": "batch_01", "actions": {"case_009": "action_0"}}, "not a pending case"),
        ({"batch_id": "batch_01", "actions": {"probe_001": "action_0"}}, "not a pending case"),
        ({"batch_id": "batch_01", "actions": {"\ud800": "action_0"}}, "not a pending case"),
        ({"batch_id": "batch_01", "actions": {"case_001": "action_4"}}, "unknown action"),
        ({"batch_id": "batch_01", "actions": {"case_001": 0}}, "unknown action 0"),
        ({"batch_id": "batch_01", "actions": {"case_001": None}}, "unknown action None"),
        ({"batch_id": "batch_01", "actions": {"case_001": ["action_0"]}}, "unknown action"),
        ({"batch_id": "batch_01", "actions": {"case_001": "\ud800"}}, "unknown action '\\ud800'"),
    ],
)
def test_a_bad_submission_is_refused_with_its_reason(environment, arguments, part):
    environment.apply(written("request_next_batch"))
    reasons = refused(environment, written("submit_action_batch", **arguments))

    assert part in "; ".join(reasons)
    "".join(reasons).encode()
    assert ([], "act", 1) == (environment.results, environment.decision, environment.batch_number)


def test_omitted_cases_abstain(environment):
    """They earn nothing and have no action; the others earn what their action is worth."""
    environment.apply(written("request_next_batch"))
    actions = {"case_002": "action_3", "case_005": "action_0"}
    environment.apply(written("submit_action_batch", batch_id="batch_01", actions=actions))
    results = environment.finished_batch()

    assert [None, 3, None, None, 0, None, None, None] == [r.action for r in results]
    earned = [results[1].utilities[3], results[4].utilities[0]]
    assert [0, earned[0], 0, 0, earned[1], 0, 0, 0] == [r.utility for r in results]
    assert round(sum(earned), 2) == environment.card()["cumulative_utility"]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"expressions": []},
        {"expressions": "1 + 1"},
        {"expressions": ["1"] * 33},
        {"expressions": ["1", 2]},
        {"expressions": {"a": "1"}},
        {"expressions": ["1"], "precision": 2},
        {"expression": "1"},
    ],
)
def test_a_bad_calculation_is_refused(environment, arguments):
    """And counts as a calculator call: the next one comes too soon."""
    assert "expected" in refused(environment, Call(tool="calculator", arguments=arguments))[0]
    assert "in a row" in refused(environment, written("calculator", expressions=["1"]))[0]


def test_calculator_feedback(environment):
    """One entry an expression in order, the variables, the counts, and what is usable now."""
    texts = ["a = b * 2", "1 / 0", "b = 1.5", "c = d"]
    feedback = environment.apply(written("calculator", expressions=texts))

    assert [
        {"index": 0, "ok": True, "value": 3, "variable": "a"},
        {"index": 1, "ok": False, "error": "division by zero"},
        {"index": 2, "ok": True, "value": 1.5, "variable": "b"},
        {"index": 3, "ok": False, "error": "unknown name 'd'", "variable": "c"},
    ] == feedback["results"]
    assert {"a": 3, "b": 1.5} == feedback["variables"]
    counts = feedback["successful_expression_count"], feedback["invalid_expression_count"]
    assert (2, 2) == counts
    assert environment.card()["tool_usability"] == feedback["tool_usability"]
