"""Collecting: what a report rests on, read from the store.

Several sweeps are one body of evidence: a cell that two of them share counts once, and a model that
means something else in each of them is told apart by the sweep's name.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.errors import StoreError
from adaexplore.experiments import launches, stored, usages
from adaexplore.experiments.stored import StoredCell, StoredSweep
from adaexplore.experiments.stores import Store
from adaexplore.experiments.tallies import Group
from adaexplore.experiments.usages import Usage
from adaexplore.models.profiles import Prices
from adaexplore.reports.evidence import Evidence, Origin, Sharer

Owned = tuple[Group, StoredCell, StoredSweep]


def evidence(
    store: Store,
    names: Sequence[str],
    *,
    options: tuple[str, ...] = (),
) -> Evidence:
    """All that the store holds of these sweeps.

    Args:
        store: Where they are kept.
        names: Of the sweeps.
        options: Words of a command line that find the store again.

    Raises:
        ConfigError: There is no such sweep.
        StoreError: A document or a result is damaged.
    """
    sweeps = [stored.read(store, name) for name in dict.fromkeys(names)]
    owned = list(_owned(sweeps))
    sharer = Sharer()
    records: dict[Group, list[EpisodeRecord]] = {}
    planned: dict[Group, dict[str, int]] = {}
    spent: dict[Group, Usage] = {}
    for cell_id, group, cell, episodes in _cells(owned):
        found = stored.records(store, cell_id, episodes)
        records.setdefault(group, []).extend(map(sharer.shared, found))
        plan = planned.setdefault(group, {})
        plan.update({episode: plan.get(episode, 0) + 1 for episode in episodes})
        spent.setdefault(group, Usage()).add(
            usages.of_cell(store, cell_id, _price(store, sweeps, cell))
        )
    origin = _origin(store, sweeps, options)
    return Evidence(origin=origin, records=records, planned=planned, usages=spent)


def with_pages(store: Store, evidence: Evidence) -> Evidence:
    """Evidence that knows which pages of episodes are in the store by now."""
    origin = evidence.origin
    return replace(evidence, origin=replace(origin, pages=_pages(store, origin.sweeps[0])))


def _pages(store: Store, sweep: str) -> tuple[str, ...]:
    beside = f"sweeps/{sweep}/report/"
    return tuple(key.removeprefix(beside) for key in store.keys(f"{beside}episodes/"))


def _origin(store: Store, sweeps: Sequence[StoredSweep], options: tuple[str, ...]) -> Origin:
    return Origin(
        sweeps=tuple(sweep.name for sweep in sweeps),
        cells={f"{s.name}: {cell.label}": cell.semantic for s in sweeps for cell in s.cells},
        launches=tuple(note for sweep in sweeps for note in _notes(store, sweep.name)),
        where=store.locate("sweeps"),
        options=options,
        pages=_pages(store, sweeps[0].name),
    )


def _owned(sweeps: Sequence[StoredSweep]) -> Iterator[Owned]:
    """Every cell with the group it belongs to, by the name that tells it apart."""
    meanings: dict[Group, set[str]] = {}
    for sweep in sweeps:
        for cell in sweep.cells:
            meanings.setdefault(cell.group, set()).add(_meaning(cell))
    for sweep in sweeps:
        for cell in sweep.cells:
            model, setting = cell.group
            several = len(sweeps) > 1 and len(meanings[cell.group]) > 1
            yield (f"{model} ({sweep.name})" if several else model, setting), cell, sweep


def _meaning(cell: StoredCell) -> str:
    """What a cell means, its replicate apart."""
    return repr(sorted((key, value) for key, value in cell.semantic.items() if key != "seed"))


def _cells(owned: Iterable[Owned]) -> Iterator[tuple[str, Group, StoredCell, tuple[str, ...]]]:
    """Each cell once, with all episodes that any of its sweeps plays."""
    merged: dict[tuple[str, Group], tuple[StoredCell, dict[str, None]]] = {}
    for group, cell, sweep in owned:
        _, episodes = merged.setdefault((cell.cell_id, group), (cell, {}))
        episodes.update(dict.fromkeys(sweep.selection.episode_ids))
    for (cell_id, group), (cell, episodes) in merged.items():
        yield cell_id, group, cell, tuple(episodes)


def _price(store: Store, sweeps: Iterable[StoredSweep], cell: StoredCell) -> Prices:
    """The prices that the latest launch noted for a cell's model."""
    for sweep in sweeps:
        for note in reversed(_notes(store, sweep.name)):
            noted = note.get("config", {}).get("models", {}).get(cell.group[0], {}).get("prices")
            if isinstance(noted, dict):
                return Prices(**noted)
    return usages.UNPRICED


def _notes(store: Store, sweep: str) -> list[dict[str, Any]]:
    found = []
    for name in launches.names(store, sweep):
        try:
            found.append(launches.read(store, sweep, name))
        except StoreError:  # a note is beside the results, and 'verify' names it
            continue
    return found
