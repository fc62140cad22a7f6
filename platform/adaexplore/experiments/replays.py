"""Replays: stored episodes computed again from their journals, many at once, without any model.

An episode is a function of its replies, so a journal either gives the record that is stored beside it,
byte for byte, or one of the two was changed. A replay is pure computing: with many episodes it is done
by worker processes, one a core, while this process reads the store.
"""

import multiprocessing
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final

from adaexplore.benchmark.game.play import play
from adaexplore.benchmark.game.protocol import Protocol
from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.game.settings import Setting
from adaexplore.benchmark.world.episodes import World
from adaexplore.errors import AdaExploreError, StoreError
from adaexplore.experiments import attempts, journals, reading
from adaexplore.experiments.attempts import Found
from adaexplore.experiments.journals import Journal
from adaexplore.experiments.stores import Store
from adaexplore.models.scripted import follow_parent

CHUNK: Final = 8
"""Attempts that a worker gets at once."""
FEW: Final = 64
"""Up to so many attempts, starting worker processes costs more than it saves."""


class ReplayError(AdaExploreError):
    """A journal that does not lead through its episode; one line that says where it stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What replies meet: all that a replay needs beside them."""

    worlds: Mapping[str, World]
    """By episode id."""
    cells: Mapping[str, tuple[Setting, Protocol]]
    """By cell id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One attempt's bytes."""

    prefix: str
    """`cells/<cell>/<episode>/<attempt>/`."""
    journal: bytes | None
    result: bytes | None
    """None where the attempt has no result."""

    @property
    def cell_id(self) -> str:
        """Whose attempt the key says it is."""
        return self.prefix.split("/")[1]

    @property
    def episode_id(self) -> str:
        """Which episode the key says it is of."""
        return self.prefix.split("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a replay found."""

    prefix: str
    record: EpisodeRecord | None
    """Computed again from the journal; None where that was not possible or no result is stored."""
    faults: tuple[tuple[str, str], ...]
    """(file of the attempt, what is wrong with it); none if journal and result say the same."""


def replay(journal: Journal, world: World, setting: Setting, protocol: Protocol) -> EpisodeRecord:
    """The record that a journal's replies lead to.

    Raises:
        ReplayError: They end before the episode does, or go on after it.
    """
    playing = play(world, setting, protocol)
    next(playing)
    replies = journal.replies
    for number, reply in enumerate(replies, start=1):
        try:
            playing.send(reply)
        except StopIteration as stop:
            if number < len(replies):
                raise ReplayError(
                    f"the episode ends at reply {number}, got {len(replies)} replies"
                ) from None
            record: EpisodeRecord = stop.value
            return record
    raise ReplayError(f"expected replies to the episode's end, got only {len(replies)}")


def check(kept: Kept, rules: Rules) -> Replayed:
    """Replay one attempt and compare it with its result; an attempt without one is only read."""
    faults: list[tuple[str, str]] = []
    journal = _journal(kept, rules, faults)
    record, fault = None, None
    if journal is not None and kept.result is not None:
        setting, protocol = rules.cells[kept.cell_id]
        try:
            record = replay(journal, rules.worlds[kept.episode_id], setting, protocol)
        except (ReplayError, KeyError, TypeError, ValueError) as error:
            fault = ("journal.jsonl", f"cannot be replayed: {_told(error)}")
    if kept.result is not None and (record is None or not _is_written(kept, record)):
        found = _result(kept, faults)
        if fault is not None:
            faults.append(fault)
        elif found is not None and record is not None:
            faults += _differences(kept, found, record)
    return Replayed(prefix=kept.prefix, record=record, faults=tuple(faults))


def _is_written(kept: Kept, record: EpisodeRecord) -> bool:
    """Whether a result is the bytes that an attempt writes of this record: nothing need be read of it."""
    number = Found(prefix=kept.prefix, files=frozenset()).number
    document = {
        "result": attempts.RESULT_VERSION,
        "cell_id": kept.cell_id,
        "episode_id": kept.episode_id,
        "attempt": number,
        "record": record,
    }
    return journals.line(document) == kept.result


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, ReplayError) else repr(error)[:200]


def _journal(kept: Kept, rules: Rules, faults: list[tuple[str, str]]) -> Journal | None:
    """The attempt's journal; what is wrong with it is added to `faults`."""
    file = "journal.jsonl"
    if kept.journal is None:
        faults.append((file, "missing: nothing of this attempt can be checked"))
        return None
    try:
        journal = journals.read(kept.journal, file)
    except StoreError as error:
        faults.append((file, str(error).removeprefix(file).strip(": ")))
        return None
    torn = journal is None or journal.torn
    # A crash leaves half a line at the end, never a whole one that does not check.
    if torn and (kept.result is not None or kept.journal.endswith(b"\n")):
        faults.append((file, "its last line is damaged or cut off (the check does not match)"))
    if journal is None:
        return None
    world = rules.worlds.get(kept.episode_id)
    digest = journal.header.get("hidden_digest") if world is None else world.digest
    owner = journals.header(kept.cell_id, kept.episode_id, str(digest))
    owner["writer"] = kept.prefix.rstrip("/").rpartition("-")[2]
    wrong = [name for name, value in owner.items() if journal.header.get(name) != value]
    if wrong:
        faults.append((file, f"is of something else ({', '.join(wrong)} differ)"))
        return None
    return journal


def _result(kept: Kept, faults: list[tuple[str, str]]) -> dict[str, Any] | None:
    """The attempt's result document; what is wrong with it is added to `faults`."""
    file = "result.json"
    found = journals.document((kept.result or b"").removesuffix(b"\n"))
    if found is None:
        faults.append((file, "damaged (its check does not match)"))
        return None
    owner = {"result": attempts.RESULT_VERSION, "cell_id": kept.cell_id}
    wrong = [name for name, value in owner.items() if found.get(name) != value]
    if wrong:
        faults.append((file, f"is of something else ({', '.join(wrong)} differ)"))
        return None
    return found


def _differences(
    kept: Kept, found: dict[str, Any], record: EpisodeRecord
) -> Iterator[tuple[str, str]]:
    """The fault of a result that is not what its journal gives, if it is not."""
    if journals.line({**found, "record": record}) != kept.result:
        yield "result.json", _difference(found.get("record"), record)


def _difference(stored: Any, record: EpisodeRecord) -> str:
    """What is stored and what the journal gives, at the first field in which they differ."""
    again = journals.document(journals.line({"record": record}).rstrip(b"\n")) or {}
    path = first_difference(stored, again["record"], "record")
    if path is None:
        return "is not the bytes that this record is written as"
    if path[0].startswith("record.observation_digest"):
        return "the observation digest differs: the replies met another environment"
    return f"{path[0]}: stored {path[1]}, the journal gives {path[2]}"


def first_difference(one: Any, other: Any, path: str) -> tuple[str, str, str] | None:
    """(path, one's value, the other's) where two plain documents first differ, shortened."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [*other, *(key for key in one if key not in other)]
        pairs = [(f"{path}.{key}", one.get(key), other.get(key)) for key in keys]
    elif isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return path, f"{len(one)} items", f"{len(other)} items"
        pairs = [(f"{path}[{i}]", *pair) for i, pair in enumerate(zip(one, other, strict=True))]
    else:
        same = type(one) is type(other) and one == other
        return None if same else (path, repr(one)[:60], repr(other)[:60])
    return next(filter(None, (first_difference(a, b, where) for where, a, b in pairs)), None)


# -- many of them ------------------------------------------------------------------------------


def read(store: Store, found: Sequence[Found]) -> Iterator[Kept]:
    """The bytes of attempts, in their order, read a few ahead by several threads."""
    return reading.ahead(partial(_read, store), found)


def _read(store: Store, attempt: Found) -> Kept:
    has_result = attempts.RESULT in attempt.files
    return Kept(
        prefix=attempt.prefix,
        journal=store.get(f"{attempt.prefix}journal.jsonl"),
        result=store.get(f"{attempt.prefix}{attempts.RESULT}") if has_result else None,
    )


def check_all(kept: Iterable[Kept], rules: Rules, *, processes: int) -> Iterator[Replayed]:
    """Check attempts, in their order; with fewer than two processes in this one.

    Raises:
        concurrent.futures.process.BrokenProcessPool: A worker process was killed.
    """
    if processes < 2:
        yield from (check(attempt, rules) for attempt in kept)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        processes, mp_context=context, initializer=_begin, initargs=(rules,)
    ) as pool:
        yield from _spread(pool, iter(kept), ahead=3 * processes)


def _spread(pool: ProcessPoolExecutor, kept: Iterator[Kept], ahead: int) -> Iterator[Replayed]:
    """Keep so many chunks under way, and no more in memory."""
    waiting: deque[Future[list[Replayed]]] = deque()
    for chunk in _chunks(kept):
        waiting.append(pool.submit(_check_chunk, chunk))
        if len(waiting) >= ahead:
            yield from waiting.popleft().result()
    while waiting:
        yield from waiting.popleft().result()


def _chunks(kept: Iterator[Kept]) -> Iterator[list[Kept]]:
    while chunk := list(islice(kept, CHUNK)):
        yield chunk


_rules: Rules | None = None
"""In a worker process: what `_begin` was given."""


def _begin(rules: Rules) -> None:
    global _rules  # noqa: PLW0603 (a worker process belongs to one audit)
    follow_parent()
    _rules = rules


def _check_chunk(chunk: list[Kept]) -> list[Replayed]:
    if _rules is None:
        raise RuntimeError("expected a worker that was begun with its rules")
    return [check(attempt, _rules) for attempt in chunk]
