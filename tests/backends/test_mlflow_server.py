"""The projection on a real server, through every fault that a network and a server have."""

import socket
import threading
import time
from collections import Counter

import pytest

import mlflow_pages as pages
from adaexplore.backends.mlflow import checks, syncing
from adaexplore.backends.mlflow.rest import Rest
from adaexplore.backends.mlflow.service import ServiceError
from adaexplore.backends.mlflow.tracker import MlflowTracker
from adaexplore.errors import TrackingError
from faulty_proxy import FaultyProxy, storm

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with pages.Server(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    root = tmp_path_factory.mktemp("played") / "runs"
    pages.play(root)
    return root


@pytest.fixture(scope="module")
def whole(server, played, tmp_path_factory):
    """What the server holds of the sweep when nothing went wrong."""
    root = pages.copied(played, tmp_path_factory.mktemp("whole") / "runs")
    assert pages.show(pages.target(root, server.url, experiment="whole")).trouble() is None
    return server.dump("whole")


@pytest.fixture
def root(played, tmp_path):
    return pages.copied(played, tmp_path / "runs")


def test_a_server_shows_what_the_store_says(server, whole):
    assert pages.RUNS == len(whole)
    assert {"FINISHED"} == {run["status"] for run in whole.values()}
    assert all(
        run["files"] for run in whole.values() if run["tags"]["adaexplore.level"] != "episode"
    )
    assert checks.check(server.url) is None


def test_a_storm_of_faults_changes_nothing(server, whole, root):
    """A tenth of all requests meets refusals, resets, lost answers or slowness."""
    with FaultyProxy(server.url, storm(1, 0.1)) as proxy:
        tracker = pages.show(pages.target(root, proxy.url, experiment="storm"))

    assert tracker.trouble() is None
    assert len(proxy.paths) > pages.RUNS * 3
    assert whole == server.dump("storm")


def test_a_calm_episode_takes_three_requests(server, root):
    with FaultyProxy(server.url) as proxy:
        pages.show(pages.target(root, proxy.url, experiment="calm"))
    count = Counter(path.rpartition("/")[2].partition("?")[0] for path in proxy.paths)

    assert pages.RUNS == count["create"] - 1  # and the experiment
    assert pages.RUNS == count["update"]
    assert 1 + 4 == count["get"]  # where the files of sweep and cells go, asked by the library


def test_a_server_that_is_down_and_comes_back_is_caught_up_with(server, whole, root):
    with FaultyProxy(server.url) as proxy:
        proxy.down()
        where = pages.target(root, proxy.url, experiment="down")
        tracker = MlflowTracker(where)
        pages.tell(tracker, where)
        time.sleep(1.5)
        proxy.up()
        pages.finish(tracker, where)
        pages.wait(tracker)
        where.store.close()

    assert tracker.trouble() is None
    assert whole == server.dump("down")


def test_a_server_that_stays_down_holds_nothing_up_for_longer_than_was_allowed(root):
    with socket.socket() as held:  # nobody listens there, and nobody else can
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"
        where = pages.target(root, f"http://{address}", drain_s=1.0)
        start = time.monotonic()
        tracker = pages.show(where)
        took = time.monotonic() - start

    assert took < 20
    assert address in tracker.trouble()
    assert "\n" not in tracker.trouble()


def test_two_sweeps_that_make_the_same_experiment_at_once_share_it(server, played, tmp_path):
    roots = [pages.copied(played, tmp_path / name) for name in ("one", "two")]
    trackers = []
    threads = [
        threading.Thread(
            target=lambda r=r: trackers.append(
                pages.show(pages.target(r, server.url, experiment="shared"))
            )
        )
        for r in roots
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [None, None] == [tracker.trouble() for tracker in trackers]
    assert 2 * pages.RUNS == len(pages.runs(server.database, "shared"))


def test_a_server_wiped_in_the_middle_ends_with_the_same_content(server, whole, root):
    where = pages.target(root, server.url, experiment="wiped")
    tracker = MlflowTracker(where)
    pages.tell(tracker, where, upto=5)
    while tracker.pending() > 0:
        time.sleep(0.02)
    server.wipe("wiped")
    pages.tell(tracker, where)
    pages.finish(tracker, where)
    pages.wait(tracker)
    where.store.close()

    assert tracker.trouble() is None
    assert whole == server.dump("wiped")


def test_a_server_wiped_afterwards_is_made_again_by_sync(server, whole, root):
    """And verify says so before, and finds nothing after."""
    pages.show(pages.target(root, server.url, experiment="afterwards"))
    server.wipe("afterwards")
    before = syncing.differences(pages.target(root, server.url, experiment="afterwards"))
    left = []
    syncing.synchronise(pages.target(root, server.url, experiment="afterwards"), left.append)

    assert 1 == len(before)
    assert [] == syncing.differences(pages.target(root, server.url, experiment="afterwards"))
    assert whole == server.dump("afterwards")


def test_an_experiment_that_was_deleted_is_named_and_nothing_is_lost(server, root):
    rest = Rest(server.url)
    experiment_id = rest.experiment("deleted")
    rest._call("POST", "experiments/delete", {"experiment_id": experiment_id})
    rest.close()
    tracker = pages.show(pages.target(root, server.url, experiment="deleted"))

    assert "restore it in MLflow, or choose another with tracking.experiment=" in tracker.trouble()
    with pytest.raises(TrackingError, match="mend that and sync again"):
        syncing.synchronise(pages.target(root, server.url, experiment="deleted"), lambda _: None)


@pytest.mark.parametrize(
    ("fault", "kind"), [("503", "again"), ("429", "again"), ("reset", "again"), ("500", "again")]
)
def test_faults_are_told_apart(server, fault, kind):
    with FaultyProxy(server.url, lambda *_: fault) as proxy:
        rest = Rest(proxy.url)
        with pytest.raises(ServiceError) as caught:
            rest.experiment("never")
        rest.close()

    assert kind == caught.value.kind
    assert (1.0 if fault == "429" else None) == caught.value.retry_after_s


def test_a_run_that_is_not_there_is_gone(server):
    rest = Rest(server.url)
    with pytest.raises(ServiceError) as caught:
        rest.delete("0" * 32)
    rest.close()

    assert "gone" == caught.value.kind
