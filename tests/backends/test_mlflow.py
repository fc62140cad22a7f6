"""The projection in MLflow: nested, complete, and the same however often it is made."""

import fcntl
import shlex

import pytest
from mlflow import MlflowClient

from adaexplore.backends.mlflow import MlflowTracker
from adaexplore.benchmark.game.agents.oracle import Told, oracle
from adaexplore.benchmark.game.play import play
from adaexplore.benchmark.game.protocol import Reply
from adaexplore.experiments import grids
from adaexplore.models.profiles import ScriptedProfile

pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow's own


@pytest.fixture(scope="module")
def cell(settings):
    profile = ScriptedProfile(kind="scripted", agent="oracle", version=1)
    return grids.Cell(
        model="oracle",
        profile=profile,
        setting=settings["default"],
        seed=0,
        semantic={},
        cell_id="c" * 32,
    )


@pytest.fixture(scope="module")
def records(worlds, settings, protocol):
    found = []
    for world in worlds[:2]:
        playing = play(world, settings["default"], protocol)
        request = next(playing)
        try:
            while True:
                request = playing.send(
                    Reply(text=oracle(request.messages, Told(world=world, drifts=True)))
                )
        except StopIteration as stop:
            found.append(stop.value)
    return found


def project(root, cell, records, artifact):
    tracker = MlflowTracker(root, experiment="tests", sweep="s1")
    for record in records:
        tracker.episode(cell, record)
    tracker.cell(cell, {"ca": 1.0})
    tracker.finish({"oracle/default/ca": 1.0}, [artifact])
    while not tracker.wait(1.0):
        pass
    assert tracker.trouble() is None
    assert 0 == tracker.pending()
    assert "mlflow.db" in tracker.where()


def runs(root):
    client = MlflowClient(tracking_uri=f"sqlite:///{root / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("tests")
    return client, client.search_runs([experiment.experiment_id])


def content(root):
    """What the runs hold, without MLflow's own ids and times."""
    client, found = runs(root)
    return {
        run.data.tags["adaexplore.id"]: (
            run.info.run_name,
            run.info.status,
            run.data.params,
            run.data.metrics,
            [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, "batch/ca")],
        )
        for run in found
    }


@pytest.fixture
def artifact(tmp_path):
    path = tmp_path / "tables" / "main.csv"
    path.parent.mkdir()
    path.write_text("model\n")
    return path


def test_runs_are_nested_with_batches_as_steps(cell, records, artifact, tmp_path):
    project(tmp_path, cell, records, artifact)
    client, found = runs(tmp_path)
    by_level = {
        level: [r for r in found if r.data.tags["adaexplore.level"] == level]
        for level in ("sweep", "cell", "episode")
    }
    (sweep,), (cell_run,), episodes = by_level["sweep"], by_level["cell"], by_level["episode"]

    assert sweep.info.run_id == cell_run.data.tags["mlflow.parentRunId"]
    assert {cell_run.info.run_id} == {run.data.tags["mlflow.parentRunId"] for run in episodes}
    assert {"FINISHED"} == {run.info.status for run in found}
    assert {r.episode_id for r in records} == {run.data.params["episode"] for run in episodes}
    history = client.get_metric_history(episodes[0].info.run_id, "batch/ca")
    assert list(range(1, 13)) == sorted(point.step for point in history)
    assert ["tables/main.csv"] == [
        a.path for a in client.list_artifacts(sweep.info.run_id, "tables")
    ]


def test_showing_twice_changes_nothing(cell, records, artifact, tmp_path):
    project(tmp_path, cell, records, artifact)
    once = content(tmp_path)
    project(tmp_path, cell, records, artifact)

    assert once == content(tmp_path)


def test_what_a_killed_launch_missed_is_shown_by_the_next(cell, records, artifact, tmp_path):
    tracker = MlflowTracker(tmp_path / "killed", experiment="tests", sweep="s1")
    tracker.episode(cell, records[0])
    tracker._queue.put(None)  # the process dies: no cell, no sweep is ever closed
    while not tracker.wait(1.0):
        pass
    project(tmp_path / "killed", cell, records, artifact)
    project(tmp_path / "whole", cell, records, artifact)

    assert content(tmp_path / "whole") == content(tmp_path / "killed")


def test_any_folder_will_do(cell, records, artifact, tmp_path):
    """And its name is not mistaken: nothing is made beside it."""
    root = tmp_path / "place" / "a b é %20#x?y"
    project(root, cell, records[:1], artifact)
    made = [path.name for path in (tmp_path / "place").iterdir()]
    tracker = MlflowTracker(root, experiment="tests", sweep="s1")
    tracker.finish({}, [])
    while not tracker.wait(1.0):
        pass
    address = shlex.split(tracker.where())[-1]
    found = MlflowClient(tracking_uri=address).get_experiment_by_name("tests")

    assert found is not None
    assert (root / "mlflow.db").is_file()
    assert ["a b é %20#x?y"] == made


def test_a_first_launch_waits_for_another_that_makes_the_database(artifact, tmp_path):
    """Who holds the lock is alone; a tracker neither fails nor goes ahead."""
    with (tmp_path / "mlflow.db.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        tracker = MlflowTracker(tmp_path, experiment="tests", sweep="s1")
        tracker.finish({}, [artifact])
        assert not tracker.wait(1.0)
        assert not (tmp_path / "mlflow.db").exists()
    while not tracker.wait(1.0):
        pass

    assert tracker.trouble() is None
    assert (tmp_path / "mlflow.db").is_file()


def test_a_database_that_cannot_be_opened_is_trouble_and_not_an_error(
    cell, records, artifact, tmp_path
):
    (tmp_path / "mlflow.db").write_text("this is no database")
    tracker = MlflowTracker(tmp_path, experiment="tests", sweep="s1")
    tracker.episode(cell, records[0])
    tracker.finish({}, [artifact])
    while not tracker.wait(1.0):
        pass

    assert tracker.trouble()
    assert "\n" not in tracker.trouble()
    assert "this is no database" == (tmp_path / "mlflow.db").read_text()
