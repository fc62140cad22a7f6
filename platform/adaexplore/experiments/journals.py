"""Journals: the raw replies of one attempt, one JSON line each, as they come.

The journal is what cannot be made again; everything else is recomputed from it. Every line carries
a check over its own content. A last line that does not check was torn by a crash and is dropped
(its reply is asked again); a bad line with good ones after it is damage and is never guessed at.
"""

import hashlib
import json
import socket
import time
from dataclasses import asdict, dataclass
from typing import Any, Final

import orjson

from adaexplore.benchmark.game.protocol import Reply
from adaexplore.errors import StoreError
from adaexplore.models.endpoints import Answer

JOURNAL_VERSION: Final = 1
UNSCORED: Final = ("overflow", "content_filter")
HOST: Final = socket.gethostname()
_CHECK_DIGITS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """The readable part of a journal."""

    header: dict[str, Any]
    entries: tuple[dict[str, Any], ...]
    torn: bool
    """Whether a torn last line was dropped."""

    @property
    def own_entries(self) -> tuple[dict[str, Any], ...]:
        """Entries that this attempt asked for itself; the others were paid for by an earlier one."""
        return self.entries[int(self.header.get("carried", 0)) :]

    @property
    def replies(self) -> list[Reply]:
        """The replies, in order."""
        return [Reply(**entry["reply"]) for entry in self.entries]


def header(cell_id: str, episode_id: str, hidden_digest: str) -> dict[str, Any]:
    """First line of a journal: whose it is; a new attempt adds how many entries it carried over."""
    return {
        "journal": JOURNAL_VERSION,
        "cell_id": cell_id,
        "episode_id": episode_id,
        "hidden_digest": hidden_digest,
    }


def entry(number: int, answer: Answer) -> dict[str, Any]:
    """Line of one reply, with how it came beside it."""
    meta: dict[str, Any] = {
        "at": round(time.time(), 3),
        "seconds": round(answer.seconds, 6),
        "attempts": answer.attempts,
        "host": HOST,
    }
    if answer.served_by:
        meta["served_by"] = answer.served_by
    return {"n": number, "reply": answer.reply, "meta": meta}


def line(document: Any) -> bytes:
    """A document (plain data or frozen records) as one line with a check over its own bytes."""
    try:
        body = orjson.dumps(document)
    except TypeError:  # half a character: legal in Python's strings and in JSON's escapes
        body = json.dumps(document, separators=(",", ":"), default=asdict).encode()
    return b'%b,"check":"%b"}\n' % (body[:-1], _check(body))


def document(text: bytes) -> dict[str, Any] | None:
    """The document of one line without its newline, or None if it is none or its check does not match."""
    head, mark, tail = text.rpartition(b',"check":"')
    body = head + b"}"
    if not mark or tail != _check(body) + b'"}':
        return None
    try:
        found: dict[str, Any] = _loads(body)
    except (ValueError, RecursionError):  # no line of ours, whatever its check says
        return None
    return found


def _loads(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:  # half a character, or a number that only Python's JSON has
        return json.loads(body)


def read(data: bytes, where: str) -> Journal | None:
    """The journal in these bytes; None if even its header was torn.

    Raises:
        StoreError: A line is damaged that is not the last, or the header is of another version.
    """
    lines = data.split(b"\n")
    torn = lines.pop() != b""
    documents = [document(text) for text in lines]
    if documents and documents[-1] is None:
        documents.pop()
        torn = True
    for number, found in enumerate(documents, start=1):
        if found is None:
            raise StoreError(
                f"{where} line {number}: damaged in the middle (its check does not match); "
                "nothing was changed: move the attempt's folder away to play the episode again"
            )
    good = [found for found in documents if found is not None]
    if not good:
        return None
    first, *entries = good
    if first.get("journal") != JOURNAL_VERSION:
        raise StoreError(
            f"{where}: expected journal version {JOURNAL_VERSION}, got {first.get('journal')!r}"
        )
    return Journal(header=first, entries=tuple(entries), torn=torn)


def _check(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest()[:_CHECK_DIGITS].encode()
