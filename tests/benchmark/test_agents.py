"""Reference agents: pure functions of the messages, legal players, ordered by what they know."""

import importlib
import json
import pkgutil
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from adaexplore.benchmark.game import agents
from adaexplore.benchmark.game.agents import AGENTS, Told, inference, observations, oracle, points
from adaexplore.benchmark.game.agents.beliefs import observed
from adaexplore.benchmark.game.agents.one_factor import first_design
from adaexplore.benchmark.game.agents.reading import SeenProbe, read
from adaexplore.benchmark.game.feedback import shown
from adaexplore.benchmark.game.play import play
from adaexplore.benchmark.game.protocol import Message, Protocol, Reply
from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.game.settings import Setting
from adaexplore.benchmark.scores import metrics
from adaexplore.benchmark.world import search, utility
from adaexplore.benchmark.world.domains import Domain
from adaexplore.benchmark.world.episodes import World
from adaexplore.benchmark.world.fields import FAMILIES

DATA = Path(search.__file__).parents[2] / "data" / "domains"
Play = Callable[[tuple[Message, ...]], str]


def _setting(name, *, drifts=True, cases="controlled", evidence="rewritten", probing="optional"):
    return Setting(
        name=name, drifts=drifts, cases=cases, evidence=evidence, probing=probing, min_probes=1
    )


SETTINGS = {
    s.name: s
    for s in (
        _setting("default"),
        _setting("stationary", drifts=False),
        _setting("stationary_iid", drifts=False, cases="iid"),
        _setting("evidence_given", evidence="outcome"),
        _setting("forced_probe", probing="forced"),
    )
}
FULL = _setting("evidence_full", evidence="full")


@lru_cache(maxsize=8)
def world(family: str) -> World:
    document = yaml.safe_load((DATA / "hospital_bed_flow.yaml").read_text(encoding="utf-8"))
    domain = TypeAdapter(Domain).validate_python(document)
    searcher = search.Searcher(domain=domain, family=family, seed=5, parameters=search.Parameters())
    return searcher.search(("episode",)).worlds[0]


def run(
    one: World, setting: Setting, reply: Play, protocol: Protocol | None = None
) -> EpisodeRecord:
    game = play(one, setting, protocol or Protocol())
    request = next(game)
    while True:
        try:
            request = game.send(Reply(text=reply(request.messages)))
        except StopIteration as stop:
            return stop.value


def by(name: str) -> Play:
    return lambda messages: AGENTS[name].reply(messages, 3)


def told(one: World, setting: Setting) -> Play:
    return lambda messages: oracle(messages, Told(world=one, drifts=setting.drifts))


def accuracy(record: EpisodeRecord) -> float:
    """Calibrated accuracy: random actions 0, best actions 1."""
    values = np.asarray([case.utilities for case in record.cases])
    low, high = values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True)
    share = (values - low) / (high - low)
    chosen = np.asarray([share[i, case.action] for i, case in enumerate(record.cases)])
    return float((chosen.mean() - share.mean()) / (1.0 - share.mean()))


def clear_caches() -> None:
    for module in pkgutil.iter_modules(agents.__path__, agents.__name__ + "."):
        for member in vars(importlib.import_module(module.name)).values():
            if hasattr(member, "cache_clear"):
                member.cache_clear()


# -- purity ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(AGENTS))
@pytest.mark.parametrize("setting", ["default", "evidence_given"])
def test_replies_are_a_function_of_the_messages(name, setting):
    """Asked again without caches, in another order, every reply is the same bytes."""
    asked = []

    def reply(messages):
        asked.append((messages, by(name)(messages)))
        return asked[-1][1]

    run(world("lexicographic_priority"), SETTINGS[setting], reply)
    clear_caches()
    for messages, before in asked[::-5]:
        assert by(name)(messages) == before


def test_random_agent_follows_its_seed():
    run_by = [
        run(world(FAMILIES[0]), SETTINGS["default"], lambda m, s=s: AGENTS["random"].reply(m, s))
        for s in (1, 1, 2)
    ]
    actions = [[case.action for case in record.cases] for record in run_by]
    assert actions[0] == actions[1] != actions[2]


# -- what utilities say ------------------------------------------------------------------------


@settings(deadline=None)  # the first example makes the table
@given(st.floats(-1.0, 1.0))
def test_four_shown_utilities_confine_the_score(score):
    values = tuple(shown(u) for u in utility.utilities(score))
    low, high = observations.score_interval(values)
    assert low - 1e-3 <= score <= high + 1e-3
    assert abs(observations.middle_score(values) - score) <= observations.ERROR


@settings(deadline=None)  # the first example makes the table
@given(st.floats(-1.0, 1.0), st.integers(0, 3))
def test_one_shown_utility_confines_the_score_to_two_intervals(score, action):
    pair = observations.score_intervals(action, shown(utility.utilities(score)[action]))
    assert any(low - 1e-3 <= score <= high + 1e-3 for low, high in pair)


# -- inference ---------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_a_rule_is_recovered_from_enough_probes(family):
    one = world(family)
    where = _space(one)
    rows = (*first_design(where), *points.sample(where, 90, "recovery"))
    answers = one.utilities(one.episode.pre, rows)
    probes = tuple(
        SeenProbe(context_id=str(i), window=1, row=row, utilities=tuple(map(shown, values)))
        for i, (row, values) in enumerate(zip(rows, answers, strict=True))
    )
    held = inference.fit(observed(where, probes), inference.Effort(rounds=12))
    visible = one.episode.visible_fields
    found = {visible[column]: sign for column, sign in held.best.directions.items()}
    assert held.best.family == family
    assert found == one.episode.pre.directions
    cases = tuple(row for batch in one.episode.cases for row in batch)
    best = [int(np.argmax(v)) for v in one.utilities(one.episode.pre, cases)]
    chosen = inference.best_actions(held, points.normalised(where.fields, cases))
    assert np.mean(np.equal(best, chosen)) >= 0.95


def _space(one: World) -> points.Space:
    seen = []
    setting = SETTINGS["default"]
    run(one, setting, lambda m: (seen.append(m), by("constant")(m))[1])
    return points.space(read(seen[0]))


# -- reading -----------------------------------------------------------------------------------


def test_a_view_holds_what_the_environment_answered():
    """Rows and utilities of probes, and cases with what they earned, as the record has them."""
    views = []
    one = world("additive_aggregation")

    def reply(messages):
        views.append(read(messages))
        return by("scientist")(messages)

    record = run(one, FULL, reply)
    view = views[-1]
    assert view.decision == "assess"
    assert (view.finished, view.windows) == (12, 12)
    asked = [(p.context_id, p.batch_number, p.row) for p in record.probes]
    assert [(p.context_id, p.window, p.row) for p in view.probes] == asked
    assert [len(case.utilities) for case in view.cases] == [4] * 96
    assert [case.row for case in view.cases] == [r for b in one.episode.cases for r in b]
    assert len(view.constraints) == len(one.constraints)


# -- playing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("setting", [*SETTINGS.values(), FULL], ids=lambda s: s.name)
def test_the_oracle_is_always_right(family, setting):
    one = world(family)
    record = run(one, setting, told(one, setting))
    assert all(case.action == int(np.argmax(case.utilities)) for case in record.cases)
    assert {a.phase: a.directions for a in record.assessments} == record.truth
    assert not record.faults


@pytest.mark.parametrize("name", sorted(AGENTS))
@pytest.mark.parametrize("setting", [*SETTINGS.values(), FULL], ids=lambda s: s.name)
def test_no_call_is_ever_rejected(name, setting):
    for family in ("conjunctive_gating", "lexicographic_priority"):
        record = run(world(family), setting, by(name))
        assert not record.faults
        assert all(a.status == "completed" for a in record.assessments)
        assert all(case.action is not None for case in record.cases)


@pytest.mark.parametrize("name", sorted(AGENTS))
@pytest.mark.parametrize(("least", "most"), [(16, 16), (1, 1), (3, 5)])
def test_probe_limits_are_kept(name, least, most):
    setting = Setting(
        name="forced", drifts=True, cases="controlled", evidence="rewritten", probing="forced",
        min_probes=least,
    )  # fmt: skip
    record = run(world("disjunctive_sufficiency"), setting, by(name), Protocol(max_probes=most))
    assert not record.faults


def test_knowing_more_earns_more():
    """In the mean of one episode of each family: random < one_factor < scientist <= oracle."""
    setting = SETTINGS["default"]
    means = [
        np.mean([accuracy(run(world(f), setting, by(name))) for f in FAMILIES])
        for name in ("random", "one_factor", "scientist")
    ]
    assert abs(means[0]) < 0.15
    assert means[0] + 0.2 < means[1] < means[2] - 0.2
    assert means[2] <= 1.0


def test_the_scientist_tells_what_changed():
    """Mostly: it checks eight points a window, and may see a change late or in part."""
    records = [run(world(family), SETTINGS["default"], by("scientist")) for family in FAMILIES]

    assert np.mean([metrics.change_f1(record) for record in records]) >= 0.7
    for record in records:
        assert record.assessments[0].directions == record.truth["pre"]


def test_replies_are_the_json_that_a_model_would_send():
    replies = []
    run(
        world(FAMILIES[1]), SETTINGS["forced_probe"],
        lambda m: (replies.append(by("scientist")(m)), replies[-1])[1],
    )  # fmt: skip
    keys = {frozenset(json.loads(text)) for text in replies}
    assert keys == {
        frozenset(("tool", "arguments")), frozenset(("relevant_fields", "field_directions"))
    }  # fmt: skip
