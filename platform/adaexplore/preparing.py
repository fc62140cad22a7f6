"""Preparing: from a configuration to a launch that is ready to play, with all that may refuse it.

Nothing is written and no model is asked: what a plan shows is what a launch would play.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from adaexplore import assemble
from adaexplore.authoring import datasets
from adaexplore.errors import ConfigError
from adaexplore.experiments import forecasts, grids, journals, stores, sweeps
from adaexplore.experiments.config import SweepConfig
from adaexplore.experiments.forecasts import Forecast
from adaexplore.experiments.stores import Store
from adaexplore.experiments.sweeps import Plan, Selection


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What stands beside the configuration on the command line."""

    dry_run: bool
    yes: bool
    redo: frozenset[str]
    """Statuses of unscored results that are played again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A launch that is ready to play."""

    config: SweepConfig
    store: Store
    plan: Plan
    selection: Selection
    """The episodes that were asked for."""
    written: SweepConfig
    """The configuration as it is written down: a driver in a cluster plays its in-cluster form."""


def options(words: Sequence[str]) -> tuple[list[str], Options]:
    """(words of the configuration, options); ConfigError for an option that is not known."""
    asked, redo, rest = [], set(), iter(words)
    for word in rest:
        if word == "--redo" or word.startswith("--redo="):
            redo.add(word.removeprefix("--redo").removeprefix("=") or next(rest, ""))
        elif word.startswith("--") and word not in ("--dry-run", "--yes"):
            raise ConfigError(f"unknown option {word}: expected --dry-run, --yes or --redo STATUS")
        else:
            asked.append(word)
    if wrong := sorted(redo - set(journals.UNSCORED)):
        raise ConfigError(f"--redo {wrong[0]}: expected one of {', '.join(journals.UNSCORED)}")
    given = {word for word in asked if word.startswith("--")}
    found = Options(dry_run="--dry-run" in given, yes="--yes" in given, redo=frozenset(redo))
    return [word for word in asked if word not in given], found


def prepare(config: SweepConfig, *, redo: frozenset[str] = frozenset()) -> Prepared:
    """The plan of a launch: what the sweep's name holds and what is missing.

    Results with a status in `redo` count as missing.
    """
    dataset = datasets.load(config.dataset.name, config.dataset.split)
    cells = grids.expand(config, dataset.digest)
    name = grids.sweep_name(config, cells)
    store = assemble.store(config)
    stores.check(store)
    limit = config.dataset.limit
    ids = tuple(world.episode.episode_id for world in dataset.worlds[:limit])
    asked = sweeps.Selection(split=dataset.split, limit=limit, episode_ids=ids)
    document = sweeps.join(sweeps.read(store, name), name, cells, asked)
    chosen = sweeps.selected(document)
    if chosen.split != dataset.split:
        dataset = datasets.load(config.dataset.name, chosen.split)
    plan = sweeps.plan(store, name, cells, dataset.worlds[: chosen.limit], redo=redo)
    return Prepared(config=config, store=store, plan=plan, selection=asked, written=config)


def forecast(prepared: Prepared) -> dict[str, Forecast]:
    """Forecast of what is missing, by remote model; refuses a context that is too small."""
    config, plan = prepared.config, prepared.plan
    remote = assemble.remote_models(config)
    if not remote:
        return {}
    world = plan.worlds[0]
    sizes = {s.name: forecasts.measure(world, s, config.protocol) for s in config.settings}
    longest = max(size.first_chars for size in sizes.values())
    assemble.check_models(config, first_prompt_chars=longest)
    return {
        name: forecasts.forecast(
            profile, [sizes[j.cell.setting.name] for j in plan.jobs if j.cell.model == name]
        )
        for name, profile in remote.items()
    }


def confirmed(config: SweepConfig, expected: dict[str, Forecast], *, yes: bool) -> bool:
    """Whether the user agrees to the forecast; asked only above the configured amount."""
    usd = sum(f.usd or 0.0 for f in expected.values())
    limit = config.budget.confirm_over_usd
    if usd <= limit or yes:
        return True
    if not sys.stdin.isatty():
        raise ConfigError(
            f"the forecast of {usd:.2f} USD is over budget.confirm_over_usd={limit:g}: "
            "add --yes, or raise it"
        )
    return input(f"The forecast is {usd:.2f} USD. Go on? [y/N] ").strip().lower() in ("y", "yes")
