"""Reference agents: what an episode is worth to a known way of playing it.

A reference agent is a pure function of the messages it is sent and a seed. It speaks the JSON that
a language model speaks, sees what a model sees and keeps nothing between calls, so its replies are
as replayable as recorded ones. `oracle` stands apart: it is told the hidden rule.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from adaexplore.benchmark.game.agents import simple
from adaexplore.benchmark.game.agents.feedback_only import feedback_only
from adaexplore.benchmark.game.agents.one_factor import one_factor
from adaexplore.benchmark.game.agents.oracle import Told, oracle
from adaexplore.benchmark.game.agents.scientist import scientist
from adaexplore.benchmark.game.protocol import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceAgent:
    """A named way of playing; the version is raised whenever a reply would differ."""

    name: str
    version: int
    reply: Callable[[tuple[Message, ...], int], str]


AGENTS: Final[dict[str, ReferenceAgent]] = {
    agent.name: agent
    for agent in (
        ReferenceAgent(name="random", version=1, reply=simple.random),
        ReferenceAgent(name="constant", version=1, reply=simple.constant),
        ReferenceAgent(name="feedback_only", version=2, reply=feedback_only),
        ReferenceAgent(name="one_factor", version=1, reply=one_factor),
        ReferenceAgent(name="scientist", version=2, reply=scientist),
    )
}
"""Agents by name. They know no more than a language model would."""

__all__ = ["AGENTS", "ReferenceAgent", "Told", "oracle"]
