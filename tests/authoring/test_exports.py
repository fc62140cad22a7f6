"""Exports and the form of an episode: what goes out comes back, and the schema is the check."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import adaexplore
from adaexplore.authoring import datasets, episode_forms, exports
from adaexplore.benchmark.world import episodes
from adaexplore.errors import DatasetError

SPLITS = [(name, split) for name in ("first", "adaexplore-v1")
          for split in datasets.read_manifest(datasets.folder_of(name))["splits"]]  # fmt: skip


@pytest.mark.parametrize(("name", "split"), SPLITS)
def test_every_line_has_the_published_form(name, split):
    """Which is closed: a key more or less is a fault (below)."""
    text = (datasets.folder_of(name) / f"{split}.jsonl").read_text()

    assert [] == [f for line in text.splitlines() for f in episode_forms.faults(json.loads(line))]


def test_the_published_schema_is_the_one_that_checks():
    assert exports.schema_file() == (datasets.PACKAGED / "episode.schema.json").read_bytes()


def test_every_object_of_the_schema_is_closed_and_complete():
    schema = episode_forms.schema()
    objects = [schema, *schema["$defs"].values()]

    assert {"Slot", "Rule", "Calibration", "Transition", "Review"} == set(schema["$defs"])
    for node in objects:
        assert node["additionalProperties"] is False
        assert set(node["required"]) == set(node["properties"])


CHANGES = [
    (lambda d: d.pop("review"), "review: "),
    (lambda d: d.update(hint="x"), "hint: "),
    (lambda d: d["pre"].update(name="x"), "pre.name: "),
    (lambda d: d["post"]["slots"][1].pop("weight"), "post.slots.1.weight: "),
    (lambda d: d["cases"].pop(), "cases: "),
    (lambda d: d["cases"][3][2].append(1.0), "cases.3.2: "),
    (lambda d: d["cases"][3][2].__setitem__(0, "many"), "cases.3.2.0"),
    (lambda d: d["visible_fields"].pop(), "visible_fields: "),
    (lambda d: d.update(change_batch=12), "change_batch: "),
    (lambda d: d["pre"].update(family="sum"), "pre.family: "),
]


@pytest.mark.parametrize(("change", "path"), CHANGES)
def test_a_line_of_another_form_is_named_with_its_path(world, change, path):
    document = json.loads(json.dumps(episodes.to_document(world)))
    assert [] == list(episode_forms.faults(document))
    change(document)
    found = list(episode_forms.faults(document))

    assert found
    assert all(fault.startswith(path) for fault in found)


@pytest.mark.parametrize("form", exports.FORMATS)
def test_parquet_gives_equal_episodes(form, tmp_path):
    """Every split, in both layouts: documents read back are the episodes that went out."""
    files = exports.export("first", form, tmp_path)
    (parquet,) = (path for path in files if path.suffix == ".parquet")
    dataset = datasets.load("first")
    read = exports.read_parquet(parquet)

    assert [w.episode for w in dataset.worlds] == [
        episodes.from_document(document, world.domain)
        for document, world in zip(read, dataset.worlds, strict=True)
    ]


def test_a_review_survives_the_round_trip(world):
    """Also the scores that no shipped episode has."""
    document = episodes.to_document(world)
    scores = {"field_realism": 4.1, "rule_change_realism": 3.0, "distractor_quality": 5.0}
    manifest = {"name": "x", "canary": "y"}
    path = Path("one.parquet")
    path.write_bytes(exports.parquet([{**document, "review": scores}, document], manifest))

    assert [scores, None] == [row["review"] for row in exports.read_parquet(path)]


def test_the_hugging_face_folder_is_complete(tmp_path):
    """Card header, one file a split where the header says, schema, licence, canary."""
    exports.export("adaexplore-v1", "hf", tmp_path)
    _, header, page = (tmp_path / "README.md").read_text().split("---\n", 2)
    card = yaml.safe_load(header)
    files = {entry["split"]: entry["path"] for entry in card["configs"][0]["data_files"]}

    assert "cc-by-4.0" == card["license"]
    assert {"test", "lite", "dev"} == set(files)
    assert all((tmp_path / path).is_file() for path in files.values())
    assert {"README.md", "LICENSE", "episode.schema.json", "data"} == {
        path.name for path in tmp_path.iterdir()
    }
    assert datasets.CANARY in page


def test_the_canary_never_changes_and_stands_everywhere():
    """Corpora are searched for it: in manifests, on the datasheet, on cards (above)."""
    root = Path(__file__).parent.parent.parent

    assert "adaexplore canary 5c1f0c5e-6f0b-4a39-9d5c-2b7f61d0a8e4" == datasets.CANARY
    assert datasets.CANARY in (root / "docs" / "datasheet.md").read_text()
    for name in datasets.names():
        assert datasets.CANARY == datasets.load(name).manifest["canary"]


def test_importing_the_package_imports_nothing_else():
    """So that `import adaexplore` stays cheap, and the core can be used without the platform."""
    check = (
        "import sys, adaexplore; print([m for m in ('numpy', 'yaml', 'hydra') if m in sys.modules])"
    )
    root = Path(adaexplore.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", check], env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert "[]\n" == done.stdout


def test_datasets_load_in_one_line():
    lite = adaexplore.load_dataset("adaexplore-v1", split="lite")
    whole = adaexplore.load_dataset("adaexplore-v1")

    assert (40, 240) == (len(lite.worlds), len(whole.worlds))
    assert lite.digest == whole.digest
    assert lite.worlds == whole.worlds[:40]
    with pytest.raises(DatasetError, match="has no split 'train': expected one of test, lite, dev"):
        adaexplore.load_dataset("adaexplore-v1", split="train")
