"""The real engine, CPU build, with a real model: `make test-vllm`.

Each start costs most of a minute, so one test tells one life from start to end.
"""

import asyncio
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from adaexplore.backends.vllm import commands, ports
from adaexplore.backends.vllm.servers import Plan, Server
from adaexplore.errors import ServingError
from adaexplore.models.engines.asking import Engine, session
from serving import played

pytestmark = pytest.mark.vllm

PYTHON = played.ROOT / ".venv-vllm" / "bin" / "python"
SCHEMA = {
    "type": "object",
    "properties": {"action": {"enum": ["hold", "release"]}, "sure": {"type": "boolean"}},
    "required": ["action", "sure"],
    "additionalProperties": False,
}
LONG = "The ward has " + ", ".join(f"{n} beds on floor {n}" for n in range(120)) + ". How many?"


@pytest.fixture(scope="module")
def model():
    assert PYTHON.exists(), "expected the engine's environment; run make vllm-env"
    return played.model_folder(PYTHON)


LAUNCHER = """
import asyncio, json, sys
sys.path[:0] = {path!r}
from serving import played

async def main():
    async with played.host({python!r}, []).serving("m", played.profile({model!r})) as served:
        print(json.dumps([served.base_urls[0], served.fingerprint, list(played.family())]), flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


def test_one_life_of_a_server_whose_launcher_is_killed(model):
    """Ready, fingerprint, schema, prefix cache, counters; gone with its launcher."""
    code = LAUNCHER.format(path=[str(played.ROOT / "tests")], python=str(PYTHON), model=model)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as launcher:
        try:
            url, fingerprint, everyone = json.loads(launcher.stdout.readline())
            fingerprint_is_true(fingerprint, model)
            asyncio.run(schema_is_kept(url, model))
            asyncio.run(prefix_is_cached(url, model))
        finally:
            launcher.kill()

    assert len(everyone) >= 4  # guard, server, core, worker
    assert played.gone(everyone)
    assert ports.free(int(url.split(":")[2].split("/")[0]))


def fingerprint_is_true(fingerprint, model):
    template = (Path(model) / "chat_template.jinja").read_bytes()

    assert fingerprint["version"].startswith("0.32")
    assert played.CPU_DTYPE == fingerprint["dtype"]
    assert played.CONTEXT_TOKENS == fingerprint["max_model_len"]
    assert hashlib.sha256(template).hexdigest() == fingerprint["chat_template_sha256"]
    assert [model] == [listed["id"] for listed in fingerprint["models"]]


async def schema_is_kept(url, model):
    answer = await played.complete(
        url,
        model,
        "Hold or release?",
        max_tokens=64,
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True},
        },
    )
    reply = json.loads(answer["choices"][0]["message"]["content"])

    assert {"action", "sure"} == set(reply)
    assert reply["action"] in {"hold", "release"}


async def prefix_is_cached(url, model):
    """By the usage that a client sees, and by the engine's counters."""
    async with session() as http:
        engine = Engine(http, url.removesuffix("/v1"))
        start = await engine.counters()
        await played.complete(url, model, LONG)
        usage = (await played.complete(url, model, LONG + " Answer."))["usage"]
        end = await engine.counters()

    assert usage["prompt_tokens_details"]["cached_tokens"] >= 0.9 * usage["prompt_tokens"]
    assert end.moving[0] - start.moving[0] >= 2 * usage["prompt_tokens"] - 50
    assert 0 == end.requests


def test_a_missing_model_is_named():
    notes = []

    async def main():
        async with played.host(PYTHON, notes).serving("m", played.profile("/nowhere/model")):
            pytest.fail("it is not ready")

    with pytest.raises(ServingError, match="the model was not found") as caught:
        asyncio.run(main())

    assert "\n" not in str(caught.value)


async def hang_up(_, writer):
    writer.close()


def test_a_port_that_is_taken_while_the_engine_loads_is_named(model):
    """The engine's own words, which the stand-in only repeats."""
    notes = []

    async def main():
        config = played.config(PYTHON, [])
        with ports.claim(config.port_start) as claim:
            place = commands.Place(port=claim.port, gpus=(), folder=Path())
            command = commands.command(config, played.profile(model), place)
            plan = Plan(name="m", command=command, port=claim.port, served=model, log=Path("log"))
            async with session() as http:
                starting = asyncio.create_task(Server(plan, config, http, notes.append).start())
                await asyncio.sleep(0.5)
                stranger = await asyncio.start_server(hang_up, ports.HOST, claim.port)
                async with stranger:
                    await starting

    with pytest.raises(ServingError, match="the port is in use"):
        asyncio.run(main())
