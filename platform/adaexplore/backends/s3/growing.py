"""Growing objects in a store that cannot append.

A growing object is kept as parts, `KEY.parts/00000`, `00001` and so on. Each append writes the
current part whole, with everything since the last cut, and is durable when it returns; a cut begins
the next part. Closing writes the whole object under KEY and then deletes the parts.

Why a reader never sees less than was acknowledged: KEY is written once, complete, before any part is
deleted, and never deleted. So where KEY exists it is everything. Where it does not, parts are read by
number until one is missing, and then KEY is asked for again: if it is still not there, no part had
been deleted meanwhile. Every part says how many bytes come before it, so a part that grew after it was
read is noticed when the next is met, and read again. Nothing is ever listed for this, so a lag of
listings cannot shorten a journal; it can only hide a key from `keys`, and then the episode is played on
from what can be seen, the difference being asked again and counted. A service whose *reads* lag can
show a shorter journal, and still a valid one: whole appends from the beginning, without a gap.

Why an answer that never came does no harm: the request may be carried out much later, over newer
bytes. So a part that needed more than one try is never written again; what comes late is what is
there. After an append that failed for good the appender takes no more.
"""

import re
import threading
from collections import deque
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

from adaexplore.backends.s3.calls import Calls
from adaexplore.errors import StoreError

ROLL_BYTES: Final = 256 * 1024
"""A part this large is cut unasked: every append writes its part again."""
_CLOSING_ATTEMPTS: Final = 3
"""Nothing rests on closing, so a service that is down is not waited for."""
MISSING: Final = frozenset({404})
_TAKEN: Final = frozenset({412})
_FIRST: Final = {"offset": "0"}
_Append = tuple[bytes, "Future[None]"]
_PART: Final = re.compile(r"\.parts/\d{5}$")


def part_key(key: str, number: int) -> str:
    """Key of a part; beside its object, as some services refuse a key that is also a folder."""
    return f"{key}.parts/{number:05d}"


def shown(key: str) -> str:
    """The key under which an object is listed: a part stands for the whole."""
    return _PART.sub("", key)


def read(calls: Calls, key: str) -> bytes | None:
    """The object's bytes, whole or from its parts, or None; StoreError if it cannot be read."""
    whole = _get(calls, key)
    if whole is not None:
        return whole
    parts = _parts(calls, key)
    whole = _get(calls, key)  # it may have been closed while we read
    if whole is not None:
        return whole
    return b"".join(parts) if parts else None


def start(
    calls: Calls, threads: Executor, key: str, data: bytes, *, exclusive: bool
) -> "GrowingObject | None":
    """A growing object with its first bytes; None if there is one of this key.

    Args:
        calls: To the bucket.
        threads: Where its parts are written.
        key: Of the object.
        data: Its first bytes.
        exclusive: Whether the service refuses a conditional put to a taken key. Where it does not,
            two that start at the same moment may both win; attempts have keys of their own.

    Raises:
        StoreError: It cannot be written.
    """
    first = part_key(key, 0)
    tries = _take(calls, first, data) if exclusive else _look_and_take(calls, first, data)
    if not tries:
        return None
    if exists(calls, key):  # closed before: its first part is gone, and was free to be taken
        calls.ask("delete_object", first)
        return None
    begun = GrowingObject(calls, threads, key, data)
    begun.settle(tries)
    return begun


def exists(calls: Calls, key: str) -> bool:
    """Whether there is an object of exactly this key."""
    return not calls.ask("head_object", key, expected=MISSING).refused


def _parts(calls: Calls, key: str) -> list[bytes]:
    """The parts that there are, without a gap between them."""
    parts: list[bytes] = []
    while (answer := _ask(calls, part_key(key, len(parts)))) is not None:
        before = answer["Metadata"].get("offset")
        if parts and _size(parts) != before:  # the last one grew after we had read it
            parts[-1] = _get(calls, part_key(key, len(parts) - 1)) or b""
        # Still: a service whose reads lag, or nothing of ours. What is sure is a beginning.
        if _size(parts) != before:
            return parts
        parts.append(answer["Body"])
    return parts


def _size(parts: list[bytes]) -> str:
    return str(sum(map(len, parts)))


def _ask(calls: Calls, key: str) -> dict[str, Any] | None:
    answer = calls.ask("get_object", key, expected=MISSING)
    return None if answer.refused else answer.body


def _get(calls: Calls, key: str) -> bytes | None:
    body = _ask(calls, key)
    return None if body is None else bytes(body["Body"])


def _take(calls: Calls, first: str, data: bytes) -> int:
    """How many tries the conditional put took; 0 if the key was taken."""
    mark = uuid4().hex
    said = _FIRST | {"mark": mark}
    answer = calls.ask(
        "put_object", first, Body=data, IfNoneMatch="*", Metadata=said, expected=_TAKEN
    )
    if answer.refused and (answer.tries == 1 or not _marked(calls, first, mark)):
        return 0
    return answer.tries


def _marked(calls: Calls, key: str, mark: str) -> bool:
    """Whether it was ourselves who took the key, in a try that got no answer."""
    answer = calls.ask("head_object", key, expected=MISSING)
    return bool(answer.body.get("Metadata", {}).get("mark") == mark)


def _look_and_take(calls: Calls, first: str, data: bytes) -> int:
    if exists(calls, first):
        return 0
    return calls.ask("put_object", first, Body=data, Metadata=_FIRST).tries


class GrowingObject:
    """The appender of one growing object.

    Appends that come while a part is being written wait, and are written together with the next.
    """

    def __init__(self, calls: Calls, threads: Executor, key: str, data: bytes) -> None:
        """Take over an object whose part 0 has been written.

        Args:
            calls: To the bucket.
            threads: Where parts are written.
            key: Of the object.
            data: What part 0 holds.
        """
        self._calls, self._threads, self._key = calls, threads, key
        self._cut_off: list[bytes] = []
        self._current = data
        self._number = 0
        self._waiting: deque[_Append | None] = deque()
        """Appends in their order; None is a cut."""
        self._changing = threading.Condition()
        self._writing = False
        self._broken: StoreError | None = None

    def append(self, data: bytes) -> "Future[None]":
        """Add bytes; durable when the future is done."""
        done: Future[None] = Future()
        done.set_running_or_notify_cancel()  # what is on its way is written, whoever still waits
        with self._changing:
            self._waiting.append((data, done))
            if not self._writing:
                self._writing = True
                self._threads.submit(self._write_all)
        return done

    def cut(self) -> None:
        """Begin the next part, if this one holds something; written by the next append."""
        with self._changing:
            self._waiting.append(None)

    def close(self) -> None:
        """Put the parts together; where that fails they stay, and are read as well."""
        with self._changing:
            self._changing.wait_for(lambda: not self._writing)
            if self._broken is not None:
                return
            where = self._calls.locate(self._key)
            self._broken = StoreError(f"{where}: it has been closed; start another attempt")
        whole = b"".join([*self._cut_off, self._current])
        with suppress(StoreError):
            self._calls.ask("put_object", self._key, Body=whole, attempts=_CLOSING_ATTEMPTS)
            for number in range(self._number, -1, -1):
                self._calls.ask(
                    "delete_object", part_key(self._key, number), attempts=_CLOSING_ATTEMPTS
                )

    def _write_all(self) -> None:
        while batch := self._next():
            data = b"".join([data for data, _ in batch])
            try:
                self._write(data)
            except BaseException as error:  # noqa: BLE001 (whoever waits must be told, whatever it is)
                for _, done in batch:
                    done.set_exception(error)
            else:
                for _, done in batch:
                    done.set_result(None)

    def _next(self) -> "list[_Append]":
        """What waits up to the next cut; without any, nobody writes any more."""
        batch: list[_Append] = []
        with self._changing:
            while self._waiting and not (self._waiting[0] is None and batch):
                if (first := self._waiting.popleft()) is None:
                    if self._current:  # else the part has not been written, and is the next already
                        self._seal()
                else:
                    batch.append(first)
            if not batch:
                self._writing = False
                self._changing.notify_all()
        return batch

    def _write(self, data: bytes) -> None:
        if self._broken is not None:
            raise StoreError(str(self._broken))
        grown = self._current + data
        try:
            answer = self._calls.ask(
                "put_object",
                part_key(self._key, self._number),
                Body=grown,
                Metadata={"offset": _size(self._cut_off)},
            )
        except StoreError as error:
            self._broken = error
            raise
        self._current = grown
        self.settle(answer.tries)

    def settle(self, tries: int) -> None:
        """Write the current part no more if an unanswered try could still arrive, or if it is large."""
        if tries > 1 or len(self._current) >= ROLL_BYTES:
            self._seal()

    def _seal(self) -> None:
        self._cut_off.append(self._current)
        self._current = b""
        self._number += 1
