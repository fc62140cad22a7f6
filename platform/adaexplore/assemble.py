"""Assembly: from a configuration to the objects that play it.

The one place where names in a configuration become stores, trackers and models.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from zlib import crc32

from adaexplore.backends.folder import FolderStore
from adaexplore.benchmark.game.agents.oracle import Told
from adaexplore.errors import ConfigError
from adaexplore.experiments import identity
from adaexplore.experiments.config import Places, SweepConfig
from adaexplore.experiments.stores import Store
from adaexplore.experiments.sweeps import Job, Plan
from adaexplore.experiments.trackers import NoTracker, Tracker
from adaexplore.models import preflight, scripted, secrets
from adaexplore.models.activity import Activity
from adaexplore.models.client import Account, HttpEndpoint
from adaexplore.models.endpoints import Endpoint
from adaexplore.models.governor import Governor
from adaexplore.models.hosts import ModelHost, Served
from adaexplore.models.pacing import Pace, Purse
from adaexplore.models.profiles import Limits, RemoteProfile, ScriptedProfile, VllmProfile
from adaexplore.models.scripted import OracleEndpoint, ScriptedEndpoint, Workers
from adaexplore.models.transport import HttpTransport

if TYPE_CHECKING:
    from adaexplore.backends.mlflow.tracker import Target

FEW_RUNS = 8
"""With fewer episode runs than this, starting worker processes costs more than it saves."""

Connect = Callable[[Job], Endpoint]


def store(config: SweepConfig | Places) -> Store:
    """The store of a sweep; StoreError if it cannot be used."""
    if config.store.kind == "folder":
        return FolderStore(Path(config.runs_dir))
    try:
        from adaexplore.backends.s3.store import S3Store
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"store=s3 needs the module {error.name}: pip install 'adaexplore[s3]'"
        ) from error
    return S3Store(config.store)


def tracker(config: SweepConfig, store: Store, sweep: str) -> Tracker:
    """The tracker of a sweep."""
    if config.tracking.kind == "none":
        return NoTracker()
    from adaexplore.backends.mlflow.tracker import MlflowTracker

    return MlflowTracker(_target(config, store, sweep))


def check_tracking(config: SweepConfig) -> str | None:
    """A warning if the tracker does not answer; ConfigError or TrackingError if it never will."""
    if config.tracking.kind != "server":
        return None
    from adaexplore.backends.mlflow import checks

    return checks.check(config.tracking.uri or "")


def tracking_differences(places: Places, store: Store, sweep: str) -> list[str]:
    """What a tracker shows of a sweep that is not what is stored, a line each."""
    if places.tracking.kind == "none":
        return []
    from adaexplore.backends.mlflow import syncing

    return syncing.differences(_target(places, store, sweep))


def synchronise(
    places: Places, store: Store, sweep: str, notify: Callable[[int], None] = lambda _: None
) -> list[str]:
    """Make the tracker show a sweep as it is stored; lines that say what was done and where to look.

    `notify` is told now and then how many runs are left.
    """
    if places.tracking.kind == "none":
        raise ConfigError(
            "tracking=none shows nothing: expected tracking=sqlite or tracking=server"
        )
    from adaexplore.backends.mlflow import syncing

    return syncing.synchronise(_target(places, store, sweep), notify)


def _target(config: SweepConfig | Places, store: Store, sweep: str) -> "Target":
    from adaexplore.backends.mlflow.tracker import Target

    root = Path(config.runs_dir)
    return Target(config=config.tracking, root=root, store=store, sweep=sweep)


def host(config: SweepConfig, sweep: str, notify: Callable[[str], None]) -> ModelHost | None:
    """What serves open models of a sweep, if anything here does; ConfigError where it cannot."""
    if config.serving.kind == "none":
        return None
    if config.serving.kind == "kubernetes":
        from adaexplore.backends.kubernetes import hosts

        return hosts.of_this_pod(config.serving, sweep, notify=notify)
    from adaexplore.backends.vllm.hosts import VllmHost

    return VllmHost(config.serving, Path(config.runs_dir) / "serving", notify=notify)


def check_serving(config: SweepConfig) -> None:
    """Refuse, before anything is written, a way of serving that is not to be had here (ConfigError)."""
    if config.serving.kind == "kubernetes" and config.backend.kind != "kubernetes":
        from adaexplore.backends.kubernetes import surroundings

        surroundings.check()


def cores() -> int:
    """Processors that this process may use, which on a shared machine are not all there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def remote_models(config: SweepConfig) -> dict[str, RemoteProfile]:
    """Profiles that are asked over a network, by name."""
    return {
        name: profile
        for name, profile in config.models.items()
        if not isinstance(profile, ScriptedProfile)
    }


def account_name(profile: RemoteProfile) -> str:
    """Name of the account that is asked: provider, key and model."""
    key = profile.auth.key_env or profile.auth.key_file or "no key"
    return f"{profile.provider} ({key}) {profile.model}"


def check_models(config: SweepConfig, *, first_prompt_chars: int = 0) -> None:
    """Refuse, before anything is asked, a profile that cannot be played (ConfigError)."""
    for name, profile in config.models.items():
        if isinstance(profile, ScriptedProfile):
            _check_agent(name, profile)
        else:
            preflight.check_profile(name, profile, first_prompt_chars=first_prompt_chars)
            _check_price(name, profile, config)


def _check_agent(name: str, profile: ScriptedProfile) -> None:
    known = scripted.versions()
    version = known.get(profile.agent)
    if version is None:
        listed = ", ".join(sorted(known))
        raise ConfigError(f"model '{name}': unknown agent '{profile.agent}'; known: {listed}")
    if version != profile.version:
        raise ConfigError(
            f"model '{name}': the profile says version {profile.version} of agent "
            f"'{profile.agent}', this code has version {version}; set version: {version}"
        )


def _check_price(name: str, profile: RemoteProfile, config: SweepConfig) -> None:
    prices = profile.prices
    unknown = None in (prices.input_usd_per_mtok, prices.output_usd_per_mtok)
    if config.budget.cap_usd is not None and unknown:
        raise ConfigError(
            f"model '{name}': budget.cap_usd needs a price; add "
            f"+profiles.{name}.prices.input_usd_per_mtok=... and output_usd_per_mtok=..."
        )


@dataclass
class Models:
    """The models of one launch: what they share, and how a job gets its endpoint."""

    config: SweepConfig
    plan: Plan
    budget: Purse
    host: ModelHost | None = None
    """Serves open models; None refuses a model that has no address."""
    activity: Activity = field(default_factory=Activity)
    fingerprints: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What each server that we started says of itself, by model."""
    pace: Callable[[str, Limits, Callable[[], float]], Pace] = Governor
    """Makes the governor of an account from its name, its limits and the clock."""
    governors: dict[str, Pace] = field(default_factory=dict)
    """One for each (provider, account, model), by its name."""
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _workers: Workers = field(init=False)
    _accounts: dict[str, Account] = field(default_factory=dict)

    async def __aenter__(self) -> Self:
        """Read the secrets and ask every address that is known; ConfigError before any episode."""
        try:
            await self._open()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close connections and stop workers."""
        await self._stack.aclose()

    @asynccontextmanager
    async def connected(self, name: str) -> AsyncIterator[Connect]:
        """What binds a job of this model to an endpoint; serves the model first where that is due."""
        async with self.serving(name) as served:
            yield self.connect(name, served)

    @asynccontextmanager
    async def serving(self, name: str) -> AsyncIterator[Served | None]:
        """Where this model answers; None for a reference agent, which plays in the process."""
        profile = self.config.models[name]
        if isinstance(profile, ScriptedProfile):
            yield None
        elif profile.route.base_url is not None:
            yield Served(base_urls=(profile.route.base_url,))
        elif isinstance(profile, VllmProfile) and self.host is not None:
            async with self.host.serving(name, profile) as served:
                self.fingerprints[name] = served.fingerprint
                for url in served.base_urls:
                    await preflight.check_endpoint(name, self._accounts[name], url)
                yield served
        else:
            raise ConfigError(
                f"model '{name}': nothing serves it; add serving=vllm_process, or "
                f"+profiles.{name}.route.base_url=http://.../v1 where it is served already"
            )

    def connect(self, name: str, served: Served | None) -> Connect:
        """What binds a job of this model, which answers there, to an endpoint."""
        return self._scripted if served is None else self._remote(name, served)

    async def _open(self) -> None:
        self._workers = self._stack.enter_context(Workers(self._worker_count()))
        for name, profile in remote_models(self.config).items():
            transport = HttpTransport(profile.route, profile.patience)
            await self._stack.enter_async_context(transport)
            self._accounts[name] = self._account(name, profile, transport)
        for name, account in self._accounts.items():
            if account.profile.route.base_url is not None:
                await preflight.check_endpoint(name, account, account.profile.route.base_url)

    # -- endpoints -----------------------------------------------------------------------------

    def _scripted(self, job: Job) -> Endpoint:
        profile = job.cell.profile
        if not isinstance(profile, ScriptedProfile):
            raise TypeError(f"expected a scripted profile, got {profile.kind}")
        if profile.agent == scripted.ORACLE:
            return OracleEndpoint(Told(world=job.world, drifts=job.cell.setting.drifts))
        return ScriptedEndpoint(
            profile.agent, job.cell.seed, workers=self._workers, key=job.key.prefix
        )

    def _remote(self, name: str, served: Served) -> Connect:
        account, base_urls = self._accounts[name], served.base_urls
        mark = identity.digest(served.fingerprint)[:12] if served.fingerprint else None

        def connect(job: Job) -> Endpoint:
            # An episode keeps to one replica, so that its prefix cache is warm.
            url = base_urls[crc32(job.key.episode_id.encode()) % len(base_urls)]
            key = f"{job.cell.label} {job.key.episode_id}"
            return HttpEndpoint(account, base_url=url, seed=job.cell.seed, key=key, server=mark)

        return connect

    def _account(self, name: str, profile: RemoteProfile, transport: HttpTransport) -> Account:
        headers, values = secrets.headers(name, profile)
        account, activity = account_name(profile), self.activity
        governor = self.governors.get(account)
        if governor is None:
            governor = self.pace(account, profile.limits, activity.clock)
            self.governors[account] = governor
        return Account(
            profile=profile, transport=transport, governor=governor, budget=self.budget,
            activity=activity, headers=headers, secrets=values, sleep=asyncio.sleep,
        )  # fmt: skip

    def _worker_count(self) -> int:
        scripted_jobs = sum(isinstance(job.cell.profile, ScriptedProfile) for job in self.plan.jobs)
        count = self.config.backend.processes
        if count is None:
            count = 0 if scripted_jobs < FEW_RUNS else cores()
        return count if scripted_jobs else 0
