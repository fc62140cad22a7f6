"""Checks of datasets: the shipped ones have no faults, and every kind of fault is found and named."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from adaexplore.authoring import builds, checks, datasets, domain_files
from adaexplore.benchmark.world import episodes
from adaexplore.benchmark.world.episodes import World


@pytest.mark.parametrize("name", datasets.names())
def test_shipped_datasets_are_faultless(name):
    """Digests, form, authorship, cases, separation of splits: all episodes."""
    assert [] == list(checks.dataset_faults(datasets.folder_of(name)))


def test_shipped_domains_are_faultless():
    """All ten."""
    files = sorted(domain_files.PACKAGED.glob("*.yaml"))

    assert 10 == len(files)
    assert [] == list(checks.domain_faults(files))


# -- domain files ------------------------------------------------------------------------------


def test_every_fault_of_every_file_is_listed_at_once():
    """Two files with three faults, one that is no YAML, one under another name: all in one run."""
    document = yaml.safe_load((domain_files.PACKAGED / "water_treatment.yaml").read_text())
    Path("copied.yaml").write_text(yaml.safe_dump(document))
    document["fields"][0]["effect_strength"] = 3.0
    document["fields"][1]["populations"]["low"] = [40.0, 40.0]
    document["events"][0]["reversed"] = "flow_rat"
    Path("water_treatment.yaml").write_text(yaml.safe_dump(document))
    Path("torn.yaml").write_text("fields: [")
    Path("shape.yaml").write_text("title: x\ncolour: red\n")
    files = [Path(f"{name}.yaml") for name in ("copied", "water_treatment", "torn", "shape")]
    found = list(checks.domain_faults(files))

    first, second = (document["fields"][i]["field_id"] for i in (0, 1))
    for start in (
        "copied.yaml: domain_id: expected 'copied'",
        f"water_treatment.yaml: fields.{first}.effect_strength: 3.0 is outside",
        f"water_treatment.yaml: fields.{second}.populations.low: expected alpha, beta",
        "water_treatment.yaml: events.",
        "torn.yaml: not a readable YAML file",
        "shape.yaml: role: Field required",
        "shape.yaml: colour: Unexpected keyword argument (got 'red')",
    ):
        assert any(fault.startswith(start) for fault in found), (start, found)
    assert all("\n" not in fault for fault in found)


# -- episodes ----------------------------------------------------------------------------------


def altered(world, **changed):
    return World(domain=world.domain, episode=replace(world.episode, **changed))


def first_case(world, row):
    (first, *rest), *others = world.episode.cases
    assert first != row
    return altered(world, cases=((row, *rest), *others))


def turned(rule):
    slot = replace(rule.slots[0], direction=-rule.slots[0].direction)
    return replace(rule, slots=(slot, *rule.slots[1:]))


def shifted(world):
    first = world.episode.cases[0][0]
    return first_case(world, (-100, *first[1:]))


def repeated(world):
    return first_case(world, world.episode.cases[3][3])


def swapped(world):
    """A flip case and another one change places between two batches."""
    one, two, *rest = world.episode.cases
    rules = (world.episode.pre, world.episode.post)
    flips = [
        [a.index(max(a)) != b.index(max(b)) for a, b in zip(*pair, strict=True)]
        for pair in ([world.utilities(r, batch) for r in rules] for batch in (one, two))
    ]
    i, j = flips[0].index(True), flips[1].index(False)
    first, second = list(one), list(two)
    first[i], second[j] = second[j], first[i]
    return altered(world, cases=(tuple(first), tuple(second), *rest))


def constant(world):
    """All batches hold cases of one best action as far as there are any."""
    episode = world.episode
    rows = [row for batch in episode.cases for row in batch]
    values = world.utilities(episode.pre, rows)
    order = sorted(range(len(rows)), key=lambda n: values[n][0], reverse=True)
    ranked = [rows[n] for n in order]
    return altered(world, cases=tuple(tuple(ranked[i : i + 8]) for i in range(0, 96, 8)))


def renamed(world):
    return altered(world, transition=replace(world.episode.transition, trigger_event="Rain."))


ALTERED = [
    (lambda w: altered(w, change_batch=2), "change_batch: expected one of (5, 6, 7, 8), got 2"),
    (lambda w: altered(w, visible_fields=w.episode.visible_fields[:1] * 8), "8 different fields"),
    (renamed, "is not the event that the domain has under this id"),
    (lambda w: altered(w, post=turned(w.episode.post)), "post: is not the rule before the change"),
    (lambda w: altered(w, pre=turned(w.episode.pre), post=turned(w.episode.post)), "direction"),
    (lambda w: altered(w, pre=replace(w.episode.pre, band=0.5)), "post: is not the rule before"),
    (shifted, "cases 1: "),
    (repeated, "cases: the same case stands there more than once"),
    (swapped, "cases: batch 1 has 3 flip cases, expected 4"),
    (constant, "cases: a constant action reaches CA above 0.2 in a phase"),
]


@pytest.mark.parametrize(("change", "message"), ALTERED)
def test_each_breach_of_acceptance_is_named_with_its_episode(world, change, message):
    assert [] == checks.episode_faults(world)
    found = checks.episode_faults(change(world))

    assert any(message in fault for fault in found), found
    assert all(fault.startswith(f"{world.episode.episode_id}: ") for fault in found)


def test_a_score_at_a_boundary_is_found(world):
    """The calibration is moved so that a case of the first batch lies on its median."""
    row = world.episode.cases[0][0]
    (score,) = world.scores(world.episode.pre, [row])
    fitted = world.episode.calibration
    width = fitted.q50 - fitted.q25 if score < 0 else fitted.q75 - fitted.q50
    move = float(score) * 2 * width
    moved = replace(fitted, q25=fitted.q25 + move, q50=fitted.q50 + move, q75=fitted.q75 + move)
    found = checks.episode_faults(altered(world, calibration=moved))

    assert any("lies within 0.01 of a boundary" in fault for fault in found), found


# -- folders -----------------------------------------------------------------------------------


SPLITS = [
    {"name": "test", "seed": 3, "episodes_each": 2},
    {"name": "lite", "part_of": "test", "episodes_each": 1},
    {"name": "dev", "seed": 3, "episodes_each": 1, "apart_from": "test"},
]


@pytest.fixture(scope="module")
def small():
    """The files of a dataset with every kind of split."""
    recipe = datasets.Recipe(
        name="small", id_prefix="s", domains=["water_treatment"], splits=SPLITS
    )
    return builds.Builder().build(recipe)


@pytest.fixture
def folder(small, tmp_path):
    """A faultless dataset folder that a test may damage."""
    builds.save(tmp_path / "small", small)
    assert [] == list(checks.dataset_faults(tmp_path / "small"))
    return tmp_path / "small"


def vouch(folder):
    """Make the manifest say what the files now are."""
    path = folder / datasets.MANIFEST
    manifest = json.loads(path.read_text())
    for file in folder.glob("*.jsonl"):
        manifest["sha256"][file.name] = hashlib.sha256(file.read_bytes()).hexdigest()
    path.write_text(json.dumps(manifest))


def test_digests_lines_and_counts_are_all_told_at_once(folder):
    """A cut file, a line of another form and an episode twice: three kinds of fault in one run."""
    lite, dev = folder / "lite.jsonl", folder / "dev.jsonl"
    lines = lite.read_text().splitlines(keepends=True)
    lite.write_text("".join([lines[0].replace('"cases"', '"case"'), *lines[1:3], lines[3][:300]]))
    vouch(folder)
    dev.write_bytes(dev.read_bytes()[:-100])
    found = list(checks.dataset_faults(folder))

    for start in (
        f"{dev}: expected sha256 ",
        f"{lite} line 1: case: Unexpected keyword argument",
        f"{lite} line 1: cases: Field required",
        f"{lite} line 4: not JSON: ",
        f"{dev} line 4: not JSON: ",
        f"{lite}: expected 4 sound episodes with ids of their own, got 2",
        f"{lite}: expected the first episodes of test",
    ):
        assert any(fault.startswith(start) for fault in found), (start, found)


def test_a_dev_split_that_repeats_a_test_episode_is_found(folder):
    """Under another id: it shares the change and all cases."""
    dev = folder / "dev.jsonl"
    first, *rest = dev.read_text().splitlines(keepends=True)
    document = json.loads((folder / "test.jsonl").read_text().splitlines()[0])
    dev.write_text("".join([builds.line({**document, "episode_id": "s-900"}), *rest]))
    vouch(folder)
    found = list(checks.dataset_faults(folder))

    assert f"{dev}: s-900 shares its change or a case with s-001" in found
    assert first not in dev.read_text()


def test_unknown_domains_and_fields_are_named(folder):
    dev = folder / "dev.jsonl"
    documents = [json.loads(line) for line in dev.read_text().splitlines()]
    documents[0]["domain_id"] = "moon"
    documents[1]["visible_fields"][0] = "crater_depth"
    dev.write_text("".join(map(builds.line, documents)))
    vouch(folder)
    found = list(checks.dataset_faults(folder))

    assert f"{dev} line 1: domain_id: 'moon' is not a domain of the manifest" in found
    assert any(f.startswith(f"{dev} line 2: visible_fields: unknown in ") for f in found)


def test_a_folder_that_is_no_dataset_has_one_fault(tmp_path):
    (fault,) = checks.dataset_faults(tmp_path)

    assert f"{tmp_path / 'manifest.json'}: not a dataset manifest" in fault


def test_a_document_is_what_its_world_says(world):
    """The checks read lines; they see the same episode that the game plays."""
    document = json.loads(builds.line(episodes.to_document(world)))

    assert world.episode == episodes.from_document(document, world.domain)
