"""The frozen document: everything that decides a sweep, in one file that people can read.

Who wants to run a sweep again, on another machine or next year, needs more than its configuration:
the same episodes, prompts, rules of play, code and packages. The document holds the resolved
configuration (keys by the names of their variables, never their values), every cell with what its id
is made of, and a digest of each thing that the results rest on. `drifts` compares it with what is here.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import yaml

from adaexplore.errors import ConfigError
from adaexplore.experiments import config, identity
from adaexplore.experiments.config import SweepConfig
from adaexplore.experiments.grids import Cell
from adaexplore.models import contents
from adaexplore.models.profiles import Profile, VllmProfile

FROZEN_VERSION: Final = 1
NAMES: Final = (
    "dataset", "prompts", "protocol", "identity", "code", "lock", "python", "packages", "image",
    "models", "cells",
)  # fmt: skip
"""What can drift, by the names that a rerun uses; all but the cells are digests of the document."""
_HEAD: Final = """\
# A frozen sweep. Play it again with 'adaexplore rerun FILE': that refuses if anything below differs
# from what is installed, and names it. Secrets are not in here: a key is the name of its variable.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """A frozen document, read and checked."""

    sweep: str
    config: SweepConfig
    cells: Mapping[str, dict[str, Any]]
    """`cell_id` and `semantic` by label."""
    digests: Mapping[str, Any]
    """What the sweep rests on, by name: every one of `NAMES` but `cells`."""


def digests(
    origin: Mapping[str, Any], dataset_digest: str, models: Mapping[str, Any]
) -> dict[str, Any]:
    """The digests of a document.

    Args:
        origin: What `provenance.collect` says of the code that runs.
        dataset_digest: Of the dataset that the configuration names.
        models: What is known of the contents of served models, by profile name.
    """
    return {
        "dataset": dataset_digest,
        "prompts": origin["prompts_sha256"],
        "protocol": origin["protocol_version"],
        "identity": origin["identity_version"],
        "code": {
            "commit": origin["commit"],
            "dirty": origin["dirty"],
            "source": origin["source_sha256"],
            "version": origin["adaexplore"],
        },
        "lock": origin["lock_sha256"],
        "python": origin["python"],
        "packages": {name: origin[name] for name in ("numpy", "scipy")},
        "image": origin["image"],
        "models": dict(models),
    }


def document(
    sweep: str, resolved: SweepConfig, cells: Iterable[Cell], digests: Mapping[str, Any]
) -> bytes:
    """The frozen document of a sweep as YAML with a comment at its head."""
    plain = {
        "frozen": FROZEN_VERSION,
        "sweep": sweep,
        "digests": dict(digests),
        "config": resolved.document(),
        "cells": listed(cells),
    }
    plain = json.loads(
        json.dumps(plain)
    )  # lists for tuples, and nothing shared that YAML would alias
    body = yaml.safe_dump(plain, sort_keys=False, width=100, allow_unicode=True)
    return (_HEAD + body).encode()


def listed(cells: Iterable[Cell]) -> dict[str, Any]:
    """`cell_id` and `semantic` of cells by label."""
    return {cell.label: {"cell_id": cell.cell_id, "semantic": cell.semantic} for cell in cells}


# -- reading -----------------------------------------------------------------------------------


def read(data: bytes, where: str) -> Frozen:
    """The frozen document in these bytes.

    Raises:
        ConfigError: It is none, of another version, holds a configuration that this code does not
            know, or was edited so that a cell's content no longer gives its id.
    """
    try:
        plain = yaml.safe_load(data)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        text = " ".join(str(error).split())[:200]
        raise ConfigError(f"{where}: expected a frozen sweep (YAML), got {text}") from None
    version = plain.get("frozen") if isinstance(plain, dict) else None
    if version != FROZEN_VERSION:
        raise ConfigError(
            f"{where}: expected a frozen sweep of format {FROZEN_VERSION}, got {version!r}; "
            "make one with 'adaexplore freeze'"
        )
    _require_shape(plain, where)
    try:
        resolved = config.from_document(plain["config"])
    except (ConfigError, TypeError, KeyError) as error:
        raise ConfigError(f"{where}: {error}") from None
    return Frozen(
        sweep=plain["sweep"], config=resolved, cells=plain["cells"], digests=plain["digests"]
    )


def _require_shape(plain: dict[str, Any], where: str) -> None:
    wrong = [
        key
        for key, kind in (("sweep", str), ("config", dict), ("cells", dict), ("digests", dict))
        if not isinstance(plain.get(key), kind)
    ]
    if not wrong:
        wrong = [f"digests.{name}" for name in NAMES[:-1] if name not in plain["digests"]]
    wrong += [] if wrong else _wrong_cells(plain["cells"])
    if not wrong:
        wrong = [f"digests.{name}" for name in ("code", "models") if not _plain(plain, name)]
    if wrong:
        raise ConfigError(
            f"{where}: damaged or edited ({', '.join(wrong[:4])}): restore it, or freeze again"
        )


def _plain(plain: dict[str, Any], name: str) -> bool:
    """Whether the digest of a name is a mapping, of mappings where it tells of models."""
    found = plain["digests"][name]
    inner = found.values() if name == "models" and isinstance(found, dict) else ()
    return isinstance(found, dict) and all(isinstance(value, dict) for value in inner)


def _wrong_cells(cells: dict[Any, Any]) -> list[str]:
    """Paths of the cells whose content does not give their id."""
    found = []
    for label, cell in cells.items():
        semantic = cell.get("semantic") if isinstance(cell, dict) else None
        if not isinstance(semantic, dict) or identity.cell_id(semantic) != cell.get("cell_id"):
            found.append(f"cells.{label}")
    return found


def renewed(resolved: SweepConfig) -> SweepConfig:
    """The configuration with the contents of models that lie on this machine digested again."""
    models = {name: _renewed(name, profile) for name, profile in resolved.models.items()}
    return replace(resolved, models=models)


def _renewed(name: str, profile: Profile) -> Profile:
    """The profile with what is here; what is not here keeps the digest that it was frozen with."""
    if not isinstance(profile, VllmProfile):
        return profile
    weights = profile.weights
    if Path(profile.model or "").is_dir() and not contents.named(profile.revision):
        profile = replace(profile, revision=None)
    if Path(weights.chat_template or "").is_file():
        profile = replace(profile, weights=replace(weights, chat_template_digest=None))
    return contents.identified(name, profile)
