"""Calls of an API server that is overloaded, away, or says no: against a real HTTP server."""

import asyncio
import contextlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import urllib3

from adaexplore.backends.kubernetes.clients import (
    Cluster,
    ConflictError,
    RefusedError,
    UnreachableError,
)

PATIENT_S = 60.0
"""Where the end of the patience is not the subject: more than a busy machine needs."""


@dataclass
class Served:
    """A server that gives its answers in turn, the last one for ever."""

    answers: list = field(default_factory=list)
    asked: list = field(default_factory=list)
    address: str = ""
    reached: threading.Event = field(default_factory=threading.Event)
    answering: threading.Event = field(default_factory=threading.Event)
    """While it is not set, whoever asks waits."""

    def __post_init__(self):
        served = self

        class Pages(BaseHTTPRequestHandler):
            def answer(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length) or "null")
                served.asked.append((self.command, self.path, body))
                served.reached.set()
                answers = served.answers
                status, document = answers.pop(0) if len(answers) > 1 else answers[0]
                served.answering.wait()
                data = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815 (as the base class calls them)

            def log_message(self, *_):
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
        self.address = f"http://127.0.0.1:{self.server.server_port}"


class Plain:
    """A connection without a library of Kubernetes: no secrets, the test's own server."""

    name = "test"

    def __init__(self, server):
        self.server = server
        self.pool = urllib3.PoolManager(retries=False)

    def headers(self, _method, _path):
        return {"Accept": "application/json"}

    def request(self, method, path, **more):
        return self.pool.request(method, self.server + path, redirect=False, **more)

    def close(self):
        self.pool.clear()


@contextlib.contextmanager
def serving(*answers, patience_s=PATIENT_S):
    """(server, cluster): what the cluster is asked goes to the server."""
    served = Served(list(answers))
    served.answering.set()
    thread = threading.Thread(target=served.server.serve_forever, args=(0.01,))
    thread.start()
    cluster = Cluster(Plain(served.address), "room", patience_s=patience_s)
    try:
        yield served, cluster
    finally:
        cluster.close()
        served.server.shutdown()
        served.server.server_close()
        thread.join()


def says(status, message, reason=""):
    return status, {"kind": "Status", "message": message, "reason": reason}


@pytest.mark.parametrize("status", [429, 500, 503, 504])
def test_a_server_that_is_away_for_a_moment_is_asked_again(status):
    with serving(says(status, "no"), says(status, "no"), (200, {"a": 1})) as (served, cluster):
        assert {"a": 1} == asyncio.run(cluster.find("jobs", "j"))
    assert [("GET", "/apis/batch/v1/namespaces/room/jobs/j", None)] * 3 == served.asked


def test_patience_ends_with_what_was_said_last():
    with (
        serving(says(503, "starting"), patience_s=0.5) as (_, cluster),
        pytest.raises(UnreachableError, match=r"within 0.5 s: .*starting"),
    ):
        asyncio.run(cluster.find("jobs", "j"))


def test_nobody_who_listens_is_an_error_in_one_line():
    cluster = Cluster(Plain("http://127.0.0.1:1"), "room", patience_s=0.1)
    with pytest.raises(
        UnreachableError, match=r"API server of test \(http://127.0.0.1:1\)"
    ) as error:
        asyncio.run(cluster.items("pods"))
    cluster.close()
    assert "\n" not in str(error.value)


def test_what_is_not_there_is_none_and_what_is_forbidden_an_error():
    with serving(says(404, "not found", "NotFound"), says(403, "may not", "Forbidden")) as (
        _,
        cluster,
    ):
        assert asyncio.run(cluster.find("jobs", "j")) is None
        with pytest.raises(RefusedError, match="may not") as error:
            asyncio.run(cluster.find("jobs", "j"))
    assert (403, "Forbidden", False) == (error.value.status, error.value.reason, error.value.quota)


def test_a_right_that_was_there_is_believed_lost_only_after_a_while():
    """An API server that has just started forbids what it will allow; a right that never was is none."""
    no = says(403, 'User "d" cannot get resource "jobs"', "Forbidden")
    with serving((200, {"a": 1}), no, no, (200, {"a": 2})) as (served, cluster):
        assert {"a": 1} == asyncio.run(cluster.find("jobs", "j"))
        assert {"a": 2} == asyncio.run(cluster.find("jobs", "other"))
    assert 4 == len(served.asked)
    with serving(says(503, "starts"), no, (200, {"a": 1})) as (_, cluster):
        assert {"a": 1} == asyncio.run(cluster.find("jobs", "j"))
    with serving((200, {"a": 1}), no, patience_s=0.5) as (_, cluster):
        asyncio.run(cluster.find("jobs", "j"))
        with pytest.raises(RefusedError, match="cannot get"):
            asyncio.run(cluster.find("jobs", "j"))
    with serving((200, {"a": 1}), no) as (served, cluster):
        asyncio.run(cluster.find("pods", "j"))
        with pytest.raises(RefusedError, match="cannot get"):
            asyncio.run(cluster.find("jobs", "j"))
    assert 2 == len(served.asked)


def test_a_quota_is_told_from_a_missing_right():
    with (
        serving(says(403, 'jobs "j" is forbidden: exceeded quota: q', "Forbidden")) as (
            _,
            cluster,
        ),
        pytest.raises(RefusedError) as error,
    ):
        asyncio.run(cluster.create("jobs", {"metadata": {}}))
    assert error.value.quota


def test_a_name_that_is_taken_is_a_conflict_but_two_that_meet_at_a_quota_try_again():
    met = says(409, "Operation cannot be fulfilled on resourcequotas q: modified", "Conflict")
    with (
        serving(met, says(409, "exists", "AlreadyExists")) as (served, cluster),
        pytest.raises(ConflictError),
    ):
        asyncio.run(cluster.create("jobs", {"metadata": {}}))
    assert 2 == len(served.asked)


def test_a_list_is_read_to_its_end_and_anew_when_it_has_grown_too_old():
    first = (200, {"items": [1], "metadata": {"continue": "x"}})
    last = (200, {"items": [2], "metadata": {}})
    answers = [first, says(410, "expired", "Expired"), first, last]
    with serving(*answers) as (served, cluster):
        assert [1, 2] == asyncio.run(cluster.items("pods", labels={"a": "b"}))
    assert [False, True, False, True] == ["continue=x" in path for _, path, _ in served.asked]
    assert all("labelSelector=a%3Db" in path for _, path, _ in served.asked)


def test_an_end_is_asked_for_in_the_foreground_of_that_very_object():
    with serving((200, {}), says(404, "gone"), says(409, "another uid")) as (served, cluster):
        ended = [asyncio.run(cluster.delete("jobs", "j", uid="u")) for _ in range(3)]
    assert [True, False, False] == ended
    assert {"uid": "u"} == served.asked[0][2]["preconditions"]
    assert "Foreground" == served.asked[0][2]["propagationPolicy"]


def test_a_change_that_was_sent_is_waited_for_by_a_caller_that_is_cancelled():
    """Else whoever cleans up would look before the object is there."""

    async def cancelled(cluster, served):
        making = asyncio.create_task(cluster.create("jobs", {"metadata": {}}))
        await asyncio.to_thread(served.reached.wait)
        making.cancel()
        waited = not (await asyncio.wait([making], timeout=0.2))[0]
        served.answering.set()
        await asyncio.wait([making])
        return waited, making.cancelled()

    with serving((201, {})) as (served, cluster):
        served.answering.clear()
        assert (True, True) == asyncio.run(cancelled(cluster, served))


def test_what_is_no_document_is_no_api_server():
    with (
        serving((200, [1])) as (_, cluster),
        pytest.raises(UnreachableError, match="is this the API server"),
    ):
        asyncio.run(cluster.find("jobs", "j"))
