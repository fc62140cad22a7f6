"""Datasets: episodes searched from domains, stored so that anyone can read and nobody can edit them.

A dataset is a folder: `recipe.yaml` (what to search), one JSON Lines file a split (`test.jsonl`, one
episode a line) and `manifest.json` (counts, rejections, parameters, and a digest of every file that
the episodes depend on). `builds.build` makes all but the recipe from it, byte for byte the same each
time; `load` refuses a folder whose files are not what its manifest says.

Decision: a split is a selection and not a part of the dataset's identity. The digest covers every
file, so an episode played as part of `lite` is the same episode, played once, in a sweep over `test`.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import yaml
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from adaexplore.authoring import domain_files
from adaexplore.benchmark.world import episodes
from adaexplore.benchmark.world.domains import Domain
from adaexplore.benchmark.world.episodes import World
from adaexplore.errors import DatasetError

PACKAGED: Final = Path(__file__).parent.parent / "data" / "datasets"
SCHEMA_VERSION: Final = 2
CANARY: Final = "adaexplore canary 5c1f0c5e-6f0b-4a39-9d5c-2b7f61d0a8e4"
"""Stands in every manifest and dataset card, so that a corpus that took a dataset in can be told."""
LICENCE: Final = "CC-BY-4.0"
MANIFEST: Final = "manifest.json"
WORK: Final = ".build"
"""Folder, inside a dataset's, of what a build that is under way has found."""
_NAME: Final = r"^[a-z0-9][a-z0-9_-]{0,63}$"
_FILE: Final = re.compile(r"[a-z0-9][a-z0-9_-]*\.jsonl|domains/[a-z][a-z0-9_]*\.yaml")
_STRICT: Final = ConfigDict(extra="forbid")


@checked_dataclass(frozen=True, kw_only=True, config=_STRICT)
class Split:
    """Episodes of a dataset under one name: searched, or the first rounds of another split."""

    name: Annotated[str, Field(pattern=_NAME)]
    episodes_each: Annotated[int, Field(ge=1)]
    """Episodes for each domain and family."""
    seed: int | None = None
    """Seed of the search; None for a part of another split."""
    part_of: str | None = None
    """Split whose first rounds these are; None when the split is searched."""
    apart_from: str | None = None
    """Earlier split that this one shares no change with; None when there is none."""


@checked_dataclass(frozen=True, kw_only=True, config=_STRICT)
class Recipe:
    """What to search: every combination of domain and family gets the same number of episodes."""

    name: Annotated[str, Field(pattern=_NAME)]
    id_prefix: Annotated[str, Field(pattern=_NAME)]
    """Episode ids are this and a number, which says nothing of family, domain or change."""
    domains: Annotated[list[str], Field(min_length=1)]
    splits: Annotated[list[Split], Field(min_length=1)]

    def __post_init__(self) -> None:
        """Refuse splits that cannot be made (ValueError)."""
        searched: dict[str, Split] = {}
        names = [split.name for split in self.splits]
        if len(set(names)) < len(names) or len(set(self.domains)) < len(self.domains):
            raise ValueError("expected every split and every domain once")
        for split in self.splits:
            if (split.seed is None) != (split.part_of is not None):
                raise ValueError(f"split {split.name}: expected either a seed or part_of")
            for other in (split.part_of, split.apart_from):
                if other is not None and other not in searched:
                    raise ValueError(
                        f"split {split.name}: expected an earlier searched split, got {other}"
                    )
            if split.part_of and split.episodes_each > searched[split.part_of].episodes_each:
                raise ValueError(f"split {split.name}: {split.part_of} has fewer episodes")
            if split.part_of is None:
                searched[split.name] = split


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Episodes of one split with their domains, in dataset order."""

    name: str
    split: str
    digest: str
    """Digest of all splits and of every domain file: the dataset's part of a cell's identity."""
    worlds: tuple[World, ...]
    manifest: dict[str, Any]


def read_recipe(path: Path) -> Recipe:
    """The recipe of a file; DatasetError if it is not one."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        return TypeAdapter(Recipe).validate_python(document)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValidationError) as error:
        raise DatasetError(
            f"{path}: not a dataset recipe: {' '.join(str(error).split())}"
        ) from None


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hex; OSError if it cannot be read."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


# -- loading -----------------------------------------------------------------------------------


def names() -> list[str]:
    """Names of the packaged datasets, sorted."""
    return sorted(path.parent.name for path in PACKAGED.glob(f"*/{MANIFEST}"))


def folder_of(name_or_path: str) -> Path:
    """Folder of a packaged dataset, or the folder itself if the argument holds a slash.

    Raises:
        DatasetError: No packaged dataset has this name; names the known ones.
    """
    if "/" in name_or_path:
        return Path(name_or_path)
    if name_or_path not in names():
        known = ", ".join(names())
        raise DatasetError(
            f"unknown dataset '{name_or_path}': expected one of {known}, or the path of a folder "
            "(with a slash)"
        )
    return PACKAGED / name_or_path


def load(name_or_path: str, split: str = "test") -> Dataset:
    """One split of a packaged dataset, or of a dataset folder if the argument holds a slash.

    Raises:
        DatasetError: No such dataset or split, or any file of the dataset, also of another split,
            is not what the manifest says (named).
    """
    folder = folder_of(name_or_path)
    manifest = read_manifest(folder)
    described = manifest["splits"].get(split)
    if described is None:
        known = ", ".join(manifest["splits"])
        raise DatasetError(
            f"dataset '{manifest['name']}' has no split '{split}': expected one of {known}"
        )
    for path, expected in located(folder, manifest).items():
        require_digest(path, expected)
    worlds = read_split(folder, split, read_domains(folder, manifest))
    if len(worlds) != described["episodes"]:
        raise DatasetError(
            f"{folder / MANIFEST}: expected {described['episodes']} episodes in split {split}, "
            f"got {len(worlds)}"
        )
    return Dataset(
        name=manifest["name"], split=split, digest=digest(manifest), worlds=worlds,
        manifest=manifest,
    )  # fmt: skip


def digest(manifest: dict[str, Any]) -> str:
    """Digest of everything a dataset's episodes depend on, in hex."""
    return hashlib.sha256(json.dumps(manifest["sha256"], sort_keys=True).encode()).hexdigest()


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a dataset folder; DatasetError if there is none of this schema."""
    path = folder / MANIFEST
    if not path.exists() and (folder / WORK).is_dir():
        raise DatasetError(
            f"{folder}: the build of this dataset was interrupted; run the same "
            "'adaexplore dataset build' again to finish it"
        )
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        version = manifest["schema_version"]
        if version != SCHEMA_VERSION:  # first: another schema may have other keys
            raise DatasetError(f"{path}: expected schema_version {SCHEMA_VERSION}, got {version!r}")
        splits = {str(name): dict(found) for name, found in manifest["splits"].items()}
        sha256 = {str(name): str(found) for name, found in manifest["sha256"].items()}
        _require_files(splits, sha256)
        return {**manifest, "name": str(manifest["name"]), "splits": splits, "sha256": sha256}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DatasetError(f"{path}: not a dataset manifest: {error}") from None


def _require_files(splits: dict[str, dict[str, Any]], sha256: dict[str, str]) -> None:
    """Every split's file is vouched for, and every name stays inside the folder."""
    missing = [f"{name}.jsonl" for name in splits if f"{name}.jsonl" not in sha256]
    strange = [name for name in sha256 if not _FILE.fullmatch(name)]
    if missing or strange or not splits:
        wrong = ", ".join([*missing, *strange]) or "no splits"
        raise ValueError(f"expected a digest for the file of every split, wrong: {wrong}")
    for name, found in splits.items():
        if not isinstance(found["episodes"], int):
            raise TypeError(f"expected a number of episodes in split {name}")


def located(folder: Path, manifest: dict[str, Any]) -> dict[Path, str]:
    """Expected digest by path of every file: the folder's own, else the packaged domains."""
    return {_path(folder, file): expected for file, expected in manifest["sha256"].items()}


def _path(folder: Path, file: str) -> Path:
    own = folder / file
    return own if own.is_file() or own.suffix != ".yaml" else domain_files.path_of(own.stem)


def require_digest(path: Path, expected: str) -> None:
    """Refuse a file that is missing or not what its manifest says (DatasetError)."""
    try:
        actual = file_digest(path)
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror}") from None
    if actual != expected:
        raise DatasetError(
            f"{path}: expected sha256 {expected[:12]}..., got {actual[:12]}...: the file was edited "
            "or cut short; restore it, or build a dataset of your own with 'adaexplore dataset build'"
        )


def read_domains(folder: Path, manifest: dict[str, Any]) -> dict[str, Domain]:
    """Domains of a dataset by id; DatasetError that lists the faults of the first faulty one."""
    paths = [path for path in located(folder, manifest) if path.suffix == ".yaml"]
    return {path.stem: domain_files.read(path) for path in paths}


def read_split(folder: Path, split: str, domains: dict[str, Domain]) -> tuple[World, ...]:
    """Episodes of a split's file, in order; DatasetError naming the first line that is none."""
    return tuple(world for _, world in lines(folder / f"{split}.jsonl", domains))


def lines(path: Path, domains: dict[str, Domain]) -> Iterator[tuple[dict[str, Any], World]]:
    """(document, world) of every line; DatasetError naming a line that is not an episode."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            document = json.loads(line)
            domain = domains[document["domain_id"]]
            episode = episodes.from_document(document, domain)
            yield document, World(domain=domain, episode=episode)
        except (ValueError, KeyError, TypeError) as error:
            raise DatasetError(f"{path} line {number}: not an episode: {error!r}") from None
