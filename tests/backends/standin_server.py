"""A stand-in for a serving engine: a real process with the engine's pages, and faults on request.

Run as the engine would be: `python standin_server.py --port N --served-model-name NAME ...`. What it
does wrong stands in the variable STANDIN, several words separated by spaces. A file named `wedge` in
its folder wedges it as engines do: `/health` stays at 200, nothing else gets on; a new server removes
the file, and a POST to `/wedge` makes it. A metered one answers a few completions, and then none until
a POST to `/more` allows the number that it holds: what is played with it cannot be over before that.
With port 0 it takes a free one and prints it. The reply of a completion is its process id, its host and the
GPUs that it was given. As the engine does, it asks for a key below `/v1` if VLLM_API_KEY holds one.
"""

import argparse
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FAULTS = os.environ.get("STANDIN", "").split()
KEY = os.environ.get("VLLM_API_KEY")
WEDGE = Path("wedge")
LONG_S = 600
SLOW_S = 0.1
WORDS = {
    "gpu-memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "no-model": "OSError: /nowhere is not a local folder and is not a valid model identifier",
    "address": "OSError: [Errno 98] Address already in use",
    "held": "ValueError: Free memory on device (1.2/79.1 GiB) on startup is less than desired",
    "driver": "RuntimeError: The NVIDIA driver on your system is too old (found version 11040)",
    "unknown": "first line\nsecond line\nthe last words",
}
METERED = 16
"""Completions before the first `/more`."""
done = []
allowance = threading.Semaphore(METERED)


class Pages(BaseHTTPRequestHandler):
    """The pages that the host asks for."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/health":
            self.reply(503 if "deaf" in FAULTS else 200, "")
        elif self.path.startswith("/v1") and not self.allowed():
            self.reply(401, '{"error": "Unauthorized"}')
        elif self.path == "/v1/models":
            name = "another" if "misnamed" in FAULTS else OPTIONS.served_model_name
            self.reply(200, json.dumps({"data": [{"id": name, "max_model_len": 128}]}))
        elif self.path == "/version":
            self.reply(200, json.dumps({"version": "0.0.1"}))
        elif self.path == "/metrics":
            self.reply(200, f'vllm:generation_tokens_total{{engine="0"}} {float(len(done))}\n')
        else:
            self.reply(404, "")

    def do_POST(self):
        said = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/wedge":
            WEDGE.touch()
            self.reply(200, "")
            return
        if self.path == "/more":
            allowance.release(int(said))
            self.reply(200, "")
            return
        if not self.allowed():
            self.reply(401, '{"error": "Unauthorized"}')
            return
        if "refusing" in FAULTS:
            self.reply(400, '{"error": {"message": "no chat template"}}')
            return
        while WEDGE.exists():
            time.sleep(0.05)
        if "slow" in FAULTS:
            time.sleep(SLOW_S)
        while "metered" in FAULTS and not allowance.acquire(timeout=0.05):
            if self.left():
                return
        done.append(1)
        gpus = os.environ.get("CUDA_VISIBLE_DEVICES", os.environ.get("NVIDIA_VISIBLE_DEVICES"))
        host = os.environ.get("HOSTNAME")
        text = json.dumps({"pid": os.getpid(), "host": host, "gpus": gpus})
        self.reply(200, json.dumps({"choices": [{"message": {"content": text}}]}))
        if "short-lived" in FAULTS:
            os._exit(3)

    def allowed(self):
        return KEY is None or self.headers["Authorization"] == f"Bearer {KEY}"

    def left(self):
        """Whether who asked has gone meanwhile: nothing is spent on an answer that nobody reads."""
        readable, _, _ = select.select([self.connection], [], [], 0)
        self.close_connection = bool(readable)
        return self.close_connection

    def reply(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())
        self.wfile.flush()

    def log_message(self, *_):
        """Quiet."""


def families():
    """Children that are hard to find: another session, no environment, no parent."""
    sleeper = f"import time; time.sleep({LONG_S})"
    code = (
        "import sys; from subprocess import DEVNULL, Popen; "
        f"p = Popen([sys.executable, '-c', {sleeper!r}], env={{}}, start_new_session=True, "
        "stdout=DEVNULL, stderr=DEVNULL); print(p.pid)"
    )
    for env in (None, {}):
        made = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        with Path("children").open("a") as file:
            file.write(made.stdout)


def main():
    """Serve, or fail as asked."""
    for fault in FAULTS:
        if fault in WORDS:
            print(WORDS[fault], file=sys.stderr)
            sys.exit(1)
    if "chatty" in FAULTS:
        print("first byte\n" + "x" * 200_000, flush=True)
    if "stubborn" in FAULTS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "children" in FAULTS:
        families()
    if "hungry" in FAULTS:
        held = bytearray(300_000_000)
        time.sleep(LONG_S + len(held))
    if "never" in FAULTS:
        time.sleep(LONG_S)
    WEDGE.unlink(missing_ok=True)
    server = ThreadingHTTPServer((OPTIONS.host, OPTIONS.port), Pages)
    if OPTIONS.port == 0:
        print(server.server_port, flush=True)
    threading.Thread(target=server.serve_forever).start()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    parser.add_argument("--served-model-name")
    OPTIONS, _ = parser.parse_known_args()
    main()
