"""Datasets: episodes searched from domains, stored so that anyone can read and nobody can edit them.

A dataset is a folder: `recipe.yaml` (what to search), `episodes.jsonl` (one episode a line) and
`manifest.json` (counts, rejections, parameters, and a digest of every file the episodes depend on).
`build` makes the last two from the first, byte for byte the same each time; `load` refuses a folder
whose files are not what its manifest says.
"""

import hashlib
import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from adaexplore.authoring import domain_files
from adaexplore.benchmark.world import calibration, episodes, search, seeds
from adaexplore.benchmark.world.domains import Domain
from adaexplore.benchmark.world.episodes import World
from adaexplore.benchmark.world.fields import FAMILIES
from adaexplore.errors import DatasetError

PACKAGED: Final = Path(__file__).parent.parent / "data" / "datasets"
SCHEMA_VERSION: Final = 1


@checked_dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Recipe:
    """What to search: every combination of domain and family gets the same number of episodes."""

    name: str
    seed: int
    domains: list[str]
    episodes_each: int
    """Episodes for each domain and family."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Episodes with their domains, in dataset order."""

    name: str
    digest: str
    """Digest of the episodes and of every domain file: the dataset's part of a cell's identity."""
    worlds: tuple[World, ...]
    manifest: dict[str, Any]


# -- building ----------------------------------------------------------------------------------


def read_recipe(path: Path) -> Recipe:
    """The recipe of a file; DatasetError if it is not one."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        return TypeAdapter(Recipe).validate_python(document)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValidationError) as error:
        raise DatasetError(
            f"{path}: not a dataset recipe: {' '.join(str(error).split())}"
        ) from None


def build(recipe: Recipe) -> dict[str, bytes]:
    """The files of a dataset by name, the same bytes for the same recipe and domain files.

    Raises:
        DatasetError: A domain file is faulty.
        SearchError: A search cannot succeed; names the dominating reason.
    """
    paths = {domain_id: domain_files.path_of(domain_id) for domain_id in recipe.domains}
    domains = {domain_id: domain_files.read(path) for domain_id, path in paths.items()}
    worlds, rejections = _search(recipe, domains)
    lines = [_line(episodes.to_document(world)) for world in worlds]
    text = "".join(lines).encode()
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "name": recipe.name,
        "seed": recipe.seed,
        "episodes": len(worlds),
        "episodes_each": recipe.episodes_each,
        "parameters": asdict(search.Parameters()),
        "calibration": {
            "sample_size": search.Parameters().pool_size,
            "quantile_method": calibration.QUANTILE_METHOD,
        },
        "rejections": rejections,
        "sha256": {
            "episodes.jsonl": hashlib.sha256(text).hexdigest(),
            **{f"domains/{name}.yaml": _file_digest(path) for name, path in sorted(paths.items())},
        },
    }
    return {
        "episodes.jsonl": text,
        "manifest.json": (json.dumps(manifest, indent=2) + "\n").encode(),
    }


def _search(recipe: Recipe, domains: dict[str, Domain]) -> tuple[list[World], dict[str, int]]:
    """Episodes in dataset order: rounds of one episode for each domain and family.

    The order inside a round is shuffled and ids are positions, so an id tells nothing of its
    episode's family; and the first n episodes of a dataset are about as balanced as the whole.
    """
    groups = [(domain_id, family) for domain_id in recipe.domains for family in FAMILIES]
    ids: dict[tuple[str, str], list[str]] = {group: [] for group in groups}
    for number in range(recipe.episodes_each):
        order = seeds.generator("dataset order", recipe.seed, number).permutation(len(groups))
        for position, index in enumerate(order):
            serial = number * len(groups) + position + 1
            ids[groups[index]].append(f"{recipe.name}-{serial:03d}")
    rejections: Counter[str] = Counter()
    worlds: list[World] = []
    for domain_id, family in groups:
        searcher = search.Searcher(
            domain=domains[domain_id],
            family=family,
            seed=recipe.seed,
            parameters=search.Parameters(),
        )
        result = searcher.search(tuple(ids[domain_id, family]))
        worlds.extend(result.worlds)
        rejections.update(result.rejections)
    return sorted(worlds, key=lambda w: w.episode.episode_id), dict(sorted(rejections.items()))


def _line(document: dict[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n"


def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# -- loading -----------------------------------------------------------------------------------


def folder_of(name: str) -> Path:
    """Folder of a packaged dataset; DatasetError naming the known ones if there is none."""
    folder = PACKAGED / name
    if not (folder / "manifest.json").is_file():
        known = ", ".join(sorted(path.parent.name for path in PACKAGED.glob("*/manifest.json")))
        raise DatasetError(
            f"unknown dataset '{name}': expected one of {known}, or the path of a folder"
        )
    return folder


def load(name_or_path: str) -> Dataset:
    """The dataset of a packaged name, or of a folder if the argument holds a slash.

    Raises:
        DatasetError: No such dataset, or a file is not what the manifest says (named).
    """
    folder = Path(name_or_path) if "/" in name_or_path else folder_of(name_or_path)
    manifest = _manifest(folder)
    domains: dict[str, Domain] = {}
    for file, expected in manifest["sha256"].items():
        path = folder / file if file == "episodes.jsonl" else domain_files.path_of(Path(file).stem)
        _require_digest(path, expected)
        if path.suffix == ".yaml":
            domains[path.stem] = domain_files.read(path)
    digest = hashlib.sha256(json.dumps(manifest["sha256"], sort_keys=True).encode()).hexdigest()
    worlds = _worlds(folder / "episodes.jsonl", domains)
    return Dataset(name=manifest["name"], digest=digest, worlds=worlds, manifest=manifest)


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / "manifest.json"
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        version = manifest["schema_version"]
        if version != SCHEMA_VERSION:  # first: another schema may have other keys
            raise DatasetError(f"{path}: expected schema_version {SCHEMA_VERSION}, got {version!r}")
        episodes_digest = manifest["sha256"]["episodes.jsonl"]  # never taken unchecked
        digests = {"episodes.jsonl": episodes_digest, **manifest["sha256"]}
        return {**manifest, "name": str(manifest["name"]), "sha256": digests}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DatasetError(f"{path}: not a dataset manifest: {error}") from None


def _require_digest(path: Path, expected: str) -> None:
    try:
        actual = _file_digest(path)
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror}") from None
    if actual != expected:
        raise DatasetError(
            f"{path}: expected sha256 {expected[:12]}..., got {actual[:12]}...: the file was edited; "
            "restore it, or build a dataset of your own with 'adaexplore dataset build'"
        )


def _worlds(path: Path, domains: dict[str, Domain]) -> tuple[World, ...]:
    worlds = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            document = json.loads(line)
            domain = domains[document["domain_id"]]
            worlds.append(World(domain=domain, episode=episodes.from_document(document, domain)))
        except (ValueError, KeyError, TypeError) as error:
            raise DatasetError(f"{path} line {number}: not an episode: {error!r}") from None
    return tuple(worlds)
