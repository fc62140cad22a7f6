"""Processes that a bench starts: the mock model, and whatever is measured beside it.

What is measured runs in a process of its own, so that its CPU time and its memory are its own, and
the mock model in another, so that it does not take the processor time of the client's loop.
"""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


class Mock:
    """A mock model that serves."""

    def __init__(self, latency_s):
        self.child = subprocess.Popen(
            [sys.executable, HERE / "mock_server.py", str(latency_s)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.port = self.child.stdout.readline().strip()
        self.told = {}
        """How many calls it answered, its CPU seconds, and when the first came; after its end."""

    def close(self):
        self.child.stdin.close()
        self.told = json.loads(self.child.stdout.read())
        self.child.wait()


@contextmanager
def mock(latency_s):
    """A mock model for as long as the block runs."""
    server = Mock(latency_s)
    try:
        yield server
    finally:
        server.close()


def told(arguments, *, paths=(), cwd=None):
    """What a Python child prints as JSON in its last line.

    Args:
        arguments: Of the interpreter: a script or `-m module`, and its words.
        paths: Folders in which it finds modules before all others.
        cwd: Its working folder.

    Raises:
        RuntimeError: It failed; the message ends with the end of what it said.
    """
    return json.loads(run(arguments, paths=paths, cwd=cwd).stdout.splitlines()[-1])


def run(arguments, *, paths=(), cwd=None):
    """A finished Python child (see `told`)."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        cwd=cwd, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{arguments[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done


def remote(port, concurrency):
    """Words of configuration that play everything against a mock model, so many at once."""
    profile = "+profiles.openai_compatible"
    return [
        "models=[openai_compatible]", f"{profile}.model=mock", f"backend.concurrency={concurrency}",
        f"{profile}.route.base_url=http://127.0.0.1:{port}/v1",
        f"{profile}.limits.concurrency_start={concurrency}",
        f"{profile}.limits.concurrency_max={concurrency}",
    ]  # fmt: skip


class Launched:
    """A finished launch in a folder of its own."""

    def __init__(self, words, folder):
        """Launch and wait; RuntimeError if it does not end well."""
        with (folder / "said").open("w+") as said:
            self.began_at = time.time()
            child = subprocess.Popen(
                [sys.executable, "-m", "adaexplore.launch", "+grid=smoke", *words],
                cwd=folder, stdout=said, stderr=said,
            )  # fmt: skip
            _, status, used = os.wait4(child.pid, 0)
            self.wall_s = time.time() - self.began_at
            child.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            self.said = said.read()
        if child.returncode:
            raise RuntimeError(f"a launch ended with {child.returncode}: {self.said[-2000:]}")
        self.rss_mb = used.ru_maxrss / 1024
        self.cpu_s = used.ru_utime + used.ru_stime
