"""What a call to an actor gives: its result, or the error as it was raised there."""

from typing import Any

from ray.exceptions import RayActorError, RayTaskError

from adaexplore.backends.ray.lines import Call, LineLostError
from adaexplore.errors import AdaExploreError


async def result(reference: Any) -> Any:
    """The result of a remote call; an error of ours is raised as it was there."""
    try:
        return await reference
    except RayTaskError as error:
        if isinstance(error.cause, AdaExploreError):
            raise error.cause from None
        raise


def calls(desk: Any) -> Call:
    """An actor as a line calls it: LineLostError when it is dead."""

    async def call(method: str, *arguments: Any) -> Any:
        """Ask the actor."""
        try:
            return await result(getattr(desk, method).remote(*arguments))
        except RayActorError as error:
            raise LineLostError(first_line(error)) from None

    return call


def first_line(error: Exception) -> str:
    """An error's message as one line of bounded length."""
    return " ".join(str(error).split())[:300]
