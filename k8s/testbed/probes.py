"""Startup, readiness and liveness probes, as real calls into the pod.

One thread a probe, from the container's start to its end. A startup probe holds the other two back
until it succeeds once. Source: Kubernetes documentation, "Liveness, Readiness, and Startup Probes";
the defaults are the API server's.
"""

import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import urllib3

from k8s.testbed.api import Json
from k8s.testbed.processes import Run

LIVENESS: Final = "livenessProbe"
READINESS: Final = "readinessProbe"
STARTUP: Final = "startupProbe"


@dataclass(slots=True, kw_only=True)
class Health:
    """What the probes of one run have found."""

    started: bool
    """No startup probe, or it has succeeded."""
    ready: bool
    """No readiness probe, or its last word was yes."""
    failed: str = ""
    """Why the container has to be killed: a liveness or startup probe that failed too often."""
    over: threading.Event = field(default_factory=threading.Event)
    """Set when the run is over."""
    begun: threading.Event = field(default_factory=threading.Event)
    """Set with `started`, for those who wait."""


def watch(container: Json, address: str, run: Run, changed: Callable[[], None]) -> Health:
    """Begin probing; the result is kept up to date, and `changed` called when it changes."""
    health = Health(started=STARTUP not in container, ready=READINESS not in container)
    if health.started:
        health.begun.set()
    ports = {
        port["name"]: port["containerPort"] for port in container.get("ports", []) if "name" in port
    }
    for kind in (STARTUP, READINESS, LIVENESS):
        if kind in container:
            ask = _asker(container[kind], address, run, ports)
            prober = _Prober(kind, container[kind], ask, health, changed)
            threading.Thread(target=prober.work, daemon=True, name=kind).start()
    return health


class _Prober:
    def __init__(
        self,
        kind: str,
        probe: Json,
        ask: Callable[[], str],
        health: Health,
        changed: Callable[[], None],
    ) -> None:
        self._kind, self._probe, self._ask = kind, probe, ask
        self._health, self._changed = health, changed
        self._row = 0  # of equal answers: positive good, negative bad

    def work(self) -> None:
        """Ask until the run is over, or a startup probe has succeeded."""
        health, probe = self._health, self._probe
        if self._kind != STARTUP:
            _either(health.begun, health.over)
        health.over.wait(probe.get("initialDelaySeconds", 0))
        while not health.over.is_set():
            self._take(self._ask())
            if self._kind == STARTUP and health.started:
                return
            health.over.wait(probe.get("periodSeconds", 10))

    def _take(self, fault: str) -> None:
        good = not fault
        self._row = max(self._row, 0) + 1 if good else min(self._row, 0) - 1
        if good and self._row >= self._probe.get("successThreshold", 1):
            self._good()
        if not good and -self._row >= self._probe.get("failureThreshold", 3):
            self._bad(fault)

    def _good(self) -> None:
        health = self._health
        if self._kind == STARTUP:
            health.started = True
            health.begun.set()
            self._changed()
        elif self._kind == READINESS and not health.ready:
            health.ready = True
            self._changed()

    def _bad(self, fault: str) -> None:
        health = self._health
        if self._kind == READINESS:
            if health.ready:
                health.ready = False
                self._changed()
        elif not health.failed and not health.over.is_set():
            name = self._kind.removesuffix("Probe")
            health.failed = f"{name} probe failed: {fault}"
            self._changed()


def act(handler: Json, address: str, run: Run, ports: Mapping[str, int], timeout_s: float) -> str:
    """Do what a probe or a hook says; why it failed, or nothing."""
    if "exec" in handler:
        code, output = run.execute(handler["exec"]["command"], timeout_s)
        return "" if code == 0 else f"exit code {code}: {output.strip()[-200:]}"
    if "httpGet" in handler:
        return _http(handler["httpGet"], address, ports, timeout_s)
    target = handler["tcpSocket"]
    where = (target.get("host") or address, _port(target["port"], ports))
    try:
        socket.create_connection(where, timeout=timeout_s).close()
    except OSError as error:
        return f"{where[0]}:{where[1]}: {error}"
    return ""


def _asker(probe: Json, address: str, run: Run, ports: Mapping[str, int]) -> Callable[[], str]:
    return lambda: act(probe, address, run, ports, probe.get("timeoutSeconds", 1))


def _http(target: Json, address: str, ports: Mapping[str, int], timeout_s: float) -> str:
    host = target.get("host") or address
    scheme = target.get("scheme", "HTTP").lower()
    url = f"{scheme}://{host}:{_port(target['port'], ports)}{target.get('path', '/')}"
    headers = {header["name"]: header["value"] for header in target.get("httpHeaders", [])}
    try:
        with urllib3.PoolManager(retries=False, cert_reqs="CERT_NONE") as pool:
            status = pool.request("GET", url, headers=headers, timeout=timeout_s).status
    except urllib3.exceptions.HTTPError as error:
        return f"{url}: {type(error).__name__}"
    return "" if 200 <= status < 400 else f"{url}: status {status}"


def _port(port: str | int, ports: Mapping[str, int]) -> int:
    return ports[port] if isinstance(port, str) and port in ports else int(port)


def _either(first: threading.Event, second: threading.Event) -> None:
    while not second.is_set() and not first.wait(0.1):
        pass
