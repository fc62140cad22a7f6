"""Findings: what a check of something that a sweep depends on has seen, in one line.

A check returns what it saw. What is wrong is an error of the usual tree, whose line says what to do;
what may not be looked at is neither right nor wrong.
"""

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from adaexplore.errors import AdaExploreError

State = Literal["ok", "WRONG", "unknown"]


class UnseenError(Exception):
    """A check that was not allowed to look, or had nothing to look at; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing to look at."""

    name: str
    look: Callable[[], Awaitable[str]]
    """What is seen, in one line; raises `UnseenError`, or an error of `adaexplore.errors`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check has found."""

    name: str
    state: State
    told: str
    """What was seen; where it is wrong, what to do."""

    def document(self) -> dict[str, Any]:
        """The finding as plain data."""
        return asdict(self)


async def found(check: Check) -> Finding:
    """What a check finds."""
    try:
        return Finding(name=check.name, state="ok", told=await check.look())
    except UnseenError as error:
        return Finding(name=check.name, state="unknown", told=str(error))
    except AdaExploreError as error:
        return Finding(name=check.name, state="WRONG", told=str(error))


async def required(check: Check) -> None:
    """Look, and go on unless something is wrong (the check's own error)."""
    try:
        await check.look()
    except UnseenError:
        return
