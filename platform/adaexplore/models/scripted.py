"""Reference agents as endpoints.

An agent's inference may take a while, so agents can run in worker processes while this process
plays the environment. Every episode keeps to one worker: agents are pure functions, but their
caches are warm where the episode's earlier turns were answered.
"""

import asyncio
import multiprocessing
import os
import signal
import threading
import time
import zlib
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Final, Self

from adaexplore.benchmark.game import agents
from adaexplore.benchmark.game.agents.oracle import Told, oracle
from adaexplore.benchmark.game.protocol import Message, Reply, Request
from adaexplore.models.endpoints import Answer, ModelError

ORACLE: Final = "oracle"
"""Name of the one agent that is told the hidden rule."""
ORACLE_VERSION: Final = 1


def versions() -> dict[str, int]:
    """Current version of every agent by name, the oracle's included."""
    return {name: agent.version for name, agent in agents.AGENTS.items()} | {ORACLE: ORACLE_VERSION}


class Workers:
    """Worker processes that answer for agents; none means in this process."""

    def __init__(self, count: int) -> None:
        """Start `count` workers when the first question comes."""
        context = multiprocessing.get_context("spawn")
        self._pools = [
            ProcessPoolExecutor(1, mp_context=context, initializer=follow_parent)
            for _ in range(count)
        ]

    async def answer(self, agent: str, messages: tuple[Message, ...], seed: int, key: str) -> str:
        """The agent's reply; `key` names the episode run and so chooses the worker."""
        if not self._pools:
            return answer(agent, messages, seed)
        pool = self._pools[zlib.crc32(key.encode()) % len(self._pools)]
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(pool, answer, agent, messages, seed)

    def __enter__(self) -> Self:
        """Nothing to do: workers start by need."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the workers and wait for them."""
        for pool in self._pools:
            pool.shutdown(wait=True, cancel_futures=True)


def follow_parent() -> None:
    """In a worker: leave Ctrl-C to the parent, and end when it does, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def follow() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=follow, name="parent", daemon=True).start()


def answer(agent: str, messages: tuple[Message, ...], seed: int) -> str:
    """The reply of a named agent; what a worker runs."""
    return agents.AGENTS[agent].reply(messages, seed)


class ScriptedEndpoint:
    """A reference agent for one episode run."""

    def __init__(self, agent: str, seed: int, *, workers: Workers, key: str) -> None:
        """Bind the agent to the run's seed and to a worker."""
        self._agent = agent
        self._seed = seed
        self._workers = workers
        self._key = key

    async def ask(self, request: Request) -> Answer:
        """The agent's answer; an agent that raises is a failed model."""
        start = time.perf_counter()
        try:
            text = await self._workers.answer(self._agent, request.messages, self._seed, self._key)
        except BrokenProcessPool:
            raise ModelError(f"the worker process of agent {self._agent} died") from None
        except Exception as error:
            raise ModelError(
                f"agent {self._agent} raised {type(error).__name__}: {error}"
            ) from error
        return Answer(reply=Reply(text=text), seconds=time.perf_counter() - start)


class OracleEndpoint:
    """The oracle for one episode run: the one agent that is told the hidden rule."""

    def __init__(self, told: Told) -> None:
        """Bind the oracle to what it is told."""
        self._told = told

    async def ask(self, request: Request) -> Answer:
        """The oracle's answer, made in this process; an oracle that raises is a failed model."""
        start = time.perf_counter()
        try:
            text = oracle(request.messages, self._told)
        except Exception as error:
            raise ModelError(f"agent {ORACLE} raised {type(error).__name__}: {error}") from error
        return Answer(reply=Reply(text=text), seconds=time.perf_counter() - start)
