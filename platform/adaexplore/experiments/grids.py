"""Grids: a sweep is models x settings x seeds, each combination a cell."""

from dataclasses import dataclass
from typing import Any

from adaexplore.benchmark.game.settings import Setting
from adaexplore.experiments import identity
from adaexplore.experiments.config import SweepConfig
from adaexplore.models.profiles import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One model under one setting with one seed."""

    model: str
    """Name of the model's profile; a label, not part of the identity."""
    profile: Profile
    setting: Setting
    seed: int
    semantic: dict[str, Any]
    cell_id: str

    @property
    def label(self) -> str:
        """How a person refers to the cell within its sweep."""
        return f"{self.model}/{self.setting.name}/{self.seed}"


def expand(config: SweepConfig, dataset_digest: str) -> tuple[Cell, ...]:
    """All cells of a sweep, model outermost, then setting, then seed."""
    return tuple(
        _cell(config, model, profile, setting, seed, dataset_digest)
        for model, profile in config.models.items()
        for setting in config.settings
        for seed in config.seeds
    )


def _cell(
    config: SweepConfig,
    model: str,
    profile: Profile,
    setting: Setting,
    seed: int,
    dataset_digest: str,
) -> Cell:
    semantic = identity.semantic(
        profile, setting, seed, protocol=config.protocol, dataset_digest=dataset_digest
    )
    return Cell(
        model=model,
        profile=profile,
        setting=setting,
        seed=seed,
        semantic=semantic,
        cell_id=identity.cell_id(semantic),
    )


def sweep_name(config: SweepConfig, cells: tuple[Cell, ...]) -> str:
    """The given name, or the grid's name with 8 hex digits of what is played."""
    if config.name is not None:
        return config.name
    played = {
        "cells": sorted(cell.cell_id for cell in cells),
        "split": config.dataset.split,
        "limit": config.dataset.limit,
    }
    return f"{config.grid}-{identity.digest(played)[:8]}"
