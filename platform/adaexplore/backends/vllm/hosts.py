"""The host: open models served on this machine, as many at once as its GPUs allow.

A model's servers live as long as the context in which it is played. All its GPUs are leased together,
its replicas start side by side, and each is watched by a task that restarts it; if one cannot be
brought back, the body of the context is cancelled and the context raises the reason, so that no
sweep goes on retrying against an address where nobody will ever answer.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from adaexplore.backends.vllm import commands, fingerprints, gpus, ports
from adaexplore.backends.vllm.servers import Plan, Server
from adaexplore.experiments.serving import ServingConfig
from adaexplore.models import secrets
from adaexplore.models.engines import asking, side_by_side, words
from adaexplore.models.hosts import Served
from adaexplore.models.profiles import VllmProfile


class VllmHost:
    """Serves open models with vLLM processes of this machine (see `models.hosts.ModelHost`)."""

    def __init__(
        self, config: ServingConfig, folder: Path, *, notify: Callable[[str], None]
    ) -> None:
        """Serve with a configuration.

        Args:
            config: Of kind `vllm_process`.
            folder: Where logs are kept, and where servers run; made if it is not there.
            notify: Told in one line of every start, restart and wait.

        Raises:
            ServingError: The machine's GPUs cannot be listed.
        """
        self._config = config
        self._folder = folder.absolute()
        self._notify = notify
        ids = gpus.installed() if config.gpus is None else config.gpus
        self._leases = gpus.Leases(ids)

    @asynccontextmanager
    async def serving(self, name: str, profile: VllmProfile) -> AsyncIterator[Served]:
        """A context in which the model answers.

        Raises:
            ServingError: No server became ready, or one could not be brought back; in the second
                case the body of the context is cancelled first.
            ConfigError: The profile has no model, or its key is not where the profile says.
        """
        async with AsyncExitStack() as stack:
            servers = await self._start(stack, name, profile)
            fingerprint = await fingerprints.collect(servers[0], profile)
            urls = tuple(f"{server.plan.address}/v1" for server in servers)
            async with side_by_side.watched(servers):
                yield Served(base_urls=urls, fingerprint=fingerprint)

    async def _start(self, stack: AsyncExitStack, name: str, profile: VllmProfile) -> list[Server]:
        """Servers that are ready, and are stopped with the stack."""
        hosting = profile.hosting
        size = hosting.tensor_parallel
        if not self._leases.cpu:  # replicas on one CPU share it
            size *= hosting.replicas
        self._notify(f"server of {name}: waiting for {size} of {', '.join(self._leases.ids)}")
        granted = await stack.enter_async_context(self._leases.lease(size))
        headers, _ = secrets.headers(name, profile)
        http = await stack.enter_async_context(asking.session(headers))
        self._folder.mkdir(parents=True, exist_ok=True)
        servers = []
        for replica in range(hosting.replicas):
            first = replica * hosting.tensor_parallel
            ids = () if self._leases.cpu else granted[first : first + hosting.tensor_parallel]
            claim = stack.enter_context(ports.claim(self._config.port_start))
            place = commands.Place(port=claim.port, gpus=ids, folder=self._folder)
            plan = self._plan(name, profile, place)
            servers.append(Server(plan, self._config, http, self._notify))
        stack.push_async_callback(
            lambda: side_by_side.together(server.stop() for server in servers)
        )
        await side_by_side.together(server.start() for server in servers)
        return servers

    def _plan(self, name: str, profile: VllmProfile, place: commands.Place) -> Plan:
        return Plan(
            name=name,
            command=commands.command(self._config, profile, place, key=secrets.key(name, profile)),
            port=place.port,
            served=words.served_name(profile),
            log=self._folder / f"{name}-{place.port}.log",
        )
