"""Forecasts: what a sweep will cost, before it is paid for.

One episode is played by a reference agent that probes about as much as a careful model; its
messages are measured, and the tokens of a real model are estimated from them. A model that reasons
writes more than is forecast, and a prompt cache costs less: the forecast is an order of magnitude.
"""

from dataclasses import dataclass
from typing import Final

from adaexplore.benchmark.game import agents
from adaexplore.benchmark.game.play import play
from adaexplore.benchmark.game.protocol import Protocol, Reply
from adaexplore.benchmark.game.settings import Setting
from adaexplore.benchmark.world.episodes import World
from adaexplore.models import budget
from adaexplore.models.profiles import RemoteProfile

CHARS_PER_TOKEN: Final = 4.0
AGENT: Final = "one_factor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One episode in calls and characters."""

    calls: int
    first_chars: int
    """Length of the first prompt."""
    input_chars: int
    output_chars: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a number of episode runs of one model will take."""

    calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None
    """None where a price is unknown."""


def measure(world: World, setting: Setting, protocol: Protocol) -> Size:
    """Size of one episode as a reference agent plays it."""
    playing = play(world, setting, protocol)
    request = next(playing)
    calls = input_chars = output_chars = first_chars = 0
    while True:
        chars = sum(len(message.content) for message in request.messages)
        first_chars = first_chars or chars
        text = agents.AGENTS[AGENT].reply(request.messages, 0)
        calls, input_chars, output_chars = calls + 1, input_chars + chars, output_chars + len(text)
        try:
            request = playing.send(Reply(text=text))
        except StopIteration:
            return Size(
                calls=calls,
                first_chars=first_chars,
                input_chars=input_chars,
                output_chars=output_chars,
            )


def forecast(profile: RemoteProfile, sizes: list[Size]) -> Forecast:
    """Forecast of episode runs of the given sizes."""
    input_tokens = int(sum(size.input_chars for size in sizes) / CHARS_PER_TOKEN)
    output_tokens = int(sum(size.output_chars for size in sizes) / CHARS_PER_TOKEN)
    cost = budget.cost(
        profile.prices, input_tokens=input_tokens, cached_tokens=0, output_tokens=output_tokens
    )
    calls = sum(size.calls for size in sizes)
    return Forecast(
        calls=calls, input_tokens=input_tokens, output_tokens=output_tokens, usd=cost.usd
    )
