"""The host with a stand-in for the engine: what the suites of the process host share."""

import asyncio
import json
import sys
import time
from pathlib import Path

import aiohttp

from adaexplore.backends.vllm import procfs
from adaexplore.backends.vllm.hosts import VllmHost
from adaexplore.experiments.serving import ServingConfig
from adaexplore.models.engines.asking import session
from adaexplore.models.profiles import Hosting, VllmProfile

STANDIN = Path(__file__).parent / "backends" / "standin_server.py"
PATIENT_S = 60.0
"""Where no deadline is the subject: more than a busy machine needs."""


def config(**changes):
    return ServingConfig(
        **{
            "kind": "vllm_process",
            "python": sys.executable,
            "command": [str(STANDIN)],
            "ready_timeout_s": PATIENT_S,
            "progress_timeout_s": PATIENT_S,
            "stop_grace_s": PATIENT_S,
            "port_start": 8300,
            "gpus": [],
            "max_restarts": 2,
            **changes,
        }
    )


def profile(faults="", **hosting):
    environment = {"STANDIN": faults}
    return VllmProfile(
        kind="vllm",
        provider="local",
        model="some/model",
        hosting=Hosting(environment=environment, **hosting),
    )


def host(notes, **changes):
    return VllmHost(config(**changes), Path("serving"), notify=notes.append)


async def ask(url, timeout_s=PATIENT_S):
    """The stand-in's answer: its process id and its GPUs; asked again as long as nobody answers."""
    body = {"model": "some/model", "messages": []}
    deadline = time.monotonic() + timeout_s
    async with session() as http:
        while True:
            try:
                async with http.post(
                    f"{url}/chat/completions", json=body, timeout=aiohttp.ClientTimeout(2)
                ) as answer:
                    found = await answer.json(content_type=None)
                    return json.loads(found["choices"][0]["message"]["content"])
            except (aiohttp.ClientError, TimeoutError):
                assert time.monotonic() < deadline
                await asyncio.sleep(0.05)


def gone(pids, timeout_s=PATIENT_S):
    """Whether processes end."""
    deadline = time.monotonic() + timeout_s
    while any(procfs.read(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def offspring():
    """Process ids of the stand-in's hidden children."""
    return [int(line) for line in Path("serving/children").read_text().split()]


def wedge():
    """Wedge the stand-in that runs."""
    Path("serving/wedge").touch()


def log():
    (path,) = Path("serving").glob("*.log")
    return path.read_text()
