"""`adaexplore dataset ...`: what each verb prints and writes, and how it refuses."""

import json
import shutil
from pathlib import Path

import pytest

from adaexplore import dataset_page, dataset_verbs, launch
from adaexplore.authoring import datasets, domain_files, summaries

RECIPE = """
name: tiny
id_prefix: tiny
domains: [water_treatment]
splits:
  - {name: test, seed: 1, episodes_each: 1}
"""


def run(*words, code=0):
    """Run a dataset verb as the command does."""
    assert code == launch.guarded(lambda: dataset_verbs.main(words))


@pytest.fixture
def tiny(tmp_path, monkeypatch, capsys):
    """A packaged dataset of four episodes, built by the command."""
    packaged = tmp_path / "packaged"
    (packaged / "tiny").mkdir(parents=True)
    (packaged / "tiny" / "recipe.yaml").write_text(RECIPE)
    monkeypatch.setattr(datasets, "PACKAGED", packaged)
    run("build", "tiny", "--out", str(packaged / "tiny"), "--processes", "1")
    capsys.readouterr()
    return packaged / "tiny"


def test_list_names_every_dataset_with_its_splits(capsys):
    run("list")
    out = capsys.readouterr().out

    assert "adaexplore-v1: test 240, lite 40, dev 40 episodes, digest " in out
    assert "first: test 32 episodes, digest " in out


def test_build_says_what_is_identical_and_what_differs(tiny, capsys):
    """By default into a folder named as the dataset; with progress; nothing of the work is left."""
    (tiny / "test.jsonl").write_text("")
    run("build", "tiny", "--processes=1")
    out = capsys.readouterr().out

    assert "  4/4 searches" in out
    assert f"{Path('tiny/test.jsonl')}: differs from the packaged file" in out
    assert f"{Path('tiny/manifest.json')}: identical to the packaged file" in out
    assert {"test.jsonl", "manifest.json"} == {path.name for path in Path("tiny").iterdir()}
    assert 4 == len(datasets.load("tiny/").worlds)


def test_build_into_a_file_is_refused(tiny, capsys):
    Path("in_the_way").write_text("")
    run("build", "tiny", "--out", "in_the_way", "--processes", "1", code=4)
    run("build", "tiny", "--out", "/proc/tiny", "--processes", "1", code=4)
    first, second = capsys.readouterr().err.splitlines()

    assert first.startswith("error: in_the_way: ")
    assert second.startswith("error: /proc/tiny: ")
    assert "another folder with --out" in first
    assert tiny.is_dir()


def test_a_recipe_of_ones_own_is_built_with_domains_of_ones_own(capsys):
    """In place and elsewhere; what is built has what it needs to be loaded."""
    Path("mine/domains").mkdir(parents=True)
    Path("mine/recipe.yaml").write_text(RECIPE.replace("water_treatment", "greens"))
    text = domain_files.path_of("water_treatment").read_text()
    Path("mine/domains/greens.yaml").write_text(text.replace("water_treatment", "greens", 1))
    run("build", "./mine", "--processes", "1")
    run("build", "mine/", "--processes", "1", "--out", "elsewhere")
    built, elsewhere = (datasets.load(f"./{name}") for name in ("mine", "elsewhere"))

    assert {"greens"} == {world.domain.domain_id for world in built.worlds}
    assert built.digest == elsewhere.digest
    assert "mine/test.jsonl: written" in capsys.readouterr().out


@pytest.mark.parametrize("words", [("--help",), ("build", "--help"), ("stats", "first", "-h")])
def test_help_is_shown_wherever_it_is_asked_for(words, capsys):
    run(*words)

    assert "usage: adaexplore dataset" in capsys.readouterr().out


def test_validate_is_content_with_what_is_sound(tiny, capsys):
    run("validate", "tiny")
    run("validate", str(domain_files.path_of("water_treatment")))

    assert "1 domain files, tiny: no faults\n1 domain files: no faults\n" == capsys.readouterr().out
    assert tiny.is_dir()


def test_validate_lists_every_fault_and_exits_with_2(tiny, capsys):
    """Of a cut file: the digest, the line and the count; each on a line of its own."""
    path = tiny / "test.jsonl"
    path.write_bytes(path.read_bytes()[:-1000])
    run("validate", str(tiny), code=2)
    captured = capsys.readouterr()
    faults = captured.err.splitlines()

    assert all(fault.startswith(f"fault: {path}") for fault in faults)
    assert 3 == len(faults)
    assert captured.out.endswith("tiny: 3 faults\n")


def test_validate_lists_the_faults_of_a_file(capsys):
    text = domain_files.path_of("water_treatment").read_text()
    Path("mine.yaml").write_text(text.replace("minimum:", "least:", 2))
    run("validate", "mine.yaml", code=2)
    faults = capsys.readouterr().err.splitlines()

    assert 4 == len(faults)  # two keys that are missing, two that are unknown
    assert all(fault.startswith("fault: mine.yaml: fields.") for fault in faults)


def test_validate_of_a_missing_file_and_of_a_folder_without_a_manifest(capsys):
    run("validate", "none.yaml", code=2)
    run("validate", "./", code=2)
    err = capsys.readouterr().err

    assert "fault: none.yaml: not a readable YAML file" in err
    assert "manifest.json: not a dataset manifest" in err


def test_stats_tell_composition_flips_and_balance(capsys):
    run("stats", "adaexplore-v1", "--split", "lite")
    out = capsys.readouterr().out

    assert "adaexplore-v1, split lite: 40 episodes" in out
    assert "water_treatment" in out
    for row in (r"all 10 10 10 10 40", "episodes 10 10 10 10"):
        assert row in [" ".join(line.split()) for line in out.splitlines()]
    assert "action_3" in out
    assert "natural" in out


def test_a_page_has_its_pictures_and_reads_the_plays_it_kept(tiny, capsys):
    """Played once into a folder of one's own; the second page is the same and plays nothing."""
    words = ("stats", str(tiny), "--page", "page", "--runs", "plays")
    run(*words)
    first = {path: path.read_bytes() for path in Path("page").rglob("*.*")}
    assert "to play 16" in capsys.readouterr().out
    run(*words)

    assert "finished  16, to play 0" in capsys.readouterr().out
    assert first == {path: path.read_bytes() for path in Path("page").rglob("*.*")}
    text = Path("page/dataset.md").read_text()
    for name in ("flips", "actions", "evidence", "difficulty"):
        assert f"images/dataset-{name}.png" in text
        assert Path(f"page/images/dataset-{name}.png").stat().st_size < 80_000
    assert "| oracle | 1.00 | 1.00 | 1.00 | 1.00 | 1.00 (1.00 to 1.00) |" in text


def test_the_published_page_is_that_of_the_shipped_dataset():
    """What is told of lite, and which splits there are; the rest is made by the same functions."""
    published = (Path(__file__).parent.parent / "docs" / "dataset.md").read_text()
    lite = datasets.load("adaexplore-v1", "lite")
    found = [summaries.summarise(world) for world in lite.worlds]
    made = dataset_page.page("adaexplore-v1", {"lite": found}, None)
    sections = made.split("\n\n")

    for split, described in lite.manifest["splits"].items():
        assert f"## Split {split}: {described['episodes']} episodes" in published
    start = next(n for n, text in enumerate(sections) if text.startswith("## Split lite"))
    for section in sections[start : start + 5]:
        assert section in published


def test_export_writes_what_it_names(tiny, capsys):
    run("export", "tiny", "--format", "hf", "--out", "out")
    named = [Path(line) for line in capsys.readouterr().out.splitlines()]

    assert set(named) == {path for path in Path("out").rglob("*") if path.is_file()}
    assert tiny.is_dir()


BAD = [
    ((), None),
    (("bild", "first"), "unknown verb 'bild': expected one of list, build"),
    (("build",), "dataset build: expected one NAME, got none"),
    (("build", "first", "second"), "expected one NAME, got first second"),
    (("build", "frist"), "recipe.yaml: not a dataset recipe: "),
    (("build", "first", "--processes", "many"), "expected a number from 1 on, got 'many'"),
    (("build", "first", "--jobs", "2"), "unknown option '--jobs': expected one of --out, --proce"),
    (("build", "first", "--out"), "option --out needs a value"),
    (("list", "first"), "expected no NAME"),
    (("validate", "a", "b"), "expected at most one NAME"),
    (("validate", "frist"), "unknown dataset 'frist': expected one of adaexplore-v1, first"),
    (("stats", "first", "--split", "dev"), "has no split 'dev': expected one of test"),
    (("export", "first"), "expected --format parquet|hf and --out FOLDER"),
    (("export", "first", "--format", "csv", "--out", "x"), "got format 'csv'"),
]


@pytest.mark.parametrize(("words", "message"), BAD)
def test_what_cannot_be_understood_is_refused_in_one_line(words, message, capsys):
    run(*words, code=2)
    captured = capsys.readouterr()

    if message is None:
        assert "usage: adaexplore dataset" in captured.out
    else:
        assert captured.err.startswith("error: ")
        assert message in captured.err
        assert 1 == captured.err.count("\n")
    assert [] == list(Path().iterdir())


def test_an_interrupted_build_is_told_apart(tiny, capsys):
    (tiny / "manifest.json").unlink()
    (tiny / datasets.WORK).mkdir()
    run("stats", str(tiny), code=2)

    assert "the build of this dataset was interrupted; run the same" in capsys.readouterr().err


def test_a_manifest_of_another_schema_is_told(tiny, capsys):
    path = tiny / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema_version": 9}))
    copied = shutil.copytree(tiny, "copied")
    run("validate", f"{copied}/", code=2)

    assert "expected schema_version 2, got 9" in capsys.readouterr().err
