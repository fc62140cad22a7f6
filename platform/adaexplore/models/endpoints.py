"""The one seam to a model: a request goes out, a reply comes back.

`Answer` carries beside the reply what is worth keeping about how it came (seconds, failed attempts,
what the server said of itself); that part goes into the journal and never into a record.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

from adaexplore.benchmark.game.protocol import Reply, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A reply with the story of how it was obtained."""

    reply: Reply
    seconds: float
    attempts: list[dict[str, Any]] = field(default_factory=list)
    """One entry an attempt that failed before this one."""
    served_by: dict[str, Any] = field(default_factory=dict)
    """Serving fingerprint: what the server said of itself with this reply."""


class ModelError(Exception):
    """The model could not be asked, retries included; the episode counts as failed, not as played."""

    def __init__(
        self, message: str, *, kind: str = "model", attempts: list[dict[str, Any]] | None = None
    ) -> None:
        """Keep what kind of fault it was and the attempts that were made."""
        super().__init__(message)
        self.kind = kind
        self.attempts = attempts or []


class Endpoint(Protocol):
    """A model, bound to one episode run."""

    async def ask(self, request: Request) -> Answer:
        """The answer to one request.

        Raises:
            ModelError: No reply could be had.
        """
