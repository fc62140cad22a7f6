"""An audit finds whatever is wrong with a stored sweep, in its place, and nothing where nothing is."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from adaexplore import audit_verbs, launch, sweep_verbs
from adaexplore.experiments import identity
from sweep_copies import attempt_of, audit, cell_of, copied, found, rewrite

RUN = ("one_factor/default/0", "v1-001")


@pytest.fixture
def runs(finished_sweep, tmp_path):
    """A copy of it to damage."""
    return copied(finished_sweep, tmp_path / "runs")


def verb(command, *words, code=0):
    assert code == launch.guarded(lambda: command(list(words)))


# -- a whole sweep -----------------------------------------------------------------------------


def test_a_sweep_that_nobody_touched_has_no_findings(finished_sweep, capsys):
    verb(audit_verbs.verify, "mine", f"runs_dir={finished_sweep}")
    assert "nothing found" in capsys.readouterr().out
    verb(audit_verbs.verify, "mine", f"runs_dir={finished_sweep}", "--json")
    told = json.loads(capsys.readouterr().out)

    assert ("mine", 8, []) == (told["sweep"], told["replayed"], told["findings"])


def test_a_replay_gives_the_tables_to_the_byte(finished_sweep, tmp_path, capsys):
    verb(audit_verbs.replay, "mine", f"runs_dir={finished_sweep}", "--out", "again")
    kept = {
        path.name: path.read_bytes() for path in (finished_sweep / "sweeps/mine/tables").iterdir()
    }

    assert kept == {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()}
    assert "bit-identical" in capsys.readouterr().out


def test_an_audit_and_a_replay_change_nothing(runs):
    def snapshot():
        return {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in runs.rglob("*") if p.is_file()}

    before = snapshot()
    verb(audit_verbs.verify, "mine", f"runs_dir={runs}")
    verb(audit_verbs.replay, "mine", f"runs_dir={runs}")

    assert before == snapshot()


def test_every_kind_of_damage_is_found_in_its_place(runs, capsys):
    """All at once, so that none hides another."""
    flipped, flipped_key = attempt_of(runs, "one_factor/default/0", "v1-001")
    text = bytearray((flipped / "journal.jsonl").read_bytes())
    text[len(text) // 2] ^= 1
    (flipped / "journal.jsonl").write_bytes(text)
    forged, forged_key = attempt_of(runs, "one_factor/default/0", "v1-002")
    rewrite(forged / "result.json", lambda d: {**d, "record": {**d["record"], "family": "other"}})
    gone, _ = attempt_of(runs, "random/default/0", "v1-001")
    shutil.rmtree(gone.parent)
    (runs / "cells" / "notes.txt").write_text("mine")
    (runs / "sweeps" / "mine" / "plot.png").write_bytes(b"")
    (runs / "sweeps" / "other").mkdir()
    (runs / "sweeps" / "other" / "sweep.json").write_text("{")
    orphan = runs / "cells" / ("ab" * 16) / "v1-001"
    shutil.copytree(forged, orphan / forged.name)

    random = cell_of(runs, "random/default/0")
    assert {
        ("journal", f"{flipped_key}/journal.jsonl"),
        ("result", f"{forged_key}/result.json"),
        ("missing", f"cells/{random}/v1-001"),
        ("foreign", "cells/notes.txt"),
        ("foreign", "sweeps/mine/plot.png"),
        ("document", "sweeps/other/sweep.json"),
        ("unowned", f"cells/{'ab' * 16}/v1-001"),
    } == set(found(runs))
    verb(audit_verbs.verify, "mine", f"runs_dir={runs}", code=4)
    out = capsys.readouterr().out
    assert "findings: 7" in out
    assert "never played" in out


def test_a_table_that_the_results_do_not_give_is_found_with_its_line(runs):
    table = runs / "sweeps/mine/tables/main.csv"
    lines = table.read_text().splitlines()
    table.write_text("\n".join([*lines[:2], lines[2].replace("0", "1", 1), *lines[3:]]) + "\n")
    (runs / "sweeps/mine/tables/curve.csv").unlink()
    (runs / "sweeps/mine/tables/extra.csv").write_text("a\n")
    told = list(audit(runs).of_tables())
    assert [] == told  # nothing was replayed, so there is nothing to compare with

    found = [f for f in audit(runs).findings() if f.kind in ("table", "foreign")]
    assert [
        ("table", "sweeps/mine/tables/main.csv"),
        ("table", "sweeps/mine/tables/curve.csv"),
        ("foreign", "sweeps/mine/tables/extra.csv"),
    ] == [(f.kind, f.where) for f in found]
    assert found[0].what.startswith("line 3 is ")
    assert found[1].what == "missing: launch again"


def test_what_mlflow_shows_otherwise_is_found_and_no_other_finding_is_hidden(runs, capsys):
    tracking = [f"runs_dir={runs}", "tracking=sqlite"]
    verb(sweep_verbs.sync, "mine", *tracking)
    with sqlite3.connect(runs / "mlflow.db") as database:
        database.execute("update params set value = 'other' where key = 'episode'")
    database.close()
    (runs / "cells" / "notes.txt").write_text("mine")
    verb(audit_verbs.verify, "mine", *tracking, code=4)
    out = capsys.readouterr().out

    assert 8 == out.count("param episode: stored 'v1-00")
    assert "findings: 9" in out
    assert "cells/notes.txt" in out


def test_a_cell_with_an_edited_meaning_is_found(runs, capsys):
    path = runs / "sweeps/mine/sweep.json"
    document = json.loads(path.read_text())
    document["cells"]["random/default/0"]["semantic"]["setting"]["drifts"] = False
    path.write_text(json.dumps(document))
    kinds = {kind for kind, _ in found(runs)}

    assert "cell" in kinds
    verb(audit_verbs.replay, "mine", f"runs_dir={runs}", code=4)
    assert "the content of cell random/default/0 does not give its id" in capsys.readouterr().out


def test_a_cell_of_other_rules_is_not_replayed_but_named(runs, capsys):
    path = runs / "sweeps/mine/sweep.json"
    document = json.loads(path.read_text())
    for cell in document["cells"].values():
        cell["semantic"]["protocol_version"] = 99
        cell["cell_id"] = identity.cell_id(cell["semantic"])
    path.write_text(json.dumps(document))
    verb(audit_verbs.replay, "mine", f"runs_dir={runs}", code=4)
    out = capsys.readouterr().out

    assert 4 == out.count("was played with other rules (protocol_version differ): audit it with")
    assert "replayed" not in out


def test_a_replay_names_the_episode_and_the_field(runs, capsys):
    folder, key = attempt_of(runs, *RUN)
    rewrite(
        folder / "result.json",
        lambda d: {**d, "record": {**d["record"], "counts": {**d["record"]["counts"], "turns": 1}}},
    )
    verb(audit_verbs.replay, "mine", f"runs_dir={runs}", "--out", "again", code=4)
    out = capsys.readouterr().out

    assert f"{key}/result.json: record.counts.turns: stored 1, the journal gives" in out
    assert not Path("again").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["other"], "unknown sweep 'other'"),
        (["mine", "seeds=3"], "expected runs_dir=FOLDER"),
        (["mine", "runs_dir=nowhere"], "expected the folder of a store"),
        (["mine", "more"], "expected SWEEP, got mine more"),
        (["mine", "--fast"], "unknown option '--fast'"),
        (["mine", "store=none"], "unknown store 'none'"),
    ],
)
def test_wrong_words_are_one_line(finished_sweep, monkeypatch, capsys, words, message):
    monkeypatch.chdir(finished_sweep.parent)
    for command in (audit_verbs.replay, audit_verbs.verify):
        verb(command, *words, code=2)
        err = capsys.readouterr().err
        assert message in err
        assert 1 == err.count("\n")


def test_an_empty_sweep_has_nothing_to_replay(runs, capsys):
    shutil.rmtree(runs / "cells")
    verb(audit_verbs.replay, "mine", f"runs_dir={runs}", code=2)

    assert "no finished episode yet" in capsys.readouterr().err


def test_a_damaged_sweep_document_is_one_line(runs, capsys):
    (runs / "sweeps/mine/sweep.json").write_text("[]")
    verb(audit_verbs.verify, "mine", f"runs_dir={runs}", code=4)

    assert 1 == capsys.readouterr().err.count("\n")
