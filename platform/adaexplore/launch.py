"""`launch +grid=…`: plan, play what is missing, show and keep the tables.

Run again, it resumes: finished episodes are not played again, interrupted ones go on at their next
turn, and the tables are the same bytes as those of an uninterrupted run.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from rich.console import Console

from adaexplore import (
    assemble,
    checkup,
    conclusion,
    configure,
    dispatch,
    display,
    endings,
    equipping,
    loops,
    publish,
)
from adaexplore.assemble import Models
from adaexplore.authoring import datasets
from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.errors import AdaExploreError, ConfigError
from adaexplore.experiments import (
    attempts,
    forecasts,
    grids,
    journals,
    stores,
    sweeps,
    tables,
    usages,
)
from adaexplore.experiments.config import SweepConfig
from adaexplore.experiments.forecasts import Forecast
from adaexplore.experiments.playing import Outcome
from adaexplore.experiments.stores import Store
from adaexplore.experiments.sweeps import Plan, Selection
from adaexplore.experiments.tables import Group, Table
from adaexplore.experiments.trackers import NoTracker, Tracker
from adaexplore.experiments.usages import Usage

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
  report=false           without the report; 'adaexplore report' makes it at any time
  +profiles.NAME.FIELD=V a field of a model's profile
  budget.cap_usd=20      never spend more, over all launches of the sweep
  --dry-run              show the plan and its forecast, and stop
  --yes                  do not ask about a forecast above budget.confirm_over_usd
  backend=kubernetes     play in a cluster (see backend.kubernetes.*; needs store=s3); Ctrl-C only stops
                         watching, the same command watches again
  --redo overflow        play episodes again that ended unscored so: overflow, content_filter

exit codes: 0 done, 2 configuration, 3 partial (some episodes failed, or interrupted),
4 infrastructure"""


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
    asked, options = _options(words)
    return start(configure.sweep(asked), options)


def start(
    config: SweepConfig,
    options: "Options",
    *,
    note: Mapping[str, Any] | None = None,
    written: SweepConfig | None = None,
) -> int:
    """Exit code of a launch of a resolved configuration.

    `note` is kept with the launch's own; `written` is written down instead of what plays.
    """
    output = display.console()
    assemble.check_models(config)
    assemble.check_serving(config)
    if config.backend.kind == "kubernetes" and not options.dry_run:
        checkup.require_placed(config)
    prepared = replace(prepare(config, redo=options.redo), written=written or config)
    display.show_plan(output, prepared.plan)
    forecast = _forecast(prepared)
    display.show_forecasts(output, forecast)
    if options.dry_run or not _confirmed(config, forecast, yes=options.yes):
        return DONE
    if config.backend.kind == "kubernetes" and prepared.plan.jobs:
        return _elsewhere(prepared, options, output)
    if (warning := assemble.check_tracking(config)) is not None:
        display.show_lines(output, [warning])
    with closing(prepared.store), equipping.joined(config, prepared.plan):
        return _run(prepared, output, note or {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What stands beside the configuration on the command line."""

    dry_run: bool
    yes: bool
    redo: frozenset[str]
    """Statuses of unscored results that are played again."""


def _options(words: Sequence[str]) -> tuple[list[str], Options]:
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
    options = Options(dry_run="--dry-run" in given, yes="--yes" in given, redo=frozenset(redo))
    return [word for word in asked if word not in given], options


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


def _run(prepared: Prepared, output: Console, note: Mapping[str, Any]) -> int:
    store, plan, config = prepared.store, prepared.plan, prepared.config
    publish.documents(store, prepared.written, plan, prepared.selection, note)
    for key in plan.superseded:
        attempts.supersede(store, key)
    tracker = assemble.tracker(config, store, plan.sweep)
    with _told_of_its_end(tracker):
        return _track(prepared, tracker, output)


def _elsewhere(prepared: Prepared, options: "Options", output: Console) -> int:
    """Exit code of a sweep that a cluster plays; at its end, shows what the store holds."""
    with closing(prepared.store):
        order = dispatch.Order(
            config=prepared.config, store=prepared.store, plan=prepared.plan,
            selection=prepared.selection, redo=options.redo,
        )  # fmt: skip
        ending = dispatch.play(order, output)
    if ending is None:
        return PARTIAL
    after = prepare(prepared.config)
    with closing(after.store):
        records = _read_finished(after.store, after.plan, NoTracker())
        grouped = _grouped(after, records)
        if records:
            made = tables.all_tables(grouped)
            conclusion.show(output, _ended(after, grouped, made, []), NoTracker())
        return dispatch.concluded(ending, after.config, after.store, after.plan, output)


@contextmanager
def _told_of_its_end(tracker: Tracker) -> Iterator[None]:
    """A launch that is interrupted or cannot go on says so to its tracker."""
    try:
        yield
    except BaseException:
        tracker.stop()
        raise


def _track(prepared: Prepared, tracker: Tracker, output: Console) -> int:
    store, plan, config = prepared.store, prepared.plan, prepared.config
    records = _read_finished(store, plan, tracker)
    host = assemble.host(config, plan.sweep, _notice(output))
    budget = equipping.budget(config, store, equipping.models_by_cell(plan.cells))
    models = assemble.Models(config, plan, budget, host)
    failures = loops.run(_play(prepared, models, records, tracker, output))
    grouped = _grouped(prepared, records)
    made = tables.all_tables(grouped)
    publish.results(store, plan.sweep, made)
    table = tables.accounting_table(_usages(prepared))
    history = {name: governor.history for name, governor in models.governors.items()}
    publish.accounting(store, plan.sweep, table, history)
    publish.fingerprints(store, plan.sweep, models.fingerprints)
    if config.report:
        publish.report(store, prepared.written, plan.sweep, records)
    publish.track(tracker, store, plan, records, grouped)
    display.wait_for(output, tracker)
    conclusion.show(output, _ended(prepared, grouped, made, failures), tracker)
    return PARTIAL if failures else DONE


def _ended(
    prepared: Prepared,
    grouped: dict[Group, list[EpisodeRecord]],
    made: Sequence[Table],
    failures: Sequence[Outcome],
) -> conclusion.Ended:
    return conclusion.Ended(
        sweep=prepared.plan.sweep, config=prepared.config, store=prepared.store,
        grouped=grouped, made=made, failures=failures,
    )  # fmt: skip


def _usages(prepared: Prepared) -> dict[Group, Usage]:
    """What all attempts of the sweep have spent, by (model, setting)."""
    found: dict[Group, Usage] = {}
    for cell in prepared.plan.cells:
        prices = getattr(cell.profile, "prices", usages.UNPRICED)
        usage = usages.of_cell(prepared.store, cell.cell_id, prices)
        found.setdefault((cell.model, cell.setting.name), Usage()).add(usage)
    return found


def _read_finished(store: Store, plan: Plan, tracker: Tracker) -> Records:
    """Records by (cell id, episode id) of what need not be played."""
    records = {}
    cells = {cell.cell_id: cell for cell in reversed(plan.cells)}
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
    show = equipping.Show(on_call=meter.call, notify=_notice(output))
    async with models:
        with meter.shown():
            async for outcome in equipping.outcomes(config, prepared.store, plan, models, show):
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


def _notice(output: Console) -> Callable[[str], None]:
    return lambda line: output.print(f"  {line}", markup=False)


def _grouped(prepared: Prepared, records: Records) -> dict[Group, list[EpisodeRecord]]:
    """Records by (model, setting), of all cells that the sweep has ever had, in their order."""
    grouped: dict[Group, list[EpisodeRecord]] = {}
    document = sweeps.read(prepared.store, prepared.plan.sweep) or {"cells": {}}
    for label, cell in document["cells"].items():
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


if __name__ == "__main__":
    main()
