"""All three services, in order: what the commands and the tests use.

Each is started when those before it answer, and stopped in the reverse order. Starting is idempotent:
what runs and answers is left alone and said to be running. What is left of a service whose first
process has gone is ended before it is started again, so two servers never share one folder.
"""

import fcntl
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, Protocol

from adaexplore.backends.vllm import ports as sockets
from adaexplore.backends.vllm import procfs
from adaexplore.errors import ConfigError
from stack import keys, layout, processes
from stack.layout import HOST, Ports, StackError
from stack.mlflow_server import MlflowServer
from stack.postgres import Postgres
from stack.processes import Children, Command, Site, Start
from stack.seaweed import BUCKET, Seaweed

NAMES: Final = ("postgres", "seaweed", "mlflow")
"""The services, in the order in which they start."""
TAIL_BYTES: Final = 100_000
_REASON: Final = re.compile(
    r"^(?:[EF]\d{4} .*|.*\b(?:FATAL|PANIC|ERROR):.*|\w*(?:Error|Exception): .*)$", re.MULTILINE
)

Say = Callable[[str], None]


class Service(Protocol):
    """What is particular to one service."""

    site: Site
    key: str
    """Name of its first port in STACK_PORTS."""
    ports: tuple[int, ...]
    number: signal.Signals
    """Asks it to end."""
    grace_s: float
    """What it may take to end."""
    ready_s: float
    """What it may take to answer after a start."""

    def prepare(self) -> None:
        """Make what it needs before it starts; nothing of it runs."""

    def command(self) -> AbstractContextManager[Command]:
        """What is run, while it is being started."""

    def ask(self) -> None:
        """Make one real request; any error means that it is not ready."""

    def clear(self) -> None:
        """Remove what a killed one leaves outside its data; nothing of it runs."""


class Stack:
    """The services below one folder."""

    def __init__(self, folder: Path, ports: Ports | None = None) -> None:
        """The stack of a folder, on the ports of its last start unless others are given.

        Raises:
            StackError: `weed` is missing, or the key files are damaged.
        """
        self.folder = folder.absolute()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.ports = (ports or layout.saved(self.folder)).checked()
        self._keys = keys.ensure(self.folder)
        self._children = Children()
        self.services: dict[str, Service] = {
            "postgres": Postgres(
                self._site("postgres", "postgres"), port=self.ports.postgres, keys=self._keys
            ),
            "seaweed": Seaweed(self._site("seaweed", "weed"), ports=self.ports, keys=self._keys),
            "mlflow": MlflowServer(
                self._site("mlflow", "mlflow"), ports=self.ports, keys=self._keys
            ),
        }

    # -- addresses -----------------------------------------------------------------------------

    @property
    def endpoint(self) -> str:
        """Of the S3-compatible store."""
        return f"http://{HOST}:{self.ports.s3}"

    @property
    def tracking_uri(self) -> str:
        """Of the MLflow server."""
        return f"http://{HOST}:{self.ports.mlflow}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables that an S3 client needs; secret."""
        return dict(self._keys.s3)

    @property
    def overrides(self) -> list[str]:
        """What makes a sweep use the stack."""
        return [
            "tracking=server", f"tracking.uri={self.tracking_uri}",
            "store=s3", f"store.bucket={BUCKET}", f"store.endpoint={self.endpoint}",
        ]  # fmt: skip

    # -- all of them ---------------------------------------------------------------------------

    def up(self, say: Say = print) -> None:
        """Start what does not run, and wait until everything answers.

        Raises:
            StackError: Something does not start; says why, and where its log is.
        """
        with self._alone():
            self._check_ports()
            for service in self.services.values():
                if not processes.members(service.site):
                    self._check_free(service)
            layout.save(self.folder, self.ports)
            for name in NAMES:
                self.start(name, say)

    def down(self, say: Say = print) -> None:
        """Stop everything, the last first, and confirm that nothing is left.

        Raises:
            StackError: Something cannot be killed.
        """
        with self._alone():
            for name in reversed(NAMES):
                self.stop(name, say)

    # -- one of them ---------------------------------------------------------------------------

    def start(self, name: str, say: Say = print) -> None:
        """Start one service, if it does not run, and wait until it answers.

        Raises:
            StackError: A port is taken, or it does not start; says why.
        """
        service, begun = self.services[name], time.monotonic()
        root = processes.running(service.site)
        started = self._start(service) if root is None else Start(root=root, log_start=0)
        self._await(service, started)
        what = "already running" if root else f"ready after {time.monotonic() - begun:.1f} s"
        say(f"{name}: {what} (process {started.root.pid}, port {service.ports[0]})")

    def stop(self, name: str, say: Say = print) -> None:
        """Stop one service: asked, then killed.

        Raises:
            StackError: It cannot be killed.
        """
        service, begun = self.services[name], time.monotonic()
        ran = bool(processes.members(service.site))
        polite = processes.stop(
            service.site, self._children, number=service.number, grace_s=service.grace_s
        )
        service.clear()
        how = "stopped" if polite else f"did not stop within {service.grace_s:.0f} s and was killed"
        say(f"{name}: {f'{how} ({time.monotonic() - begun:.1f} s)' if ran else 'not running'}")

    def kill(self, name: str) -> None:
        """End one service and everything it started at once, as a lost machine would.

        What it leaves behind stays, for `start` to deal with.
        """
        processes.end(self.services[name].site, self._children)

    def pids(self, name: str) -> list[int]:
        """Every process of a service."""
        return [process.pid for process in processes.members(self.services[name].site)]

    # -- inside --------------------------------------------------------------------------------

    def _site(self, name: str, program: str) -> Site:
        return Site(
            name=name,
            home=self.folder / name,
            log=self.folder / "logs" / f"{name}.log",
            pid_file=self.folder / f"{name}.pid",
            program=program,
        )

    def _start(self, service: Service) -> Start:
        processes.end(service.site, self._children)
        service.clear()
        self._check_free(service)
        service.site.log.parent.mkdir(exist_ok=True)
        service.prepare()
        with service.command() as command:
            return self._children.start(service.site, command)

    def _await(self, service: Service, started: Start) -> None:
        deadline, trouble = time.monotonic() + service.ready_s, "it was not asked"
        while time.monotonic() < deadline:
            self._children.collect()
            if not procfs.remaining([started.root]):
                raise StackError(f"{service.site.name} ended: {_reason(service.site, started)}")
            try:
                service.ask()
            except Exception as error:  # noqa: BLE001 (whatever its client library raises)
                trouble = " ".join(str(error).split())[:200]
            else:
                if self._answers_itself(service):
                    return
                trouble = f"another process answers on port {service.ports[0]}"
            time.sleep(processes.POLL_S)
        raise StackError(
            f"{service.site.name} does not answer after {service.ready_s:.0f} s ({trouble}): "
            f"{_reason(service.site, started)}"
        )

    def _answers_itself(self, service: Service) -> bool:
        """Whether it is the service that listens, and no stranger that took the port meanwhile."""
        ours = procfs.sockets(processes.members(service.site))
        return bool(procfs.listeners(service.ports[0]) & ours)

    def _check_ports(self) -> None:
        """Nothing runs, or it runs where it was asked to."""
        before = layout.saved(self.folder)
        if before != self.ports and any(self.pids(name) for name in NAMES):
            raise ConfigError(
                f"expected the ports of the running stack ({before}), got others ({self.ports}); "
                "make stack-down first"
            )

    def _check_free(self, service: Service) -> None:
        for port in service.ports:
            if not sockets.free(port):
                key = "seaweed" if port in self.ports.internal() else service.key
                raise StackError(
                    f"{service.site.name}: port {port} is taken by {_owner(port)}; stop that, or move the "
                    f"stack: STACK_PORTS={key}=N make stack"
                )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One command at a time."""
        with (self.folder / "lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _owner(port: int) -> str:
    inodes = procfs.listeners(port)
    for process in procfs.everything():
        if procfs.sockets([process]) & inodes:
            return f"process {process.pid} ({_title(process.pid)})"
    return "a process of another user"


def _title(pid: int) -> str:
    words = (procfs.PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    return Path(words[0].decode(errors="replace")).name


def _reason(site: Site, started: Start) -> str:
    """What its log says since the start, in one line."""
    with site.log.open("rb") as file:
        file.seek(max(started.log_start, site.log.stat().st_size - TAIL_BYTES))
        text = file.read().decode(errors="replace")
    marked = _REASON.findall(text)
    lines = marked[-1:] or [line for line in text.splitlines() if line.strip()][-3:]
    said = " / ".join(" ".join(line.split())[:300] for line in lines) or "it wrote nothing"
    return f"{said}; its log is {site.log}"
