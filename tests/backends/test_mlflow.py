"""The embedded projection: nested, complete, the same however often and by whomever it is made."""

import fcntl
import json
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace

import pytest

import mlflow_pages as pages
from adaexplore.backends.mlflow import syncing
from adaexplore.backends.mlflow.claims import Claim
from adaexplore.backends.mlflow.tracker import MlflowTracker
from adaexplore.errors import ConfigError, StoreError

pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow's own


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A finished sweep that was never shown."""
    root = tmp_path_factory.mktemp("played") / "runs"
    pages.play(root)
    return root


@pytest.fixture(scope="module")
def blank(tmp_path_factory):
    """An empty MLflow database."""
    return pages.blank(tmp_path_factory.mktemp("blank"))


@pytest.fixture(scope="module")
def whole(played, blank, tmp_path_factory):
    """What MLflow holds of it when nothing went wrong, shown by a library in a process of its own."""
    root = pages.copied(played, tmp_path_factory.mktemp("whole") / "runs")
    shutil.copy(blank, root)
    assert pages.show(pages.target(root)).trouble() is None
    return pages.shown(root)


@pytest.fixture
def root(played, blank, tmp_path):
    root = pages.copied(played, tmp_path / "runs")
    shutil.copy(blank, root)
    return root


def test_runs_are_nested_with_batches_as_steps(whole):
    levels = {key: run["tags"]["adaexplore.level"] for key, run in whole.items()}
    counts = {level: list(levels.values()).count(level) for level in set(levels.values())}
    (episode, *_), cells = (
        [run for key, run in whole.items() if levels[key] == level] for level in ("episode", "cell")
    )

    assert {"sweep": 1, "cell": 4, "episode": 8} == counts
    assert {"FINISHED"} == {run["status"] for run in whole.values()}
    assert {None: "sweep", pages.SWEEP: "cell"} == {
        run["parent"]: levels[key] for key, run in whole.items() if levels[key] != "episode"
    }
    assert {"cell"} == {levels[r["parent"]] for k, r in whole.items() if levels[k] == "episode"}
    steps = [step for key, step, *_ in episode["points"] if key == "batch/ca"]
    assert list(range(1, 13)) == sorted(steps)
    assert {"model", "setting", "seed", "episode", "domain"} <= episode["params"].keys()
    assert all("setup.setting.evidence" in cell["params"] for cell in cells)


def test_files_are_those_of_the_store(whole, played):
    """Pages of episodes stay in the store: MLflow's page follows no links between files."""
    sweep, cell = whole[pages.SWEEP], next(r for r in whole.values() if r["parent"] == pages.SWEEP)
    there = {
        str(path.relative_to(played / "sweeps" / pages.SWEEP))
        for pattern in ("tables/*", "figures/*", "report/**/*", "frozen.yaml")
        for path in (played / "sweeps" / pages.SWEEP).glob(pattern)
        if path.is_file() and "episodes" not in path.parts
    }

    assert there == sweep["files"].keys()
    assert {"journals.jsonl.gz"} == cell["files"].keys()


def test_showing_twice_changes_nothing(root, whole):
    pages.show(pages.near(root))
    before = pages.runs(root / "mlflow.db")
    assert pages.show(pages.near(root)).trouble() is None

    assert whole == pages.shown(root)
    assert before == pages.runs(root / "mlflow.db")


def test_a_launch_that_is_interrupted_leaves_nothing_running_and_the_next_completes_it(root, whole):
    where = pages.near(root)
    tracker = MlflowTracker(where)
    pages.tell(tracker, where, upto=3)
    while tracker.pending() > 0:
        time.sleep(0.02)
    tracker.stop()
    where.store.close()
    statuses = sorted({status for _, _, status, *_ in pages.runs(root / "mlflow.db")})
    pages.show(pages.near(root))

    assert ["FINISHED", "KILLED"] == statuses
    assert whole == pages.shown(root)


LAUNCHER = """
import sys
import mlflow_pages as pages
from adaexplore.backends.mlflow.tracker import MlflowTracker
where = pages.near(sys.argv[1])
tracker = MlflowTracker(where)
pages.tell(tracker, where, upto=int(sys.argv[2]))
print("told", flush=True)
sys.stdin.readline()
pages.finish(tracker, where)
pages.wait(tracker)
sys.exit(tracker.trouble())
"""


def launcher(root, told):
    """A process that tells of so many episodes, and ends the sweep when it reads a line."""
    return subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, str(root), str(told)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip


def killed(root, *, runs):
    """A launch that is killed with SIGKILL when MLflow holds so many runs."""
    child = launcher(root, 6)
    child.stdout.readline()
    while count(root) < runs:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.communicate()


def count(root):
    try:
        return len(pages.runs(root / "mlflow.db"))
    except sqlite3.Error:
        return 0


def test_a_launch_killed_while_it_shows_is_completed_by_the_next(root, whole):
    killed(root, runs=4)
    assert "RUNNING" in {status for _, _, status, *_ in pages.runs(root / "mlflow.db")}
    pages.show(pages.near(root))

    assert whole == pages.shown(root)


def test_runs_of_a_dead_sweep_are_marked_by_whoever_shows_another(root):
    killed(root, runs=4)
    shutil.copytree(root / "sweeps" / pages.SWEEP, root / "sweeps" / "other")
    (root / "sweeps" / "other" / "projector.json").unlink()
    syncing.synchronise(replace(pages.near(root), sweep="other"), lambda _: None)
    found = pages.rows(
        root / "mlflow.db",
        "SELECT status FROM runs JOIN tags ON runs.run_uuid = tags.run_uuid"
        " WHERE tags.key = 'adaexplore.sweep' AND tags.value = ?",
        pages.SWEEP,
    )

    assert {"FINISHED", "KILLED"} == {status for (status,) in found}


def test_two_launchers_at_once_show_nothing_twice(root, whole):
    """Each tells of a part of the episodes; the one that holds the claim shows them all."""
    children = [launcher(root, told) for told in (3, 5)]
    for child in children:
        child.stdout.readline()
    for child in children:
        child.stdin.write(b"go on\n")
        child.stdin.flush()
    for child in children:
        child.communicate()

    assert [0, 0] == [child.returncode for child in children]
    assert whole == pages.shown(root)


def test_the_second_launcher_takes_over_when_the_first_is_gone(root, whole):
    first, second = pages.near(root), pages.near(root)
    assert Claim(first.store, pages.SWEEP, settle_s=0.0).taken()
    tracker = MlflowTracker(second)
    pages.tell(tracker, second, upto=5)
    time.sleep(0.3)
    assert 0 == count(root)
    first.store.close()
    pages.finish(tracker, second)
    pages.wait(tracker)

    assert whole == pages.shown(root)


def test_a_sweep_that_grew_says_what_one_says_that_was_never_smaller(tmp_path, blank, whole):
    """The same cells with fewer episodes are shown first; then they are made again, in their places."""
    root = tmp_path / "runs"
    pages.play(root, "dataset.limit=1")
    shutil.copy(blank, root)
    pages.show(pages.near(root))
    pages.play(root)
    pages.show(pages.near(root))
    timeless = [apart_from_clocks(found) for found in (whole, pages.shown(root))]

    assert timeless[0] == timeless[1]


def apart_from_clocks(found):
    """Without what differs between two plays of the same sweep: when, where and how fast."""
    return {
        key: {
            **{name: run[name] for name in ("name", "status", "parent", "params")},
            "points": [point[:3] for point in run["points"]],
            "tags": {k: v for k, v in run["tags"].items() if k != "adaexplore.files"},
            "files": sorted(run["files"]),
        }
        for key, run in found.items()
    }


def test_verify_tells_each_difference_and_sync_mends_it(root, whole):
    pages.show(pages.near(root))
    assert [] == syncing.differences(pages.near(root))
    ids = {run[1]: run[0] for run in pages.runs(root / "mlflow.db")}
    cell = ids["oracle/default/0"]
    with sqlite3.connect(root / "mlflow.db") as db:
        db.execute("UPDATE metrics SET value = 0.123 WHERE run_uuid = ? AND key = 'batch/ca' AND step = 4",
                   (ids[min(name for name in ids if "-" in name)],))  # fmt: skip
        db.execute(
            "UPDATE params SET value = 'other' WHERE run_uuid = ? AND key = 'model'", (cell,)
        )
        db.execute(
            "UPDATE runs SET status = 'RUNNING' WHERE run_uuid = ?", (ids["random/default/0"],)
        )
    db.close()
    told = syncing.differences(pages.near(root))

    assert 3 == len(told)
    assert sum("metric batch/ca" in line for line in told) == 1
    assert sum("param model: stored 'oracle', MLflow says 'other'" in line for line in told) == 1
    assert sum("status: stored 'FINISHED', MLflow says 'RUNNING'" in line for line in told) == 1
    syncing.synchronise(pages.near(root), lambda _: None)
    assert [] == syncing.differences(pages.near(root))
    assert whole == pages.shown(root)


def test_a_wiped_database_is_made_again_with_the_same_content(root, whole, blank):
    pages.show(pages.near(root))
    shutil.copy(blank, root)
    (told,) = syncing.differences(pages.near(root))
    syncing.synchronise(pages.near(root), lambda _: None)

    assert "'adaexplore sync' makes it" in told
    assert whole == pages.shown(root)


def test_sync_waits_for_nobody_and_says_so(root):
    first = pages.near(root)
    assert Claim(first.store, pages.SWEEP, settle_s=0.0).taken()
    with pytest.raises(StoreError, match="got a launch under way"):
        syncing.synchronise(pages.near(root), lambda _: None)
    first.store.close()


def test_traces_hold_each_conversation_once_and_lead_to_their_runs(root):
    """They can be asked for later; what was replayed is what the journals hold."""
    pages.show(pages.near(root))
    for _ in range(2):
        pages.show(pages.near(root, traces=True))
    database = root / "mlflow.db"
    linked = pages.rows(
        database, "SELECT value FROM trace_request_metadata WHERE key = 'mlflow.sourceRun'"
    )
    spans = pages.rows(database, "SELECT content FROM spans WHERE parent_span_id IS NOT NULL")
    said = [
        json.loads(json.loads(span)["attributes"]["mlflow.spanOutputs"])["choices"][0]["message"][
            "content"
        ]
        for (span,) in spans
    ]

    assert 8 == len(pages.rows(database, "SELECT request_id FROM trace_info"))
    assert {run[0] for run in pages.runs(database) if "-" in run[1]} == {run for (run,) in linked}
    assert sorted(said) == sorted(replies(root))
    assert [] == syncing.differences(pages.near(root, traces=True))


def replies(root):
    """The text of every reply of the attempts that count."""
    found = []
    for path in root.glob("cells/*/*/*/journal.jsonl"):
        found += [json.loads(line)["reply"]["text"] for line in path.read_text().splitlines()[1:]]
    return found


def test_any_folder_will_do(played, tmp_path):
    """And its name is not mistaken: nothing is made beside it."""
    root = tmp_path / "place" / "a b é %20#x?y"
    root.parent.mkdir()
    pages.copied(played, root)
    tracker = pages.show(pages.target(root))
    address = shlex.split(tracker.where())[-1]

    assert tracker.trouble() is None
    assert ["a b é %20#x?y"] == [path.name for path in (tmp_path / "place").iterdir()]
    assert pages.RUNS == count(root)
    assert address.endswith("%2520#x%3Fy/mlflow.db")


def test_a_first_launch_waits_for_another_that_makes_the_database(root, whole):
    """Who holds the lock is alone; a tracker neither fails nor goes ahead."""
    with (root / "mlflow.db.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        where = pages.near(root)
        tracker = MlflowTracker(where)
        pages.tell(tracker, where)
        assert not tracker.wait(2.5)
        assert 0 == count(root)
    pages.finish(tracker, where)
    pages.wait(tracker)

    assert whole == pages.shown(root)


def test_a_database_that_cannot_be_opened_is_trouble_and_not_an_error(root):
    (root / "mlflow.db").write_text("this is no database")
    tracker = pages.show(pages.near(root))

    assert tracker.trouble()
    assert "\n" not in tracker.trouble()
    assert "this is no database" == (root / "mlflow.db").read_text()


def test_a_sweep_that_is_not_there_is_named(root):
    with pytest.raises(ConfigError, match="unknown sweep 'shown'"):
        syncing.differences(pages.near(root.parent / "empty"))
