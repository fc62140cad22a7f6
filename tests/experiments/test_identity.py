"""Two things that differ in meaning never share an id; what does not change a result never changes it."""

import dataclasses

import pytest

from adaexplore import configure
from adaexplore.benchmark.game.protocol import Protocol
from adaexplore.benchmark.game.settings import Setting
from adaexplore.experiments import grids, identity
from adaexplore.models.profiles import ScriptedProfile

PROFILE = ScriptedProfile(kind="scripted", agent="random", version=1)
SETTING = Setting(
    name="default",
    drifts=True,
    cases="controlled",
    evidence="rewritten",
    probing="optional",
    min_probes=1,
)
OTHER = {
    "name": "other", "drifts": False, "cases": "iid", "evidence": "full", "probing": "forced", "min_probes": 2,
    "batches": 3, "max_probes": 8, "max_expressions": 4, "repair_scope": "decision", "regenerations": 0,
    "reply_parsing": "lenient", "max_reply_chars": 10, "agent": "oracle", "version": 2,
}  # fmt: skip


def cell_id(profile=PROFILE, setting=SETTING, seed=0, protocol=Protocol(), dataset="d"):
    semantic = identity.semantic(profile, setting, seed, protocol=protocol, dataset_digest=dataset)
    return identity.cell_id(semantic)


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Setting)])
def test_every_field_of_a_setting_is_semantic(name):
    assert cell_id() != cell_id(setting=dataclasses.replace(SETTING, **{name: OTHER[name]}))


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Protocol)])
def test_every_field_of_the_protocol_is_semantic(name):
    assert cell_id() != cell_id(protocol=dataclasses.replace(Protocol(), **{name: OTHER[name]}))


def test_episodes_played_whole_keep_the_ids_from_before_they_could_be_shortened():
    semantic = identity.semantic(PROFILE, SETTING, 0, protocol=Protocol(), dataset_digest="d")

    assert {
        "max_probes": 16, "max_expressions": 32, "repair_scope": "window", "regenerations": 1,
        "reply_parsing": "strict", "max_reply_chars": 200_000,
    } == semantic["protocol"]  # fmt: skip


@pytest.mark.parametrize("name", ["agent", "version"])
def test_what_a_scripted_model_answers_is_semantic(name):
    assert cell_id() != cell_id(profile=dataclasses.replace(PROFILE, **{name: OTHER[name]}))


def test_seed_and_dataset_are_semantic():
    assert 3 == len({cell_id(), cell_id(seed=1), cell_id(dataset="e")})


def test_versions_and_prompts_are_semantic():
    semantic = identity.semantic(PROFILE, SETTING, 0, protocol=Protocol(), dataset_digest="d")
    for key in ("identity_version", "protocol_version", "prompts"):
        assert identity.cell_id(semantic) != identity.cell_id({**semantic, key: "another"})


@pytest.mark.parametrize(
    "override",
    [
        "backend.concurrency=3", "backend.processes=2", "tracking=none", "tracking.experiment=other",
        "runs_dir=elsewhere", "name=mine", "dataset.limit=1",
    ],
)  # fmt: skip
def test_transport_is_not_semantic(override):
    """How, where and how much is played changes no cell's id."""
    plain = grids.expand(configure.sweep(["+grid=smoke"]), "d")
    changed = grids.expand(configure.sweep(["+grid=smoke", override]), "d")

    assert [cell.cell_id for cell in plain] == [cell.cell_id for cell in changed]


def test_canonical_form_ignores_the_order_of_keys():
    assert identity.digest({"a": 1, "b": [1, 2]}) == identity.digest({"b": [1, 2], "a": 1})
    assert identity.digest({"a": 1}) != identity.digest({"a": 1.5})


def test_differing_names_nested_keys():
    before = {"model": {"version": 1, "agent": "a"}, "seed": 0}
    after = {"model": {"version": 2, "agent": "a"}, "seed": 0, "new": 1}

    assert ["model.version", "new"] == identity.differing(before, after)


def test_ids_are_stable():
    """A golden id: if this fails, every stored sweep would lose its cells; raise IDENTITY_VERSION."""
    semantic = {"identity_version": 1, "model": {"agent": "random"}, "seed": 0}

    assert "50c3b9fa6b36ee0f609d9d3fc14c9e28" == identity.cell_id(semantic)
