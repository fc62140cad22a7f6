"""`report` and `compare` read a store, write files, and say in one line what cannot be done."""

import csv
import json
import re
import shutil
from dataclasses import replace

import pytest

from adaexplore import configure, launch, publish, report_verbs
from adaexplore.backends.folder import FolderStore
from adaexplore.experiments import attempts, stored, tables
from adaexplore.experiments.tallies import Tally
from adaexplore.reports import collect
from sweep_copies import WORDS, copied, play


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A sweep of two models, two settings and two episodes, and what its launch printed."""
    return play(tmp_path_factory.mktemp("whole") / "runs")


@pytest.fixture
def runs(whole, tmp_path):
    """A copy of it to damage."""
    return copied(whole, tmp_path / "runs")


def verb(command, *words, code=0):
    assert code == launch.guarded(lambda: command(list(words)))


def lines(capsys):
    """Standard output and error as one line each, however wide."""
    out, err = capsys.readouterr()
    return out, err


def table(path):
    """Rows of a CSV file as dictionaries."""
    return list(csv.DictReader(path.read_text().splitlines()))


def again(runs, name, *words):
    """Another sweep into the same store, without the report of its launch."""
    asked = [word for word in WORDS if not word.startswith(("name=", "models=", "settings="))]
    asked.append("report=false")
    launch.guarded(lambda: launch.launch([*asked, f"name={name}", f"runs_dir={runs}", *words]))


def test_a_launch_ends_with_a_report_and_its_place(tmp_path, capsys):
    play(tmp_path / "runs")
    out, _ = lines(capsys)
    *_, last, opener = out.strip().splitlines()
    page = tmp_path / "runs" / "sweeps" / "mine" / "report" / "report.html"

    assert f"report:            {page}" == last
    assert f"open the report:   python3 -m webbrowser {page.as_uri()}" == opener
    assert page.read_bytes().startswith(b"<!DOCTYPE html>")
    assert (page.parent / "tables" / "main_results.csv").is_file()


def test_the_verb_makes_the_report_of_the_launch_again(tmp_path, capsys):
    """Byte for byte."""
    runs = play(tmp_path / "runs")
    folder = runs / "sweeps" / "mine" / "report"
    before = {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    shutil.rmtree(folder)
    verb(report_verbs.make, "mine", f"runs_dir={runs}")
    after = {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    assert before == after
    assert f"report:  {folder / 'report.html'}" in lines(capsys)[0]


def test_the_words_that_find_a_store_again():
    folder = configure.sweep(["+grid=smoke"])
    words = ["store=s3", "store.bucket=b", "store.endpoint=http://127.0.0.1:9"]

    assert () == publish.store_words(folder)
    assert ("runs_dir=x",) == publish.store_words(replace(folder, runs_dir="x"))
    assert tuple(words) == publish.store_words(configure.sweep(["+grid=smoke", *words]))


def test_the_page_names_the_command_and_the_digests(runs):
    verb(report_verbs.make, "mine", f"runs_dir={runs}", "--out=made")
    text = (runs.parent / "made" / "report.html").read_text()
    note = json.loads(next((runs / "sweeps" / "mine" / "launches").glob("*.json")).read_text())

    assert f"adaexplore report mine runs_dir={runs}" in text
    assert f"adaexplore replay mine runs_dir={runs}" in text
    assert note["prompts_sha256"][:12] in text
    assert note["source_sha256"][:12] in text
    assert "There is nothing" not in text


def test_the_report_counts_what_the_tables_count(runs):
    verb(report_verbs.make, "mine", f"runs_dir={runs}", "--out=made")
    made = table(runs.parent / "made" / "tables" / "main_results.csv")
    kept = table(runs / "sweeps" / "mine" / "tables" / "main.csv")

    assert [
        (r["model"], r["setting"], r["n"], r["ca"], r["ca_low"], r["ca_high"]) for r in kept
    ] == [(r["model"], r["setting"], r["n"], r["ca"], r["ca_low"], r["ca_high"]) for r in made]


def test_what_was_played_is_the_evidence(whole):
    with_store = collect.evidence(FolderStore(whole), ["mine"])
    sweep = stored.read(FolderStore(whole), "mine")

    assert 8 == with_store.scored == sweep.runs
    assert {"v1-001": 1, "v1-002": 1} == dict(with_store.planned["random", "default"])
    assert sum(u.calls for u in with_store.usages.values()) > 8 * 24


def links(report):
    """Addresses of episode pages in a report."""
    return set(re.findall(r'href="(episodes/[^"]+)"', report.read_text()))


def test_pages_of_episodes_are_linked_where_they_are(runs):
    """Those that the report points out, and in the store those that somebody has looked at."""
    place = "random/stationary/0/v1-001.html"
    FolderStore(runs).put(f"sweeps/mine/report/episodes/{place}", b"a page")
    verb(report_verbs.make, "mine", f"runs_dir={runs}")
    verb(report_verbs.make, "mine", f"runs_dir={runs}", "--out=made")
    beside, apart = runs / "sweeps/mine/report", runs.parent / "made"

    linked = {folder: links(folder / "report.html") for folder in (beside, apart)}
    assert linked[beside] == linked[apart] | {f"episodes/{place}"}
    assert {"random/default/0", "one_factor/default/0"} <= {
        link.removeprefix("episodes/").rpartition("/")[0] for link in linked[apart]
    }
    for folder, found in linked.items():
        for link in found - {f"episodes/{place}"}:
            assert 'href="../../../../report.html"' in (folder / link).read_text()


def test_sweeps_share_cells_and_tell_other_meanings_apart(runs):
    again(runs, "more", "models=[random]", "settings=[default,forced_probe]")
    again(runs, "strange", "models=[random]", "settings=[default]", "protocol.max_probes=4")
    store = FolderStore(runs)
    together = collect.evidence(store, ["mine", "more"])
    apart = collect.evidence(store, ["mine", "strange"])

    assert 2 == len(together.records["random", "default"])
    assert 2 == len(together.records["random", "forced_probe"])
    assert {"random (mine)", "random (strange)"} <= set(apart.models)


def test_a_sweep_is_compared_with_another(runs, capsys):
    again(runs, "strange", "models=[one_factor]", "settings=[default]", "protocol.max_probes=2")
    verb(report_verbs.compare, "mine", "strange", f"runs_dir={runs}", "--out=made")
    out, _ = lines(capsys)
    (row,) = [r for r in table(runs.parent / "made" / "comparison.csv") if r["metric"] == "ca"]

    assert ("one_factor", "default", "2") == (row["model"], row["setting"], row["n"])
    assert "strange (second) minus mine (first)" in out
    assert float(row["difference"]) == pytest.approx(
        float(row["second"]) - float(row["first"]), abs=2e-6
    )

    verb(report_verbs.make, "strange", "--against=mine", f"runs_dir={runs}", "--out=made")
    text = (runs.parent / "made" / "report.html").read_text()
    assert "strange against mine" in text
    assert "--against mine" in text


# -- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "words", "told"),
    [
        (report_verbs.make, ["nothing"], "unknown sweep 'nothing'"),
        (report_verbs.make, ["mine", "--against=nothing"], "unknown sweep 'nothing'"),
        (report_verbs.make, ["mine", "--colour=red"], "unknown option '--colour=red'"),
        (report_verbs.make, [], "expected SWEEP"),
        (report_verbs.compare, ["mine"], "expected A B, got mine"),
        (report_verbs.compare, ["mine", "nothing"], "unknown sweep 'nothing'"),
    ],
)
def test_what_cannot_be_done_is_one_line(whole, capsys, command, words, told):
    verb(command, *words, f"runs_dir={whole}", code=2)
    out, err = lines(capsys)

    assert "" == out
    assert told in err
    assert 1 == err.count("\n")


def test_a_sweep_without_cells_is_one_line(runs, capsys):
    document = runs / "sweeps" / "mine" / "sweep.json"
    document.write_text(json.dumps({**json.loads(document.read_text()), "cells": {}}))
    verb(report_verbs.make, "mine", f"runs_dir={runs}", code=2)

    assert "has no cells yet: launch it first" in lines(capsys)[1]


def test_a_sweep_without_results_is_a_page(runs, capsys):
    shutil.rmtree(runs / "cells")
    verb(report_verbs.make, "mine", f"runs_dir={runs}", "--out=made")

    assert "No episode run is scored" in (runs.parent / "made" / "report.html").read_text()
    assert not (runs.parent / "made" / "figures").exists()
    assert "warning: No episode run is scored" in lines(capsys)[0]


def test_sweeps_without_a_common_episode_are_one_line(runs, capsys):
    words = ["models=[random]", "settings=[default]", "dataset=dev", "dataset.limit=2"]
    again(runs, "dev", *words)
    verb(report_verbs.compare, "mine", "dev", f"runs_dir={runs}", code=2)

    assert "no scored episode with the same hidden side in common" in lines(capsys)[1]


def test_a_damaged_result_is_named(runs, capsys):
    key = next(iter(attempts.finished(FolderStore(runs), _cell(runs)).values()))
    (runs / key).write_bytes(b"{}")
    verb(report_verbs.make, "mine", f"runs_dir={runs}", code=4)

    assert "damaged result" in lines(capsys)[1]


def test_a_folder_that_cannot_be_written_is_one_line(runs, capsys):
    (runs.parent / "file").write_text("")
    verb(report_verbs.make, "mine", f"runs_dir={runs}", "--out=file", code=4)
    _, err = lines(capsys)

    assert "file" in err
    assert 1 == err.count("\n")


def test_help_is_worth_reading(capsys):
    verb(report_verbs.make, "--help")
    verb(report_verbs.compare, "--help")
    out, _ = lines(capsys)

    assert "--against SWEEP" in out
    assert "usage: adaexplore compare A B" in out


def _cell(runs):
    return stored.read(FolderStore(runs), "mine").cells[0].cell_id


def test_tables_of_a_launch_are_those_of_the_records(whole):
    """The report reads no table: both come from the same records."""
    found = collect.evidence(FolderStore(whole), ["mine"])
    kept = (whole / "sweeps" / "mine" / "tables" / "main.csv").read_bytes()
    tallied = {group: Tally.of(runs) for group, runs in found.records.items()}

    assert tables.main_table(tables.scores(tallied)).csv() == kept
