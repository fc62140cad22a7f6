"""`status`, `show` and `sync`: how far a sweep is, how one episode went, and the tracker's page again."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

from rich.console import Console

from adaexplore import arguments, assemble, course, display
from adaexplore.arguments import Arguments
from adaexplore.benchmark.world.episodes import World
from adaexplore.errors import ConfigError
from adaexplore.experiments import attempts, statuses, stored, submissions
from adaexplore.experiments.statuses import CellStatus, RunStatus, SweepStatus
from adaexplore.experiments.stored import StoredCell, StoredSweep
from adaexplore.experiments.stores import Store
from adaexplore.experiments.usages import Usage
from adaexplore.opening import opened, prices, tracked
from adaexplore.reports.episodes import pages, runs
from adaexplore.reports.episodes.runs import EpisodeRun

DONE: Final = 0
STATES: Final = ("finished", "playing", "failed", "interrupted", "missing")

STATUS_HELP: Final = """\
usage: adaexplore status [SWEEP] [--json] [runs_dir=FOLDER] [store=KIND store.KEY=VALUE ...]

How far a sweep is, or all sweeps of the store: episode runs by state, spend over all launches, the
launches that are under way, and why episodes failed. Asks the store alone, so it works from anywhere.

  finished      there is a result
  playing       a launcher that lives is at it
  failed        its last attempt ended without a result; launch again to go on with it
  interrupted   its last attempt was cut short
  missing       never begun
  --json        one JSON object instead"""

SHOW_HELP: Final = """\
usage: adaexplore show SWEEP EPISODE [--model M] [--setting S] [--seed N] [--out FILE] [runs_dir=FOLDER]
                                    [store=...]

The course of one episode: its rule before and after the change, window by window what was probed, what
was chosen against what was best, what it earned, what the agent believed against the truth, faults, and
where the journal is. Several cells may have played the episode: the options choose, else it is the
first, and the others are named.

The same is written as a page for a browser, with pictures and the whole conversation: one file, which
needs no network. It goes beside the sweep's report in the store.

  --out FILE     write the page there instead"""

SYNC_HELP: Final = """\
usage: adaexplore sync SWEEP [tracking=KIND tracking.KEY=VALUE ...] [runs_dir=FOLDER] [store=KIND ...]

Makes MLflow show a sweep as it is stored: what is missing there is added, what is there stays. Run it
after MLflow was down, or was wiped. Without tracking=... it goes where the sweep's last launch showed
its runs."""


def status(words: Sequence[str]) -> int:
    """Exit code of `status`."""
    if {"--help", "-h"} & set(words):
        print(STATUS_HELP)
        return DONE
    given = arguments.read("status", words, flags=["json"])
    wanted = given.expect("SWEEP") if given.names else ()
    with opened(given) as (_, store):
        found = [
            statuses.of_sweep(store, stored.read(store, name), prices(store, name))
            for name in wanted or stored.names(store)
        ]
        where = store.locate("sweeps")
        sent = submissions.read(store, wanted[0])[-1:] if wanted else []
    if "json" in given.flags:
        documents = [one.document() for one in found]
        print(json.dumps(documents[0] if wanted else documents, indent=2))
        return DONE
    output = display.console()
    if wanted:
        _show_sweep(output, found[0])
        display.show_lines(output, [display.plain(f"sent to      {one}") for one in sent])
    elif found:
        display.show_lines(output, [_summary(one) for one in found])
    else:
        display.show_lines(output, [f"no sweep in {where}: launch one"])
    return DONE


def _summary(found: SweepStatus) -> str:
    counts = ", ".join(f"{found.count(s)} {s}" for s in STATES if found.count(s))
    running = f", {len(found.running)} launches under way" if found.running else ""
    return f"{found.name}: {len(found.cells)} cells, {found.runs} episode runs: {counts}{running}"


def _show_sweep(output: Console, found: SweepStatus) -> None:
    width = max(len(cell.label) for cell in found.cells)
    lines = [f"sweep {found.name}: {len(found.cells)} cells of {found.episodes} episodes"]
    lines += [f"  {cell.label:<{width}}  {_counts(cell)}" for cell in found.cells]
    lines += [
        f"  {cell.label}: last failure: {cell.last_failure}"
        for cell in found.cells
        if cell.last_failure is not None
    ]
    lines.append(f"all          {_summary(found).partition(': ')[2]}")
    lines.append(f"spent        {_spend(found.usage)}")
    lines.append(f"last launch  {found.last_launch or 'unknown'}")
    lines += [f"under way    launch {name}" for name in found.running]
    display.show_lines(output, [display.plain(line) for line in lines])


def _counts(cell: CellStatus) -> str:
    return ", ".join(f"{cell.runs[state]} {state}" for state in STATES if cell.runs.get(state))


def _spend(usage: Usage) -> str:
    money = f"{usage.usd:.2f} USD"
    if usage.unpriced_tokens:
        money += f" and {usage.unpriced_tokens} tokens without a price"
    return (
        f"{money}; {usage.calls} calls ({usage.failed_attempts} attempts failed), "
        f"{usage.input_tokens} tokens in, {usage.output_tokens} out"
    )


# -- one episode -------------------------------------------------------------------------------


def show(words: Sequence[str]) -> int:
    """Exit code of `show`."""
    if {"--help", "-h"} & set(words) or not words:
        print(SHOW_HELP)
        return DONE if words else 2
    given = arguments.read("show", words, options=["model", "setting", "seed", "out"])
    name, episode_id = given.expect("SWEEP", "EPISODE")
    with opened(given) as (_, store):
        sweep = stored.read(store, name)
        if episode_id not in sweep.selection.episode_ids:
            ids = sweep.selection.episode_ids
            raise ConfigError(
                f"sweep '{name}' has no episode '{episode_id}': expected one of {ids[0]} ... {ids[-1]}"
            )
        cells = _chosen(given, sweep)
        world = stored.worlds(stored.dataset(store, sweep), sweep)[episode_id]
        finished = [cell for cell in cells if _result(store, cell, episode_id)]
        told = (
            _course(store, name, finished, world) if finished else _so_far(store, cells, episode_id)
        )
        first = finished[0] if finished else _begun(store, cells, episode_id)
        run = runs.read(store, name, first, world)
        others = [cell.label for cell in finished if cell is not first]
        where = _page(given, store, run, others)
    display.show_lines(display.console(), [*told, f"page     {where}"])
    return DONE


def _course(store: Store, name: str, finished: Sequence[StoredCell], world: World) -> list[str]:
    """The course of the first run, where its journal is, and who else has played the episode."""
    episode_id, label = world.episode.episode_id, finished[0].label
    key = _result(store, finished[0], episode_id) or ""
    record = attempts.read_result(store, key, hidden_digest=world.digest)
    told = [
        f"episode {episode_id} of sweep {name}, played by {label}",
        *course.lines(record, world),
    ]
    others = ", ".join(cell.label for cell in finished[1:])
    if others:
        told += ["", f"also played by {others} (choose with --model, --setting, --seed)"]
    journal = store.locate(key.removesuffix(attempts.RESULT) + "journal.jsonl")
    return [*told, "", f"journal  {journal}"]


def _page(given: Arguments, store: Store, run: EpisodeRun, others: Sequence[str]) -> str:
    """Write the page of a run; where it is."""
    report = pages.report_key(run.sweep)
    there = store.get(report) is not None
    out = given.one("out")
    if out is None:
        key = pages.key(run.sweep, run.cell, run.world.episode.episode_id)
        link = pages.UP + report.rpartition("/")[2] if there else None
        store.put(key, pages.page_of(run, report=link, others=others))
        return store.locate(key)
    link = _way(Path(out), Path(store.locate(report))) if there else None
    try:
        Path(out).write_bytes(pages.page_of(run, report=link, others=others))
    except OSError as error:
        why = error.strerror or error
        raise ConfigError(
            f"--out {out}: expected a file to write the page to, got: {why}"
        ) from None
    return out


def _chosen(given: Arguments, sweep: StoredSweep) -> list[StoredCell]:
    """The cells that the options name (ConfigError if there is none)."""
    model, setting, seed = (given.one(option) for option in ("model", "setting", "seed"))
    cells = [
        cell
        for cell in sweep.cells
        if model in (None, cell.group[0])
        and setting in (None, cell.group[1])
        and seed in (None, str(cell.seed))
    ]
    if not cells:
        known = ", ".join(cell.label for cell in sweep.cells[:8])
        raise ConfigError(
            f"sweep '{sweep.name}' has no such cell: expected one of {known} (model/setting/seed)"
        )
    return cells


def _result(store: Store, cell: StoredCell, episode_id: str) -> str | None:
    listed = attempts.listed(store, f"cells/{cell.cell_id}/{episode_id}/")
    return attempts.result_of(listed.get(episode_id, ()))


def _so_far(store: Store, cells: Sequence[StoredCell], episode_id: str) -> list[str]:
    """How far each of these cells is with an episode that none has finished."""
    told = []
    for cell in cells:
        found = _status(store, cell, episode_id)
        told.append(display.plain(f"{cell.label} {episode_id} {found}"))
        if found.attempt is not None:
            told.append(f"  journal  {store.locate(found.attempt + 'journal.jsonl')}")
    return told


def _begun(store: Store, cells: Sequence[StoredCell], episode_id: str) -> StoredCell:
    """The first cell that has begun an episode, or the first of all."""
    begun = (c for c in cells if _status(store, c, episode_id).attempt is not None)
    return next(begun, cells[0])


def _status(store: Store, cell: StoredCell, episode_id: str) -> RunStatus:
    listed = attempts.listed(store, f"cells/{cell.cell_id}/{episode_id}/")
    return statuses.of_run(store, listed.get(episode_id, ()))


def _way(page: Path, report: Path) -> str | None:
    """The address of the report as seen from a page; a bucket's objects are no files and have none."""
    if not report.is_file():
        return None
    return quote(Path(os.path.relpath(report, page.parent)).as_posix())


# -- the tracker's page ------------------------------------------------------------------------


def sync(words: Sequence[str]) -> int:
    """Exit code of `sync`."""
    if {"--help", "-h"} & set(words) or not words:
        print(SYNC_HELP)
        return DONE if words else 2
    given = arguments.read("sync", words)
    (name,) = given.expect("SWEEP")
    output = display.console()
    with opened(given) as (places, store):
        stored.read(store, name)
        where = tracked(given, places, store, name)
        with output.status("reading the sweep") as shown:
            told = assemble.synchronise(
                where,
                store,
                name,
                lambda left: shown.update(f"showing runs in MLflow: {left} left"),
            )
    display.show_lines(output, told)
    return DONE
