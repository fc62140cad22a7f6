"""Fixtures that every room of the tests shares: the packaged dataset, the settings, a clean place."""

import os
from pathlib import Path

import pytest
import yaml
from hypothesis import settings as hypothesis_settings

from adaexplore.authoring import datasets
from adaexplore.benchmark.game.protocol import Protocol
from adaexplore.benchmark.game.settings import Setting
from adaexplore.benchmark.world.episodes import World

ROOT = Path(__file__).parent.parent
SETTINGS = sorted(path.stem for path in (ROOT / "conf" / "setting").glob("*.yaml"))

hypothesis_settings.register_profile("default", deadline=None, derandomize=True)
hypothesis_settings.load_profile("default")


def read_setting(name: str) -> Setting:
    """A setting as its configuration file says."""
    document = yaml.safe_load((ROOT / "conf" / "setting" / f"{name}.yaml").read_text())
    return Setting(name=name, **document)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch, tmp_path):
    """Every test runs in a folder of its own, with no configuration from outside."""
    for name in [name for name in os.environ if name.startswith(("ADAEXPLORE_", "MLFLOW_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def dataset() -> datasets.Dataset:
    """The packaged first dataset."""
    return datasets.load("first")


@pytest.fixture(scope="session")
def worlds(dataset) -> tuple[World, ...]:
    """Its episodes with their domains."""
    return dataset.worlds


@pytest.fixture(scope="session")
def world(worlds) -> World:
    """One of them."""
    return worlds[0]


@pytest.fixture(scope="session")
def settings() -> dict[str, Setting]:
    """The five settings by name."""
    return {name: read_setting(name) for name in SETTINGS}


@pytest.fixture(scope="session")
def protocol() -> Protocol:
    """The protocol's defaults."""
    return Protocol()


@pytest.fixture(scope="session")
def finished_sweep(tmp_path_factory) -> Path:
    """The store of a small sweep `mine` that nothing disturbed; copy it to damage it."""
    import sweep_copies  # the command itself: whoever tests the core alone need not load it

    return sweep_copies.play(tmp_path_factory.mktemp("finished") / "runs")
