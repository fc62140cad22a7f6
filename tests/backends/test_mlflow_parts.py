"""The small parts of the projection: what MLflow takes, who may show, and what a run says."""

import math
import random
import re
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.backends.mlflow import checks, limits
from adaexplore.backends.mlflow.claims import Claim
from adaexplore.experiments import config, contents
from adaexplore.experiments.tallies import Tally

# -- limits ------------------------------------------------------------------------------------

TAKEN = re.compile(r"^[/\w.\- :]*$")


@given(st.text(max_size=600))
def test_every_name_is_taken_by_mlflow(key):
    """The rules of its validation: characters, length, and no path that leads elsewhere."""
    name = limits.name(key)

    assert TAKEN.match(name)
    assert len(name) <= 250
    assert all(part not in (".", "..") for part in name.split("/"))


@given(st.sets(st.text(alphabet="a@/.+é", max_size=8)))
def test_different_names_stay_different(keys):
    assert len(keys) == len({limits.name(key) for key in keys})


@pytest.mark.parametrize("key", ["batch/ca", "oracle/default/ea", "config.model.top_p", "a b-c_d"])
def test_a_name_that_is_fine_is_kept(key):
    assert key == limits.name(key)


@given(st.text(min_size=0, max_size=300), st.integers(100, 200))
def test_a_long_value_is_cut_and_says_so(value, most):
    shown = limits.clipped(value, most)

    assert len(shown) <= most
    assert value == shown if len(value) <= most else f"({len(value)} characters, sha256 " in shown


def test_two_long_values_that_begin_alike_stay_different():
    first, second = ("x" * 9000 + end for end in "ab")

    assert limits.clipped(first, 6000) != limits.clipped(second, 6000)


@given(st.lists(st.floats(), max_size=50))
def test_undefined_and_infinite_points_are_left_out(values):
    kept = limits.points([("m", value, 0) for value in values])

    assert [value for value in values if math.isfinite(value)] == [value for _, value, _ in kept]


@given(st.integers(0, 2500), st.integers(0, 350))
def test_calls_hold_everything_once_within_the_limits_and_the_tags_come_last(points, params):
    entries = list(
        limits.entries(
            [("m", 0.5, step) for step in range(points)],
            {f"p{n}": "v" for n in range(params)},
            {"done": "yes"},
            7,
        )
    )

    assert list(range(points)) == [step for entry in entries for _, _, step in entry.points]
    assert params == sum(len(entry.params) for entry in entries)
    assert all(len(entry.points) + len(entry.params) <= 1000 for entry in entries)
    assert all(len(entry.params) <= 100 for entry in entries)
    assert [{"done": "yes"}] == [entry.tags for entry in entries if entry.tags]
    assert entries[-1].tags == {"done": "yes"}


# -- claims ------------------------------------------------------------------------------------


class Shelf:
    """A store of which several writers have a view, each slow in its own way."""

    def __init__(self, objects, living, writer):
        self.objects, self.living, self.writer = objects, living, writer
        self.random = random.Random(writer)
        living.add(writer)

    def get(self, key):
        time.sleep(self.random.uniform(0.0, 0.005))
        return self.objects.get(key)

    def put(self, key, data):
        time.sleep(self.random.uniform(0.0, 0.02))
        self.objects[key] = data

    def locate(self, key):
        return key

    def alive(self, writer):
        return writer in self.living

    def close(self):
        self.living.discard(self.writer)


class Settling:
    """Waits for what a claim assumes of its wait: by then all who had looked have written, or have gone."""

    def __init__(self, others):
        self.others, self.over = others, False

    def __call__(self, _seconds=None):
        if not self.over:
            self.over = True
            self.others.wait(timeout=60)


@pytest.mark.parametrize("seed", range(3))
def test_of_many_that_claim_at_once_one_gets_it(seed):
    objects, living, got, others = {}, set(), [], threading.Barrier(12)
    waits = [Settling(others) for _ in range(12)]
    claims = [
        Claim(Shelf(objects, living, f"{seed}-{n}"), "s", sleep=wait)
        for n, wait in enumerate(waits)
    ]

    def claim(number):
        got.append(claims[number].taken())
        waits[number]()  # refused at its first look, it is not waited for

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 1 == sum(got)
    assert 12 == len(got)
    assert 1 == sum(claim.held() for claim in claims)
    assert 1 == len({claim.origin() for claim in claims} - {""})


def test_a_claim_outlives_its_writer_by_nothing_and_keeps_the_projections_name():
    objects, living = {}, set()
    first, second = (Claim(Shelf(objects, living, name), "s", settle_s=0.0) for name in "ab")
    assert first.taken()
    assert not second.taken()
    origin = first.origin()
    living.discard("a")

    assert second.taken()
    assert origin == second.origin()


# -- contents ----------------------------------------------------------------------------------


def test_the_digest_of_a_content_tells_everything_apart_but_files():
    place = contents.Place(identity="i", name="n", level="cell")
    base = contents.Content(place=place, params={"a": "1"}, points=[("m", 0.5, 0)])
    others = [
        replace(base, params={"a": "2"}),
        replace(base, points=[("m", 0.5, 1)]),
        replace(base, points=[("m", 0.5 + 1e-12, 0)]),
        replace(base, tags={"t": "v"}),
        replace(base, complete=False),
        replace(base, place=replace(place, name="other")),
    ]

    assert 1 + len(others) == len({content.digest() for content in [base, *others]})
    assert base.digest() == replace(base, artifacts={"f": bytes}).digest()


def test_a_model_without_tokens_or_values_says_nothing_undefined():
    values = contents.cell_values(Tally(), 3)

    assert 3.0 == values["missing"]
    assert [] == [name for name, _, _ in limits.points([("ea", values["ea"], 0)])]


# -- configuration -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "told"),
    [
        ({"kind": "server"}, "needs an address"),
        ({"kind": "sqlite", "uri": "http://127.0.0.1:5000"}, "did you mean tracking=server"),
        ({"kind": "server", "uri": "http://user:key@host"}, "without a user, a key"),
        ({"kind": "server", "uri": "ftp://host"}, "expected http"),
    ],
)
def test_a_tracking_configuration_that_cannot_be_is_refused(given_, told):
    with pytest.raises(ValueError, match=told) as caught:
        config.TrackingConfig(experiment="tests", **given_)
    assert "key@host" not in str(caught.value).partition("input_value")[0]


def test_a_server_that_does_not_answer_is_a_warning():
    warning = checks.check("http://127.0.0.1:9")

    assert warning.startswith("MLflow does not answer")
    assert "\n" not in warning
    assert "adaexplore sync" in warning


@pytest.fixture
def page_server():
    """Serves fixed pages, and 404 for all others; called with them, gives its address."""
    servers = []

    def start(pages):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                status, body = pages.get(self.path, (404, b"no such page"))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET  # noqa: N815 (the library's names)

            def log_message(self, *_):
                pass

        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, args=(0.02,), daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("pages_", "error", "told"),
    [
        ({"/version": (200, b"2.22.0")}, "TrackingError", r"same major version as here \(3"),
        ({"/version": (200, b"<!doctype html>")}, "ConfigError", "starts with '<!doctype html>'"),
        ({"/version": (404, b"<html>no</html>")}, "ConfigError", "got HTTP 404"),
        ({"/version": (200, b"3.1.0")}, "ConfigError", "got HTTP 404"),
        ({"/version": (401, b"who?")}, "TrackingError", "set MLFLOW_TRACKING_USERNAME"),
    ],
)
def test_something_else_at_the_address_is_refused(pages_, error, told, page_server):
    with pytest.raises(Exception, match=told) as caught:
        checks.check(page_server(pages_))

    assert error == type(caught.value).__name__
    assert "\n" not in str(caught.value)
