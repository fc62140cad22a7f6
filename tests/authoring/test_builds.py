"""Builds: the shipped dataset can be made again, by any number of processes, after any interruption."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

import adaexplore
from adaexplore.authoring import builds, datasets, domain_files, parts
from adaexplore.authoring.builds import Builder
from adaexplore.authoring.datasets import Recipe
from adaexplore.errors import DatasetError, SearchError

SOURCE = datasets.PACKAGED / "adaexplore-v1"
SMALL = Recipe(
    name="small",
    id_prefix="s",
    domains=["wildfire_response"],
    splits=[
        {"name": "test", "seed": 3, "episodes_each": 2},
        {"name": "lite", "part_of": "test", "episodes_each": 1},
        {"name": "dev", "seed": 3, "episodes_each": 1, "apart_from": "test"},
    ],
)


@pytest.fixture(scope="module")
def small():
    """The files of a recipe with every kind of split, built in this process."""
    return Builder().build(SMALL)


def test_lite_is_what_its_recipe_makes():
    """Byte for byte, in two processes, without searching the rest of the split it belongs to."""
    recipe = datasets.read_recipe(SOURCE / "recipe.yaml")
    made = Builder(processes=2).rebuild_part(recipe, "lite")

    assert (SOURCE / "lite.jsonl").read_bytes() == made


def test_processes_change_nothing(small):
    """More than one does the same, and so does splitting the build into parts."""
    assert small == Builder(processes=2).build(SMALL)
    assert small["lite.jsonl"] == Builder().rebuild_part(SMALL, "lite")


def test_splits_are_numbered_on_and_share_no_id(small, tmp_path):
    """Test and dev episodes go on in one numbering; lite repeats the first round of test."""
    builds.save(tmp_path, small)
    ids = {
        split: [w.episode.episode_id for w in datasets.load(str(tmp_path), split).worlds]
        for split in ("test", "lite", "dev")
    }

    assert [f"s-{n:03d}" for n in range(1, 9)] == ids["test"]
    assert ids["test"][:4] == ids["lite"]
    assert [f"s-{n:03d}" for n in range(9, 13)] == ids["dev"]


def test_what_is_kept_is_not_searched_again(small, tmp_path):
    """A second build takes all from the folder; a damaged part is searched again."""
    work = tmp_path / datasets.WORK
    seen = []
    Builder(work=work).build(SMALL)
    kept = sorted(work.iterdir())
    kept[0].write_bytes(kept[0].read_bytes()[:-20])
    again = Builder(work=work, progress=lambda done, total: seen.append((done, total)))

    assert small == again.build(SMALL)
    assert 8 == len(kept)
    assert seen[0] in {(3, 8), (4, 8)}  # of four test searches: all, or all but the damaged one
    assert (8, 8) == seen[-1]


def test_another_recipe_takes_nothing_over():
    """The key of a part names its seed, ids, count, domain file and what is taken."""
    sources = parts.read_sources(SMALL)
    (test, _, dev) = SMALL.splits
    change = ("event", frozenset({"a", "b", "c"}))
    keys = {
        part.key()
        for split in (test, dev)
        for taken in ({}, {"wildfire_response": frozenset({change})})
        for rounds in (None, 1)
        for part in parts.of_split(SMALL, split, sources, taken, rounds=rounds)
    }

    assert 4 * (2 * 2 + 2) == len(keys)  # dev has a single round


def test_a_folder_is_a_dataset_only_when_it_is_whole(small, tmp_path):
    """Whatever file a writer got to, no prefix of its work loads."""
    names = sorted(small, key=lambda name: name == datasets.MANIFEST)
    assert datasets.MANIFEST == names[-1]
    for count in range(len(names)):
        folder = tmp_path / str(count)
        for name in names[:count]:
            builds.write(folder / name, small[name])
        with pytest.raises(DatasetError, match="not a dataset manifest"):
            datasets.load(str(folder))


def test_writing_over_a_dataset_takes_its_manifest_first(small, tmp_path):
    """A disk that fails between the files leaves no manifest that vouches for a mixture."""
    builds.save(tmp_path, small)
    with pytest.raises(TypeError):
        builds.save(tmp_path, {"dev.jsonl": small["dev.jsonl"], "lite.jsonl": None})

    with pytest.raises(DatasetError, match="not a dataset manifest"):
        datasets.load(str(tmp_path))


BUILD = """
import sys
import time
from pathlib import Path
from adaexplore.authoring import builds, datasets
if __name__ == "__main__":
    out = Path(sys.argv[1])
    recipe = datasets.read_recipe(Path("recipe.yaml"))
    def progress(done, _total):
        if done and "stopping" in sys.argv:  # so that it is never too late to kill it
            time.sleep(3600)
    build = builds.Builder(processes=2, work=out / datasets.WORK, progress=progress)
    files = build.build(recipe)
    builds.save(out, files)
"""
RECIPE = """
name: small
id_prefix: s
domains: [wildfire_response]
splits:
  - {name: test, seed: 3, episodes_each: 2}
  - {name: lite, part_of: test, episodes_each: 1}
  - {name: dev, seed: 3, episodes_each: 1, apart_from: test}
"""


def processes_of(session):
    """Whether a process of the session is left."""
    try:
        os.killpg(session, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_killed_build_goes_on(small, tmp_path):
    """SIGKILL after the first kept part: no dataset, said so; then the same bytes, and no orphan."""
    Path("build.py").write_text(BUILD)
    Path("recipe.yaml").write_text(RECIPE)
    out = tmp_path / "out"
    root = Path(adaexplore.__file__).parent.parent
    command = [sys.executable, "build.py", str(out)]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    child = subprocess.Popen([*command, "stopping"], env=environment, start_new_session=True)
    while not list(out.glob(f"{datasets.WORK}/*.json")):
        assert child.poll() is None
        time.sleep(0.002)  # the build is killed by what it has written, not by the clock
    child.send_signal(signal.SIGKILL)
    child.wait()
    while processes_of(child.pid):  # its workers notice by themselves, or this never ends
        time.sleep(0.002)

    with pytest.raises(DatasetError, match="was interrupted; run the same"):
        datasets.load(str(out))
    subprocess.run(command, env=environment, check=True)
    assert small == {path.name: path.read_bytes() for path in out.iterdir()}


def test_a_search_that_cannot_succeed_is_told_from_any_process(monkeypatch, tmp_path):
    """A domain whose only event is gone ends the build with the search's own words; nothing is left."""
    document = yaml.safe_load((domain_files.PACKAGED / "wildfire_response.yaml").read_text())
    document["events"] = []
    (tmp_path / "wildfire_response.yaml").write_text(yaml.safe_dump(document))
    monkeypatch.setattr(domain_files, "PACKAGED", tmp_path)
    for processes in (1, 2):
        with pytest.raises(SearchError, match="domain wildfire_response has no event that"):
            Builder(processes=processes).build(SMALL)


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ([{"name": "a", "episodes_each": 1}], "either a seed or part_of"),
        ([{"name": "a", "seed": 1, "part_of": "b", "episodes_each": 1}], "either a seed or"),
        ([{"name": "a", "part_of": "b", "episodes_each": 1}], "earlier searched split, got b"),
        (
            [
                {"name": "a", "seed": 1, "episodes_each": 1},
                {"name": "b", "part_of": "a", "episodes_each": 2},
            ],
            "a has fewer episodes",
        ),
        ([{"name": "a", "seed": 1, "episodes_each": 1}] * 2, "every split and every domain once"),
        ([{"name": "../a", "seed": 1, "episodes_each": 1}], "should match pattern"),
        ([], "at least 1 item"),
    ],
)
def test_splits_that_cannot_be_made_are_refused(splits, message):
    with pytest.raises(ValueError, match=message):
        Recipe(name="x", id_prefix="x", domains=["d"], splits=splits)
