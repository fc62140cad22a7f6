"""The claim to a sweep's projection: of all that run a sweep at once, one shows it.

MLflow cannot refuse a second run of the same id, so there must be one writer. The claim is an object
in the store that names it. Taking it is Fischer's mutual exclusion: see that nobody who lives holds
it, write one's own name, wait longer than a write takes, and look whether the name is still there.
Beside it stands a name for the projection itself, made once: sweeps of equal names in two stores are
then told apart on one server.
Source: L. Lamport, A fast mutual exclusion algorithm, 1987 (where Fischer's is described).
"""

import json
import time
import uuid
from collections.abc import Callable
from typing import Final

from adaexplore.errors import StoreError
from adaexplore.experiments.stores import Store

SETTLE_S: Final = 1.0
"""Longer than a store takes from looking to having written."""
CHECK_S: Final = 10.0


class Claim:
    """One process's claim to the projection of one sweep."""

    def __init__(
        self,
        store: Store,
        sweep: str,
        *,
        settle_s: float = SETTLE_S,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Claim nothing yet."""
        self._store = store
        self._sweep = sweep
        self._settle_s = settle_s
        self._sleep = sleep
        self._checked = 0.0
        self._held = False

    @property
    def writer(self) -> str:
        """Who claims."""
        return self._store.writer

    def taken(self) -> bool:
        """Whether the claim is this process's, after trying to take it."""
        if self._owner() not in (None, self.writer):
            return False
        if not self._store.alive(
            self.writer
        ):  # it has created nothing yet, and must be seen to live
            key = f"sweeps/{self._sweep}/projectors/{self.writer}.json"
            if (appender := self._store.create(key, b"{}\n")) is not None:
                appender.close()
        document = {"origin": self._read().get("origin") or uuid.uuid4().hex[:12]}
        self._store.put(self._key, json.dumps({**document, "writer": self.writer}).encode())
        self._sleep(self._settle_s)
        self._checked = time.monotonic()
        self._held = self._read().get("writer") == self.writer
        return self._held

    def held(self) -> bool:
        """Whether the claim still is this process's; looked up every few seconds."""
        if self._held and time.monotonic() - self._checked > CHECK_S:
            self._checked = time.monotonic()
            self._held = self._read().get("writer") == self.writer
        return self._held

    def origin(self) -> str:
        """Name of the sweep's projection; empty where nothing was ever shown."""
        return str(self._read().get("origin") or "")

    def holds(self, writer: str, sweep: str) -> bool:
        """Whether the claim to a sweep of this store was last that writer's."""
        return read(self._store, sweep).get("writer") == writer

    def alive(self, writer: str) -> bool:
        """Whether a writer still runs."""
        return self._store.alive(writer)

    @property
    def _key(self) -> str:
        return key(self._sweep)

    def _read(self) -> dict[str, str]:
        return read(self._store, self._sweep)

    def _owner(self) -> str | None:
        """Who holds it and lives."""
        writer = self._read().get("writer")
        return writer if writer and self._store.alive(writer) else None


def key(sweep: str) -> str:
    """Store key of the claim to a sweep's projection."""
    return f"sweeps/{sweep}/projector.json"


def read(store: Store, sweep: str) -> dict[str, str]:
    """What the claim says; nothing if there is none. StoreError if it is damaged."""
    data = store.get(key(sweep))
    if data is None:
        return {}
    try:
        return {str(name): str(value) for name, value in json.loads(data).items()}
    except (ValueError, AttributeError):
        raise StoreError(
            f"{store.locate(key(sweep))}: expected who shows the sweep (JSON), got something else; "
            "remove it"
        ) from None
