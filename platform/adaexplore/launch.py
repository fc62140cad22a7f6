"""`launch +grid=…`: plan, play what is missing, show and keep the tables.

Run again, it resumes: finished episodes are not played again, interrupted ones go on at their next
turn, and the tables are the same bytes as those of an uninterrupted run.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from rich.console import Console

from adaexplore import assemble, configure, display, provenance
from adaexplore.authoring import datasets
from adaexplore.backends import local
from adaexplore.backends.folder import FolderStore
from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.scores import metrics
from adaexplore.errors import AdaExploreError
from adaexplore.experiments import attempts, figures, grids, sweeps, tables
from adaexplore.experiments.config import SweepConfig
from adaexplore.experiments.playing import Outcome
from adaexplore.experiments.sweeps import Plan
from adaexplore.experiments.tables import Group, Table
from adaexplore.experiments.trackers import Tracker

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
  dataset.limit=8        only the first episodes
  name=my-sweep          a name of your own; launching under it again resumes it
  runs_dir=runs          where everything is written
  tracking=none          without MLflow
  +profiles.NAME.FIELD=V a field of a model's profile
  --dry-run              show the plan and stop

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
        return command()
    except AdaExploreError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted: nothing is lost; run the same command again to go on", file=sys.stderr)
        return PARTIAL


def launch(words: Sequence[str]) -> int:
    """Exit code of a launch."""
    dry = "--dry-run" in words
    overrides = [word for word in words if word != "--dry-run"]
    output = display.console()
    config = configure.sweep(overrides)
    assemble.check_models(config)
    prepared = prepare(config)
    display.show_plan(output, prepared.plan)
    if dry:
        return DONE
    with prepared.store.locked(f"sweeps/{prepared.plan.sweep}/lock"):
        return _run(prepared, output)


def prepare(config: SweepConfig) -> Prepared:
    """The plan of a launch: what the sweep's name holds and what is missing."""
    dataset = datasets.load(config.dataset.name)
    cells = grids.expand(config, dataset.digest)
    name = grids.sweep_name(config, cells)
    store = assemble.store(config)
    document = sweeps.join(sweeps.read(store, name), name, cells, config.dataset.limit)
    limit = document["limit"]
    plan = sweeps.plan(store, name, cells, dataset.worlds[:limit])
    return Prepared(config=config, store=store, plan=plan, document=document)


def _run(prepared: Prepared, output: Console) -> int:
    store, plan = prepared.store, prepared.plan
    _write_documents(prepared)
    tracker = assemble.tracker(prepared.config, plan.sweep)
    records = _read_finished(store, plan, tracker)
    failures = asyncio.run(_play(prepared, records, tracker, output))
    grouped = _grouped(plan, records)
    made = tables.all_tables(grouped)
    files = _write_results(store, plan.sweep, made)
    _track(tracker, prepared, grouped, files)
    display.wait_for(output, tracker)
    _show(output, prepared, grouped, made, tracker, failures)
    return PARTIAL if failures else DONE


def _read_finished(
    store: FolderStore, plan: Plan, tracker: Tracker
) -> dict[tuple[str, str], EpisodeRecord]:
    """Records by (cell id, episode id) of what need not be played."""
    records = {}
    cells = {cell.cell_id: cell for cell in plan.cells}
    for (cell_id, episode_id), key in plan.finished.items():
        record = attempts.read_result(store, key)
        records[cell_id, episode_id] = record
        tracker.episode(cells[cell_id], record)
    return records


async def _play(
    prepared: Prepared,
    records: dict[tuple[str, str], EpisodeRecord],
    tracker: Tracker,
    output: Console,
) -> list[Outcome]:
    """Play the missing jobs into `records`; returns the outcomes without a record."""
    plan, config = prepared.plan, prepared.config
    failures = []
    meter = display.Meter(output, len(plan.jobs))
    with assemble.workers(config, plan) as pool, meter.shown():
        async for outcome in local.outcomes(
            plan.jobs,
            assemble.connector(pool),
            prepared.store,
            config.protocol,
            concurrency=config.backend.concurrency,
            on_call=meter.call,
        ):
            meter.episode(failed=outcome.record is None)
            if outcome.record is None:
                failures.append(outcome)
                continue
            job = outcome.job
            records[job.cell.cell_id, job.key.episode_id] = outcome.record
            tracker.episode(job.cell, outcome.record)
    return failures


def _grouped(
    plan: Plan, records: dict[tuple[str, str], EpisodeRecord]
) -> dict[Group, list[EpisodeRecord]]:
    """Records by (model, setting), in the order of the axes."""
    grouped: dict[Group, list[EpisodeRecord]] = {}
    for cell in plan.cells:
        group = grouped.setdefault((cell.model, cell.setting.name), [])
        keys = [(cell.cell_id, world.episode.episode_id) for world in plan.worlds]
        group += [records[key] for key in keys if key in records]
    return grouped


# -- what is written ---------------------------------------------------------------------------


def _write_documents(prepared: Prepared) -> None:
    """The sweep's document, the frozen configuration, and a note of this launch."""
    store, sweep = prepared.store, prepared.plan.sweep
    text = json.dumps(prepared.document, indent=2, sort_keys=True)
    store.put(sweeps.document_key(sweep), text.encode())
    origin = provenance.collect()
    frozen = {
        "sweep": sweep,
        "config": prepared.config.document(),
        "cells": {cell.label: cell.cell_id for cell in prepared.plan.cells},
        "provenance": origin,
    }
    plain = json.loads(json.dumps(frozen))
    store.put(_frozen_key(sweep), yaml.safe_dump(plain, sort_keys=False, width=100).encode())
    note = {"started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **origin}
    number = len(list(store.keys(f"sweeps/{sweep}/launches/"))) + 1
    store.put(f"sweeps/{sweep}/launches/{number:04d}.json", json.dumps(note, indent=2).encode())


def _frozen_key(sweep: str) -> str:
    return f"sweeps/{sweep}/frozen.yaml"


def _write_results(store: FolderStore, sweep: str, made: Sequence[Table]) -> list[Path]:
    """Tables and figures as files of the sweep; returns them with the frozen configuration."""
    keys = [_frozen_key(sweep)]
    for table in made:
        keys.append(f"sweeps/{sweep}/tables/{table.name}.csv")
        store.put(keys[-1], table.csv())
    curve = next(table for table in made if table.name == "curve")
    keys.append(f"sweeps/{sweep}/figures/ca_by_batch.png")
    store.put(keys[-1], figures.curve_figure(curve))
    return [Path(store.locate(key)) for key in keys]


def _track(
    tracker: Tracker,
    prepared: Prepared,
    grouped: dict[Group, list[EpisodeRecord]],
    files: list[Path],
) -> None:
    """Metrics of cells and of the sweep, and the files."""
    plan = prepared.plan
    for cell in plan.cells:
        label = (cell.model, cell.setting.name)
        # A group pools seeds; a cell is one of them.
        group = grouped[label] if len(prepared.config.seeds) == 1 else []
        values = (
            {m.name: metrics.value(m, tables.scored(group)) for m in metrics.MAIN} if group else {}
        )
        tracker.cell(cell, values)
    overall = {
        f"{model}/{setting}/{m.name}": metrics.value(m, tables.scored(group))
        for (model, setting), group in grouped.items()
        for m in metrics.MAIN
    }
    tracker.finish(overall, files)


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
        f"frozen config:     {locate(_frozen_key(prepared.plan.sweep))}",
        f"figure:            {locate(f'{base}/figures/ca_by_batch.png')}",
        f"tables:            {locate(f'{base}/tables')}",
    ]
    display.show_lines(output, lines)


if __name__ == "__main__":
    main()
