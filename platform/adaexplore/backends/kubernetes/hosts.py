"""The host: open models served by pods of the cluster in which the driver runs.

A model's servers live as long as the context in which it is played. While there is no queue, one model
at a time is looking for places, so that two which need several GPUs do not each hold half of what they
need; with Kueue the queue sees to that, unless a model has several replicas. If a server cannot be
brought back, the body of the context is cancelled and the context raises the reason.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext

import aiohttp

from adaexplore.backends.kubernetes import fingerprints, heartbeats, surroundings
from adaexplore.backends.kubernetes.manifests import common, leases
from adaexplore.backends.kubernetes.manifests.leases import LeaseSpec
from adaexplore.backends.kubernetes.manifests.servers import ServerSpec
from adaexplore.backends.kubernetes.servers import Plan, Server
from adaexplore.backends.kubernetes.surroundings import Surroundings
from adaexplore.errors import ClusterError
from adaexplore.experiments.serving import ServingConfig
from adaexplore.models import secrets
from adaexplore.models.engines import asking, side_by_side, words
from adaexplore.models.hosts import Served
from adaexplore.models.profiles import VllmProfile

NAME_LIMIT = 52
"""Of Jobs: what tells their replacements and pods apart comes on top."""


class KubernetesHost:
    """Serves open models with pods (see `models.hosts.ModelHost`)."""

    def __init__(
        self,
        config: ServingConfig,
        find: Callable[[], Awaitable[Surroundings]],
        *,
        notify: Callable[[str], None],
    ) -> None:
        """Serve with a configuration.

        Args:
            config: Of kind `kubernetes`.
            find: Tells where the driver runs; asked when the first model is to be served.
            notify: Told in one line of every start, wait, restart and end.
        """
        self._config = config
        self._find = find
        self._notify = notify
        self._turn = asyncio.Lock()
        self._places: set[str] = set()
        self._open = 0
        self._lock = asyncio.Lock()
        self._stack: AsyncExitStack | None = None
        self._here: Surroundings | None = None

    @asynccontextmanager
    async def serving(self, name: str, profile: VllmProfile) -> AsyncIterator[Served]:
        """A context in which the model answers.

        Raises:
            ServingError: No server became ready, or one could not be brought back; in the second
                case the body of the context is cancelled first.
            ClusterError: The cluster refuses, or does not answer.
            ConfigError: The profile has no model, or its key is not where the profile says.
        """
        async with AsyncExitStack() as stack:
            here = await stack.enter_async_context(self._cluster())
            headers, _ = secrets.headers(name, profile)
            http = await stack.enter_async_context(asking.session(headers))
            servers = self._servers(here, http, name, profile)
            stack.push_async_callback(self._stop, name, servers)
            await self._start(name, servers)
            fingerprint = await fingerprints.collect(servers[0], profile)
            urls = tuple(f"{server.plan.address}/v1" for server in servers)
            async with side_by_side.watched(servers):
                yield Served(base_urls=urls, fingerprint=fingerprint)

    # -- starting and stopping -----------------------------------------------------------------

    def _servers(
        self, here: Surroundings, http: aiohttp.ClientSession, name: str, profile: VllmProfile
    ) -> list[Server]:
        """One for each replica; nothing is made yet."""
        others = lambda: bool(self._places - {name})  # noqa: E731
        return [
            Server(plan, self._config, here.cluster, http, self._notify, others)
            for plan in plans(self._config, here, name, profile)
        ]

    async def _start(self, name: str, servers: Sequence[Server]) -> None:
        queued = self._config.pods.queue is not None and len(servers) == 1
        try:
            async with asyncio.TaskGroup() as group, nullcontext() if queued else self._turn:
                for server in servers:
                    group.create_task(server.start())
                for server in servers:
                    await server.placed.wait()
                self._places.add(name)
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None

    async def _stop(self, name: str, servers: Sequence[Server]) -> None:
        try:
            await side_by_side.together(server.stop() for server in servers)
        except ClusterError as error:  # what was played is played: the owner's end is theirs too
            self._notify(f"server of {name}: could not be removed: {error}")
        self._places.discard(name)

    # -- what all models share -----------------------------------------------------------------

    @asynccontextmanager
    async def _cluster(self) -> AsyncIterator[Surroundings]:
        """The surroundings, with a heart that beats from the first model to the last."""
        async with self._lock:
            if self._stack is None:
                self._stack, self._here = await self._entered()
            self._open += 1
            here = self._here
        assert here is not None  # noqa: S101 (they come together)
        try:
            yield here
        finally:
            async with self._lock:
                self._open -= 1
                if self._open == 0 and self._stack is not None:
                    stack, self._stack = self._stack, None
                    await stack.aclose()

    async def _entered(self) -> tuple[AsyncExitStack, Surroundings]:
        async with AsyncExitStack() as stack:
            here = await self._find()
            stack.callback(here.cluster.close)
            spec = LeaseSpec(
                name=leases.name(here.sweep, here.attempt),
                sweep=here.sweep,
                namespace=here.cluster.namespace,
                owner=here.owner,
                holder=here.holder,
                duration_s=self._config.pods.lease_s,
                attempt=here.attempt,
            )
            beating = heartbeats.beating(here.cluster, spec, self._notify)
            await stack.enter_async_context(beating)
            return stack.pop_all(), here


def plans(config: ServingConfig, here: Surroundings, name: str, profile: VllmProfile) -> list[Plan]:
    """The replicas of a model: their names, commands and objects.

    Raises:
        ConfigError: The profile has no model.
    """
    served, pods, hosting = words.served_name(profile), config.pods, profile.hosting
    command = (*pods.command, *words.words(profile, host="0.0.0.0", port=pods.port))  # noqa: S104 (a pod's own)
    specs = [
        ServerSpec(
            name=common.object_name(name, here.sweep, here.attempt, str(replica), limit=NAME_LIMIT),
            model_id=served,
            sweep=here.sweep,
            namespace=here.cluster.namespace,
            owner=here.owner,
            command=command,
            serving=pods,
            env=hosting.environment,
            tensor_parallel=hosting.tensor_parallel,
            replica=replica,
            attempt=here.attempt,
            heartbeat=leases.name(here.sweep, here.attempt),
            grace_s=math.ceil(config.stop_grace_s),
        )
        for replica in range(hosting.replicas)
    ]
    return [Plan(name=name, served=served, spec=spec) for spec in specs]


def of_this_pod(
    config: ServingConfig, sweep: str, *, notify: Callable[[str], None]
) -> KubernetesHost:
    """The host of a driver that runs in a pod; ConfigError outside of one."""
    surroundings.check()
    return KubernetesHost(config, lambda: surroundings.here(sweep), notify=notify)
