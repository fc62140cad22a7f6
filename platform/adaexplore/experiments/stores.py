"""The seam to a store: where journals, results and tables are kept.

Keys are relative paths with slashes. What a store acknowledged is durable. Objects are written
whole; journals grow by appending. Correctness never rests on locks: every attempt has keys of its
own and one writer. Whether another writer still lives can be asked, to save money: what somebody
plays already need not be paid for twice.
"""

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Final, Protocol

from adaexplore.errors import StoreError

STORE_VERSION: Final = 1
"""Raised when keys or documents change so that an older program would misread them."""
MARK: Final = "store.json"


class Appender(Protocol):
    """One growing object with a single writer."""

    def append(self, data: bytes) -> "Future[None]":
        """Add bytes; durable when the future is done, StoreError from it if they are not."""

    def cut(self) -> None:
        """Say that a window is over: a store that keeps parts begins the next one."""

    def close(self) -> None:
        """Release what the appender holds."""


class Store(Protocol):
    """Objects by key. Every method raises StoreError, naming key and reason, when it cannot."""

    writer: str
    """Name of this store object as a writer: 12 hex digits, never used again."""
    near: bool
    """Whether a call mostly ends so soon that nothing else needs to go on meanwhile: a disk, no service."""
    at_once: int
    """Calls that it carries out side by side with profit, where others have to go on meanwhile."""

    def put(self, key: str, data: bytes) -> None:
        """Write an object whole; readers see the old bytes or the new, never a mixture."""

    def put_all(self, objects: Mapping[str, bytes]) -> "Future[None]":
        """Write several as `put` does, one after the other; durable when the future is done."""

    def get(self, key: str) -> bytes | None:
        """The object's bytes, or None if there is none."""

    def keys(self, prefix: str) -> Iterable[str]:
        """All keys below a prefix that ends in a slash, in sorted order."""

    def create(self, key: str, data: bytes) -> Appender | None:
        """Start a growing object with its first bytes; None if the key is taken already."""

    def locate(self, key: str) -> str:
        """Where a person finds the object: a path or an address."""

    def alive(self, writer: str) -> bool:
        """Whether a writer that has created something is still there, as far as can be told."""

    def close(self) -> None:
        """Stop being a writer: `alive` is false of it from now on."""


def check(store: Store) -> None:
    """Refuse a store that a newer version of this program has written (StoreError)."""
    data = store.get(MARK)
    if data is None:
        return
    try:
        version = json.loads(data)["store_version"]
    except (ValueError, KeyError, TypeError):
        version = "no version"
    if version != STORE_VERSION:
        raise StoreError(
            f"{store.locate(MARK)}: expected store_version {STORE_VERSION}, got {version}: use the "
            "version of this program that wrote the store, or another place"
        )


def mark(store: Store) -> None:
    """Say which version writes this store, if nothing has been said."""
    if store.get(MARK) is None:
        store.put(MARK, json.dumps({"store_version": STORE_VERSION}).encode())
