"""Builds: from a recipe to the files of a dataset, in processes, resumably, the same bytes always.

A build is made of *parts*, one search for each split, domain and family. A part is a pure function of
its inputs, so it can run anywhere and in any order. What a part found is kept below `.build/` under a
digest of everything it depends on (the search's source included), so a build that was killed goes on;
the manifest is written last, so nothing half-written is ever taken for a dataset.
"""

import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from adaexplore.authoring import datasets, parts
from adaexplore.authoring.datasets import Recipe, Split
from adaexplore.authoring.parts import Document, Found, Part, Source
from adaexplore.benchmark.world import calibration, search
from adaexplore.benchmark.world.fields import FAMILIES
from adaexplore.errors import DatasetError

Progress = Callable[[int, int], None]
"""Told (parts done, parts in all)."""


def quiet(_done: int, _total: int) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """How a build runs; beside `domains`, no choice here changes a byte of what it makes."""

    processes: int = 1
    """Worker processes; 1 searches in this process."""
    work: Path | None = None
    """Folder where finished parts are kept; None keeps nothing."""
    progress: Progress = quiet
    domains: Path | None = None
    """Folder of domain files that come before the packaged ones; None has none."""

    def build(self, recipe: Recipe) -> dict[str, bytes]:
        """The files of a dataset by name, the manifest last.

        Raises:
            DatasetError: A domain file is faulty, or a worker process died.
            SearchError: A search cannot succeed; names the dominating reason.
        """
        sources = parts.read_sources(recipe, self.domains)
        found = self._search(recipe, sources)
        files = {f"{name}.jsonl": _text(split.episodes) for name, split in found.items()}
        digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
        digests |= {f"domains/{name}.yaml": sources[name].sha256 for name in sorted(sources)}
        described = {split.name: _description(split, found[split.name]) for split in recipe.splits}
        return {**files, datasets.MANIFEST: manifest_of(recipe.name, described, digests)}

    def rebuild_part(self, recipe: Recipe, name: str) -> bytes:
        """The file of a split that is a part of another, without searching the rest of that one."""
        part = next(split for split in recipe.splits if split.name == name)
        whole = next(split for split in recipe.splits if split.name == part.part_of)
        sources = parts.read_sources(recipe, self.domains)
        first = parts.of_split(recipe, whole, sources, {}, rounds=part.episodes_each)
        return _text(parts.pooled(self._run(first, 0, len(first))).episodes)

    def _search(self, recipe: Recipe, sources: Mapping[str, Source]) -> dict[str, Found]:
        """What every split holds, by name."""
        found: dict[str, Found] = {}
        groups = len(recipe.domains) * len(FAMILIES)
        total, done = groups * sum(split.part_of is None for split in recipe.splits), 0
        for split in recipe.splits:
            if split.part_of is not None:
                rounds = found[split.part_of].episodes[: groups * split.episodes_each]
                found[split.name] = Found(episodes=rounds, rejections={})
                continue
            other = found[split.apart_from].episodes if split.apart_from else []
            searches = parts.of_split(recipe, split, sources, parts.changes(other))
            found[split.name] = parts.pooled(self._run(searches, done, total))
            done += len(searches)
        return found

    def _run(self, searches: Sequence[Part], done: int, total: int) -> list[Found]:
        """What each part found, in the order of the parts."""
        kept = {number: self._kept(part) for number, part in enumerate(searches)}
        results = {number: found for number, found in kept.items() if found is not None}
        missing = {n: part for n, part in enumerate(searches) if n not in results}
        self.progress(done + len(results), total)
        for number, found in self._found(missing):
            results[number] = found
            self._keep(searches[number], found)
            self.progress(done + len(results), total)
        return [results[number] for number in range(len(searches))]

    def _found(self, searches: Mapping[int, Part]) -> Iterator[tuple[int, Found]]:
        """What parts find, as they come."""
        if self.processes == 1 or len(searches) < 2:
            yield from ((number, parts.searched(part)) for number, part in searches.items())
            return
        pool = ProcessPoolExecutor(
            min(self.processes, len(searches)),
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_follow_parent,
        )
        try:
            tasks = {pool.submit(parts.searched, part): n for n, part in searches.items()}
            for task in as_completed(tasks):
                yield tasks[task], task.result()
        except BrokenProcessPool:
            raise DatasetError(
                "a search process died; run the same command again to go on"
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _kept(self, part: Part) -> Found | None:
        """What an earlier build found, or None if it is missing or damaged."""
        if self.work is None:
            return None
        try:
            document = json.loads((self.work / f"{part.key()}.json").read_bytes())
            body = document["found"]
            return Found(**body) if document["check"] == _check(body) else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _keep(self, part: Part, found: Found) -> None:
        if self.work is not None:
            body = asdict(found)
            document = {"check": _check(body), "found": body}
            write(self.work / f"{part.key()}.json", json.dumps(document).encode())


def _follow_parent() -> None:
    """Let the parent decide on interrupts, and do not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


# -- files -------------------------------------------------------------------------------------


def manifest_of(name: str, splits: Document, sha256: Mapping[str, str], **more: Any) -> bytes:
    """The manifest file of a dataset.

    Args:
        name: Name of the dataset.
        splits: By name: at least `episodes`, the number of them.
        sha256: Digest by file: `<split>.jsonl`, and `domains/<id>.yaml` for each domain.
        more: Further keys, such as the provenance of authored episodes.
    """
    manifest = {
        "schema_version": datasets.SCHEMA_VERSION,
        "name": name,
        "canary": datasets.CANARY,
        "licence": datasets.LICENCE,
        "splits": splits,
        "parameters": asdict(search.Parameters()),
        "calibration": {
            "sample_size": search.Parameters().pool_size,
            "quantile_method": calibration.QUANTILE_METHOD,
        },
        **more,
        "sha256": dict(sha256),
    }
    return (json.dumps(manifest, indent=2) + "\n").encode()


def save(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a dataset's files, the manifest last, so that a torn folder is never a dataset."""
    (folder / datasets.MANIFEST).unlink(missing_ok=True)
    for name in sorted(files, key=lambda name: name == datasets.MANIFEST):
        write(folder / name, files[name])
    shutil.rmtree(folder / datasets.WORK, ignore_errors=True)


def write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    with unfinished.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def _description(split: Split, found: Found) -> Document:
    given = {key: value for key, value in asdict(split).items() if value is not None}
    del given["name"]
    return {"episodes": len(found.episodes), **given, "rejections": found.rejections}


def _text(documents: Iterable[Document]) -> bytes:
    return "".join(line(document) for document in documents).encode()


def line(document: Document) -> str:
    """An episode document as a line of a split's file."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n"


def _check(body: Document) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
