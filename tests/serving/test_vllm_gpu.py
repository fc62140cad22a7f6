"""The real engine on GPUs: `make test-gpu`, where there are any.

Tensor parallel over two GPUs where there are two (with a model whose heads divide), and kills after
which the driver counts no memory of ours.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time

import pytest

from adaexplore.backends.vllm import gpus
from serving import played

pytestmark = pytest.mark.gpu

PYTHON = played.ROOT / ".venv-vllm-cuda" / "bin" / "python"
SLACK_MIB = 64
"""What a driver's own bookkeeping may change by."""


@pytest.fixture(scope="module")
def ids():
    found = gpus.installed()
    assert found, "expected a GPU; make test-gpu looks before it runs these"
    return found[:2]


@pytest.fixture(scope="module")
def model():
    assert PYTHON.exists(), "expected the engine's environment; run make vllm-cuda-env"
    return played.model_folder(PYTHON, "--wide")


def used_mib():
    """Memory held on each GPU."""
    done = subprocess.run(
        ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(line) for line in done.stdout.split()]


def freed(before, timeout_s=60):
    """Whether no GPU holds more than before."""
    deadline = time.monotonic() + timeout_s
    while any(now > then + SLACK_MIB for now, then in zip(used_mib(), before, strict=True)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.5)
    return True


def profile(model, ids):
    return played.profile(model, "bfloat16", tensor_parallel=len(ids))


def test_a_killed_engine_comes_back_and_leaves_no_memory(model, ids):
    """Served over all its GPUs, its core killed under a request, answered; nothing held after."""
    notes, before = [], used_mib()

    async def main():
        async with played.host(PYTHON, notes, ids).serving("m", profile(model, ids)) as served:
            url = served.base_urls[0]
            await played.complete(url, model, "Count.")
            assert any(now > then + SLACK_MIB for now, then in zip(used_mib(), before, strict=True))
            asking = asyncio.create_task(played.complete(url, model, "Count.", max_tokens=2000))
            cores = [pid for pid, words in played.family().items() if "EngineCore" in words]
            os.kill(cores[0], signal.SIGKILL)
            await asking
            return played.family()

    everyone = asyncio.run(main())

    assert any("restart 1 of 1" in note for note in notes), notes
    assert [] == played.alive(everyone)
    assert freed(before)


LAUNCHER = """
import asyncio, sys
sys.path[:0] = {path!r}
from serving import played

async def main():
    profile = played.profile({model!r}, tensor_parallel=len({ids!r}))
    async with played.host({python!r}, [], {ids!r}).serving("m", profile):
        print(*played.family(), flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


def test_a_launcher_that_is_killed_leaves_no_memory(model, ids):
    before = used_mib()
    path = [str(played.ROOT / "tests")]
    code = LAUNCHER.format(path=path, python=str(PYTHON), model=model, ids=ids)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as launcher:
        everyone = [int(pid) for pid in launcher.stdout.readline().split()]
        launcher.kill()

    assert everyone
    assert played.gone(everyone)
    assert freed(before)
