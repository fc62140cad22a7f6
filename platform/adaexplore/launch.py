"""`launch +grid=…`: plan, play what is missing, show and keep the tables.

Run again, it resumes: finished episodes are not played again, interrupted ones go on at their next
turn, and the tables are the same bytes as those of an uninterrupted run.
"""

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from rich.console import Console

from adaexplore import assemble, configure, display, endings, publish
from adaexplore.assemble import Models
from adaexplore.authoring import datasets
from adaexplore.backends.folder import FolderStore
from adaexplore.backends.local import Lane, Player
from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.errors import AdaExploreError, ConfigError
from adaexplore.experiments import attempts, forecasts, grids, sweeps, tables, usages
from adaexplore.experiments.config import SweepConfig
from adaexplore.experiments.forecasts import Forecast
from adaexplore.experiments.playing import Outcome
from adaexplore.experiments.sweeps import Job, Plan
from adaexplore.experiments.tables import Group, Table
from adaexplore.experiments.trackers import Tracker
from adaexplore.experiments.usages import Usage
from adaexplore.models.budget import Budget
from adaexplore.models.profiles import ScriptedProfile

Records = dict[tuple[str, str], EpisodeRecord]
"""Records by (cell id, episode id)."""

DONE: Final = 0
PARTIAL: Final = 3

HELP: Final = """\
usage: adaexplore launch +grid=NAME [KEY=VALUE ...] [--dry-run]

Plays a grid of models x settings x seeds over the episodes of a dataset, resuming what an earlier
launch left, and ends with the tables. Run it again at any time.

  +grid=smoke            one agent, two episodes, seconds
  +grid=diagnostics      the reference agents under four settings, minutes
  models=[random,oracle] profile and set names (conf/model/)
  settings=[default]     settings (conf/setting/)
  seeds=[0,1,2]          replicates
  dataset=v1             another dataset or split: first, v1, lite, dev (conf/dataset/)
  dataset.limit=8        only the first episodes
  name=my-sweep          a name of your own; launching under it again resumes it
  runs_dir=runs          where everything is written
  tracking=none          without MLflow
  +profiles.NAME.FIELD=V a field of a model's profile
  budget.cap_usd=20      never spend more, over all launches of the sweep
  --dry-run              show the plan and its forecast, and stop
  --yes                  do not ask about a forecast above budget.confirm_over_usd

exit codes: 0 done, 2 configuration, 3 partial (some episodes failed, or interrupted),
4 infrastructure"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A launch that is ready to play."""

    config: SweepConfig
    store: FolderStore
    plan: Plan
    document: dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or "--help" in words or "-h" in words:
        print(HELP)
        sys.exit(DONE if words else 2)
    sys.exit(guarded(lambda: launch(words)))


def guarded(command: Callable[[], int]) -> int:
    """Exit code of a command; an error that a user can mend is one line on stderr."""
    try:
        with endings.terminable():
            code = command()
            sys.stdout.flush()
            return code
    except AdaExploreError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted: nothing is lost; run the same command again to go on", file=sys.stderr)
        return PARTIAL
    except (OSError, SystemExit) as error:
        return endings.unwritten(error)


def launch(words: Sequence[str]) -> int:
    """Exit code of a launch."""
    options = {word for word in words if word.startswith("--")}
    if unknown := sorted(options - {"--dry-run", "--yes"}):
        raise ConfigError(f"unknown option {unknown[0]}: expected --dry-run or --yes")
    output = display.console()
    config = configure.sweep([word for word in words if word not in options])
    assemble.check_models(config)
    prepared = prepare(config)
    display.show_plan(output, prepared.plan)
    forecast = _forecast(prepared)
    display.show_forecasts(output, forecast)
    if "--dry-run" in options:
        return DONE
    if not _confirmed(config, forecast, yes="--yes" in options):
        return DONE
    with prepared.store.locked(f"sweeps/{prepared.plan.sweep}/lock"):
        # Once more, now that nobody else can change the sweep.
        return _run(prepare(config), output)


def prepare(config: SweepConfig) -> Prepared:
    """The plan of a launch: what the sweep's name holds and what is missing."""
    dataset = datasets.load(config.dataset.name, config.dataset.split)
    cells = grids.expand(config, dataset.digest)
    name = grids.sweep_name(config, cells)
    store = assemble.store(config)
    limit = config.dataset.limit
    ids = tuple(world.episode.episode_id for world in dataset.worlds[:limit])
    asked = sweeps.Selection(split=dataset.split, limit=limit, episode_ids=ids)
    document = sweeps.join(sweeps.read(store, name), name, cells, asked)
    chosen = sweeps.selected(document)
    if chosen.split != dataset.split:
        dataset = datasets.load(config.dataset.name, chosen.split)
    plan = sweeps.plan(store, name, cells, dataset.worlds[: chosen.limit])
    return Prepared(config=config, store=store, plan=plan, document=document)


def _forecast(prepared: Prepared) -> dict[str, Forecast]:
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


def _confirmed(config: SweepConfig, forecast: dict[str, Forecast], *, yes: bool) -> bool:
    """Whether the user agrees to the forecast; asked only above the configured amount."""
    usd = sum(f.usd or 0.0 for f in forecast.values())
    limit = config.budget.confirm_over_usd
    if usd <= limit or yes:
        return True
    if not sys.stdin.isatty():
        raise ConfigError(
            f"the forecast of {usd:.2f} USD is over budget.confirm_over_usd={limit:g}: "
            "add --yes, or raise it"
        )
    return input(f"The forecast is {usd:.2f} USD. Go on? [y/N] ").strip().lower() in ("y", "yes")


def _run(prepared: Prepared, output: Console) -> int:
    store, plan, config = prepared.store, prepared.plan, prepared.config
    publish.documents(store, config, plan, prepared.document)
    tracker = assemble.tracker(config, plan.sweep)
    records = _read_finished(store, plan, tracker)
    spent = _spent(prepared)
    host = assemble.host(config, lambda line: output.print(f"  {line}", markup=False))
    models = assemble.Models(config, plan, _budget(config, spent), host)
    failures = asyncio.run(_play(prepared, models, records, tracker, output))
    grouped = _grouped(prepared, records)
    made = tables.all_tables(grouped)
    files = publish.results(store, plan.sweep, made)
    table = tables.accounting_table(_usages(prepared))
    history = {name: governor.history for name, governor in models.governors.items()}
    publish.accounting(store, plan.sweep, table, history)
    publish.fingerprints(store, plan.sweep, models.fingerprints)
    publish.track(tracker, plan, records, grouped, files)
    display.wait_for(output, tracker)
    _show(output, prepared, grouped, made, tracker, failures)
    return PARTIAL if failures else DONE


def _usages(prepared: Prepared) -> dict[Group, Usage]:
    """What all attempts of the sweep have spent, by (model, setting)."""
    found: dict[Group, Usage] = {}
    for cell in prepared.plan.cells:
        prices = getattr(cell.profile, "prices", usages.UNPRICED)
        usage = usages.of_cell(prepared.store, cell.cell_id, prices)
        found.setdefault((cell.model, cell.setting.name), Usage()).add(usage)
    return found


def _spent(prepared: Prepared) -> Usage:
    """What the remote models of the sweep have spent so far, over all launches."""
    total = Usage()
    for cell in prepared.plan.cells:
        if not isinstance(cell.profile, ScriptedProfile):
            total.add(usages.of_cell(prepared.store, cell.cell_id, cell.profile.prices))
    return total


def _budget(config: SweepConfig, spent: Usage) -> Budget:
    return Budget(
        cap_usd=config.budget.cap_usd,
        cap_tokens=config.budget.cap_tokens,
        spent_usd=spent.usd,
        spent_tokens=spent.tokens,
        unpriced_tokens=spent.unpriced_tokens,
    )


def _read_finished(store: FolderStore, plan: Plan, tracker: Tracker) -> Records:
    """Records by (cell id, episode id) of what need not be played."""
    records = {}
    cells = {cell.cell_id: cell for cell in plan.cells}
    digests = {world.episode.episode_id: world.digest for world in plan.worlds}
    for (cell_id, episode_id), key in plan.finished.items():
        record = attempts.read_result(store, key, hidden_digest=digests[episode_id])
        records[cell_id, episode_id] = record
        tracker.episode(cells[cell_id], record)
    return records


async def _play(
    prepared: Prepared,
    models: Models,
    records: Records,
    tracker: Tracker,
    output: Console,
) -> list[Outcome]:
    """Play the missing jobs into `records`; returns the outcomes without a record."""
    plan, config = prepared.plan, prepared.config
    failures = []
    meter = display.Meter(output, len(plan.jobs), models.activity)
    player = Player(
        store=prepared.store,
        protocol=config.protocol,
        concurrency=config.backend.concurrency,
        on_call=meter.call,
    )
    async with models:
        with meter.shown():
            async for outcome in player.outcomes(_lanes(plan, models)):
                meter.episode(failed=outcome.record is None)
                job = outcome.job
                if outcome.torn:
                    torn = f"{job.cell.label} {job.key.episode_id}"
                    output.print(f"  {torn}: the journal's torn last line was asked again")
                if outcome.record is None:
                    failures.append(outcome)
                    continue
                records[job.cell.cell_id, job.key.episode_id] = outcome.record
                tracker.episode(job.cell, outcome.record)
    return failures


def _lanes(plan: Plan, models: Models) -> list[Lane]:
    """One lane a model that has something to play."""
    jobs: dict[str, list[Job]] = {}
    for job in plan.jobs:
        jobs.setdefault(job.cell.model, []).append(job)
    return [Lane(jobs=own, open=partial(models.connected, name)) for name, own in jobs.items()]


def _grouped(prepared: Prepared, records: Records) -> dict[Group, list[EpisodeRecord]]:
    """Records by (model, setting), of all cells that the sweep has ever had, in their order."""
    grouped: dict[Group, list[EpisodeRecord]] = {}
    for label, cell in prepared.document["cells"].items():
        model, setting, _ = label.split("/")
        _add_stored(prepared, cell["cell_id"], records)
        keys = [(cell["cell_id"], world.episode.episode_id) for world in prepared.plan.worlds]
        group = grouped.setdefault((model, setting), [])
        group += [records[key] for key in keys if key in records]
    return grouped


def _add_stored(prepared: Prepared, cell_id: str, records: Records) -> None:
    """Add the finished records of a cell that an earlier launch played and this one did not name."""
    if any(cell.cell_id == cell_id for cell in prepared.plan.cells):
        return
    for episode_id, key in attempts.finished(prepared.store, cell_id).items():
        records[cell_id, episode_id] = attempts.read_result(prepared.store, key)


# -- what is shown -----------------------------------------------------------------------------


def _show(
    output: Console,
    prepared: Prepared,
    grouped: dict[Group, list[EpisodeRecord]],
    made: Sequence[Table],
    tracker: Tracker,
    failures: list[Outcome],
) -> None:
    display.show_main(output, grouped)
    display.show_rates(output, grouped)
    display.show_ablation(output, next(table for table in made if table.name == "ablation"))
    lines = [
        f"failed: {o.job.cell.label} {o.job.key.episode_id}: {o.failure}" for o in failures[:10]
    ]
    if failures:
        lines.append(
            f"{len(failures)} episodes failed and are in no table; launch again to go on with them"
        )
    if (trouble := tracker.trouble()) is not None:
        lines.append(
            f"MLflow is behind ({trouble}); the sweep is complete without it, launch again to catch up"
        )
    elif (where := tracker.where()) is not None:
        lines.append(f"look at the runs:  {where}")
    base = f"sweeps/{prepared.plan.sweep}"
    locate = prepared.store.locate
    lines += [
        f"frozen config:     {locate(publish.frozen_key(prepared.plan.sweep))}",
        f"figure:            {locate(f'{base}/figures/ca_by_batch.png')}",
        f"tables:            {locate(f'{base}/tables')}",
    ]
    display.show_lines(output, lines)


if __name__ == "__main__":
    main()
