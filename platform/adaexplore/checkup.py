"""Checks of everything that a configuration depends on, each told apart and with its mend.

What cannot be played should be found out before anything is created, by whoever is at the keyboard.
`doctor` shows every finding; a launch on a cluster refuses at the first that is wrong.
"""

import asyncio
import importlib.util
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from adaexplore import assemble
from adaexplore.errors import ConfigError
from adaexplore.experiments import findings, relocations, stores
from adaexplore.experiments.config import SweepConfig
from adaexplore.experiments.findings import Check, Finding, UnseenError
from adaexplore.experiments.sweeps import Plan
from adaexplore.models import secrets
from adaexplore.models.budget import Budget
from adaexplore.models.profiles import RemoteProfile, VllmProfile

if TYPE_CHECKING:
    from adaexplore.backends.kubernetes.capacities import Needs

SPACE_BYTES: Final = 200 * 2**20
"""A folder with less free space than this will not hold a sweep."""


async def look(config: SweepConfig) -> AsyncIterator[Finding]:
    """The findings about everything that a configuration depends on, one after another."""
    for check in _checks(config):
        yield await findings.found(check)
    if config.backend.kind == "kubernetes":
        from adaexplore.backends.kubernetes import doctor

        async for finding in doctor.look(needs(config)):
            yield finding


def require_placed(config: SweepConfig) -> None:
    """Refuse what pods could not play (ConfigError with the first reason)."""
    refused = relocations.refusals(config, os.environ)
    if refused:
        more = f" (and {len(refused) - 1} more: 'adaexplore doctor' lists them)"
        raise ConfigError(refused[0] + (more if refused[1:] else ""))


def needs(config: SweepConfig) -> "Needs":
    """What the cluster has to have for a configuration."""
    from adaexplore.backends.kubernetes.capacities import Needs

    served = {
        name: profile.hosting.tensor_parallel
        for name, profile in config.models.items()
        if isinstance(profile, VllmProfile) and profile.route.base_url is None
    }
    serving = config.serving.pods if config.serving.kind == "kubernetes" and served else None
    return Needs(pods=config.backend.pods, serving=serving, gpus=served)


def _checks(config: SweepConfig) -> Iterator[Check]:
    yield Check(name="models", look=partial(_models, config))
    yield Check(name="store", look=partial(_store, config))
    yield Check(name="tracking", look=partial(_tracking, config))
    yield Check(name="serving", look=partial(_serving, config))
    for name, profile in assemble.remote_models(config).items():
        if config.backend.kind != "kubernetes":
            yield Check(name=f"key of {name}", look=partial(_key, name, profile))
        if profile.route.base_url is not None:
            yield Check(name=f"endpoint of {name}", look=partial(_endpoint, name, config))
    if config.backend.kind == "ray":
        yield Check(name="ray", look=partial(_ray, config))
    if config.backend.kind == "kubernetes":
        for number, line in enumerate(relocations.refusals(config, os.environ), start=1):
            yield Check(name=f"placement {number}", look=partial(_refused, line))


async def _refused(line: str) -> str:
    raise ConfigError(line)


async def _models(config: SweepConfig) -> str:
    assemble.check_models(config)
    return f"{', '.join(config.models)}: profiles can be played"


async def _store(config: SweepConfig) -> str:
    return await asyncio.to_thread(_asked, config)


def _asked(config: SweepConfig) -> str:
    with closing(assemble.store(config)) as store:
        stores.check(store)
        where = store.locate("")
    if config.store.kind == "s3":
        return f"{where} answers"
    folder = next(p for p in (Path(where), *Path(where).absolute().parents) if p.is_dir())
    if not os.access(folder, os.W_OK):
        raise ConfigError(
            f"runs_dir={where}: expected a folder that can be written: choose another"
        )
    if (free := shutil.disk_usage(folder).free) < SPACE_BYTES:
        raise ConfigError(
            f"runs_dir={where}: expected {SPACE_BYTES // 2**20} MB of free space, got {free // 2**20} MB: "
            "make room, or choose another folder"
        )
    return f"{where} can be written, {free / 2**30:.1f} GB free"


async def _tracking(config: SweepConfig) -> str:
    warning = await asyncio.to_thread(assemble.check_tracking, config)
    if warning is not None:
        raise UnseenError(warning)
    if config.tracking.kind == "none":
        return "no MLflow"
    if config.tracking.kind == "server":
        return f"MLflow answers at {config.tracking.uri}"
    after = " at the end, from the store" if config.backend.kind == "kubernetes" else ""
    return f"MLflow without a server, below {config.runs_dir}{after}"


async def _serving(config: SweepConfig) -> str:
    if config.serving.kind != "vllm_process":
        return "nothing is started on this machine"
    if (found := shutil.which(config.serving.python)) is None:
        raise ConfigError(
            f"serving.python={config.serving.python}: expected an interpreter with vLLM, got none: "
            "make vllm-env builds one for the CPU"
        )
    return f"engines run in {found}"


async def _key(name: str, profile: RemoteProfile) -> str:
    _, values = secrets.headers(name, profile)
    return "is there" if values else "none is needed"


async def _endpoint(name: str, config: SweepConfig) -> str:
    """The endpoint, asked from here with the key that is here."""
    profile = assemble.remote_models(config)[name]
    if config.backend.kind == "kubernetes":
        try:
            secrets.headers(name, profile)
        except ConfigError:
            raise UnseenError("is asked by the pods, with a key that is not here") from None
    alone = replace(config, models={name: profile})
    empty = Plan(sweep="", cells=(), worlds=(), finished={}, jobs=())
    budget = Budget(cap_usd=None, cap_tokens=None, spent_usd=0.0, spent_tokens=0, unpriced_tokens=0)
    async with assemble.Models(alone, empty, budget):
        return f"{profile.route.base_url} answers and has {profile.model}"


async def _ray(config: SweepConfig) -> str:
    if importlib.util.find_spec("ray") is None:
        raise ConfigError("backend=ray needs the module ray: pip install 'adaexplore[ray]'")
    rays = config.backend.rays
    if rays.address is None:
        return "a Ray of its own is started for each launch"
    from adaexplore.backends.ray import clusters, trials

    with clusters.environed(trials.environment(rays)):
        await asyncio.to_thread(trials.require, rays)
    return f"{rays.address} lets us in"
