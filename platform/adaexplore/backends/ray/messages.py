"""What driver, workers and desk say to each other: names, numbers and short texts, never results."""

from dataclasses import dataclass
from typing import Literal

from adaexplore.models.budget import Cost
from adaexplore.models.governor import Permit
from adaexplore.models.hosts import Served

Run = tuple[str, str]
"""Name of an episode run: (cell id, episode id)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Episode runs of one model, to be played side by side."""

    model: str
    served: Served | None
    """Where the model answers; None for what plays in the worker itself."""
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What became of an episode run; its record is in the store."""

    run: Run
    status: Literal["done", "failed", "elsewhere"]
    failure: str | None = None
    calls: int = 0
    replayed: int = 0
    torn: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """An episode run that waits for something."""

    key: str
    what: str
    since_s: float
    """How long already."""
    left_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How a worker is doing."""

    calls: int
    """Model calls since it was opened."""
    waiting: tuple[Waiting, ...]
    """Those that have waited longest."""


# -- between a client and the desk ---------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """Permits for the first of those who asked, at least one; or why nobody gets any."""

    permits: tuple[Permit, ...] = ()
    refused: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """How many of those who asked have their money, counted from the first; or why that one cannot."""

    count: int = 0
    refused: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """A permit is given back."""

    account: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Succeeded:
    """A call was answered."""

    account: str
    permit: Permit


@dataclass(frozen=True, slots=True, kw_only=True)
class Limited:
    """A call met a rate limit."""

    account: str
    permit: Permit
    wait_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """An account's quota is used up."""

    account: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A reservation is given back, and so much was spent."""

    most: Cost
    actual: Cost


News = Released | Succeeded | Limited | Stopped | Settled


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a worker holds of the desk's."""

    permits: dict[str, int]
    """By account."""
    usd: float = 0.0
    tokens: int = 0
