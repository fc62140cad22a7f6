"""What the suites with a real engine share: the engine's place, a profile, and calls that are retried."""

import asyncio
import os
import subprocess
import time
from pathlib import Path

import aiohttp

from adaexplore.backends.vllm import procfs
from adaexplore.backends.vllm.hosts import VllmHost
from adaexplore.experiments.serving import ServingConfig
from adaexplore.models.engines.asking import session
from adaexplore.models.profiles import Hosting, VllmProfile, Weights

ROOT = Path(__file__).parent.parent.parent
CONTEXT_TOKENS = 4096
PATIENT_S = 600.0
CPU_DTYPE = "float32"
"""Not every CPU computes in bfloat16; one that only emulates it reads prompts six times as slowly."""


def model_folder(python, *words):
    """The small model, made if need be by the engine's own python."""
    script = Path(__file__).parent / "make_model.py"
    done = subprocess.run(
        [python, "-W", "ignore", script, *words], stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.splitlines()[-1]


def config(python, gpus, **changes):
    return ServingConfig(
        **{
            "kind": "vllm_process",
            "python": str(python),
            "ready_timeout_s": PATIENT_S,
            "progress_timeout_s": 240,
            "stop_grace_s": 20,
            "gpus": gpus,
            "max_restarts": 1,
            **changes,
        }
    )


def environment():
    """Of an engine on the CPU: tests that run side by side share out the cores."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    cores = sorted(os.sched_getaffinity(0))
    own = cores[worker::workers] if len(cores) >= workers > 1 else []
    return {
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, own)) or "auto",
        "HF_HUB_OFFLINE": "1",
    }


def profile(model, dtype=CPU_DTYPE, **hosting):
    return VllmProfile(
        kind="vllm",
        provider="local",
        model=str(model),
        weights=Weights(dtype=dtype, max_model_len=CONTEXT_TOKENS),
        hosting=Hosting(arguments=["--enforce-eager"], environment=environment(), **hosting),
    )


def host(python, notes, gpus=(), **changes):
    return VllmHost(config(python, list(gpus), **changes), Path("serving"), notify=notes.append)


async def complete(url, model, text, **fields):
    """A completion, asked again as long as nobody answers: what any client of ours does."""
    message = {"role": "user", "content": text}
    body = {"model": model, "messages": [message], "temperature": 0, "max_tokens": 16, **fields}
    deadline = time.monotonic() + PATIENT_S
    async with session() as http:
        while True:
            try:
                async with http.post(f"{url}/chat/completions", json=body) as answer:
                    if answer.status == 200:
                        return await answer.json()
                    assert answer.status >= 500, await answer.text()
            except aiohttp.ClientError:
                pass
            assert time.monotonic() < deadline
            await asyncio.sleep(0.2)


def family():
    """Every process of servers that this process, or one below it, has started."""
    return {found.pid: words(found.pid) for found in procfs.tree(os.getpid())[1:]}


def words(pid):
    """A process's command line; empty if it has ended."""
    try:
        return (procfs.PROC / str(pid) / "cmdline").read_text().replace("\0", " ").strip()
    except OSError:
        return ""


def alive(pids):
    return [pid for pid in pids if procfs.read(pid)]


def gone(pids, timeout_s=PATIENT_S):
    """Whether processes end."""
    deadline = time.monotonic() + timeout_s
    while alive(pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
