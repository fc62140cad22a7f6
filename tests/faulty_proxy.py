"""A proxy on loopback between a client and an HTTP server, with any fault it is told of.

A plan says for each request, by its number from 0, what goes wrong: `503`, `429` (asks for a second),
`500`, `reset` (nothing is forwarded), `lost` (forwarded, and the answer never comes back), `slow`, or
None. `down` closes the port, `up` opens it again.

    with FaultyProxy("http://127.0.0.1:5000", plan) as proxy:
        ...proxy.url...
"""

import itertools
import random
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import urllib3

from loopback import free_ports

SLOW_S = 0.1


def calm(_number, _path):
    """Nothing goes wrong."""


def storm(seed, share):
    """So large a share of the requests meets a fault, the same ones for a seed."""
    faults = ("503", "429", "500", "reset", "lost", "slow")

    def plan(number, _path):
        rng = random.Random(f"{seed}/{number}")
        return rng.choice(faults) if rng.random() < share else None

    return plan


class FaultyProxy:
    """The proxy, in threads of its own for as long as the context lasts."""

    def __init__(self, target, plan=calm):
        self.target, self.plan, self.paths = target, plan, []
        self.pool = urllib3.PoolManager(maxsize=32, retries=False)
        self._numbers, self._server, self._port = itertools.count(), None, 0

    def __enter__(self):
        self.up()
        return self

    def __exit__(self, *_):
        self.down()
        self.pool.clear()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._port}"

    def up(self):
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_one_request(self):
                try:
                    super().handle_one_request()
                except OSError:
                    self.close_connection = True

            def do_GET(self):
                proxy.answer(self)

            do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 (the library's names)

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            allow_reuse_address = True
            daemon_threads = True
            request_queue_size = 64

        self._port = self._port or free_ports(1)[0]  # of its own also while it is down
        self._server = Server(("127.0.0.1", self._port), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def down(self):
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def answer(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        fault = "reset" if self._server is None else self.plan(next(self._numbers), handler.path)
        self.paths.append(handler.path)
        if fault == "slow":
            time.sleep(SLOW_S)
        if fault in ("500", "503", "429"):
            self._refuse(handler, int(fault))
            return
        if fault != "reset":
            self._forward(handler, body, lost=fault == "lost")
        if fault in ("reset", "lost"):
            handler.connection.shutdown(socket.SHUT_RDWR)
            handler.close_connection = True

    def _forward(self, handler, body, *, lost):
        given = {k: v for k, v in handler.headers.items() if k.lower() != "host"}
        # A connection that was kept could be closed by the server at the moment it is used again.
        headers = given | {"Connection": "close"}
        answer = self.pool.request(
            handler.command, self.target + handler.path, body=body, headers=headers
        )
        if lost:
            return
        handler.send_response(answer.status)
        kept = ("content-type", "retry-after")
        for key, value in answer.headers.items():
            if key.lower() in kept:
                handler.send_header(key, value)
        handler.send_header("Content-Length", str(len(answer.data)))
        handler.end_headers()
        handler.wfile.write(answer.data)

    def _refuse(self, handler, status):
        handler.send_response(status)
        if status == 429:
            handler.send_header("Retry-After", "1")
        handler.send_header("Content-Length", "0")
        handler.end_headers()
