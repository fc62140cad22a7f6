"""Turns: what an agent was asked and what it said, from the replies alone.

The journal of an episode holds only replies, because an episode is a function of them: playing them
to it again gives every request, and the record as far as it went.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from adaexplore.benchmark.game.play import UnscoredError, play
from adaexplore.benchmark.game.protocol import Protocol, Reply, Request
from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.game.settings import Setting
from adaexplore.benchmark.world.episodes import World

Turn = tuple[Request, Reply]


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """An episode as far as its replies lead."""

    turns: tuple[Turn, ...]
    """In order; replies that come after the episode's end are not among them."""
    record: EpisodeRecord
    """What happened; its status says something only of an episode that ended."""
    ended: bool
    """Whether the replies lead to the episode's end."""


def follow(
    world: World, setting: Setting, protocol: Protocol, replies: Sequence[Reply]
) -> Followed:
    """The episode that these replies make, from its beginning."""
    playing = play(world, setting, protocol)
    turns: list[Turn] = []
    try:
        request = next(playing)
        for reply in replies:
            turns.append((request, reply))
            request = playing.send(reply)
    except StopIteration as stop:
        return Followed(turns=tuple(turns), record=stop.value, ended=True)
    try:
        playing.throw(UnscoredError("overflow"))  # the game ends here, and tells what it has
    except StopIteration as stop:
        return Followed(turns=tuple(turns), record=stop.value, ended=False)
    raise RuntimeError("expected the game to end with its record")
