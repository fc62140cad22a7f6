"""The host against a stand-in server: killed, wedged, stopped; nothing of it is ever left."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from adaexplore.backends.vllm import procfs
from adaexplore.errors import ServingError
from standins import PATIENT_S, STANDIN, ask, gone, host, offspring, profile, wedge


@pytest.fixture
def notes():
    return []


# -- staying so --------------------------------------------------------------------------------


def test_a_killed_server_comes_back_at_its_address(notes):
    async def main():
        async with host(notes).serving("m", profile()) as served:
            first = await ask(served.base_urls[0])
            os.kill(first["pid"], signal.SIGKILL)
            second = await ask(served.base_urls[0])
            return first["pid"], second["pid"]

    first, second = asyncio.run(main())

    assert first != second
    assert gone([first, second])
    assert any("died with code 137" in note and "restart 1 of 2" in note for note in notes)


def test_a_killed_guard_takes_the_server_along_and_both_come_back(notes):
    async def main():
        async with host(notes).serving("m", profile("children")) as served:
            first = await ask(served.base_urls[0])
            os.kill(procfs.read(first["pid"]).parent, signal.SIGKILL)
            assert await asyncio.to_thread(gone, [first["pid"]])
            second = await ask(served.base_urls[0])
            return [first["pid"], second["pid"], *offspring()]

    everyone = asyncio.run(main())

    assert 6 == len(set(everyone))
    assert gone(everyone)


@pytest.mark.parametrize("asking", [True, False], ids=["with a request in it", "idle"])
def test_a_wedged_server_with_a_healthy_page_is_restarted_and_the_request_answered(asking, notes):
    async def main():
        # A machine that is busy for as long may cost a restart more, and nothing else.
        async with host(notes, progress_timeout_s=1.5, max_restarts=20).serving(
            "m", profile()
        ) as served:
            first = await ask(served.base_urls[0])
            wedge()
            if not asking:
                assert await asyncio.to_thread(gone, [first["pid"]])
            return first, await ask(served.base_urls[0])

    first, second = asyncio.run(main())

    assert first["pid"] != second["pid"]
    assert any("nothing moved for 1.5 s" in note for note in notes)


def test_an_idle_server_is_left_alone(notes):
    """Its counters stand still too, but a canary moves them."""

    async def main():
        async with host(notes, progress_timeout_s=8.0).serving("m", profile()) as served:
            first = await ask(served.base_urls[0])
            await asyncio.sleep(9.0)
            return first, await ask(served.base_urls[0])

    first, second = asyncio.run(main())

    assert first["pid"] == second["pid"]


def test_a_server_that_keeps_dying_ends_the_body_with_the_reason(notes):
    async def main():
        async with host(notes).serving("m", profile("short-lived")):
            try:
                await asyncio.sleep(PATIENT_S)
            except asyncio.CancelledError:
                notes.append("the body was told")
                raise

    with pytest.raises(ServingError, match=r"died with code 3.*2 restarts .* did not help"):
        asyncio.run(main())

    assert "the body was told" in notes


def test_an_error_of_the_body_passes_unchanged(notes):
    async def main():
        async with host(notes).serving("m", profile()) as served:
            notes.append((await ask(served.base_urls[0]))["pid"])
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        asyncio.run(main())

    assert procfs.read(notes[-1]) is None


# -- stopping ----------------------------------------------------------------------------------


def test_children_in_sessions_of_their_own_go_with_the_server(notes):
    async def main():
        async with host(notes).serving("m", profile("children")):
            children = offspring()
            assert all(procfs.read(pid) for pid in children)
            return children

    children = asyncio.run(main())

    assert 2 == len(children)
    assert [] == [pid for pid in children if procfs.read(pid)]


def test_a_server_that_ignores_the_request_to_end_is_killed_after_its_grace(notes):
    async def main():
        async with host(notes, stop_grace_s=0.5).serving("m", profile("stubborn")) as served:
            return (await ask(served.base_urls[0]))["pid"], time.monotonic()

    pid, asked = asyncio.run(main())

    assert 0.5 <= time.monotonic() - asked < PATIENT_S
    assert procfs.read(pid) is None


def test_cancelling_leaves_nothing(notes):
    async def main():
        async def body():
            async with host(notes).serving("m", profile("children")) as served:
                notes.append((await ask(served.base_urls[0]))["pid"])
                playing.set()
                await asyncio.sleep(PATIENT_S)

        playing = asyncio.Event()
        task = asyncio.create_task(body())
        await playing.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(main())

    children = offspring()
    assert [] == [pid for pid in [notes[-1], *children] if procfs.read(pid)]


LAUNCHER = """
import asyncio, os, sys
from adaexplore.backends.vllm import procfs
sys.path[:0] = {path!r}
from standins import *

async def main():
    async with host([]).serving("m", profile("children")) as served:
        answer = await ask(served.base_urls[0])
        forked = os.fork()  # a worker that inherits every handle, the guard's pipe among them
        if forked:
            print(answer["pid"], procfs.read(answer["pid"]).parent, forked, flush=True)
        await asyncio.sleep({patient})

asyncio.run(main())
"""


def test_a_launcher_that_is_killed_takes_everything_along():
    """No code of the launcher runs any more, and a forked worker still holds the guard's pipe."""
    code = LAUNCHER.format(path=[str(STANDIN.parent.parent)], patient=PATIENT_S)
    launcher = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    with launcher:
        server, guard, forked = map(int, launcher.stdout.readline().split())
        launcher.kill()
        children = offspring()

        assert gone([server, guard, *children])
        os.kill(forked, signal.SIGKILL)
