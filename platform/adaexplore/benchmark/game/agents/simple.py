"""Agents that learn nothing, `random` and `constant`: chance and a constant bound the scale from below.

What they share with other agents that do not explore is here as well: the reply that asks for
nothing, and the cheapest probes where probing is forced.
"""

import hashlib
from typing import Final

from adaexplore.benchmark.game.agents import calls, points
from adaexplore.benchmark.game.agents.reading import View, read
from adaexplore.benchmark.game.protocol import Message
from adaexplore.benchmark.world import seeds
from adaexplore.benchmark.world.episodes import Row

_CONSTANT: Final = 1


def random(messages: tuple[Message, ...], seed: int) -> str:
    """Uniform actions, no probes unless forced, empty assessments."""
    view = read(messages)
    if view.decision != "act":
        return idle(view)
    digest = hashlib.sha256(messages[-1].content.encode()).hexdigest()
    rng = seeds.generator("random agent", seed, digest)
    return calls.submit(view, [int(a) for a in rng.integers(4, size=len(view.pending))])


def constant(messages: tuple[Message, ...], _seed: int) -> str:
    """Always the same action, no probes unless forced, empty assessments."""
    view = read(messages)
    if view.decision != "act":
        return idle(view)
    return calls.submit(view, [_CONSTANT] * len(view.pending))


def idle(view: View) -> str:
    """Reply of an agent that neither explores nor believes anything; not for acting."""
    if view.decision == "assess":
        return calls.assess({})
    return calls.request() if view.can_request else calls.probe(view, filler(view))


def filler(view: View) -> list[Row]:
    """The fewest probes that a forced window takes, chosen to cost no thought: the first again."""
    row = view.probes[0].row if view.probes else points.middle(points.space(view))
    return [] if row is None else [row] * view.probe_limits[0]
