"""The oracle: a reference that is TOLD the hidden rule.

No agent can do better, so it marks the upper end of every scale and checks the environment: it has
to reach 1.000 in accuracy, recognition and change recognition under every setting. It is not an
agent, because it knows the episode; only the moment (which rule is in force) comes from the messages.
"""

from dataclasses import dataclass

import numpy as np

from adaexplore.benchmark.game.agents import calls
from adaexplore.benchmark.game.agents.reading import View, read
from adaexplore.benchmark.game.agents.simple import filler
from adaexplore.benchmark.game.protocol import Message
from adaexplore.benchmark.world.episodes import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the oracle is told beside the messages: the episode and whether its rule changes."""

    world: World
    drifts: bool


def oracle(messages: tuple[Message, ...], told: Told) -> str:
    """Reply of the told reference: best actions, true assessments, probes only when forced."""
    view = read(messages)
    if view.decision == "assess":
        # About the batches that are complete: right after the change batch the next window already
        # runs under the new rule, and the question is about the old one.
        rule = told.world.episode.rule_in_force(view.finished, drifts=told.drifts)
        return calls.assess(rule.directions)
    if view.decision == "explore":
        return calls.request() if view.can_request else calls.probe(view, filler(view))
    return calls.submit(view, _best(view, told))


def _best(view: View, told: Told) -> list[int]:
    rule = told.world.episode.rule_in_force(view.window, drifts=told.drifts)
    utilities = told.world.utilities(rule, [row for _, row in view.pending])
    return [int(np.argmax(values)) for values in utilities]
