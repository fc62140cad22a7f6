"""One replica: made ready with a reason if it fails, watched, and brought back at the same address.

Whoever calls the server needs to know nothing of a restart or of another pod: a call that was in flight
fails as any network fault does, is retried, and lands on the new pod, which has the same address. What
the cluster takes away (drained, preempted, evicted, lost with its node) is waited for or made again; an
API server that is away does not end a server that answers.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import aiohttp

from adaexplore.backends.kubernetes.causes import (
    UNCOUNTED,
    Cause,
    FailedError,
    Fault,
    Json,
    Look,
    Stage,
    Tries,
    Waiting,
    understood,
)
from adaexplore.backends.kubernetes.clients import Cluster, UnreachableError
from adaexplore.backends.kubernetes.limits import Limits
from adaexplore.backends.kubernetes.manifests import servers
from adaexplore.backends.kubernetes.manifests.servers import ServerSpec
from adaexplore.backends.kubernetes.objects import Objects
from adaexplore.errors import ServingError
from adaexplore.experiments.serving import ServingConfig
from adaexplore.models.engines.asking import CanaryError, Engine
from adaexplore.models.engines.progress import Progress, sample

POLL_S: Final = 1.0
"""Pause between two looks at a server's objects."""
LOOKS: Final = 20
"""Looks at the counters within the time allowed for progress."""
REACH_S: Final = 60.0
"""How long a ready pod may not be reached at its Service's address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a replica is: whose, what it must list, and the objects that make it."""

    name: str
    served: str
    spec: ServerSpec

    @property
    def address(self) -> str:
        """Where the engine answers, without `/v1`."""
        return servers.address(self.spec)


class Server:
    """One replica, from its first start to its end."""

    def __init__(
        self,
        plan: Plan,
        config: ServingConfig,
        cluster: Cluster,
        http: aiohttp.ClientSession,
        notify: Callable[[str], None],
        others: Callable[[], bool],
    ) -> None:
        """Prepare; nothing is made before `start`. `others`: whether other models hold places now."""
        self.plan = plan
        self.engine = Engine(http, plan.address)
        self.placed = asyncio.Event()
        """Set once the pod is on a node."""
        self.pod: Json | None = None
        """The pod that is ready, as it was then."""
        self._config = config
        self._notify = notify
        self._others = others
        self._objects = Objects(cluster, plan.spec, self._say)
        self._tries = Tries(config.max_restarts)
        self._shown = ""

    async def start(self) -> None:
        """Start, and return once a canary has been answered.

        Raises:
            ServingError: It did not become ready; one line with the reason. What was made is removed.
            ClusterError: The cluster refuses, or does not answer.
        """
        began = time.monotonic()
        try:
            await self._ready(was_ready=False)
        except BaseException:
            await self.stop()
            raise
        self._say(f"ready after {time.monotonic() - began:.0f} s at {self.plan.address}")

    async def watch(self) -> None:
        """Keep the server going until cancelled.

        Raises:
            ServingError: It was restarted as often as allowed, or did not become ready again.
        """
        while True:
            fault = await self._fault()
            await self._after(fault, was_ready=True)
            await self._ready(was_ready=True)
            self._say(f"ready again at {self.plan.address}")

    async def stop(self) -> None:
        """Remove all of it, and wait until it is gone; done even if the caller is cancelled.

        Raises:
            ClusterError: The cluster refuses, or does not answer.
        """
        removing = asyncio.ensure_future(self._objects.remove())
        try:
            await asyncio.shield(removing)
        except asyncio.CancelledError:
            await asyncio.wait([removing])
            raise

    async def output(self) -> str:
        """The end of what the pod that is ready has written."""
        return "" if self.pod is None else await self._objects.log(self.pod["metadata"]["name"])

    # -- becoming ready ------------------------------------------------------------------------

    async def _ready(self, *, was_ready: bool) -> None:
        while True:
            try:
                pod = await self._settle()
                await self._sing()
            except FailedError as failed:
                await self._after(failed.fault, was_ready=was_ready)
            else:
                self._tries.ready()
                self.pod = pod
                return

    async def _settle(self) -> Json:
        """The pod, as soon as it is ready.

        Raises:
            FailedError: It will not be.
        """
        limits, last = Limits(config=self._config), time.monotonic()
        while True:
            look = await self._objects.look()
            now = time.monotonic()
            if isinstance(look, Fault):
                raise FailedError(look)
            if look.stage in (Stage.PULLING, Stage.STARTING, Stage.READY):
                self.placed.set()
            if look.stage is Stage.READY and look.pod is not None:
                return look.pod
            if (fault := limits.spent(look, now - last, others=self._others())) is not None:
                raise FailedError(fault)
            self._show(look.why)
            if limits.dull():
                await self._objects.renew(wait=True)
            last = now
            await asyncio.sleep(POLL_S)

    async def _sing(self) -> None:
        """Let it answer at its address, list the model, and complete something.

        Raises:
            FailedError: It does not.
        """
        await self._listed()
        try:
            await self.engine.canary(self.plan.served, timeout_s=self._config.ready_timeout_s)
        except CanaryError as error:
            if str(error).startswith("HTTP 5"):  # the engine's trouble, and not the profile's
                raise FailedError(await self._interrupted(str(error))) from None
            why = (
                f"a first completion was refused: {error}; mend the profile (a model without chat "
                "template needs weights.chat_template)"
            )
            raise FailedError(Fault(cause=Cause.CONFIG, why=why)) from None
        except (aiohttp.ClientError, TimeoutError) as error:
            raise FailedError(await self._interrupted(type(error).__name__)) from None

    async def _listed(self) -> None:
        deadline = time.monotonic() + REACH_S
        while (models := await self.engine.models()) is None:
            if time.monotonic() > deadline:
                raise FailedError(await self._interrupted(f"no answer at {self.plan.address}"))
            await asyncio.sleep(POLL_S / 2)
        names = [str(model.get("id")) for model in models]
        if self.plan.served not in names:
            why = (
                f"expected it to serve '{self.plan.served}', it lists {', '.join(names) or 'nothing'}; "
                "take --served-model-name out of hosting.arguments"
            )
            raise FailedError(Fault(cause=Cause.CONFIG, why=why))

    async def _interrupted(self, error: str) -> Fault:
        """Why a first completion was not answered: what befell the pod, if anything did."""
        await asyncio.sleep(POLL_S)
        look = await self._objects.look()
        if isinstance(look, Fault):
            return look
        if look.stage is not Stage.READY or look.pod is None:
            return Fault(
                cause=Cause.TAKEN, why=f"taken away before its first completion ({look.why})"
            )
        why = (
            f"its pod is ready, but a first completion failed with {error} (if its log knows of none, see "
            "whether a NetworkPolicy keeps the driver from it)"
        )
        return Fault(cause=Cause.ENGINE, why=why, pod=look.pod["metadata"]["name"])

    # -- staying so ----------------------------------------------------------------------------

    async def _fault(self) -> Fault:
        """Wait until the server is dead, gone or stuck; what it is."""
        timeout_s = self._config.progress_timeout_s
        progress = Progress(timeout_s=timeout_s, moved_at=time.monotonic())
        sampling = asyncio.create_task(self._sample(progress))
        try:
            while not progress.stuck(time.monotonic()):
                if (fault := self._changed(await self._looked())) is not None:
                    return fault
                await asyncio.sleep(POLL_S)
            return Fault(cause=Cause.ENGINE, why=progress.story())
        finally:
            sampling.cancel()

    async def _sample(self, progress: Progress) -> None:
        while True:
            await sample(self.engine, self.plan.served, progress)
            await asyncio.sleep(progress.timeout_s / LOOKS)

    async def _looked(self) -> Look | None:
        """How it is; None while the cluster does not answer, which is no fault of the server."""
        try:
            look = await self._objects.look()
        except UnreachableError as error:
            self._show(f"is not looked after meanwhile: {error}")
            return None
        self._shown = ""
        return look

    def _changed(self, look: Look | None) -> Fault | None:
        """What has become of the pod that was ready, if it is not there as it was."""
        if look is None or isinstance(look, Fault):
            return look
        was, now = self.pod, look.pod
        if was is not None and now is not None and now["metadata"]["uid"] == was["metadata"]["uid"]:
            return None  # unready for a while, perhaps: its progress decides
        gone = "" if was is None else f" from {was['spec'].get('nodeName', 'its node')}"
        return Fault(cause=Cause.TAKEN, why=f"its pod was taken{gone} ({_what(look)})")

    async def _after(self, fault: Fault, *, was_ready: bool) -> None:
        """Prepare another start.

        Raises:
            ServingError: There is none after this.
        """
        if fault.pod is not None:
            fault = understood(fault, await self._objects.log(fault.pod))
        if not self._tries.again(fault.cause, was_ready=was_ready):
            raise self._error(fault)
        self._say(f"{fault.why}; it is brought back{self._count(fault)}")
        if fault.cause is not Cause.TAKEN:
            await self._objects.renew(wait=fault.cause is not Cause.LOST)
        await asyncio.sleep(self._tries.pause_s())

    def _count(self, fault: Fault) -> str:
        counted = self._tries.used and fault.cause not in UNCOUNTED
        return f", restart {self._tries.used} of {self._tries.restarts}" if counted else ""

    def _show(self, why: str) -> None:
        """Tell why it waits, once."""
        if why != self._shown:
            self._shown = why
            self._say(why)

    def _say(self, what: str) -> None:
        self._notify(f"server of {self.plan.name}: {what}")

    def _error(self, fault: Fault) -> ServingError:
        line = f"server of model '{self.plan.name}': {fault.cause.value}: {fault.why}"
        if self._tries.used > self._tries.restarts:
            line += f"; {self._tries.restarts} restarts (serving.max_restarts) did not help"
        return ServingError(line)


def _what(look: Waiting) -> str:
    return "another one is ready" if look.stage is Stage.READY else look.why
