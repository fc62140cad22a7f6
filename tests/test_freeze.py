"""A frozen sweep keeps no secret, refuses what differs, and plays the same anywhere."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from adaexplore import configure, frozen_verbs, launch, provenance, publish
from adaexplore.authoring import datasets
from adaexplore.experiments import drifts, frozen, grids
from sweep_copies import FREEZE_WORDS, edited

ROOT = Path(__file__).parent.parent
CANARY = "canary-3f9ad1-never-written"


def verb(command, *words, code=0):
    assert code == launch.guarded(lambda: command(list(words)))


# -- the verbs ---------------------------------------------------------------------------------


def test_no_secret_is_ever_frozen(monkeypatch, capsys):
    for name in ("MY_KEY", "MY_HEADER", "AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, CANARY)
    Path("key").write_text(CANARY)
    profile = "+profiles.openai_compatible."
    words = [
        "+grid=smoke", "models=[openai_compatible]", "tracking=none",
        f"{profile}route.base_url=http://127.0.0.1:1/v1", f"{profile}model=some-model",
        f"{profile}auth.key_env=MY_KEY", f"{profile}dialect.header_env={{X-Key: MY_HEADER}}",
    ]  # fmt: skip
    verb(frozen_verbs.freeze, *words, "--out", "f.yaml")
    text = Path("f.yaml").read_text() + capsys.readouterr().out

    assert CANARY not in text
    assert "key_env: MY_KEY" in text
    assert "X-Key: MY_HEADER" in text


def test_freeze_writes_nothing_but_the_file(capsys):
    verb(frozen_verbs.freeze, *FREEZE_WORDS, "--out", "deep/f.yaml")
    assert ["deep", "deep/f.yaml"] == sorted(p.as_posix() for p in Path().rglob("*"))
    capsys.readouterr()
    verb(frozen_verbs.freeze, *FREEZE_WORDS)

    assert Path("deep/f.yaml").read_text() == capsys.readouterr().out


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A frozen file, and the options that allow what differs: in a checkout with changes `code` does."""
    found = configure.sweep(FREEZE_WORDS)
    dataset = datasets.load(found.dataset.name, found.dataset.split)
    cells = grids.expand(found, dataset.digest)
    path = tmp_path_factory.mktemp("frozen") / "f.yaml"
    path.write_bytes(publish.frozen_document(found, "mine", cells))
    document = frozen.read(path.read_bytes(), "f.yaml")
    here = publish.digests(found, cells[0].semantic["dataset"])
    drifted = [f"--allow-drift={d.name}" for d in drifts.differences(document, cells, here)]
    return str(path), drifted


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["seeds=[1]"], "'seeds=[1]': expected one of runs_dir, name, report, backend.KEY"),
        (["models=[oracle]"], "the frozen file says all else"),
        (["backend.speed=1"], "configuration key 'backend.speed': there is no such key"),
        (["tracking=nope"], "unknown tracking 'nope'"),
        (["store.bucket={"], "cannot read 'store.bucket={'"),
        (["more"], "expected FILE, got "),
        (["--fast"], "unknown option '--fast'"),
        (["--allow-drift"], "option --allow-drift needs a value"),
    ],
)
def test_what_a_rerun_may_not_choose_is_refused_before_anything_is_written(
    file, words, message, capsys
):
    path, drifted = file
    verb(frozen_verbs.rerun, path, *drifted, *words, code=2)

    assert message in capsys.readouterr().err
    assert not Path("runs").exists()


def test_a_rerun_may_choose_how_and_where_it_is_run(file, capsys):
    path, drifted = file
    words = ["runs_dir=elsewhere", "name=again", "tracking=sqlite", "backend.concurrency=7"]
    verb(frozen_verbs.rerun, path, *drifted, *words, "--dry-run")

    assert "sweep again" in capsys.readouterr().out


def test_an_allowed_difference_is_played_and_noted_with_the_launch(file, capsys):
    path, drifted = file
    Path("old.yaml").write_bytes(edited(Path(path).read_bytes(), _older))
    verb(frozen_verbs.rerun, "old.yaml", *drifted, code=2)
    assert "python: frozen 2.7.18, here 3." in capsys.readouterr().err
    assert not Path("runs").exists()
    verb(frozen_verbs.rerun, "old.yaml", *drifted, "--allow-drift=python")
    (note,) = Path("runs/sweeps/mine/launches").iterdir()
    noted = json.loads(note.read_text())["rerun"]

    assert "drift allowed: python: frozen 2.7.18" in capsys.readouterr().out
    assert "mine" == noted["of"]
    assert {"frozen": "2.7.18", "here": provenance.collect()["python"]} == (
        noted["allowed_drift"]["python"]
    )


def _older(document):
    document["digests"]["python"] = "2.7.18"


def test_a_file_that_is_not_there_is_one_line(capsys):
    verb(frozen_verbs.rerun, "f.yaml", code=2)

    assert (
        "f.yaml: expected a frozen sweep, got No such file or directory" in capsys.readouterr().err
    )


# -- somewhere else ----------------------------------------------------------------------------


def checkout(folder):
    """The package with its configuration and lock in another folder, as a checkout without git."""
    skip = shutil.ignore_patterns("__pycache__", "*.jsonl.tmp")
    shutil.copytree(
        ROOT / "platform" / "adaexplore", folder / "platform" / "adaexplore", ignore=skip
    )
    shutil.copytree(ROOT / "conf", folder / "conf")
    shutil.copy(ROOT / "requirements.lock", folder)
    return folder


def command(tree, *words, code=0):
    """A command of a checkout in a process of its own, run in that folder."""
    done = subprocess.run(
        [sys.executable, "-m", "adaexplore", *words],
        cwd=tree,
        env={"PYTHONPATH": str(tree / "platform"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert code == done.returncode, done.stderr
    return done


def records(tree):
    """Result bytes by (cell, episode)."""
    return {
        path.parts[-4:-2]: path.read_bytes()
        for path in (tree / "runs").glob("cells/*/*/*/result.json")
    }


def test_another_checkout_plays_the_same_records_and_one_with_changes_refuses(tmp_path):
    here = checkout(tmp_path / "here")
    there = Path(shutil.copytree(here, tmp_path / "there"))
    command(here, "launch", *FREEZE_WORDS)
    frozen_file = here / "runs/sweeps/mine/frozen.yaml"
    command(there, "rerun", str(frozen_file), "backend.concurrency=3")

    assert 8 == len(records(here))
    assert records(here) == records(there)
    cells = [
        json.loads((t / "runs/sweeps/mine/sweep.json").read_text())["cells"] for t in (here, there)
    ]
    assert cells[0] == cells[1]

    with (there / "platform/adaexplore/endings.py").open("a") as file:
        file.write("# changed\n")
    refused = command(there, "rerun", str(frozen_file), code=2)
    assert "not what was frozen: code: frozen commit unknown (source " in refused.stderr
    assert 1 == refused.stderr.count("\n")
