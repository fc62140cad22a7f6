"""How every episode of a world begins under a setting: made once, and shared by all models and seeds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from adaexplore.benchmark.game import prompts, schemas
from adaexplore.benchmark.game.protocol import Message, Protocol
from adaexplore.benchmark.game.schemas import Schema
from adaexplore.benchmark.game.settings import Setting
from adaexplore.benchmark.world.episodes import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What an agent is told before its first reply, and the forms that its replies have."""

    messages: tuple[Message, Message]
    """The system message, and the first of the user."""
    call_schema: Schema
    assessment_schema: Schema


def opening(
    world: World, setting: Setting, protocol: Protocol, card: Callable[[], dict[str, Any]]
) -> Opening:
    """The opening of an episode; `card` gives the state before its first window."""
    return world.once(
        (Opening, setting, protocol),
        lambda: Opening(
            messages=(
                Message("system", prompts.system(world, setting, protocol)),
                Message("user", prompts.first(world, card())),
            ),
            call_schema=schemas.call_schema(world, protocol),
            assessment_schema=schemas.assessment_schema(world),
        ),
    )
