"""One replica: made ready with a reason if it fails, watched, and brought back on the same address.

Whoever calls the server needs to know nothing of a restart: a call that was in flight fails as any
network fault does, is retried, and lands on the new server, which has the same address.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp

from adaexplore.backends.vllm import ports, processes, procfs
from adaexplore.backends.vllm.processes import Command, Run
from adaexplore.errors import ServingError
from adaexplore.experiments.serving import ServingConfig
from adaexplore.models.engines import reasons
from adaexplore.models.engines.asking import CanaryError, Engine
from adaexplore.models.engines.progress import Progress, sample

POLL_S: Final = 0.2
"""Pause between two looks at whether a server is there."""
LOOKS: Final = 20
"""Looks at the counters within the time allowed for progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a replica is: its command, its address, and the model that it must list."""

    name: str
    command: Command
    port: int
    served: str
    log: Path

    @property
    def address(self) -> str:
        """Where the engine listens, without `/v1`."""
        return f"http://{ports.HOST}:{self.port}"


class Server:
    """One replica, from its first start to its end."""

    def __init__(
        self,
        plan: Plan,
        config: ServingConfig,
        http: aiohttp.ClientSession,
        notify: Callable[[str], None],
    ) -> None:
        """Prepare; nothing runs before `start`."""
        self.plan = plan
        self.engine = Engine(http, plan.address)
        self._config = config
        self._notify = notify
        self._run: Run | None = None

    async def start(self) -> None:
        """Start, and return once a canary has been answered.

        Raises:
            ServingError: It did not become ready; one line with the reason and the log. Nothing of
                it is left running.
        """
        if not ports.free(self.plan.port):
            raise self._error(
                f"port {self.plan.port} is in use by another process; set serving.port_start to a "
                "free range"
            )
        began = time.monotonic()
        run = processes.start(
            self.plan.command, log=self.plan.log, grace_s=self._config.stop_grace_s
        )
        self._run = run
        try:
            await self._ready(run, began + self._config.ready_timeout_s)
        except BaseException:
            await self.stop(at_once=True)
            raise
        self._say(f"ready after {time.monotonic() - began:.0f} s at {self.plan.address}")

    async def watch(self) -> None:
        """Keep the server going until cancelled.

        Raises:
            ServingError: It was restarted as often as allowed, or did not become ready again.
        """
        for restart in range(1, self._config.max_restarts + 2):
            fault = await self._fault()
            if restart > self._config.max_restarts:
                raise self._error(
                    f"{fault}; {restart - 1} restarts (serving.max_restarts) did not help"
                )
            self._say(f"{fault}; restart {restart} of {self._config.max_restarts}")
            await self.stop(at_once=True)
            await self.start()

    async def stop(self, *, at_once: bool = False) -> None:
        """End the server with everything that it started, and wait until it is gone.

        Raises:
            ServingError: Something of it cannot be ended.
        """
        if self._run is not None:
            run, self._run = self._run, None
            run.ask_to_stop(at_once=at_once)  # done even if the waiting is cancelled
            await asyncio.shield(run.stop(at_once=at_once))

    def members(self) -> list[procfs.Process]:
        """Every process of the server as it runs now."""
        return [] if self._run is None else self._run.members()

    def output(self) -> str:
        """The end of what the server has written since it was last started."""
        return "" if self._run is None else self._run.output()

    # -- becoming ready ------------------------------------------------------------------------

    async def _ready(self, run: Run, deadline: float) -> None:
        while not await self._listed(run):
            if time.monotonic() > deadline:
                raise self._error(
                    f"not ready after {self._config.ready_timeout_s:g} s "
                    f"(serving.ready_timeout_s): {reasons.explain(None, run.output())}"
                )
            await asyncio.sleep(POLL_S)
        await self._sing(run, max(deadline - time.monotonic(), POLL_S))
        self._own_port(run)

    async def _listed(self, run: Run) -> bool:
        """Whether the server answers and lists the model; an ended one is an error."""
        if (code := run.exit_code()) is not None:
            raise self._error(f"ended with code {code}: {reasons.explain(code, run.output())}")
        if not await self.engine.healthy():
            return False
        models = await self.engine.models()
        if models is None:
            return False
        names = [str(model.get("id")) for model in models]
        if self.plan.served not in names:
            raise self._error(
                f"expected it to serve '{self.plan.served}', it lists {', '.join(names) or 'nothing'}; "
                "take --served-model-name out of hosting.arguments"
            )
        return True

    async def _sing(self, run: Run, timeout_s: float) -> None:
        try:
            await self.engine.canary(self.plan.served, timeout_s=timeout_s)
        except CanaryError as error:
            raise self._error(
                f"a first completion was refused: {error}; mend the profile (a model without chat "
                "template needs weights.chat_template)"
            ) from None
        except (aiohttp.ClientError, TimeoutError) as error:
            code = run.exit_code()
            raise self._error(
                f"a first completion failed with {type(error).__name__}: "
                f"{reasons.explain(code, run.output())}"
            ) from None

    def _own_port(self, run: Run) -> None:
        """Engines share ports in silence (SO_REUSEPORT); then calls would land anywhere."""
        ours = procfs.sockets(run.members())  # first: a server that dies meanwhile is no stranger
        if procfs.listeners(self.plan.port) - ours:
            raise self._error(
                f"port {self.plan.port} is in use by another process as well; set "
                "serving.port_start to a free range"
            )

    # -- staying so ----------------------------------------------------------------------------

    async def _fault(self) -> str:
        """Wait until the server is dead or stuck; what it is."""
        run = self._run
        if run is None:
            return "it does not run"
        timeout_s = self._config.progress_timeout_s
        progress = Progress(timeout_s=timeout_s, moved_at=time.monotonic())
        looking = asyncio.create_task(self._look(run, progress))
        try:
            while not progress.stuck(time.monotonic()):
                if (code := run.exit_code()) is not None:
                    return f"died with code {code}: {reasons.explain(code, run.output())}"
                await asyncio.sleep(min(POLL_S, timeout_s / LOOKS))
            return progress.story()
        finally:
            looking.cancel()

    async def _look(self, run: Run, progress: Progress) -> None:
        while True:
            run.members()  # remembered, should the guard be killed
            await sample(self.engine, self.plan.served, progress)
            await asyncio.sleep(self._config.progress_timeout_s / LOOKS)

    def _say(self, what: str) -> None:
        self._notify(f"server of {self.plan.name}: {what}")

    def _error(self, what: str) -> ServingError:
        return ServingError(f"server of model '{self.plan.name}': {what}; log: {self.plan.log}")
