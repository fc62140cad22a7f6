"""An episode run that has a little of everything, kept in a store."""

import pytest

from adaexplore.backends.folder import FolderStore
from pages_read import cell_of, kept
from players import drive, points_of, steady


@pytest.fixture
def store(tmp_path):
    """An empty store."""
    store = FolderStore(tmp_path / "runs")
    yield store
    store.close()


@pytest.fixture(scope="module")
def played(worlds, settings):
    """A run with probes, faults, repairs, abstentions and assessments."""
    world = worlds[0]
    return drive(world, settings["default"], steady(points_of(world)))


@pytest.fixture
def run(store, world, settings, protocol, played):
    """The same as it is read from the store."""
    cell = cell_of(settings["default"], protocol)
    return kept(store, cell, world, played.replies, played.record)
