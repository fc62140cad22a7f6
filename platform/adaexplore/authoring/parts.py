"""Parts: the searches that a dataset is made of, one for each split, domain and family.

A part holds everything that its search depends on, so it can be searched in any process and in any
order, and its key says whether an earlier result is still its own. A split that must stay apart from
another is searched after it, with the other's changes taken.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from adaexplore.authoring import datasets, domain_files
from adaexplore.authoring.datasets import Recipe, Split
from adaexplore.benchmark.world import episodes, search, seeds
from adaexplore.benchmark.world.domains import Domain
from adaexplore.benchmark.world.fields import FAMILIES, Family

Document = dict[str, Any]
WORLD: Final = Path(search.__file__).parent
"""Source of everything that decides what a search finds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A domain with the digest of its file."""

    domain: Domain
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One search: a domain and a family of a split."""

    source: Source
    family: Family
    seed: int
    ids: tuple[str, ...]
    among: int
    """Episodes that the whole search is for; `ids` may be only its first ones."""
    taken: frozenset[search.Change]

    def key(self) -> str:
        """Digest of everything that the part's result depends on."""
        inputs = {
            "source": _source_digest(), "domain": self.source.sha256, "family": self.family,
            "seed": self.seed, "ids": self.ids, "among": self.among,
            "taken": sorted([event, *sorted(fields)] for event, fields in self.taken),
            "parameters": asdict(search.Parameters()),
        }  # fmt: skip
        return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search found: episode documents, and rejections by reason."""

    episodes: list[Document]
    rejections: dict[str, int]


def searched(part: Part) -> Found:
    """What a part's search finds; SearchError if it cannot succeed. Runs in any process."""
    searcher = search.Searcher(
        domain=part.source.domain, family=part.family, seed=part.seed, parameters=search.Parameters(),
        taken=part.taken,
    )  # fmt: skip
    result = searcher.search(part.ids, among=part.among)
    documents = [episodes.to_document(world) for world in result.worlds]
    return Found(episodes=documents, rejections=result.rejections)


def read_sources(recipe: Recipe, own: Path | None = None) -> dict[str, Source]:
    """Domains of a recipe by id, read and checked, with those in the folder `own` before packaged ones.

    Raises:
        DatasetError: A domain is unknown, or its file is faulty.
    """
    paths = {
        domain_id: own / f"{domain_id}.yaml"
        if own is not None and (own / f"{domain_id}.yaml").is_file()
        else domain_files.path_of(domain_id)
        for domain_id in recipe.domains
    }
    return {
        domain_id: Source(domain=domain_files.read(path), sha256=datasets.file_digest(path))
        for domain_id, path in paths.items()
    }


def of_split(
    recipe: Recipe,
    split: Split,
    sources: Mapping[str, Source],
    taken: Mapping[str, frozenset[search.Change]],
    *,
    rounds: int | None = None,
) -> list[Part]:
    """The searches of a split, or of its first rounds."""
    return [
        Part(
            source=sources[domain_id], family=family,
            seed=split.seed or 0, ids=ids[:rounds], among=split.episodes_each,
            taken=taken.get(domain_id, frozenset()),
        )
        for (domain_id, family), ids in _ids(recipe, split).items()
    ]  # fmt: skip


def _ids(recipe: Recipe, split: Split) -> dict[tuple[str, Family], tuple[str, ...]]:
    """Ids by domain and family, in rounds of one episode for each.

    The order inside a round is shuffled and ids are positions, so an id tells nothing of its
    episode's family; and the first n episodes of a dataset are about as balanced as the whole.
    """
    groups = [(domain_id, family) for domain_id in recipe.domains for family in FAMILIES]
    earlier = recipe.splits[: recipe.splits.index(split)]
    start = len(groups) * sum(s.episodes_each for s in earlier if s.part_of is None)
    ids: dict[tuple[str, Family], list[str]] = {group: [] for group in groups}
    for number in range(split.episodes_each):
        order = seeds.generator("dataset order", split.seed or 0, number).permutation(len(groups))
        for position, index in enumerate(order):
            serial = start + number * len(groups) + position + 1
            ids[groups[index]].append(f"{recipe.id_prefix}-{serial:03d}")
    return {group: tuple(found) for group, found in ids.items()}


def changes(documents: Iterable[Document]) -> dict[str, frozenset[search.Change]]:
    """Changes that episodes turn on, by domain."""
    found: dict[str, set[search.Change]] = {}
    for document in documents:
        relevant = frozenset(slot["field_id"] for slot in document["pre"]["slots"])
        change = (document["transition"]["event_id"], relevant)
        found.setdefault(document["domain_id"], set()).add(change)
    return {domain_id: frozenset(changes) for domain_id, changes in found.items()}


def pooled(parts: Iterable[Found]) -> Found:
    """All episodes in the order of their ids, and all rejections."""
    documents: list[Document] = []
    rejections: Counter[str] = Counter()
    for part in parts:
        documents += part.episodes
        rejections.update(part.rejections)
    documents.sort(key=lambda document: str(document["episode_id"]))
    return Found(episodes=documents, rejections=dict(sorted(rejections.items())))


def _source_digest() -> str:
    """Digest of the search's source: another search never takes over what this one found."""
    parts = [path.read_bytes() for path in sorted(WORLD.glob("*.py"))]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()
