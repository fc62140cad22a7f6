"""A sweep as the store holds it: what the verbs that come after a launch read.

The sweep's document names its cells with their meaning, so settings and limits of play come from
there and never from a configuration of today. Which dataset they belong to is told by its digest.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from adaexplore.authoring import datasets
from adaexplore.authoring.datasets import Dataset
from adaexplore.benchmark.game.protocol import Protocol
from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.game.settings import Setting
from adaexplore.benchmark.world.episodes import World
from adaexplore.errors import ConfigError, DatasetError
from adaexplore.experiments import attempts, identity, launches, reading, sweeps
from adaexplore.experiments.stores import Store
from adaexplore.experiments.sweeps import Selection
from adaexplore.experiments.tallies import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCell:
    """One cell of a stored sweep."""

    label: str
    cell_id: str
    semantic: Mapping[str, Any]

    @property
    def group(self) -> Group:
        """(model, setting): its row of the tables."""
        model, setting, _ = self.label.split("/")
        return model, setting

    @property
    def seed(self) -> int:
        """Its replicate."""
        return int(self.label.rpartition("/")[2])

    @property
    def setting(self) -> Setting:
        """How it is played; KeyError or TypeError if this code knows no such setting."""
        return Setting(**self.semantic["setting"])

    @property
    def protocol(self) -> Protocol:
        """The limits it is played with; KeyError, TypeError or ValueError as above."""
        return Protocol(**self.semantic["protocol"])


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSweep:
    """What a sweep's document says."""

    name: str
    cells: tuple[StoredCell, ...]
    selection: Selection

    @property
    def runs(self) -> int:
        """Episode runs of the whole sweep."""
        return len({cell.cell_id for cell in self.cells}) * len(self.selection.episode_ids)


def names(store: Store) -> list[str]:
    """Names of all sweeps of a store, sorted."""
    end = "/sweep.json"
    return [key.split("/")[1] for key in store.keys("sweeps/") if key.endswith(end)]


def read(store: Store, name: str) -> StoredSweep:
    """A sweep of the store.

    Raises:
        ConfigError: There is none of this name, or it has no cells; the known ones are named.
        StoreError: Its document is damaged or of another version.
    """
    document = sweeps.read(store, name)
    if document is None:
        known = ", ".join(names(store)) or "none"
        where = store.locate("sweeps")
        raise ConfigError(f"unknown sweep '{name}' in {where}: expected one of {known}")
    found = cells(document)
    if not found:
        raise ConfigError(f"sweep '{name}' has no cells yet: launch it first")
    return StoredSweep(name=name, cells=found, selection=sweeps.selected(document))


def cells(document: Mapping[str, Any] | None) -> tuple[StoredCell, ...]:
    """The cells of a sweep's document, in the order in which they joined; none of a new sweep."""
    return tuple(
        StoredCell(label=label, cell_id=cell["cell_id"], semantic=cell["semantic"])
        for label, cell in (document or {"cells": {}})["cells"].items()
    )


def dataset(store: Store, sweep: StoredSweep) -> Dataset:
    """The dataset that a sweep's cells were played on.

    Raises:
        DatasetError: None of the datasets that the launches name, and no packaged one, has the
            digest that is part of the cells' meaning.
    """
    digest = sweep.cells[0].semantic.get("dataset")
    for name in dict.fromkeys([*_named(store, sweep.name), *datasets.names()]):
        try:
            manifest = datasets.read_manifest(datasets.folder_of(name))
        except DatasetError:
            continue
        if datasets.digest(manifest) == digest:
            return datasets.load(name, sweep.selection.split)
    raise DatasetError(
        f"sweep '{sweep.name}': expected the dataset of digest {str(digest)[:12]}..., got none such: "
        "run where its folder is, or with the code of its frozen.yaml"
    )


def _named(store: Store, sweep: str) -> list[str]:
    """Datasets that the notes of a sweep's launches name, the latest first."""
    found = []
    for launch in reversed(launches.names(store, sweep)):
        noted = launches.read(store, sweep, launch).get("config", {}).get("dataset", {})
        found += [noted["name"]] if isinstance(noted.get("name"), str) else []
    return found


def worlds(found: Dataset, sweep: StoredSweep) -> dict[str, World]:
    """The sweep's episodes by id, in their order."""
    chosen = set(sweep.selection.episode_ids)
    return {
        world.episode.episode_id: world
        for world in found.worlds
        if world.episode.episode_id in chosen
    }


def records(
    store: Store,
    cell_id: str,
    episode_ids: Iterable[str],
    hidden_digests: Mapping[str, str] | None = None,
) -> Iterator[EpisodeRecord]:
    """Records of a cell's finished episodes among these, in their order, each read when it is taken.

    Args:
        store: Where they are kept; a few are asked for at once, since a bucket may be far away.
        cell_id: Whose they are.
        episode_ids: Which ones.
        hidden_digests: Digest of the hidden side that each must have, by episode id, where known.

    Raises:
        StoreError: A result is damaged, or of something else.
    """
    digests = hidden_digests or {}
    done = attempts.finished(store, cell_id)
    keys = [(done[i], digests.get(i)) for i in episode_ids if i in done]
    yield from reading.ahead(lambda k: attempts.read_result(store, k[0], hidden_digest=k[1]), keys)


def foreign_code(cell: StoredCell, here: Mapping[str, Any]) -> list[str]:
    """Names of the rules of play in which a cell and this code differ: it cannot be replayed here.

    `here` are the semantic keys that code decides, with their present values.
    """
    return [key for key in here if cell.semantic.get(key) != here[key]]


def well_named(cells: Iterable[StoredCell]) -> list[StoredCell]:
    """Cells whose content does not give their id: somebody edited the sweep's document."""
    return [cell for cell in cells if identity.cell_id(dict(cell.semantic)) != cell.cell_id]
