"""The seam to a model host: what starts a server for an open model and stops it again."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from adaexplore.models.profiles import VllmProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A model that answers."""

    base_urls: tuple[str, ...]
    """One address a replica, up to and including `/v1`."""
    fingerprint: dict[str, Any] = field(default_factory=dict)
    """What the server says of itself and how it was started; kept with every attempt."""


class ModelHost(Protocol):
    """Serves open models for as long as they are played."""

    def serving(self, name: str, profile: VllmProfile) -> AbstractAsyncContextManager[Served]:
        """A context in which the model answers.

        Raises:
            ServingError: The server did not become ready; the message says why and what to do.
        """
