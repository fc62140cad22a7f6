"""Launching: play what is missing of a sweep, then show and keep what it says."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from rich.console import Console

from adaexplore import (
    assemble,
    checkup,
    conclusion,
    dispatch,
    display,
    equipping,
    loops,
    preparing,
    publish,
)
from adaexplore.assemble import Models
from adaexplore.experiments import (
    attempts,
    contents,
    stored,
    sweeps,
    tables,
    tallies,
    usages,
)
from adaexplore.experiments.config import SweepConfig
from adaexplore.experiments.playing import Outcome
from adaexplore.experiments.stored import StoredCell
from adaexplore.experiments.tables import Scores, Table
from adaexplore.experiments.tallies import Group, Tally
from adaexplore.experiments.trackers import NoTracker, Tracker
from adaexplore.experiments.usages import Usage
from adaexplore.preparing import Options, Prepared

DONE: Final = 0
PARTIAL: Final = 3


def start(
    config: SweepConfig,
    options: Options,
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
    prepared = replace(preparing.prepare(config, redo=options.redo), written=written or config)
    display.show_plan(output, prepared.plan)
    forecast = preparing.forecast(prepared)
    display.show_forecasts(output, forecast)
    if options.dry_run or not preparing.confirmed(config, forecast, yes=options.yes):
        return DONE
    if config.backend.kind == "kubernetes" and prepared.plan.jobs:
        return _elsewhere(prepared, options, output)
    if (warning := assemble.check_tracking(config)) is not None:
        display.show_lines(output, [warning])
    with closing(prepared.store), equipping.joined(config, prepared.plan):
        return _run(prepared, output, note or {})


def _run(prepared: Prepared, output: Console, note: Mapping[str, Any]) -> int:
    store, plan, config = prepared.store, prepared.plan, prepared.config
    publish.documents(store, prepared.written, plan, prepared.selection, note)
    for key in plan.superseded:
        attempts.supersede(store, key)
    tracker = assemble.tracker(config, store, plan.sweep)
    with _told_of_its_end(tracker):
        return _track(prepared, tracker, output)


def _elsewhere(prepared: Prepared, options: Options, output: Console) -> int:
    """Exit code of a sweep that a cluster plays; at its end, shows what the store holds."""
    with closing(prepared.store):
        order = dispatch.Order(
            config=prepared.config, store=prepared.store, plan=prepared.plan,
            selection=prepared.selection, redo=options.redo,
        )  # fmt: skip
        ending = dispatch.play(order, output)
    if ending is None:
        return PARTIAL
    after = preparing.prepare(prepared.config)
    with closing(after.store):
        results = _results(after)
        if any(group.runs for group in results.scores.counted.values()):
            conclusion.show(output, _ended(after, results, []), NoTracker())
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
    _tell_finished(prepared, tracker)
    host = assemble.host(config, plan.sweep, _notice(output))
    budget = equipping.budget(config, store, equipping.models_by_cell(plan.cells))
    models = Models(config, plan, budget, host)
    failures = loops.run(_play(prepared, models, tracker, output))
    results = _results(prepared)
    publish.results(store, plan.sweep, results.made)
    table = tables.accounting_table(_usages(prepared))
    history = {name: governor.history for name, governor in models.governors.items()}
    publish.accounting(store, plan.sweep, table, history)
    publish.fingerprints(store, plan.sweep, models.fingerprints)
    if config.report:
        publish.report(store, prepared.written, plan.sweep)
    publish.track(tracker, store, plan, results.values, results.scores)
    display.wait_for(output, tracker)
    conclusion.show(output, _ended(prepared, results, failures), tracker)
    return PARTIAL if failures else DONE


def _ended(prepared: Prepared, results: "Results", failures: Sequence[Outcome]) -> conclusion.Ended:
    return conclusion.Ended(
        sweep=prepared.plan.sweep, config=prepared.config, store=prepared.store,
        scores=results.scores, made=results.made, failures=failures,
    )  # fmt: skip


def _usages(prepared: Prepared) -> dict[Group, Usage]:
    """What all attempts of the sweep have spent, by (model, setting)."""
    found: dict[Group, Usage] = {}
    for cell in prepared.plan.cells:
        prices = getattr(cell.profile, "prices", usages.UNPRICED)
        usage = usages.of_cell(prepared.store, cell.cell_id, prices)
        found.setdefault((cell.model, cell.setting.name), Usage()).add(usage)
    return found


def _tell_finished(prepared: Prepared, tracker: Tracker) -> None:
    """Tell the tracker of what need not be played, and read none of it before something is played."""
    plan, digests = prepared.plan, _hidden_digests(prepared)
    cells = {cell.cell_id: cell for cell in reversed(plan.cells)}
    for (cell_id, episode_id), key in plan.finished.items():
        read = partial(attempts.read_result, prepared.store, key, hidden_digest=digests[episode_id])
        tracker.episode(cells[cell_id], episode_id, read)


def _hidden_digests(prepared: Prepared) -> dict[str, str]:
    """Digest of the hidden side by episode id."""
    return {world.episode.episode_id: world.digest for world in prepared.plan.worlds}


async def _play(
    prepared: Prepared, models: Models, tracker: Tracker, output: Console
) -> list[Outcome]:
    """Play the missing jobs into the store; returns the outcomes without a record."""
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
                read = partial(sweeps.record, prepared.store, job.key)
                tracker.episode(job.cell, job.key.episode_id, read)
    return failures


def _notice(output: Console) -> Callable[[str], None]:
    return lambda line: output.print(f"  {line}", markup=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What the records of a sweep come to."""

    values: Mapping[str, Mapping[str, float]]
    """Metrics of each cell, by cell id."""
    scores: Scores
    """By (model, setting), of all cells that the sweep has ever had, in their order."""
    made: Sequence[Table]


def _results(prepared: Prepared) -> Results:
    """Count every record of the sweep, one after another: they need not be in memory together."""
    store, plan = prepared.store, prepared.plan
    digests, own = _hidden_digests(prepared), {cell.cell_id for cell in plan.cells}
    values = {}

    def counted(cell: StoredCell) -> Tally:
        expected = digests if cell.cell_id in own else None
        tally = Tally.of(stored.records(store, cell.cell_id, digests, expected))
        values[cell.cell_id] = contents.cell_values(tally, len(digests))
        return tally

    cells = stored.cells(sweeps.read(store, plan.sweep))
    found = tallies.grouped((cell.group, counted(cell)) for cell in cells)
    scores = tables.scores(found)
    return Results(values=values, scores=scores, made=tables.all_tables(found, scores))
