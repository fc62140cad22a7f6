"""The host against a stand-in server: made ready, with a reason where it fails; replicas and GPUs."""

import asyncio
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from adaexplore.backends.vllm import commands, ports, processes, procfs
from adaexplore.backends.vllm.servers import Plan, Server
from adaexplore.errors import ConfigError, ServingError
from adaexplore.models.engines.asking import session
from adaexplore.models.profiles import Auth, VllmProfile
from standins import ask, config, host, log, profile


@pytest.fixture
def notes():
    return []


# -- becoming ready ----------------------------------------------------------------------------


def test_a_server_answers_is_told_apart_and_is_gone_afterwards(notes):
    async def main():
        async with host(notes).serving("m", profile()) as served:
            answer = await ask(served.base_urls[0])
            assert procfs.read(answer["pid"]) is not None
            return served, answer

    served, answer = asyncio.run(main())

    assert procfs.read(answer["pid"]) is None
    assert 1 == len(served.base_urls)
    assert "0.0.1" == served.fingerprint["version"]
    assert 128 == served.fingerprint["max_model_len"]
    assert ["--model", "some/model"] == served.fingerprint["words"][6:8]
    assert "ready after" in notes[-1]


def test_two_hundred_kilobytes_before_it_is_ready_block_nothing_and_are_all_in_the_log(notes):
    async def main():
        async with host(notes).serving("m", profile("chatty")):
            pass

    asyncio.run(main())

    assert log().startswith("first byte\n")
    assert 200_000 == log().count("x")


FAILURES = [
    ("gpu-memory", "ended with code 1: out of GPU memory"),
    ("no-model", "ended with code 1: the model was not found"),
    ("address", "the port is in use"),
    ("driver", "does not match this machine's driver"),
    ("unknown", "its last lines: first line / second line / the last words"),
    ("misnamed", "expected it to serve 'some/model', it lists another"),
    ("refusing", "a first completion was refused: HTTP 400"),
]


@pytest.mark.parametrize(("fault", "reason"), FAILURES, ids=[fault for fault, _ in FAILURES])
def test_a_server_that_does_not_start_says_why(fault, reason, notes):
    async def main():
        async with host(notes).serving("m", profile(fault)):
            pytest.fail("it is not ready")

    with pytest.raises(ServingError) as caught:
        asyncio.run(main())

    message = str(caught.value)
    assert reason in message
    assert "\n" not in message
    assert message.endswith(f"log: {Path('serving').absolute() / 'm-'}{message[-8:]}")
    assert 4 == caught.value.exit_code


@pytest.mark.parametrize("fault", ["never", "deaf"])
def test_a_server_that_is_never_ready_meets_its_deadline(fault, notes):
    async def main():
        async with host(notes, ready_timeout_s=0.5).serving("m", profile(fault)):
            pytest.fail("it is not ready")

    with pytest.raises(ServingError, match=r"not ready after 0.5 s \(serving.ready_timeout_s\)"):
        asyncio.run(main())


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"python": "/nowhere/python"}, "the interpreter cannot be run; set serving.python"),
        ({"command": ["-m", "vllm.entrypoints.openai.api_server"]}, "has no vllm; set serving.py"),
    ],
)
def test_a_wrong_interpreter_is_told_from_a_broken_engine(changes, reason, notes):
    async def main():
        async with host(notes, **changes).serving("m", profile()):
            pytest.fail("it is not ready")

    with pytest.raises(ServingError, match=reason):
        asyncio.run(main())


def test_a_profile_without_a_model_names_the_line_to_add(notes):
    async def main():
        nameless = VllmProfile(kind="vllm", provider="local", model=None)
        async with host(notes).serving("m", nameless):
            pytest.fail("it is not ready")

    with pytest.raises(ConfigError, match=r"\+profiles.NAME.model="):
        asyncio.run(main())


def test_a_port_that_is_taken_meanwhile_is_a_reason_of_its_own(notes):
    async def main():
        with ports.claim(8300) as claim:
            place = commands.Place(port=claim.port, gpus=(), folder=Path())
            command = commands.command(config(), profile(), place)
            plan = Plan(
                name="m", command=command, port=claim.port, served="some/model", log=Path("log")
            )
            async with session() as http:
                foreign = await asyncio.start_server(lambda *_: None, ports.HOST, claim.port)
                async with foreign:
                    await Server(plan, config(), http, notes.append).start()

    with pytest.raises(ServingError, match=r"port \d+ is in use by another process"):
        asyncio.run(main())


# -- a key -------------------------------------------------------------------------------------


def test_a_key_reaches_the_server_by_its_environment_and_is_asked_for(notes, monkeypatch):
    """The host's own questions carry it; it stands in no command line, log or fingerprint."""
    monkeypatch.setenv("OUR_KEY", "canary-7f3a")

    async def main():
        keyed = replace(profile(), auth=Auth(key_env="OUR_KEY"))
        async with host(notes).serving("m", keyed) as served:
            statuses = []
            for headers in ({}, {"Authorization": "Bearer canary-7f3a"}):
                page = f"{served.base_urls[0]}/models"
                async with session(headers) as http, http.get(page) as answer:
                    statuses.append(answer.status)
            return statuses, served.fingerprint

    statuses, fingerprint = asyncio.run(main())

    assert [401, 200] == statuses
    assert "canary" not in log() + str(fingerprint) + "".join(notes)


def test_a_key_that_is_not_set_is_named_before_anything_starts(notes):
    async def main():
        keyed = replace(profile(), auth=Auth(key_env="NO_SUCH_KEY"))
        async with host(notes).serving("m", keyed):
            pytest.fail("it is not ready")

    with pytest.raises(ConfigError, match="variable NO_SUCH_KEY is not set"):
        asyncio.run(main())


def test_a_key_from_outside_is_not_the_servers(monkeypatch):
    monkeypatch.setenv("VLLM_API_KEY", "of-another-server")
    place = commands.Place(port=1234, gpus=(), folder=Path())

    plain = commands.command(config(), profile(), place)
    keyed = commands.command(config(), profile(), place, key="canary-7f3a")

    assert "VLLM_API_KEY" not in plain.environment
    assert "canary-7f3a" == keyed.environment["VLLM_API_KEY"]
    assert "canary-7f3a" not in str(keyed)
    assert plain.words == keyed.words


# -- replicas and GPUs -------------------------------------------------------------------------


def test_replicas_have_addresses_and_gpus_of_their_own(notes):
    async def main():
        several = host(notes, gpus=["0", "1", "2", "3"])
        async with several.serving("m", profile(replicas=2, tensor_parallel=2)) as served:
            return [await ask(url) for url in served.base_urls]

    answers = asyncio.run(main())

    assert ["0,1", "2,3"] == [answer["gpus"] for answer in answers]
    assert 2 == len({answer["pid"] for answer in answers})


def test_models_that_do_not_fit_together_are_served_one_after_the_other(notes):
    running, most = set(), []

    async def main():
        several = host(notes, gpus=["0", "1"])

        async def play(name, size):
            async with several.serving(name, profile(tensor_parallel=size)) as served:
                answer = await ask(served.base_urls[0])
                running.add(name)
                most.append((sorted(running), answer["gpus"]))
                await asyncio.sleep(0.1)
                running.remove(name)

        await asyncio.gather(play("a", 1), play("b", 2), play("c", 1))

    asyncio.run(main())

    assert ["b"] in [names for names, _ in most]
    assert all("b" not in names or ["b"] == names for names, _ in most)
    assert {"0", "1", "0,1"} == {gpus for _, gpus in most}


def test_more_gpus_than_there_are_is_refused_with_the_numbers(notes):
    async def main():
        async with host(notes, gpus=["0"]).serving("m", profile(tensor_parallel=2)):
            pytest.fail("it is not ready")

    with pytest.raises(ServingError, match=r"expected 2 GPUs .* offers 1 \(0\)"):
        asyncio.run(main())


# -- the pieces --------------------------------------------------------------------------------


def test_nothing_of_our_python_reaches_the_engine(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "ours")
    monkeypatch.setenv("VIRTUAL_ENV", "ours")
    place = commands.Place(port=1234, gpus=("3",), folder=Path())

    environment = commands.command(config(), profile(), place).environment

    assert {"PYTHONPATH", "VIRTUAL_ENV"}.isdisjoint(environment)
    assert "3" == environment["CUDA_VISIBLE_DEVICES"]
    assert "1" == environment["VLLM_NO_USAGE_STATS"]


def test_a_marker_finds_what_left_the_tree():
    value = str(os.getpid())
    with subprocess.Popen(
        ["cat"], env={processes.MARKER: value}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()  # it is what it will be: its environment is there to be read
        found = [found.pid for found in procfs.marked(f"{processes.MARKER}={value}")]
        process.kill()

    assert [process.pid] == found
    assert [] == procfs.marked(f"{processes.MARKER}={value}")


def test_a_listening_socket_is_known_with_its_owner():
    async def main():
        async with await asyncio.start_server(lambda *_: None, ports.HOST, 0) as server:
            port = server.sockets[0].getsockname()[1]
            mine = procfs.sockets([procfs.read(os.getpid())])
            return procfs.listeners(port), mine, ports.free(port)

    listeners, mine, free = asyncio.run(main())

    assert 1 == len(listeners)
    assert listeners <= mine
    assert not free


def test_no_two_claims_share_a_port():
    with ports.claim(8300) as first, ports.claim(8300) as second:
        assert first.port != second.port
