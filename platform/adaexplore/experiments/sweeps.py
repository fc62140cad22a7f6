"""Sweeps: what belongs together under one name, and what a launch still has to play.

A sweep's document lists its cells with their semantic configuration, and which episodes they play.
Launching again resumes: axes may grow, transport may change, but a cell that is in the sweep already
keeps its meaning, and a launch that would change it is refused with the keys named.

Episodes may grow as well, and a sweep never shrinks: a launch that selects all of the sweep's
episodes and more (a higher limit, `test` after `lite`) makes them the sweep's; one that selects some
of them plays the sweep's; any other selection is refused.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.world.episodes import World
from adaexplore.errors import ConfigError, StoreError
from adaexplore.experiments import attempts, identity
from adaexplore.experiments.attempts import EpisodeKey
from adaexplore.experiments.grids import Cell
from adaexplore.experiments.stores import Store

SWEEP_VERSION: Final = 2
_ENLISTINGS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which episodes of a dataset a sweep plays."""

    split: str
    limit: int | None
    """Only the first so many of the split; None is all."""
    episode_ids: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """The selection as plain data."""
        return {"split": self.split, "limit": self.limit, "episode_ids": list(self.episode_ids)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One episode run: a cell playing an episode."""

    cell: Cell
    world: World

    @property
    def key(self) -> EpisodeKey:
        """What names it in the store; made when asked for, since thousands of jobs wait."""
        episode_id = self.world.episode.episode_id
        digest = self.world.digest
        return EpisodeKey(cell_id=self.cell.cell_id, episode_id=episode_id, hidden_digest=digest)

    @property
    def windows(self) -> int:
        """Batch windows that are played."""
        batches: int | None = self.cell.semantic["protocol"].get("batches")
        return len(self.world.episode.cases) if batches is None else batches

    @property
    def assessments(self) -> int:
        """How often the agent is asked what it believes."""
        changes = self.windows > self.world.episode.change_batch
        return 2 if changes and self.cell.setting.drifts else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a launch found and what it will do."""

    sweep: str
    cells: tuple[Cell, ...]
    worlds: tuple[World, ...]
    finished: Mapping[tuple[str, str], str]
    """Result key by (cell id, episode id) of what need not be played."""
    jobs: tuple[Job, ...]
    """What is missing, in order."""
    superseded: tuple[str, ...] = ()
    """Result keys that are to be played again; their jobs are among the missing."""

    @property
    def runs(self) -> int:
        """Episode runs of the whole sweep."""
        return len(self.cells) * len(self.worlds)

    @property
    def calls(self) -> tuple[int, int]:
        """(fewest, most usual) model calls of the missing runs: two or three a window, assessments."""
        windows = sum(job.windows for job in self.jobs)
        asked = sum(job.assessments for job in self.jobs)
        return 2 * windows + asked, 3 * windows + asked


def plan(
    store: Store,
    sweep: str,
    cells: tuple[Cell, ...],
    worlds: tuple[World, ...],
    *,
    redo: frozenset[str] = frozenset(),
) -> Plan:
    """What is finished and what is missing of a sweep's episode runs.

    Results with a status in `redo` are missing too.
    """
    finished: dict[tuple[str, str], str] = {}
    superseded: list[str] = []
    jobs = []
    planned: set[str] = set()
    for cell in cells:
        done = attempts.finished(store, cell.cell_id)
        new = cell.cell_id not in planned  # two profiles of one meaning are one cell
        planned.add(cell.cell_id)
        for world in worlds:
            episode_id = world.episode.episode_id
            if episode_id in done:
                if not redo or attempts.read_result(store, done[episode_id]).status not in redo:
                    finished[cell.cell_id, episode_id] = done[episode_id]
                    continue
                superseded.append(done[episode_id])
            if new:
                jobs.append(Job(cell=cell, world=world))
    return Plan(
        sweep=sweep,
        cells=cells,
        worlds=worlds,
        finished=finished,
        jobs=tuple(jobs),
        superseded=tuple(superseded),
    )


def record(store: Store, key: EpisodeKey) -> EpisodeRecord:
    """The record of a finished episode run; StoreError if there is none, or it is damaged."""
    found = attempts.listed(store, key.prefix).get(key.episode_id, [])
    result = attempts.result_of(found)
    if result is None:
        where = store.locate(key.prefix)
        raise StoreError(f"{where}: expected a result, got none; launch again")
    return attempts.read_result(store, result, hidden_digest=key.hidden_digest)


# -- the sweep's own document ------------------------------------------------------------------


def document_key(sweep: str) -> str:
    """Store key of a sweep's document."""
    return f"sweeps/{sweep}/sweep.json"


def read(store: Store, sweep: str) -> dict[str, Any] | None:
    """A sweep's document, or None if the sweep is new; StoreError if it is damaged."""
    key = document_key(sweep)
    data = store.get(key)
    if data is None:
        return None
    where = store.locate(key)
    fault = StoreError(f"{where}: not a sweep document; restore or remove it")
    try:
        document: dict[str, Any] = json.loads(data)
        version = document["sweep_version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise fault from None
    if version != SWEEP_VERSION:  # first: another version may have another shape
        raise StoreError(f"{where}: expected sweep_version {SWEEP_VERSION}, got {version!r}")
    if not _shaped(document):
        raise fault
    return document


def _shaped(document: dict[str, Any]) -> bool:
    """Whether a document of the current version holds what the functions below read."""
    try:
        chosen = selected(document)
        cells = [(cell["cell_id"], cell["semantic"]) for cell in document["cells"].values()]
        return (
            isinstance(chosen.split, str)
            and isinstance(chosen.limit, int | None)
            and all(isinstance(episode_id, str) for episode_id in chosen.episode_ids)
            and all(isinstance(i, str) and isinstance(s, dict) for i, s in cells)
        )
    except (KeyError, TypeError, AttributeError):
        return False


def enlist(store: Store, sweep: str, cells: tuple[Cell, ...], selection: Selection) -> None:
    """Write a launch's cells and episodes into the sweep's document.

    Two launchers may write at the same moment; each looks again whether what it wrote is there.

    Raises:
        ConfigError: As for `join`.
        StoreError: Others change the document without end.
    """
    for _ in range(_ENLISTINGS):
        before = read(store, sweep)
        document = join(before, sweep, cells, selection)
        if document == before:
            return
        text = json.dumps(document, indent=2)  # cells keep the order in which they joined
        store.put(document_key(sweep), text.encode())
    where = store.locate(document_key(sweep))
    raise StoreError(f"{where}: other launches change it again and again; launch again later")


def join(
    document: dict[str, Any] | None, sweep: str, cells: tuple[Cell, ...], selection: Selection
) -> dict[str, Any]:
    """The sweep's document with this launch's cells and episodes in it.

    Raises:
        ConfigError: A cell of the same model, setting and seed is in the sweep with another
            meaning (the message names the keys), or the episodes are others.
    """
    known: dict[str, Any] = {} if document is None else dict(document["cells"])
    for cell in cells:
        before = known.get(cell.label)
        if before is not None and before["cell_id"] != cell.cell_id:
            keys = ", ".join(identity.differing(before["semantic"], cell.semantic))
            raise ConfigError(
                f"sweep '{sweep}' holds {cell.label} with another meaning ({keys} differ): "
                "launch under another name=..., or undo the change"
            )
        known[cell.label] = {"cell_id": cell.cell_id, "semantic": cell.semantic}
    episodes = selection.document()
    if document is not None:
        episodes = _larger(sweep, document["episodes"], episodes)
    return {"sweep_version": SWEEP_VERSION, "name": sweep, "episodes": episodes, "cells": known}


def selected(document: dict[str, Any]) -> Selection:
    """Which episodes the sweep of a document plays."""
    episodes = document["episodes"]
    return Selection(**{**episodes, "episode_ids": tuple(episodes["episode_ids"])})


def _larger(sweep: str, before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """The selection that holds the other one (ConfigError if neither does)."""
    old, new = set(before["episode_ids"]), set(now["episode_ids"])
    if old <= new:
        return now
    if new < old:
        return before
    raise ConfigError(
        f"sweep '{sweep}' plays {_shown(before)}, and {_shown(now)} neither holds these episodes nor "
        "is part of them: launch under another name=..., or select what the sweep plays"
    )


def _shown(episodes: dict[str, Any]) -> str:
    limit = "" if episodes["limit"] is None else f" with limit {episodes['limit']}"
    return f"split {episodes['split']}{limit} ({len(episodes['episode_ids'])} episodes)"
