"""Attempts: how one episode of one cell is played, interrupted, resumed and finished.

Keys are `cells/<cell>/<episode>/attempt-<n>/`, with `journal.jsonl` growing as the episode plays and
`result.json` written once, last. An attempt has one writer. A new one first copies the longest valid
journal of the earlier ones and goes on from it, so no call is made twice; readers take the lowest
attempt with a result.
"""

from dataclasses import asdict, dataclass
from typing import Any, Final

from adaexplore.benchmark.game import records
from adaexplore.benchmark.game.protocol import Reply
from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.errors import StoreError
from adaexplore.experiments import identity, journals
from adaexplore.experiments.journals import Journal
from adaexplore.experiments.stores import Appender, Store
from adaexplore.experiments.usages import Usage
from adaexplore.models.endpoints import Answer
from adaexplore.models.profiles import Prices

RESULT_VERSION: Final = 1
MAX_ATTEMPTS: Final = 10_000


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

    def attempt(self, number: int) -> str:
        """Where one attempt is kept."""
        return f"{self.prefix}attempt-{number:04d}/"


def finished(store: Store, cell_id: str) -> dict[str, str]:
    """Key of the lowest complete attempt's result, by episode id of a cell."""
    results: dict[str, str] = {}
    for key in store.keys(f"cells/{cell_id}/"):
        _, _, episode_id, *rest = key.split("/")
        if len(rest) == 2 and rest[1] == "result.json":
            results.setdefault(episode_id, key)
    return results


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


class Attempt:
    """The one writer of a new attempt."""

    def __init__(self, store: Store, key: EpisodeKey) -> None:
        """Claim the next attempt and carry over the longest valid journal of the earlier ones."""
        self._store = store
        self._key = key
        best, number = _longest(store, key)
        carried = 0 if best is None else len(best.entries)
        self._appender, self.number = self._claim(number + 1, carried)
        self.usage = Usage()
        """What this attempt has spent itself."""
        self.torn = best is not None and best.torn
        """Whether the journal that is carried on had a torn last line."""
        self.replies: list[Reply] = [] if best is None else best.replies
        """Replies to replay before the model is asked."""
        if best is not None and best.entries:
            self._appender.append(b"".join(journals.line(entry) for entry in best.entries))

    def _claim(self, number: int, carried: int) -> tuple[Appender, int]:
        owner = journals.header(self._key.cell_id, self._key.episode_id, self._key.hidden_digest)
        first = {**owner, "carried": carried}
        for candidate in range(number, number + MAX_ATTEMPTS):
            key = f"{self._key.attempt(candidate)}journal.jsonl"
            appender = self._store.create(key, journals.line(first))
            if appender is not None:
                return appender, candidate
        raise StoreError(f"{self._store.locate(self._key.prefix)}: no attempt could be claimed")

    def append(self, number: int, answer: Answer, prices: Prices) -> None:
        """Journal one reply, durable when this returns, and book what it cost."""
        entry = journals.entry(number, answer)
        self._appender.append(journals.line(entry))
        self.usage.book_answer(entry["reply"], entry["meta"], prices)

    def finish(self, record: EpisodeRecord) -> None:
        """Write the result, once, last."""
        document = {
            "result": RESULT_VERSION,
            "cell_id": self._key.cell_id,
            "episode_id": self._key.episode_id,
            "attempt": self.number,
            "record": record,
        }
        key = f"{self._key.attempt(self.number)}result.json"
        self._store.put(key, journals.line(document))

    def fail(self, reason: str, kind: str, tried: list[dict[str, Any]]) -> None:
        """Note why the attempt ended without a result; the next launch goes on from its journal."""
        document = {"reason": reason, "kind": kind, "attempts": tried}
        self._store.put(
            f"{self._key.attempt(self.number)}failure.json", identity.canonical(document)
        )

    def book(self) -> None:
        """Keep what the attempt has spent beside its journal."""
        key = f"{self._key.attempt(self.number)}usage.json"
        self._store.put(key, identity.canonical(asdict(self.usage)))

    def close(self) -> None:
        """Release the journal."""
        self._appender.close()


def _longest(store: Store, key: EpisodeKey) -> tuple[Journal | None, int]:
    """(longest valid journal, highest attempt number) of an episode's earlier attempts."""
    best: Journal | None = None
    highest = 0
    for name in store.keys(key.prefix):
        attempt, _, file = name.removeprefix(key.prefix).partition("/")
        highest = max(highest, _number(attempt))
        if file != "journal.jsonl":
            continue
        where = store.locate(name)
        journal = journals.read(store.get(name) or b"", where)
        if journal is None:
            continue
        owner = journals.header(key.cell_id, key.episode_id, key.hidden_digest)
        _require_owner(owner, journal.header, f"{where}: a journal")
        if best is None or len(journal.entries) > len(best.entries):
            best = journal
    return best, highest


def _require_owner(expected: dict[str, Any], got: dict[str, Any], what: str) -> None:
    wrong = [name for name, value in expected.items() if got.get(name) != value]
    if wrong:
        raise StoreError(f"{what} of something else ({', '.join(wrong)} differ); move it away")


def _number(attempt: str) -> int:
    digits = attempt.removeprefix("attempt-")
    return int(digits) if digits.isdigit() else 0
