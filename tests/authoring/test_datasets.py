"""Datasets: built again byte for byte, anywhere; and refused when a file is not what it was."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

import adaexplore
from adaexplore.authoring import builds, datasets, domain_files
from adaexplore.authoring.datasets import Recipe
from adaexplore.errors import DatasetError

FEATURES = (
    "AVX512F", "AVX512CD", "AVX512_SKX", "AVX512_CLX", "AVX512_CNL", "AVX512_ICL", "AVX2", "FMA3",
)  # fmt: skip
"""What older versions of numpy call the processor features that change its last bits."""
SPLIT = {"name": "test", "seed": 3, "episodes_each": 1}
SMALL = {
    "name": "small", "id_prefix": "small", "domains": ["hospital_bed_flow"], "splits": [SPLIT],
}  # fmt: skip
REBUILD = """
import hashlib, json, sys
import numpy as np
from adaexplore.authoring import builds, datasets
files = builds.Builder().build(datasets.Recipe(**json.loads(sys.argv[1])))
print(json.dumps({
    "digests": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    "features": np.show_config(mode="dicts")["SIMD Extensions"].get("found", []),
    "hash": hash("adaexplore"),
}))
"""


def digests(files):
    return {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}


def rebuild(**environment):
    """What another process makes of the small recipe, and which features its numpy found."""
    root = Path(adaexplore.__file__).parent.parent
    command = [sys.executable, "-c", REBUILD, json.dumps(SMALL)]
    env = {**os.environ, "PYTHONPATH": str(root), **environment}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def small():
    """The files of the small recipe, built in this process."""
    return builds.Builder().build(Recipe(**SMALL))


@pytest.fixture
def folder(tmp_path):
    """A copy of the packaged dataset that a test may damage."""
    return Path(shutil.copytree(datasets.PACKAGED / "first", tmp_path / "copy"))


# -- building ----------------------------------------------------------------------------------


def test_the_packaged_dataset_is_what_its_recipe_makes():
    """Byte for byte, rejections and digests included."""
    source = datasets.PACKAGED / "first"
    files = builds.Builder().build(datasets.read_recipe(source / "recipe.yaml"))

    assert {"test.jsonl", "manifest.json"} == set(files)
    for name, data in files.items():
        assert (source / name).read_bytes() == data


def test_another_process_on_another_processor_gives_the_same_bytes(small):
    """No order of a set reaches the files, nor a last digit that vector instructions decide.

    Another hash seed, and numpy's and OpenBLAS' vector instructions off; names of instructions
    that numpy or the processor lacks are ignored.
    """
    dispatched = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    found = rebuild(
        PYTHONHASHSEED="2" if os.environ.get("PYTHONHASHSEED") == "1" else "1",
        NPY_DISABLE_CPU_FEATURES=" ".join({*FEATURES, *dispatched}),
        OPENBLAS_CORETYPE="Prescott",
    )

    assert [] == found["features"]
    assert hash("adaexplore") != found["hash"]
    assert digests(small) == found["digests"]


def test_a_built_dataset_loads(small, tmp_path):
    """What `build` writes, `load` accepts, with the recipe's number of episodes for each family."""
    builds.save(tmp_path, small)
    loaded = datasets.load(str(tmp_path))

    assert ("small", "test") == (loaded.name, loaded.split)
    families = [world.episode.pre.family for world in loaded.worlds]
    assert 4 == len(families) == len(set(families))
    assert ["small-001", "small-002", "small-003", "small-004"] == [
        world.episode.episode_id for world in loaded.worlds
    ]


def test_the_manifest_states_sample_size_and_quantile_method(dataset):
    """What a reader needs to calibrate again."""
    assert {"sample_size": 6000, "quantile_method": "linear"} == dataset.manifest["calibration"]
    assert 6000 == dataset.manifest["parameters"]["pool_size"]


# -- loading -----------------------------------------------------------------------------------


def refusal(target):
    """The one line that a load is refused with."""
    with pytest.raises(DatasetError) as caught:
        datasets.load(str(target))
    message = str(caught.value)
    assert "\n" not in message
    return message


def edit_manifest(folder, **changed):
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))


def test_a_copy_is_the_same_dataset(folder, dataset):
    """The digest depends on the files, not on where they lie."""
    loaded = datasets.load(str(folder))

    assert dataset.digest == loaded.digest
    assert dataset.worlds == loaded.worlds


def test_unknown_datasets_name_the_known_ones():
    message = refusal("frist")

    assert "unknown dataset 'frist'" in message
    assert "first" in message.replace("frist", "")


def test_an_edited_episode_file_is_refused(folder):
    """One digit is enough."""
    path = folder / "test.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"change_batch":5', b'"change_batch":6', 1))
    message = refusal(folder)

    assert message.startswith(f"{path}: expected sha256 ")
    assert "the file was edited" in message


def test_an_edited_domain_file_is_refused(folder, dataset, tmp_path, monkeypatch):
    """A comment is enough: the domains are part of the dataset."""
    domains = Path(shutil.copytree(domain_files.PACKAGED, tmp_path / "domains"))
    monkeypatch.setattr(domain_files, "PACKAGED", domains)
    assert dataset.digest == datasets.load(str(folder)).digest
    path = domains / f"{dataset.worlds[0].domain.domain_id}.yaml"
    path.write_text(path.read_text() + "# reworded\n")

    assert refusal(folder).startswith(f"{path}: expected sha256 ")


def test_a_missing_episode_file_is_named(folder):
    (folder / "test.jsonl").unlink()

    assert f"{folder / 'test.jsonl'}: cannot be read: No such file" in refusal(folder)


@pytest.mark.parametrize("version", [0, 1, 3, "2", None])
def test_a_manifest_of_another_schema_is_refused(folder, version):
    edit_manifest(folder, schema_version=version)
    message = refusal(folder)

    assert f"{folder / 'manifest.json'}: expected schema_version 2, got {version!r}" == message


def test_a_schema_with_other_keys_is_told_apart(folder):
    """The version is read first: a later schema need not have the keys of this one."""
    (folder / "manifest.json").write_text('{"schema_version": 3, "files": []}')

    assert "expected schema_version 2, got 3" in refusal(folder)


SPLITS = '"name": "x", "splits": {"test": {"episodes": 1}}, "sha256": '


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "3", '{"name": "first"}', '{"schema_version": 2, "name": "x"}',
     '{"schema_version": 2, "name": "x", "splits": {}, "sha256": {}}',
     '{"schema_version": 2, "name": "x", "splits": [], "sha256": {}}',
     '{"schema_version": 2, ' + SPLITS + "{}}",
     '{"schema_version": 2, ' + SPLITS + "3}",
     '{"schema_version": 2, ' + SPLITS + '{"test.jsonl": "", "../secret.jsonl": ""}}',
     '{"schema_version": 2, ' + SPLITS.replace("1", '"1"') + '{"test.jsonl": ""}}'],
)  # fmt: skip
def test_what_is_no_manifest_is_refused(folder, text):
    """Also one that says nothing of a split's file, or of files elsewhere: nothing is unchecked."""
    (folder / "manifest.json").write_text(text)

    assert refusal(folder).startswith(f"{folder / 'manifest.json'}: not a dataset manifest: ")


@pytest.mark.parametrize("digest", [5, None, ["a"], {"a": 1}])
def test_a_digest_that_is_no_text_is_refused(folder, digest):
    sha256 = json.loads((folder / "manifest.json").read_text())["sha256"]
    edit_manifest(folder, sha256={**sha256, "test.jsonl": digest})

    assert f"{folder / 'test.jsonl'}: expected sha256 " in refusal(folder)


def test_unknown_splits_name_the_known_ones(folder):
    with pytest.raises(DatasetError, match="has no split 'tset': expected one of test"):
        datasets.load(str(folder), "tset")


def test_a_manifest_that_counts_other_episodes_is_refused(folder, dataset):
    count = len(dataset.worlds)
    edit_manifest(folder, splits={"test": {"episodes": count + 1}})

    assert f"expected {count + 1} episodes in split test, got {count}" in refusal(folder)


def test_an_interrupted_build_is_told_from_a_broken_folder(tmp_path):
    (tmp_path / ".build").mkdir()

    assert "was interrupted; run the same 'adaexplore dataset build' again" in refusal(tmp_path)


def test_a_folder_without_a_manifest_is_refused(tmp_path):
    assert "manifest.json: not a dataset manifest" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'{"episode_id"', b'{"id"'),
        (b'"domain_id":"', b'"domain_id":"no_'),
        (b'"iid_cases":[[[', b'"iid_cases":[[[1,'),
        (b'"direction":', b'"heading":'),
        (b"}\n", b"\n"),
    ],
)
def test_a_line_that_is_no_episode_is_named(folder, old, new):
    """Even where the manifest vouches for the file: the file and the line are named."""
    path = folder / "test.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    assert old in lines[0]
    path.write_bytes(b"".join([lines[1], lines[0].replace(old, new), *lines[2:]]))
    sha256 = json.loads((folder / "manifest.json").read_text())["sha256"]
    edit_manifest(
        folder, sha256={**sha256, path.name: hashlib.sha256(path.read_bytes()).hexdigest()}
    )

    assert refusal(folder).startswith(f"{path} line 2: not an episode: ")


# -- recipes -----------------------------------------------------------------------------------


RECIPE = yaml.safe_dump(SMALL)


def with_split(**split):
    return yaml.safe_dump(
        {**SMALL, "splits": [SPLIT, {"name": "lite", "episodes_each": 1, **split}]}
    )


@pytest.mark.parametrize(
    "text",
    ["", "name: x", "[1, 2", "\x00", RECIPE + "family: additive\n",
     RECIPE.replace("seed: 3", "seed: three"),
     RECIPE.replace("episodes_each: 1", "episodes_each: 0"),
     RECIPE.replace("- hospital_bed_flow", "- hospital_bed_flow\n- hospital_bed_flow"),
     with_split(), with_split(seed=1, part_of="test"), with_split(part_of="dev"),
     with_split(part_of="test", episodes_each=2)],
)  # fmt: skip
def test_what_is_no_recipe_is_refused(tmp_path, text):
    """Unknown keys, wrong types, no episodes, a domain twice, splits that cannot be made."""
    assert text != RECIPE
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    with pytest.raises(DatasetError) as caught:
        datasets.read_recipe(path)

    assert str(caught.value).startswith(f"{path}: not a dataset recipe: ")
    assert "\n" not in str(caught.value)


def test_a_missing_recipe_is_named(tmp_path):
    with pytest.raises(DatasetError, match=r"recipe.yaml: not a dataset recipe: .*No such file"):
        datasets.read_recipe(tmp_path / "recipe.yaml")


def test_a_recipe_with_an_unknown_domain_names_the_known_ones():
    with pytest.raises(DatasetError, match=r"unknown domain 'moon': expected one of .*, "):
        builds.Builder().build(Recipe(**{**SMALL, "domains": ["moon"]}))
