"""A frozen document is complete and plain, and whatever differs from it is told by its name."""

import shutil
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from adaexplore import configure, provenance, publish
from adaexplore.authoring import datasets
from adaexplore.errors import ConfigError
from adaexplore.experiments import drifts, frozen, grids
from sweep_copies import FREEZE_WORDS, edited

ROOT = Path(__file__).parent.parent
DIGESTS = {
    "dataset": "d" * 64,
    "prompts": "p" * 64,
    "protocol": 1,
    "identity": 1,
    "code": {"commit": "c" * 40, "dirty": False, "source": "s" * 64, "version": "1"},
    "lock": "l" * 64,
    "python": "3.11.7",
    "packages": {"numpy": "2", "scipy": "1"},
    "image": None,
    "models": {"qwen": {"weights": "w" * 40, "chat_template": None}},
}
OTHER = {
    "dataset": "0" * 64, "prompts": "0" * 64, "protocol": 2, "identity": 2, "lock": None, "python": "3.12.1",
    "packages": {"numpy": "3", "scipy": "1"}, "image": "sha256:1", "models": {},
    "code": {**DIGESTS["code"], "source": "0" * 64},
}  # fmt: skip


@pytest.fixture(scope="module")
def resolved():
    """A configuration with its cells."""
    found = configure.sweep(FREEZE_WORDS)
    dataset = datasets.load(found.dataset.name, found.dataset.split)
    return found, grids.expand(found, dataset.digest)


@pytest.fixture
def document(resolved):
    """Its frozen document, read."""
    found, cells = resolved
    return frozen.read(frozen.document("mine", found, cells, DIGESTS), "f.yaml")


def names(differences):
    return [difference.name for difference in differences]


# -- the document ------------------------------------------------------------------------------


def test_a_document_says_all_that_it_was_made_of(resolved, document):
    found, cells = resolved

    assert ("mine", found, DIGESTS) == (document.sweep, document.config, document.digests)
    assert {
        cell.label: {"cell_id": cell.cell_id, "semantic": cell.semantic} for cell in cells
    } == document.cells


def test_a_document_is_plain_yaml_without_aliases(resolved):
    found, cells = resolved
    text = frozen.document("mine", found, cells, DIGESTS).decode()

    assert "*id" not in text
    assert "!!" not in text
    assert {"frozen", "sweep", "digests", "config", "cells"} == set(yaml.safe_load(text))


@hypothesis_settings(max_examples=10)
@given(st.dictionaries(st.text(max_size=5), st.text() | st.floats(allow_nan=False) | st.integers()))
def test_any_digest_is_read_back_as_it_was(resolved, packages):
    found, cells = resolved
    digests = {**DIGESTS, "packages": packages}

    assert (
        packages
        == frozen.read(frozen.document("mine", found, cells, digests), "f").digests["packages"]
    )


def test_what_a_launch_would_freeze_has_every_digest(resolved):
    found, cells = resolved
    made = publish.digests(found, cells[0].semantic["dataset"])

    assert set(frozen.NAMES) - {"cells"} == set(made)
    assert provenance.source_digest(provenance.PACKAGE) == made["code"]["source"]
    assert cells[0].semantic["dataset"] == made["dataset"]
    assert cells[0].semantic["prompts"] == made["prompts"]


def test_the_digest_of_sources_sees_names_and_bytes_and_nothing_else(tmp_path):
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)
    (package / "a.py").write_text("a = 1")
    (package / "inner" / "b.py").write_text("b = 2")
    first = provenance.source_digest(package)
    (package / "notes.txt").write_text("not code")

    assert first == provenance.source_digest(package)
    (package / "a.py").rename(package / "c.py")
    assert first != provenance.source_digest(package)
    (package / "c.py").rename(package / "a.py")
    (package / "a.py").write_text("a = 2")
    assert first != provenance.source_digest(package)


# -- what differs ------------------------------------------------------------------------------


def test_nothing_differs_from_itself(resolved, document):
    assert [] == drifts.differences(document, resolved[1], DIGESTS)


@pytest.mark.parametrize("name", OTHER)
def test_each_digest_is_told_by_its_name_alone(resolved, document, name):
    here = {**DIGESTS, name: OTHER[name]}

    assert [name] == names(drifts.differences(document, resolved[1], here))


def test_all_that_differ_are_named_at_once_with_both_values(resolved, document):
    found = drifts.differences(document, resolved[1], OTHER)
    with pytest.raises(ConfigError) as refused:
        drifts.require_same(found, ["python"], "f.yaml")

    assert sorted(OTHER) == sorted(names(found))
    message = str(refused.value)
    assert "dataset: frozen dddddddddddd..., here 000000000000..." in message
    assert "lock: frozen llllllllllll..., here unknown" in message
    assert "python: frozen" not in message
    assert all(f"--allow-drift={name}" in message for name in OTHER if name != "python")


@pytest.mark.parametrize(
    ("frozen_code", "here_code", "differs"),
    [
        ({}, {}, False),
        ({"commit": None, "dirty": None}, {}, False),
        ({}, {"commit": None, "dirty": None}, False),
        ({}, {"commit": "0" * 40}, True),
        ({"dirty": True}, {}, True),
        ({}, {"dirty": True}, True),
        ({"dirty": True}, {"dirty": True}, True),
        ({"commit": None}, {"source": "0" * 64}, True),
        ({"version": "0"}, {}, False),
    ],
)
def test_code_is_told_by_sources_commit_and_changes(resolved, frozen_code, here_code, differs):
    found, cells = resolved
    before = {**DIGESTS, "code": {**DIGESTS["code"], **frozen_code}}
    here = {**DIGESTS, "code": {**DIGESTS["code"], **here_code}}
    document = frozen.read(frozen.document("mine", found, cells, before), "f.yaml")

    assert (["code"] if differs else []) == names(drifts.differences(document, cells, here))


def test_weights_that_were_not_here_when_it_was_frozen_pin_nothing(resolved, document):
    known = {"qwen": {"weights": "w" * 40, "chat_template": "t"}}
    other = {"qwen": {"weights": "x" * 40, "chat_template": None}}

    assert [] == drifts.differences(document, resolved[1], {**DIGESTS, "models": known})
    assert ["models"] == names(
        drifts.differences(document, resolved[1], {**DIGESTS, "models": other})
    )


def test_cells_that_no_digest_explains_are_told_with_their_keys(resolved, document):
    found, cells = resolved
    changed = configure.sweep([*FREEZE_WORDS, "protocol.max_probes=4"])
    fewer = configure.sweep([*FREEZE_WORDS, "models=[random]"])
    digest = cells[0].semantic["dataset"]
    (told,) = drifts.differences(document, grids.expand(changed, digest), DIGESTS)
    (less,) = drifts.differences(document, grids.expand(fewer, digest), DIGESTS)
    explained = drifts.differences(
        document, grids.expand(found, "0" * 64), {**DIGESTS, "dataset": "0" * 64}
    )

    assert ("cells", "4 cells (changed: protocol.max_probes)") == (told.name, told.frozen)
    assert "only there: constant/default/0, constant/stationary/0" in less.frozen
    assert ["dataset"] == names(explained)


def test_a_key_of_a_cell_is_explained_only_by_a_digest_that_differs(resolved, document):
    cells = grids.expand(resolved[0], "0" * 64)

    assert ["cells"] == names(drifts.differences(document, cells, DIGESTS))


def test_weights_that_were_changed_in_their_folder_are_a_drift_and_another_cell(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights.bin").write_bytes(b"one")
    (tmp_path / "template.jinja").write_text("one")
    profile = "+profiles.qwen3_5_9b."
    words = ["+grid=smoke", "models=[qwen3_5_9b]", "tracking=none", f"{profile}model={tmp_path}/model",
             f"{profile}weights.chat_template={tmp_path}/template.jinja"]  # fmt: skip
    found = configure.sweep(words)
    cells = grids.expand(found, "d" * 64)
    models = {"models": provenance.model_contents(found)}
    before = frozen.read(frozen.document("m", found, cells, DIGESTS | models), "f.yaml")
    assert found == frozen.renewed(before.config)

    (tmp_path / "model" / "weights.bin").write_bytes(b"two")
    now = frozen.renewed(before.config)
    models = {"models": provenance.model_contents(now)}
    (told,) = drifts.differences(before, grids.expand(now, "d" * 64), DIGESTS | models)
    shutil.rmtree(tmp_path / "model")

    assert "models" == told.name
    assert cells[0].cell_id != grids.expand(now, "d" * 64)[0].cell_id
    assert found == frozen.renewed(before.config)  # what is not here is believed


def test_only_what_differs_may_be_allowed(resolved, document):
    found = drifts.differences(document, resolved[1], {**DIGESTS, "lock": None})

    assert found == drifts.require_same(found, ["lock"], "f.yaml")
    with pytest.raises(ConfigError, match="python does not differ; leave the option out"):
        drifts.require_same(found, ["lock", "python"], "f.yaml")
    with pytest.raises(ConfigError, match="expected one of dataset, prompts"):
        drifts.require_same(found, ["lock", "clock"], "f.yaml")


# -- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(frozen=2), "expected a frozen sweep of format 1, got 2"),
        (lambda d: d.clear(), "expected a frozen sweep of format 1, got None"),
        (lambda d: d.pop("cells"), "damaged or edited (cells)"),
        (lambda d: d["digests"].pop("lock"), "damaged or edited (digests.lock)"),
        (lambda d: d["digests"].update(models=["a"]), "damaged or edited (digests.models)"),
        (lambda d: d["digests"].update(code="abc"), "damaged or edited (digests.code)"),
        (lambda d: d["cells"]["random/default/0"]["semantic"].update(seed=7),
         "damaged or edited (cells.random/default/0)"),
        (lambda d: d["cells"].update(x=None), "damaged or edited (cells.x)"),
        (lambda d: d["config"].update(speed=1), "configuration key 'speed': there is no such key"),
        (lambda d: d["config"].pop("seeds"), "configuration key 'seeds': expected a value"),
    ],
)  # fmt: skip
def test_a_document_that_is_none_is_refused_in_one_line(resolved, change, message):
    found, cells = resolved
    data = edited(frozen.document("mine", found, cells, DIGESTS), change)
    with pytest.raises(ConfigError) as refused:
        frozen.read(data, "f.yaml")

    assert str(refused.value).startswith(f"f.yaml: {message}")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "data", [b"", b"a: [", b"\xff\xfe", b"!!python/object:os.system {}", b"- 1", b"[" * 9999]
)
def test_what_is_no_yaml_of_ours_is_refused(data):
    with pytest.raises(ConfigError, match="expected a frozen sweep"):
        frozen.read(data, "f.yaml")
