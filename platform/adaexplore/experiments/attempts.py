"""Attempts: how one episode of one cell is played, interrupted, resumed and finished.

Keys are `cells/<cell>/<episode>/attempt-<n>-<writer>/`, with `journal.jsonl` growing as the episode
plays and `result.json` written once, last. The writer's name makes an attempt's keys its own,
whatever the store can or cannot refuse. A new attempt first copies the longest valid journal of the
earlier ones and goes on from it, so no call is made twice; readers take the lowest attempt with a
result. An open attempt of a writer that lives says that the episode is being played: the others leave
it alone, which saves money and is never needed for a right result.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from typing import Any, Final

from adaexplore.benchmark.game import records
from adaexplore.benchmark.game.protocol import Reply
from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.errors import StoreError
from adaexplore.experiments import identity, journals
from adaexplore.experiments.stores import Appender, Store
from adaexplore.experiments.usages import Usage
from adaexplore.models.endpoints import Answer
from adaexplore.models.profiles import Prices

RESULT_VERSION: Final = 1
RESULT: Final = "result.json"
SUPERSEDED: Final = "superseded.json"
"""Beside a result that is to be played again: readers pass it over."""
_ENDS: Final = frozenset((RESULT, "failure.json"))


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeKey:
    """One episode of one cell, with the digest of the hidden side it must have."""

    cell_id: str
    episode_id: str
    hidden_digest: str

    @property
    def prefix(self) -> str:
        """Where its attempts are kept."""
        return f"cells/{self.cell_id}/{self.episode_id}/"

    def attempt(self, number: int, writer: str) -> str:
        """Where one attempt is kept."""
        return f"{self.prefix}attempt-{number:04d}-{writer}/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One attempt as the store lists it."""

    prefix: str
    files: frozenset[str]

    @property
    def number(self) -> int:
        """Its number: 1 is the first."""
        digits = self._name.split("-")[1]
        return int(digits) if digits.isdigit() else 0

    @property
    def writer(self) -> str:
        """Who made it."""
        return self._name.rpartition("-")[2]

    @property
    def result(self) -> str | None:
        """Key of its result, if it has one that counts."""
        counts = RESULT in self.files and SUPERSEDED not in self.files
        return f"{self.prefix}{RESULT}" if counts else None

    @property
    def open(self) -> bool:
        """Whether it has no end yet: it is being played, or was cut short."""
        return not self.files & _ENDS

    @property
    def _name(self) -> str:
        return self.prefix.split("/")[3]


def listed(store: Store, prefix: str) -> dict[str, list[Found]]:
    """Attempts by episode id, in their order, of everything below `cells/<cell>/` or a part of it."""
    files: dict[str, set[str]] = {}
    for key in store.keys(prefix):
        folder, _, name = key.rpartition("/")
        if folder.count("/") == 3 and folder.split("/")[3].startswith("attempt-"):
            files.setdefault(f"{folder}/", set()).add(name)
    found: dict[str, list[Found]] = {}
    for folder in sorted(files):
        attempt = Found(prefix=folder, files=frozenset(files[folder]))
        found.setdefault(folder.split("/")[2], []).append(attempt)
    return found


def result_of(found: Iterable[Found]) -> str | None:
    """Key of the result that counts among the attempts of one episode: the lowest."""
    return next((attempt.result for attempt in found if attempt.result), None)


def finished(store: Store, cell_id: str) -> dict[str, str]:
    """Key of the result that counts, by episode id of a cell."""
    results = {
        episode_id: result_of(found)
        for episode_id, found in listed(store, f"cells/{cell_id}/").items()
    }
    return {episode_id: key for episode_id, key in results.items() if key is not None}


def supersede(store: Store, result_key: str) -> None:
    """Let a result no longer count, so that its episode is played again from its journal."""
    store.put(result_key.removesuffix(RESULT) + SUPERSEDED, b"{}")


def read_result(store: Store, key: str, *, hidden_digest: str | None = None) -> EpisodeRecord:
    """The record of a finished attempt.

    Args:
        store: Where it is kept.
        key: Its key, which says whose result it has to be.
        hidden_digest: Digest of the hidden side it must have; None where that is not known.

    Raises:
        StoreError: The result is damaged, of another version, or of another cell or episode;
            nothing is changed.
    """
    where = store.locate(key)
    found = journals.document((store.get(key) or b"").removesuffix(b"\n"))
    if found is None:
        raise StoreError(
            f"{where}: damaged result (its check does not match); nothing was changed: "
            "move the attempt's folder away to play the episode again"
        )
    if found.get("result") != RESULT_VERSION:
        got = found.get("result")
        raise StoreError(f"{where}: expected result version {RESULT_VERSION}, got {got!r}")
    try:
        record = records.from_document(found["record"])
    except (KeyError, TypeError, ValueError):
        raise StoreError(
            f"{where}: expected an episode's record, got something else; nothing was changed: "
            "move the attempt's folder away to play the episode again"
        ) from None
    _, cell_id, episode_id, *_ = key.split("/")
    expected = {
        "cell_id": cell_id,
        "episode_id": episode_id,
        "hidden_digest": hidden_digest or record.hidden_digest,
    }
    got = {
        "cell_id": found.get("cell_id"),
        "episode_id": record.episode_id,
        "hidden_digest": record.hidden_digest,
    }
    _require_owner(expected, got, f"{where}: a result")
    return record


def claim(store: Store, key: EpisodeKey) -> "Attempt | str | None":
    """A new attempt at an episode; or the key of its result; or None while somebody else plays it.

    Raises:
        StoreError: A journal is damaged or of something else; nothing is changed.
    """
    before = listed(store, key.prefix).get(key.episode_id, [])
    if (result := result_of(before)) is not None:
        return result
    if _played_by_others(store, before):
        return None
    attempt = Attempt(store, key, before)
    # Two may have looked at the same moment: then both step back, and come again when they will.
    if _played_by_others(store, listed(store, key.prefix).get(key.episode_id, [])):
        told = "another launcher began this episode at the same moment"
        attempt.fail(told, "yielded", []).result()
        return None
    return attempt


def _played_by_others(store: Store, found: Iterable[Found]) -> bool:
    return any(a.open and a.writer != store.writer and store.alive(a.writer) for a in found)


class Attempt:
    """The one writer of a new attempt."""

    def __init__(self, store: Store, key: EpisodeKey, before: Sequence[Found]) -> None:
        """Begin the next attempt and carry over the longest valid journal of those before."""
        self.store = store
        self._key = key
        entries, torn = _longest(store, key, before)
        self.number = max((attempt.number for attempt in before), default=0) + 1
        self._appender = self._begin(len(entries))
        self.usage = Usage()
        """What this attempt has spent itself."""
        self.closed = False
        """Whether the journal has been released."""
        self.torn = torn
        """Whether the journal that is carried on had a torn last line."""
        self.replies: list[Reply] = [Reply(**entry["reply"]) for entry in entries]
        """Replies to replay before the model is asked."""
        self.carried = self._carry(entries)
        """Done when those replies are durable in this attempt's journal too; None if there are none."""

    @property
    def _prefix(self) -> str:
        return self._key.attempt(self.number, self.store.writer)

    def _begin(self, carried: int) -> Appender:
        owner = journals.header(self._key.cell_id, self._key.episode_id, self._key.hidden_digest)
        first = {**owner, "writer": self.store.writer, "carried": carried}
        key = f"{self._prefix}journal.jsonl"
        appender = self.store.create(key, journals.line(first))
        if appender is None:
            raise StoreError(
                f"{self.store.locate(key)}: expected no journal under this writer's name, got one; "
                "launch again"
            )
        return appender

    def _carry(self, entries: Sequence[dict[str, Any]]) -> "Future[None] | None":
        if not entries:
            return None
        carried = self._appender.append(b"".join(journals.line(entry) for entry in entries))
        self._appender.cut()
        return carried

    def cut(self) -> None:
        """Say that a window is over."""
        self._appender.cut()

    def append(self, number: int, answer: Answer, prices: Prices) -> "Future[None]":
        """Journal one reply, durable when the future is done, and book what it cost."""
        entry = journals.entry(number, answer)
        done = self._appender.append(journals.line(entry))
        self.usage.book_answer(entry["reply"], entry["meta"], prices)
        return done

    def finish(self, record: EpisodeRecord) -> "Future[None]":
        """Release the journal and write the result, once, last; durable when the future is done."""
        document = {
            "result": RESULT_VERSION,
            "cell_id": self._key.cell_id,
            "episode_id": self._key.episode_id,
            "attempt": self.number,
            "record": record,
        }
        return self._end({f"{self._prefix}{RESULT}": journals.line(document)})

    def fail(self, reason: str, kind: str, tried: list[dict[str, Any]]) -> "Future[None]":
        """Release the journal and note why there is no result; the next launch goes on from here."""
        document = {"reason": reason, "kind": kind, "attempts": tried}
        return self._end({f"{self._prefix}failure.json": identity.canonical(document)})

    def close(self) -> "Future[None]":
        """Release the journal and keep what the attempt has spent beside it; durable when done."""
        return self._end({})

    def _end(self, ending: dict[str, bytes]) -> "Future[None]":
        """Release the journal, and write what the attempt has spent before what it ends with."""
        self.closed = True
        self._appender.close()
        spent = self.usage.calls or self.usage.failed_attempts
        usage = {f"{self._prefix}usage.json": identity.canonical(asdict(self.usage))}
        return self.store.put_all({**(usage if spent else {}), **ending})


def _longest(
    store: Store, key: EpisodeKey, before: Iterable[Found]
) -> tuple[tuple[dict[str, Any], ...], bool]:
    """(entries, torn) of the longest valid journal of an episode's earlier attempts."""
    best: tuple[dict[str, Any], ...] = ()
    torn = False
    owner = journals.header(key.cell_id, key.episode_id, key.hidden_digest)
    for attempt in before:
        name = f"{attempt.prefix}journal.jsonl"
        where = store.locate(name)
        journal = journals.read(store.get(name) or b"", where)
        if journal is None:
            continue
        _require_owner(owner, journal.header, f"{where}: a journal")
        entries = journal.entries
        if SUPERSEDED in attempt.files and _ended_unscored(entries):
            entries = entries[:-1]  # the reply that ended it is the one to ask for again
        if len(entries) > len(best):
            best, torn = entries, journal.torn
    return best, torn


def _ended_unscored(entries: Sequence[dict[str, Any]]) -> bool:
    return bool(entries) and entries[-1]["reply"]["finish_reason"] in journals.UNSCORED


def _require_owner(expected: dict[str, Any], got: dict[str, Any], what: str) -> None:
    wrong = [name for name, value in expected.items() if got.get(name) != value]
    if wrong:
        raise StoreError(f"{what} of something else ({', '.join(wrong)} differ); move it away")
