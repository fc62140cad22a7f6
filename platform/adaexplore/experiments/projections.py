"""Projections: a sweep as the store holds it, run by run, for a tracker to show.

A tracker's page is a function of the store alone, clock times included: a run starts when its
sweep's first launch did, and an episode lasts as long as its calls took.
"""

import calendar
import gzip
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from adaexplore.errors import StoreError
from adaexplore.experiments import attempts, contents, journals, launches, stored, tallies
from adaexplore.experiments.contents import Content, Place
from adaexplore.experiments.journals import Journal
from adaexplore.experiments.stored import StoredCell
from adaexplore.experiments.stores import Store
from adaexplore.experiments.tallies import Tally
from adaexplore.experiments.trackers import Artifacts, ShownCell

_STARTED: Final = "%Y-%m-%dT%H:%M:%SZ"


def sweep_artifacts(store: Store, name: str) -> Artifacts:
    """Frozen document, tables, figures and report of a sweep, by path; pages of episodes apart."""
    start = f"sweeps/{name}/"
    keys = [f"{start}frozen.yaml"]
    for folder in ("tables", "figures", "report"):
        keys += store.keys(f"{start}{folder}/")
    keys = [key for key in keys if not key.startswith(f"{start}report/episodes/")]
    return {key.removeprefix(start): partial(_object, store, key) for key in keys}


def cell_artifacts(store: Store, cell: ShownCell, episode_ids: Sequence[str]) -> Artifacts:
    """The journals of a cell's finished episodes, one after another in a compressed file."""
    return {"journals.jsonl.gz": partial(_journals, store, cell.cell_id, tuple(episode_ids))}


def _object(store: Store, key: str) -> bytes:
    data = store.get(key)
    if data is None:
        raise StoreError(
            f"{store.locate(key)}: expected a file of the sweep, got none; launch again"
        )
    return data


def _journals(store: Store, cell_id: str, episode_ids: Sequence[str]) -> bytes:
    done = attempts.finished(store, cell_id)
    found = [store.get(_journal_key(done[i])) or b"" for i in episode_ids if i in done]
    return gzip.compress(b"".join(found), mtime=0)


def _journal_key(result_key: str) -> str:
    return result_key.removesuffix(attempts.RESULT) + "journal.jsonl"


def journal(store: Store, place: Place) -> Journal | None:
    """The journal of a finished episode run; None if it has none that counts."""
    cell_id, _, episode_id = place.identity.partition("/")
    found = attempts.listed(store, f"cells/{cell_id}/{episode_id}/")
    result = attempts.result_of(found.get(episode_id, ()))
    if result is None:
        return None
    key = _journal_key(result)
    return journals.read(store.get(key) or b"", store.locate(key))


def started_ms(store: Store, name: str) -> int:
    """When the sweep's first launch began, in milliseconds since 1970; 0 if no note tells."""
    for launch in launches.names(store, name):
        started = launches.read(store, name, launch).get("started")
        if started:
            return calendar.timegm(time.strptime(started, _STARTED)) * 1000
    return 0


# -- the whole sweep ---------------------------------------------------------------------------


class Projection:
    """All runs of a sweep, as the store says now."""

    def __init__(self, store: Store, name: str) -> None:
        """Read the sweep's document and list its results.

        Raises:
            ConfigError: There is no such sweep.
            StoreError: Its document is damaged.
        """
        self._store = store
        self._sweep = stored.read(store, name)
        self._name = name
        self._ids = self._sweep.selection.episode_ids
        self._results = {
            cell.cell_id: attempts.finished(store, cell.cell_id) for cell in self._sweep.cells
        }
        self._tallies: dict[str, Tally] = {}

    def runs(self) -> Iterator[tuple[Place, Callable[[], Content]]]:
        """Every run with what makes its content, which reads the store; children first."""
        for cell in self._sweep.cells:
            for episode_id, key in self._finished(cell).items():
                place = contents.episode_place(self._name, cell, episode_id)
                yield place, partial(self._episode, cell, key)
            yield contents.cell_place(self._name, cell), partial(self._cell, cell)
        yield contents.sweep_place(self._name), self._whole

    def _finished(self, cell: StoredCell) -> dict[str, str]:
        results = self._results[cell.cell_id]
        return {i: results[i] for i in self._ids if i in results}

    def _tally(self, cell: StoredCell) -> Tally:
        if cell.cell_id not in self._tallies:
            keys = self._finished(cell).values()
            found = (attempts.read_result(self._store, key) for key in keys)
            self._tallies[cell.cell_id] = Tally.of(found)
        return self._tallies[cell.cell_id]

    def _episode(self, cell: StoredCell, key: str) -> Content:
        return contents.episode(self._name, cell, attempts.read_result(self._store, key))

    def _cell(self, cell: StoredCell) -> Content:
        values = contents.cell_values(self._tally(cell), len(self._ids))
        files = cell_artifacts(self._store, cell, self._ids)
        return contents.cell(self._name, cell, values, files)

    def _whole(self) -> Content:
        grouped = tallies.grouped((cell.group, self._tally(cell)) for cell in self._sweep.cells)
        missing = sum(len(self._ids) - len(self._finished(cell)) for cell in self._sweep.cells)
        pooled = {group: contents.pooled(tally) for group, tally in grouped.items()}
        values = contents.sweep_values(pooled, missing)
        return contents.sweep(self._name, values, sweep_artifacts(self._store, self._name))
