"""A node's logs, for `pods/log` of the API server.

The API server asks the node by TLS: `/containerLogs/NAMESPACE/POD/CONTAINER?follow=&tailLines=`. Whoever
may read logs has been decided there. `previous` and `sinceSeconds` are not known here: a log holds all
runs of its container, one after another.
"""

import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

FOLLOW_S: Final = 0.2
OVER: Final = ".over"
"""Suffix of a file that says that nothing more will be said."""


class LogServer:
    """Serves a folder of logs, in a thread."""

    def __init__(self, logs: Path, address: str, certificate: Path) -> None:
        """On a free port of an address; `certificate` without its suffix (.crt, .key)."""
        self._server = ThreadingHTTPServer((address, 0), _handler(logs))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.with_suffix(".crt"), certificate.with_suffix(".key"))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port: int = self._server.server_address[1]

    def start(self) -> None:
        """Begin to serve."""
        threading.Thread(target=self._server.serve_forever, daemon=True).start()


def newest(logs: Path, namespace: str, pod: str, container: str) -> Path | None:
    """The log of a container, of the newest pod of that name."""
    found = logs.glob(f"{namespace}_{pod}_*/{container}.log")
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def _handler(logs: Path) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            words, query = url.path.strip("/").split("/"), parse_qs(url.query)
            path = newest(logs, *words[1:]) if len(words) == 4 else None
            if words[0] != "containerLogs" or path is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            self._send(path, query)

        def _send(self, path: Path, query: dict[str, list[str]]) -> None:
            with path.open("rb") as file:
                content = file.read()
                if "tailLines" in query:
                    lines = content.splitlines(keepends=True)
                    content = b"".join(lines[-int(query["tailLines"][0]) :])
                self.wfile.write(content)
                while query.get("follow") == ["true"]:
                    over = path.with_suffix(OVER).exists()
                    more = file.read()
                    self.wfile.write(more)
                    if over and not more:
                        return
                    time.sleep(FOLLOW_S)

        def log_message(self, *_: Any) -> None:
            """Nothing: the node's own log is for what goes wrong."""

    return Handler
