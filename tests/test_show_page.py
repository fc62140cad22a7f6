"""`adaexplore show` writes the page of an episode, finished or not, and says where it is."""

import shutil
from pathlib import Path

import pytest

from adaexplore import launch, sweep_verbs
from adaexplore.backends.folder import FolderStore
from adaexplore.experiments import attempts
from adaexplore.reports.episodes import pages
from pages_read import Page
from sweep_copies import attempt_of, copied, found

PAGE = "sweeps/mine/report/episodes/one_factor/default/0/v1-001.html"
WORDS = ["mine", "v1-001", "--model=one_factor", "--setting", "default"]


@pytest.fixture
def root(finished_sweep, tmp_path):
    """A copy of a finished sweep's store, without the pages that other tests have made."""
    root = copied(finished_sweep, tmp_path / "runs")
    shutil.rmtree(root / "sweeps/mine/report", ignore_errors=True)
    return root


def show(*words, code=0):
    assert code == launch.guarded(lambda: sweep_verbs.show(list(words)))


def test_the_page_goes_into_the_store_and_is_no_foreign_object(root, capsys):
    show(*WORDS, f"runs_dir={root}")
    out = capsys.readouterr().out
    page = Page((root / PAGE).read_bytes())

    assert out.endswith(f"page     {root / PAGE}\n")
    assert "Episode v1-001" == page.all("h1")[0]["text"]
    assert "one_factor" in page.all("dl")[0]["text"]
    assert [] == page.all("div", "notice")
    assert [] == found(root)


def test_a_page_elsewhere_leaves_the_store_alone_and_finds_the_report(root, tmp_path, capsys):
    FolderStore(root).put(pages.report_key("mine"), b"<!DOCTYPE html>")
    before = sorted(root.rglob("*"))
    (tmp_path / "a b").mkdir()
    out = tmp_path / "a b" / "e.html"
    show(*WORDS, f"--out={out}", f"runs_dir={root}")
    link = Page(out.read_bytes()).all("a")[1]["attrs"]["href"]

    assert before == sorted(root.rglob("*"))
    assert capsys.readouterr().out.endswith(f"page     {out}\n")
    assert (root / pages.report_key("mine")).resolve() == (out.parent / link).resolve()


def test_the_page_in_the_store_finds_the_report_too(root):
    FolderStore(root).put(pages.report_key("mine"), b"<!DOCTYPE html>")
    show(*WORDS, f"runs_dir={root}")
    link = Page((root / PAGE).read_bytes()).all("a")[1]["attrs"]["href"]

    assert (root / pages.report_key("mine")).resolve() == ((root / PAGE).parent / link).resolve()


def test_without_a_report_there_is_no_link_to_one(root):
    show(*WORDS, f"runs_dir={root}")

    assert all(
        a["attrs"]["href"].startswith("#") for a in Page((root / PAGE).read_bytes()).all("a")
    )


def test_a_run_that_was_begun_is_shown_before_those_that_were_not(root, capsys):
    folder, key = attempt_of(root, "one_factor/default/0")
    (folder / attempts.RESULT).unlink()
    first, _ = attempt_of(root, "random/default/0")
    shutil.rmtree(first.parent)
    show("mine", "v1-001", "--setting=default", f"runs_dir={root}")
    told = capsys.readouterr().out
    page = Page((root / PAGE).read_bytes())

    assert "random/default/0 v1-001 was never played" in told
    assert "was interrupted" in page.all("div", "notice")[0]["text"]
    assert f"{key}/journal.jsonl" in page.section("digests")
    assert page.table("Chosen against best")


def test_a_place_that_cannot_be_written_is_one_line(root, tmp_path, capsys):
    show(*WORDS, f"--out={tmp_path}", f"runs_dir={root}", code=2)
    err = capsys.readouterr().err

    assert f"--out {tmp_path}: expected a file to write the page to, got: Is a directory" in err
    assert 1 == err.count("\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["mine", "v1-999"], "has no episode 'v1-999': expected one of v1-001 ... v1-002"),
        (["nobody", "v1-001"], "unknown sweep 'nobody'"),
        (["mine", "v1-001", "--seed=7"], "has no such cell: expected one of random/default/0"),
    ],
)
def test_what_is_not_there_leaves_no_page(root, words, told, capsys):
    show(*words, f"runs_dir={root}", code=2)

    assert told in capsys.readouterr().err
    assert not Path(root, "sweeps/mine/report").exists()
