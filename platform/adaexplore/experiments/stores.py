"""The seam to a store: where journals, results and tables are kept.

Keys are relative paths with slashes. What a store acknowledged is durable. Objects are written
whole; journals grow by appending. Correctness never rests on locks: every attempt has keys of its
own and one writer.
"""

from collections.abc import Iterable
from typing import Protocol


class Appender(Protocol):
    """One growing object with a single writer."""

    def append(self, data: bytes) -> None:
        """Add bytes; durable when it returns."""

    def close(self) -> None:
        """Release what the appender holds."""


class Store(Protocol):
    """Objects by key. Every method raises StoreError, naming key and reason, when it cannot."""

    def put(self, key: str, data: bytes) -> None:
        """Write an object whole; readers see the old bytes or the new, never a mixture."""

    def get(self, key: str) -> bytes | None:
        """The object's bytes, or None if there is none."""

    def keys(self, prefix: str) -> Iterable[str]:
        """All keys below a prefix that ends in a slash, in sorted order."""

    def create(self, key: str, data: bytes) -> Appender | None:
        """Start a growing object with its first bytes; None if the key is taken already."""

    def locate(self, key: str) -> str:
        """Where a person finds the object: a path or an address."""
