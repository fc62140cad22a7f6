"""Equipping: which backend plays the missing jobs of a launch, and what it is given for that.

In this process, the launch's own models play. On Ray, each worker is given the resolved configuration
and makes from it what the launch made: the store, the cells, the models; only pace and money are
those of the whole sweep. What is sent is plain data and the names of the functions below.
"""

import importlib.util
import math
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adaexplore import assemble, provenance
from adaexplore.authoring import datasets
from adaexplore.backends.local import Lane, Player
from adaexplore.errors import ConfigError
from adaexplore.experiments import config as configs
from adaexplore.experiments import grids, sweeps, usages
from adaexplore.experiments.config import SweepConfig
from adaexplore.experiments.grids import Cell
from adaexplore.experiments.playing import Outcome
from adaexplore.experiments.stores import Store
from adaexplore.experiments.sweeps import Job, Plan
from adaexplore.experiments.usages import Usage
from adaexplore.models.budget import Budget
from adaexplore.models.governor import Governor
from adaexplore.models.profiles import ScriptedProfile

if TYPE_CHECKING:
    from adaexplore.backends.ray.crew import Orders
    from adaexplore.backends.ray.desk import Shared
    from adaexplore.backends.ray.lines import Line
    from adaexplore.backends.ray.workers import Kit


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    """How a person sees that something is going on."""

    on_call: Callable[[], None]
    notify: Callable[[str], None]
    """Told in one line of what is out of the ordinary."""


def budget(config: SweepConfig, store: Store, cells: Mapping[str, str]) -> Budget:
    """What the sweep may still spend: its caps, and what all its launches have spent.

    Without a cap nothing is refused, so what was spent is not looked up: with ten thousand attempts that
    would be a good part of the time to the first call.

    Args:
        config: With the caps, and the prices of the models.
        store: Where the attempts are.
        cells: Model by cell id; those of reference agents cost nothing.
    """
    spent = Usage()
    capped = config.budget.cap_usd is not None or config.budget.cap_tokens is not None
    for cell_id, model in cells.items():
        profile = config.models[model]
        if capped and not isinstance(profile, ScriptedProfile):
            spent.add(usages.of_cell(store, cell_id, profile.prices))
    return Budget(
        cap_usd=config.budget.cap_usd,
        cap_tokens=config.budget.cap_tokens,
        spent_usd=spent.usd,
        spent_tokens=spent.tokens,
        unpriced_tokens=spent.unpriced_tokens,
    )


def models_by_cell(cells: Sequence[Cell]) -> dict[str, str]:
    """Model by cell id; of two with one meaning the first."""
    return {cell.cell_id: cell.model for cell in reversed(cells)}


@contextmanager
def joined(config: SweepConfig, plan: Plan) -> Iterator[None]:
    """What the backend needs beside this process, there while the block runs.

    Raises:
        ConfigError: The configuration asks for what the backend does not have.
        ClusterError: The cluster cannot be used.
    """
    if config.backend.kind == "local" or not plan.jobs:
        yield
        return
    _check_ray(config)
    from adaexplore.backends.ray import clusters
    from adaexplore.backends.vllm import guard

    site = clusters.Site(
        folder=Path(config.runs_dir) / "ray",
        guard=Path(guard.__file__),
        cores=assemble.cores(),
        source=provenance.source_digest(provenance.PACKAGE),
        store=Path(config.runs_dir) if config.store.kind == "folder" else None,
    )
    with clusters.joined(config.backend.rays, site):
        yield


def outcomes(
    config: SweepConfig, store: Store, plan: Plan, models: assemble.Models, show: Show
) -> AsyncIterator[Outcome]:
    """Play the missing jobs of a plan; yields outcomes as they come (see `backends.local.Player`)."""
    if config.backend.kind == "ray" and plan.jobs:
        return _on_ray(config, store, plan, models, show)
    player = Player(
        store=store,
        protocol=config.protocol,
        concurrency=config.backend.concurrency,
        on_call=show.on_call,
    )
    return player.outcomes(
        [Lane(jobs=j, open=partial(models.connected, m)) for m, j in _by_model(plan).items()]
    )


def _by_model(plan: Plan) -> dict[str, list[Job]]:
    jobs: dict[str, list[Job]] = {}
    for job in plan.jobs:
        jobs.setdefault(job.cell.model, []).append(job)
    return jobs


# -- on Ray: the driver ------------------------------------------------------------------------


def _check_ray(config: SweepConfig) -> None:
    """Refuse what cannot be played on Ray (ConfigError)."""
    if importlib.util.find_spec("ray") is None:  # imported later: it reads its environment then
        raise ConfigError("backend=ray needs the module ray: pip install 'adaexplore[ray]'")
    elsewhere = config.backend.rays.address is not None
    if elsewhere and config.serving.kind not in ("none", "kubernetes"):
        raise ConfigError(
            f"serving={config.serving.kind} answers on this machine alone, and workers of a cluster may "
            "be elsewhere: serve the model and give +profiles.NAME.route.base_url=..., or leave "
            "backend.ray.address out"
        )
    relative = config.store.kind == "folder" and not Path(config.runs_dir).is_absolute()
    if relative and "runtime_resources" in Path.cwd().parts:
        raise ConfigError(
            f"runs_dir={config.runs_dir} is in the job's copy of its working directory, which Ray "
            "deletes: give an absolute path on a disk that all nodes share, or store=s3"
        )


async def _on_ray(
    config: SweepConfig, store: Store, plan: Plan, models: assemble.Models, show: Show
) -> AsyncIterator[Outcome]:
    from adaexplore.backends.ray import players

    player = players.Player(store, _orders(config, store, plan, models, show))
    lanes = [
        players.Lane(model=name, jobs=jobs, open=partial(models.serving, name))
        for name, jobs in _by_model(plan).items()
    ]
    async for outcome in player.outcomes(lanes):
        yield outcome
    for name, history in player.histories.items():
        models.governors[name].history[:] = history


def _orders(
    config: SweepConfig, store: Store, plan: Plan, models: assemble.Models, show: Show
) -> "Orders":
    from adaexplore.backends.ray import crew, nodes

    rays = config.backend.rays
    document = replace(config, runs_dir=str(Path(config.runs_dir).absolute())).document()
    cells = models_by_cell([job.cell for job in plan.jobs])
    remote = not set(cells.values()).isdisjoint(assemble.remote_models(config))
    workers = min(nodes.workers(rays), len(plan.jobs))
    batch = min(rays.batch, math.ceil(len(plan.jobs) / workers))  # so that nobody has nothing to do
    folder = None if rays.address else str(Path.cwd())
    split = sweeps.selected(sweeps.read(store, plan.sweep) or {}).split
    return crew.Orders(
        name=store.writer,
        config=replace(rays, batch=batch),
        workers=workers,
        concurrency=config.backend.concurrency,
        equip=partial(kit, document, split, tuple(cells), folder),
        furnish=partial(shared, document, models_by_cell(plan.cells)) if remote else None,
        on_call=show.on_call,
        notify=show.notify,
        activity=models.activity,
    )


# -- on Ray: what workers and the desk run -----------------------------------------------------


def kit(
    document: dict[str, Any], split: str, cells: Sequence[str], folder: str | None, line: "Line"
) -> "Kit":
    """What a worker plays with.

    Args:
        document: The resolved configuration.
        split: Of the dataset, as the sweep plays it.
        cells: Ids of the cells that will be played.
        folder: Where the launch runs, if that is this machine.
        line: The worker's line to the desk.

    Raises:
        ConfigError: The episodes or the rules here are not those of the launch.
        DatasetError: The dataset cannot be read here.
    """
    from adaexplore.backends.ray.lines import LinePace, LinePurse
    from adaexplore.backends.ray.workers import Kit

    if folder is not None:
        os.chdir(folder)  # a process of our own; relative paths mean what they mean to the launch
    config = configs.from_document(document)
    dataset = datasets.load(config.dataset.name, split)
    own = {cell.cell_id: cell for cell in grids.expand(config, dataset.digest)}
    if missing := [cell_id for cell_id in cells if cell_id not in own]:
        raise ConfigError(
            f"cell {missing[0]}: expected the dataset '{config.dataset.name}' and the rules of play as "
            "the launch has them, got others on a worker: install the same version there"
        )
    plan = Plan(sweep="", cells=tuple(own.values()), worlds=dataset.worlds, finished={}, jobs=())
    models = assemble.Models(
        config, plan, LinePurse(line), pace=lambda name, *_: LinePace(name, line)
    )
    jobs = [Job(cell=own[cell_id], world=world) for cell_id in cells for world in dataset.worlds]
    return Kit(
        store=assemble.store(config), rules=config.protocol, opened=models, activity=models.activity,
        jobs={(job.key.cell_id, job.key.episode_id): job for job in jobs},
    )  # fmt: skip


def shared(document: dict[str, Any], cells: Mapping[str, str]) -> "Shared":
    """What the desk keeps: the budget with what is spent, and the governors of all accounts.

    `cells` are models by cell id; StoreError if what they spent cannot be read.
    """
    from adaexplore.backends.ray.desk import Shared

    config = configs.from_document(document)
    with closing(assemble.store(config)) as store:
        spent = budget(config, store, cells)
    accounts = {assemble.account_name(p): p for p in assemble.remote_models(config).values()}
    governors = {n: Governor(n, p.limits, time.monotonic) for n, p in accounts.items()}
    return Shared(budget=spent, governors=governors)
