"""Assembly: from a configuration to the objects that play it.

The one place where names in a configuration become stores, trackers, models and workers.
"""

import os
from collections.abc import Callable
from pathlib import Path

from adaexplore.backends.folder import FolderStore
from adaexplore.benchmark.game.agents.oracle import Told
from adaexplore.errors import ConfigError
from adaexplore.experiments.config import SweepConfig
from adaexplore.experiments.sweeps import Job, Plan
from adaexplore.experiments.trackers import NoTracker, Tracker
from adaexplore.models import scripted
from adaexplore.models.endpoints import Endpoint
from adaexplore.models.scripted import OracleEndpoint, ScriptedEndpoint, Workers

FEW_RUNS = 8
"""With fewer episode runs than this, starting worker processes costs more than it saves."""


def store(config: SweepConfig) -> FolderStore:
    """The store of a sweep; StoreError if it cannot be used."""
    return FolderStore(Path(config.runs_dir))


def tracker(config: SweepConfig, sweep: str) -> Tracker:
    """The tracker of a sweep."""
    if config.tracking.kind == "none":
        return NoTracker()
    from adaexplore.backends.mlflow import MlflowTracker

    return MlflowTracker(Path(config.runs_dir), experiment=config.tracking.experiment, sweep=sweep)


def check_models(config: SweepConfig) -> None:
    """Refuse, before the first episode, a profile that cannot be played (ConfigError)."""
    known = scripted.versions()
    for name, profile in config.models.items():
        version = known.get(profile.agent)
        if version is None:
            raise ConfigError(
                f"model '{name}': unknown agent '{profile.agent}'; known: {', '.join(sorted(known))}"
            )
        if version != profile.version:
            raise ConfigError(
                f"model '{name}': the profile says version {profile.version} of agent "
                f"'{profile.agent}', this code has version {version}; set version: {version}"
            )


def workers(config: SweepConfig, plan: Plan) -> Workers:
    """Worker processes for the scripted agents of a plan."""
    count = config.backend.processes
    if count is None:
        count = 0 if len(plan.jobs) < FEW_RUNS else os.cpu_count() or 1
    return Workers(count)


def connector(pool: Workers) -> Callable[[Job], Endpoint]:
    """What binds a job's model to the job."""

    def connect(job: Job) -> Endpoint:
        profile = job.cell.profile
        if profile.agent == scripted.ORACLE:
            return OracleEndpoint(Told(world=job.world, drifts=job.cell.setting.drifts))
        key = f"{job.cell.cell_id}/{job.key.episode_id}"
        return ScriptedEndpoint(profile.agent, job.cell.seed, workers=pool, key=key)

    return connect
