"""Publishing: what a launch writes about its sweep, and what it tells the tracker."""

import json
import os
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from adaexplore import provenance
from adaexplore.backends.vllm import procfs
from adaexplore.benchmark.scores import metrics
from adaexplore.experiments import (
    contents,
    figures,
    frozen,
    identity,
    launches,
    projections,
    stored,
    stores,
    sweeps,
)
from adaexplore.experiments.config import StoreConfig, SweepConfig
from adaexplore.experiments.grids import Cell
from adaexplore.experiments.stores import Store
from adaexplore.experiments.sweeps import Plan, Selection
from adaexplore.experiments.tables import Scores, Table
from adaexplore.experiments.trackers import Tracker
from adaexplore.reports import page

DEFAULT_FOLDER: Final = "runs"
"""Of `runs_dir`, where no word says otherwise."""


def documents(
    store: Store, config: SweepConfig, plan: Plan, selection: Selection, note: Mapping[str, Any]
) -> None:
    """Write the sweep's document, the frozen sweep, and a note of this launch with `note` in it.

    Raises:
        StoreError: Another launcher runs the sweep, and a cap counts what each of them spends.
    """
    sweep = plan.sweep
    stores.mark(store)
    own = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "host": socket.gethostname(),
        "process": process(),
        "config": config.document(),
        **provenance.collect(),
        **note,
    }
    launches.note(store, sweep, own, capped=_capped(config))
    enlist(store, config, plan, selection)


def enlist(store: Store, config: SweepConfig, plan: Plan, selection: Selection) -> bytes:
    """Write the sweep's document and the frozen sweep, which is returned."""
    stores.mark(store)
    sweeps.enlist(store, plan.sweep, plan.cells, selection)
    frozen_sweep = frozen_document(config, plan.sweep, plan.cells)
    store.put(frozen_key(plan.sweep), frozen_sweep)
    return frozen_sweep


def process() -> dict[str, int]:
    """This process by all that tells it from a later one of the same number: `pid` and `started`."""
    own = procfs.read(os.getpid())
    return {"pid": os.getpid(), "started": -1 if own is None else own.started}


def frozen_document(config: SweepConfig, sweep: str, cells: Sequence[Cell]) -> bytes:
    """The frozen sweep of a configuration and its cells, with the digests of what is here."""
    digest = cells[0].semantic["dataset"]
    return frozen.document(sweep, config, cells, digests(config, digest))


def digests(config: SweepConfig, dataset_digest: str) -> dict[str, Any]:
    """Digests of all that a sweep of this configuration rests on, as they are here."""
    contents = provenance.model_contents(config)
    return frozen.digests(provenance.collect(), dataset_digest, contents)


def _capped(config: SweepConfig) -> bool:
    return config.budget.cap_usd is not None or config.budget.cap_tokens is not None


def frozen_key(sweep: str) -> str:
    """Store key of a sweep's frozen configuration."""
    return f"sweeps/{sweep}/frozen.yaml"


def results(store: Store, sweep: str, made: Sequence[Table]) -> None:
    """Write tables and figures as files of the sweep."""
    for table in made:
        store.put(f"sweeps/{sweep}/tables/{table.name}.csv", table.csv())
    curve = next(table for table in made if table.name == "curve")
    store.put(f"sweeps/{sweep}/figures/ca_by_batch.png", figures.curve_figure(curve))


def report(store: Store, config: SweepConfig, sweep: str) -> None:
    """Write the report of a sweep as its files, with the pages of the episodes that it points out.

    Args:
        store: Where it is kept.
        config: Of the launch; says how the store is found again.
        sweep: Its name.
    """
    from adaexplore import episode_pages
    from adaexplore.reports import collect
    from adaexplore.reports import report as reports

    words = store_words(config)
    found = collect.evidence(store, [sweep], options=words)
    for path, data in episode_pages.made(store, sweep, found):
        store.put(report_key(sweep, path), data)
    made = reports.build(collect.with_pages(store, found))
    for path, data in reports.files(made):
        store.put(report_key(sweep, path), data)


def store_words(config: SweepConfig) -> tuple[str, ...]:
    """Words of a command line with which a verb finds the store of a configuration."""
    folder = () if config.runs_dir == DEFAULT_FOLDER else (f"runs_dir={config.runs_dir}",)
    if config.store.kind == "folder":
        return folder
    plain = StoreConfig(kind=config.store.kind, bucket=config.store.bucket)
    given = {f.name: getattr(config.store, f.name) for f in fields(StoreConfig)}
    kept = [f"store.{k}={v}" for k, v in given.items() if k == "bucket" or v != getattr(plain, k)]
    return (*folder, f"store={config.store.kind}", *kept)


def report_key(sweep: str, path: str = page.REPORT) -> str:
    """Store key of a sweep's report, or of another file of it."""
    return f"sweeps/{sweep}/report/{path}"


def accounting(store: Store, sweep: str, table: Table, governors: dict[str, Any]) -> None:
    """Write what was spent, and how the governors paced it, beside the score tables."""
    store.put(f"sweeps/{sweep}/accounting.csv", table.csv())
    if governors:
        text = json.dumps(governors, indent=2)
        store.put(f"sweeps/{sweep}/governors/{launches.name(store, sweep)}.json", text.encode())


def fingerprints(store: Store, sweep: str, found: Mapping[str, dict[str, Any]]) -> None:
    """Write what served models said of themselves; journals refer to it by digest."""
    for name, fingerprint in found.items():
        key = f"sweeps/{sweep}/served/{name}-{identity.digest(fingerprint)[:12]}.json"
        store.put(key, json.dumps(fingerprint, indent=2).encode())


def track(
    tracker: Tracker,
    store: Store,
    plan: Plan,
    values: Mapping[str, Mapping[str, float]],
    scores: Scores,
) -> None:
    """Tell the tracker what cells and the sweep say, with their files.

    `values` are those of the cells, by cell id; `scores` those of all seeds together.
    """
    ids = [world.episode.episode_id for world in plan.worlds]
    # Of two with one meaning the first.
    cells = {cell.cell_id: cell for cell in reversed(plan.cells)}
    for cell in reversed(cells.values()):
        files = projections.cell_artifacts(store, cell, ids)
        tracker.cell(cell, values[cell.cell_id], files)
    planned = len(stored.read(store, plan.sweep).cells) * len(ids)
    missing = planned - sum(counted.runs for counted in scores.counted.values())
    pooled = {
        group: {metric.name: scores.known[group, metric.name].value for metric in metrics.MAIN}
        for group in scores.counted
    }
    told = contents.sweep_values(pooled, missing)
    tracker.finish(told, projections.sweep_artifacts(store, plan.sweep))
