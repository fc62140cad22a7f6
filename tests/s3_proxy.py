"""A proxy on loopback between a store and a real S3 service, which makes it misbehave on demand.

A rule says which requests meet which fault, and how often. Bodies and signatures pass unchanged, so
what is not disturbed is the real service's answer.
"""

import http.client
import re
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from loopback import free_ports

Fault = Callable[["Handler"], None]


@dataclass
class Rule:
    """A fault for the next so many requests of a kind."""

    method: str
    path: str
    """Regular expression searched in path and query."""
    fault: Fault
    times: int = 1
    met: int = 0

    def fits(self, method: str, path: str) -> bool:
        return self.method in (method, "*") and re.search(self.path, path) is not None


@dataclass
class Proxy:
    """Listens from `up` to `down`; `rules` and `hidden` may be changed at any time."""

    upstream: str
    port: int = 0
    rules: list[Rule] = field(default_factory=list)
    hidden: set[str] = field(default_factory=set)
    """Ends of keys that no listing shows."""
    seen: list[tuple[str, str]] = field(default_factory=list)
    """(method, path with query) of every request."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    late: list[Callable[[], int]] = field(default_factory=list)
    """Requests that are still under way; calling one lets it arrive and returns its status."""
    server: ThreadingHTTPServer | None = None
    open: set[socket.socket] = field(default_factory=set)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def up(self) -> None:
        self.port = self.port or free_ports(1)[0]  # of its own also while it is down
        self.server = Server(("127.0.0.1", self.port), Handler)
        self.server.proxy = self
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def down(self) -> None:
        """Refuse connections, and lose those that are open."""
        self.server.shutdown()
        self.server.server_close()
        with self.lock:
            for one in self.open:
                with suppress(OSError):  # the client was faster
                    one.shutdown(socket.SHUT_RDWR)

    def rule(self, method: str, path: str, fault: Fault, times: int = 1) -> Rule:
        rule = Rule(method, path, fault, times)
        self.rules.append(rule)
        return rule

    def fault(self, method: str, path: str) -> Fault | None:
        with self.lock:
            self.seen.append((method, path))
            for rule in self.rules:
                if rule.met < rule.times and rule.fits(method, path):
                    rule.met += 1
                    return rule.fault
        return None


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        """Connections are broken here on purpose."""


class Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        with self.server.proxy.lock:
            self.server.proxy.open.add(self.connection)

    def finish(self):
        with self.server.proxy.lock:
            self.server.proxy.open.discard(self.connection)
        super().finish()

    def meet(self):
        self.fault = self.server.proxy.fault(self.command, self.path)
        if self.fault is not None:
            self.fault(self)
        else:
            self.answer(*self.forward())

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = meet  # noqa: N815 (names of the base class)

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def forward(self, body: bytes | None = None) -> tuple[int, dict, bytes]:
        """(status, headers, body) of the real service's answer."""
        upstream = urlsplit(self.server.proxy.upstream)
        connection = http.client.HTTPConnection(upstream.hostname, upstream.port, timeout=30)
        try:
            connection.putrequest(
                self.command, self.path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in self.headers.items():
                if name.lower() not in ("expect", "connection"):
                    connection.putheader(name, value)
            connection.endheaders(self.body() if body is None else body)
            response = connection.getresponse()
            headers = {name.title(): value for name, value in response.getheaders()}
            return response.status, headers, response.read()
        finally:
            connection.close()

    def answer(self, status: int, headers: dict, body: bytes) -> None:
        if "list-type=2" in self.path:
            body = self.without_hidden(body)
        self.send_response_only(status)
        length = headers.get("Content-Length") if self.command == "HEAD" else str(len(body))
        for name, value in headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        if length is not None:
            self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def without_hidden(self, body: bytes) -> bytes:
        text = body.decode()
        for key in self.server.proxy.hidden:
            text = re.sub(
                rf"<Contents>(?:(?!</Contents>).)*{re.escape(key)}</Key>.*?</Contents>", "", text
            )
        return text.encode()

    def reset(self) -> None:
        """End the connection as a crash does."""
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close_connection = True
        with self.server.proxy.lock:
            self.server.proxy.open.discard(self.connection)
        self.connection.shutdown(socket.SHUT_RD)
        self.wfile.close()
        self.rfile.close()
        self.connection.close()

    def log_message(self, *arguments):
        """Be silent."""


# -- faults --------------------------------------------------------------------------------------


def refusal(status: int, code: str, text: str = "no", *, more: str = "", **headers: str) -> Fault:
    """An error as S3 words it, without asking the service."""

    def fault(handler: Handler) -> None:
        handler.body()
        body = f"<Error><Code>{code}</Code><Message>{text}</Message>{more}</Error>"
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        handler.answer(status, {"Content-Type": "application/xml", **named}, body.encode())

    return fault


def reset_before(handler: Handler) -> None:
    """The connection breaks in the middle of the upload."""
    handler.rfile.read(int(handler.headers.get("Content-Length", 0)) // 2)
    handler.reset()


def lost_answer(handler: Handler) -> None:
    """It is carried out, and nobody is told."""
    handler.forward()
    handler.reset()


def cut_answer(handler: Handler) -> None:
    """The connection breaks in the middle of the download."""
    status, headers, body = handler.forward()
    handler.send_response_only(status)
    handler.send_header("Content-Length", headers["Content-Length"])
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2])
    handler.wfile.flush()
    handler.reset()


def arrives_late(handler: Handler) -> None:
    """The client gives up; the request is carried out when the proxy's `late` entry is called."""
    body = handler.body()
    handler.server.proxy.late.append(lambda: handler.forward(body)[0])
    handler.reset()


def held(entered: threading.Event, go_on: threading.Event) -> Fault:
    """The real answer, which has been made already, is held back until an event."""

    def fault(handler: Handler) -> None:
        answer = handler.forward()
        entered.set()
        go_on.wait(120)
        handler.answer(*answer)

    return fault


def refused_key(key: str) -> Fault:
    """A service that knows this access key no more."""
    no = refusal(403, "InvalidAccessKeyId")

    def fault(handler: Handler) -> None:
        if f"Credential={key}/" in handler.headers["Authorization"]:
            no(handler)
        else:
            handler.answer(*handler.forward())

    return fault


def refused_condition(status: int, code: str) -> Fault:
    """A service without conditional puts."""
    no = refusal(status, code)

    def fault(handler: Handler) -> None:
        if "If-None-Match" in handler.headers:
            no(handler)
        else:
            handler.answer(*handler.forward())

    return fault


def shifted(seconds: float) -> Fault:
    """The real answer, by a clock that is ahead."""

    def fault(handler: Handler) -> None:
        status, headers, body = handler.forward()
        headers["Date"] = formatdate(time.time() + seconds, usegmt=True)
        handler.answer(status, headers, body)

    return fault


def without_condition(handler: Handler) -> None:
    """A service that says yes to a conditional put whatever is there."""
    if "If-None-Match" in handler.headers:
        handler.body()
        handler.answer(200, {"ETag": '"0"'}, b"")
    else:
        handler.answer(*handler.forward())
