"""Sweeps on Ray for tests: launches as processes, a Ray of the tests' own, and who is still there."""

import asyncio
import json
import math
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from adaexplore.backends.ray import heads
from adaexplore.backends.vllm import guard, procfs
from adaexplore.experiments import journals
from fault_server import FaultServer
from loopback import free_ports

DEADLINE_S = 600
"""Never reached where all is well: a busy machine needs minutes for what an idle one does in seconds."""
ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, kw_only=True)
class Head:
    """A Ray that runs."""

    address: str
    guard: int
    dashboard: str
    """Where jobs are submitted."""
    environment: dict[str, str] = field(repr=False)

    def actors(self, kind):
        """Processes of the actors of a class, the youngest last."""
        found = [p for p in procfs.tree(self.guard) if _command(p).startswith(f"ray::{kind}")]
        return sorted(found, key=lambda process: process.started)

    def backend(self, *words):
        """Words that play on this Ray."""
        return ["backend=ray", f"backend.ray.address={self.address}", *words]


@contextmanager
def ray_head(folder, *, cpus):
    """A head with its dashboard, as an operator starts it, on loopback and with a token, guarded."""
    token = Path(folder, "token")
    token.write_text("5" * 64)
    own = heads.environment(token)
    client, dashboard, agent = free_ports(3)
    command = [
        Path(sys.executable).parent / "ray", "start", "--head", "--block", "--port=0",
        "--node-ip-address=127.0.0.1", f"--num-cpus={cpus}", f"--object-store-memory={80 * 2**20}",
        f"--ray-client-server-port={client}", f"--dashboard-port={dashboard}", f"--temp-dir={folder}",
        f"--dashboard-agent-listen-port={agent}", "--include-dashboard=true",
        "--min-worker-port=0", "--max-worker-port=0",
    ]  # fmt: skip
    guarded = [
        sys.executable,
        "-I",
        "-S",
        guard.__file__,
        "3",
        str(os.getpid()),
        *map(str, command),
    ]
    with Path(folder, "head.log").open("wb") as log:
        process = subprocess.Popen(
            guarded, stdin=subprocess.PIPE, stdout=log, stderr=log, env={**os.environ, **own},
            start_new_session=True, cwd=folder,
        )  # fmt: skip
    try:
        current = Path(folder, "ray_current_cluster")
        # There is a moment at which the file is there and still empty, and the dashboard comes later.
        until(
            lambda: (
                process.poll() is not None
                or (current.exists() and current.read_text().strip() and _listens(dashboard))
            )
        )
        yield Head(
            address=current.read_text().strip(),
            guard=process.pid,
            dashboard=f"http://127.0.0.1:{dashboard}",
            environment=own,
        )
    finally:
        process.stdin.close()
        process.wait(120)


def _listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except OSError:
        return False
    return True


def until(holds, deadline_s=DEADLINE_S, *, of=None):
    """Wait until something holds; a state, not a time, is waited for. `of` is the launch that brings it."""
    end = time.monotonic() + deadline_s
    while not holds():
        assert of is None or of.poll() is None, f"ended: {of.returncode}: {of.communicate()[0]}"
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def command_of(*words):
    return [sys.executable, "-m", "adaexplore.launch", "tracking=none", *words]


def launch(*words, head=None, **variables):
    """One launch, to its end: its code and what it wrote."""
    return subprocess.run(
        command_of(*words), check=False, capture_output=True, text=True, timeout=DEADLINE_S,
        env=environment(head, variables),
    )  # fmt: skip


def begun(*words, head=None, **variables):
    """A launch that goes on."""
    return subprocess.Popen(
        command_of(*words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=environment(head, variables),
    )  # fmt: skip


def environment(head, variables):
    own = {} if head is None else head.environment
    return {**os.environ, **own, **variables}


def killed(process, number=signal.SIGKILL):
    """End a process by a signal; its code and what it wrote."""
    process.send_signal(number)
    output, _ = process.communicate(timeout=DEADLINE_S)
    return process.returncode, output


def finished(runs="runs"):
    """Results that are written."""
    return len(list(Path(runs).glob("cells/*/*/*/result.json")))


def tables(runs="runs"):
    return {path.name: path.read_bytes() for path in Path(runs).glob("sweeps/*/tables/[!.]*")}


def asked(runs="runs"):
    """Replies by episode run that attempts asked for themselves: each turn once over all attempts."""
    found = {}
    for path in sorted(Path(runs).glob("cells/*/*/*/journal.jsonl")):
        journal = journals.read(path.read_bytes(), str(path))
        own = 0 if journal is None else len(journal.own_entries)
        found[path.parts[-4:-2]] = found.get(path.parts[-4:-2], 0) + own
    return found


@dataclass
class GatedServer(FaultServer):
    """A model server that a test can hold, so that a sweep is surely under way when something dies."""

    allowed: float = math.inf
    _taken: int = 0

    def let(self, count):
        """Answer whatever is held, and so many requests more; hold all later ones."""
        self.allowed = len(self.work) + count

    @property
    def held(self):
        """Whether a request waits for an answer that it will not get before it is let."""
        return len(self.work) > self.allowed

    async def _misbehave(self, work, reader, writer):
        number, self._taken = self._taken, self._taken + 1
        while number >= self.allowed:  # noqa: ASYNC110 (the word comes from another thread)
            await asyncio.sleep(0.01)
        return await super()._misbehave(work, reader, writer)


def profile(server, name="quick", agent="random", **more):
    """Write the profile of a model behind a server of the tests."""
    document = {
        "kind": "openai_compatible", "provider": "acme", "model": agent,
        "route": {"base_url": server.url}, "sampling": {"max_output_tokens": 1024},
        "patience": {"backoff_base_s": 0.01, "call_timeout_s": DEADLINE_S, "attempts": 20}, **more,
    }  # fmt: skip
    folder = Path("conf/model")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(json.dumps(document))


def of_own_ray(runs="runs"):
    """Processes of a Ray that launches in this folder have started, by the token they share."""
    folder = str(Path(runs, "ray").absolute()).encode()
    return [p for p in procfs.everything() if b"RAY_AUTH_TOKEN_PATH=" + folder in _environ(p)]


def _environ(process):
    try:
        return Path(f"/proc/{process.pid}/environ").read_bytes()
    except OSError:
        return b""


def _command(process):
    try:
        return Path(f"/proc/{process.pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""
