"""Publishing: what a launch writes about its sweep, and what it tells the tracker."""

import json
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from adaexplore import provenance
from adaexplore.backends.folder import FolderStore
from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.scores import metrics
from adaexplore.experiments import figures, identity, sweeps, tables
from adaexplore.experiments.config import SweepConfig
from adaexplore.experiments.sweeps import Plan
from adaexplore.experiments.tables import Group, Table
from adaexplore.experiments.trackers import Tracker


def documents(
    store: FolderStore, config: SweepConfig, plan: Plan, document: dict[str, Any]
) -> None:
    """Write the sweep's document, the frozen configuration, and a note of this launch."""
    sweep = plan.sweep
    text = json.dumps(document, indent=2)  # cells keep the order in which they joined
    store.put(sweeps.document_key(sweep), text.encode())
    origin = provenance.collect()
    frozen = {
        "sweep": sweep,
        "config": config.document(),
        "dataset_digest": plan.cells[0].semantic["dataset"],
        "cells": {cell.label: cell.cell_id for cell in plan.cells},
        "provenance": origin,
    }
    plain = json.loads(json.dumps(frozen))
    store.put(frozen_key(sweep), yaml.safe_dump(plain, sort_keys=False, width=100).encode())
    note = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "host": socket.gethostname(),
        "config": config.document(),
        **origin,
    }
    number = len(list(store.keys(f"sweeps/{sweep}/launches/"))) + 1
    store.put(f"sweeps/{sweep}/launches/{number:04d}.json", json.dumps(note, indent=2).encode())


def frozen_key(sweep: str) -> str:
    """Store key of a sweep's frozen configuration."""
    return f"sweeps/{sweep}/frozen.yaml"


def results(store: FolderStore, sweep: str, made: Sequence[Table]) -> list[Path]:
    """Write tables and figures as files of the sweep; returns them with the frozen configuration."""
    keys = [frozen_key(sweep)]
    for table in made:
        keys.append(f"sweeps/{sweep}/tables/{table.name}.csv")
        store.put(keys[-1], table.csv())
    curve = next(table for table in made if table.name == "curve")
    keys.append(f"sweeps/{sweep}/figures/ca_by_batch.png")
    store.put(keys[-1], figures.curve_figure(curve))
    return [Path(store.locate(key)) for key in keys]


def accounting(store: FolderStore, sweep: str, table: Table, governors: dict[str, Any]) -> None:
    """Write what was spent, and how the governors paced it, beside the score tables."""
    store.put(f"sweeps/{sweep}/accounting.csv", table.csv())
    if governors:
        number = len(list(store.keys(f"sweeps/{sweep}/launches/")))
        text = json.dumps(governors, indent=2)
        store.put(f"sweeps/{sweep}/governors/{number:04d}.json", text.encode())


def fingerprints(store: FolderStore, sweep: str, found: Mapping[str, dict[str, Any]]) -> None:
    """Write what served models said of themselves; journals refer to it by digest."""
    for name, fingerprint in found.items():
        key = f"sweeps/{sweep}/served/{name}-{identity.digest(fingerprint)[:12]}.json"
        store.put(key, json.dumps(fingerprint, indent=2).encode())


def track(
    tracker: Tracker,
    plan: Plan,
    records: Mapping[tuple[str, str], EpisodeRecord],
    grouped: Mapping[Group, Sequence[EpisodeRecord]],
    files: list[Path],
) -> None:
    """Tell the tracker the metrics of cells and of the sweep, and the files.

    `records` are by (cell id, episode id); `grouped` are those of all seeds by (model, setting).
    """
    for cell in plan.cells:
        keys = [(cell.cell_id, world.episode.episode_id) for world in plan.worlds]
        tracker.cell(cell, _values([records[key] for key in keys if key in records]))
    overall = {
        f"{model}/{setting}/{name}": value
        for (model, setting), group in grouped.items()
        for name, value in _values(group).items()
    }
    tracker.finish(overall, files)


def _values(group: Sequence[EpisodeRecord]) -> dict[str, float]:
    scored = tables.scored(group)
    return {metric.name: metrics.value(metric, scored) for metric in metrics.MAIN}
