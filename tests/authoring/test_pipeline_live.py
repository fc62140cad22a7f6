"""The author command against an endpoint on loopback: the whole path that a real model takes."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import greenhouse
from adaexplore import author, launch

KEY = "sk-canary-5d1c7a0e"
PROFILE = """
kind: openai_compatible
provider: loopback
model: null
auth: {{key_env: AUTHOR_KEY}}
sampling: {{reply_format: json_schema, max_output_tokens: 4096}}
route: {{base_url: "http://127.0.0.1:{port}/v1"}}
patience: {{attempts: 2, backoff_base_s: 0.01, backoff_cap_s: 0.01}}
"""


class Handler(BaseHTTPRequestHandler):
    """Answers with the stored answers, by the name of the schema and the length of the conversation."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Quiet."""

    def do_GET(self):
        self._send({"object": "list", "data": [{"id": "grower-1"}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.bodies.append((body, self.headers["Authorization"]))
        name = body["response_format"]["json_schema"]["name"]
        repairs = sum(message["role"] == "assistant" for message in body["messages"])
        answer = greenhouse.stored(name, 1 + repairs)
        message = {"role": "assistant", "content": json.dumps(answer)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        self._send({"id": "1", "model": "grower-1", "choices": [choice], "usage": usage})

    def _send(self, document):
        data = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def server():
    """A running server; `bodies` are the requests it got."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.daemon_threads = True
        running.bodies = []
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_a_remote_model_authors_the_domain(server, tmp_path, monkeypatch):
    """Held to each schema; the same episodes as the replay; the key is in no file."""
    folder = tmp_path / "conf" / "model"
    folder.mkdir(parents=True)
    (folder / "grower.yaml").write_text(PROFILE.format(port=server.server_port))
    monkeypatch.setenv("AUTHOR_KEY", KEY)
    words = [str(greenhouse.IDEA), "--model", "grower", "--date", greenhouse.DATE]

    with contextlib.chdir(tmp_path):
        assert 2 == launch.guarded(lambda: author.main(words))  # the model's name is not known
        words.append("+profiles.grower.model=grower-1")
        assert 0 == launch.guarded(lambda: author.main(words))
        asked = len(server.bodies)
        assert 0 == launch.guarded(lambda: author.main(words))

    assert asked == len(server.bodies) == len(greenhouse.CALLS) + 1  # one repair
    body, authorization = server.bodies[0]
    form = body["response_format"]
    assert f"Bearer {KEY}" == authorization
    assert ("json_schema", "01-inventory", True) == (
        form["type"], form["json_schema"]["name"], form["json_schema"]["strict"],
    )  # fmt: skip
    run = tmp_path / "runs" / "author" / greenhouse.DOMAIN
    replayed = greenhouse.run(tmp_path / "replay", answers=run)
    assert greenhouse.dataset_bytes(run) == greenhouse.dataset_bytes(replayed)
    manifest = json.loads((run / "dataset" / "manifest.json").read_text())
    (model,) = manifest["authoring"]["models"]
    assert ("loopback", "grower-1") == (model["provider"], model["model"])
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(KEY.encode() in data for data in written)
