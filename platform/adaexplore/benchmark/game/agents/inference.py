"""Inference: from observations to the rules that explain them.

Observations are exact up to rounding, so a rule is either consistent with all of them or false; the
question is which rules are consistent. For every family many structures (which fields, in which
order, in which directions) are started at many places and fitted together (`fitting`); the worst
are dropped, the rest is fitted further. A fit stops at the first consistent place it meets, so the
survivors of different starts spread over the set of consistent rules: a *committee*, whose members
vote on what to do, and where they disagree is where the next probe should lie (query by committee,
Seung, Opper and Sompolinsky 1992).

What is taken as known beside the prompt is the form of the contract: that three fields are relevant,
and how a score makes utilities. Nothing is known of sizes, thresholds, or which change comes when.

A triple of fields is ruled out beforehand when two points agree on all three and answer differently.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from adaexplore.benchmark.game.agents import fitting, hypotheses, starts
from adaexplore.benchmark.game.agents.fitting import Data
from adaexplore.benchmark.game.agents.hypotheses import Hypothesis, Indices, Swarm
from adaexplore.benchmark.game.agents.starts import Triples
from adaexplore.benchmark.world import utility
from adaexplore.benchmark.world.constraints import Flags
from adaexplore.benchmark.world.fields import FAMILIES, LEXICOGRAPHIC, Floats

TEMPERATURE: Final = 0.002
"""A loss higher by this leaves a hypothesis an eighth of its vote."""
ENOUGH: Final = 30
"""Observations above which a rule that explains them all is taken to be the only one."""
SETTLED: Final = 0.001
"""A loss up to this explains everything; no further structures are tried."""
_TRIPLES: Final = tuple(itertools.combinations(range(8), 3))
_TABLE_STEPS: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How hard a fit tries."""

    starts: int = 240
    lexicographic_starts: int = 640
    """Lexicographic rules have an order and a band beside the rest."""
    rounds: int = 4
    parents: int = 6
    copies: int = 24
    """Mutants: how often, of how many of the best, and how many of each."""
    members: int = 12
    """Most hypotheses of one family that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committee:
    """Hypotheses that explain the observations, best first, with votes that sum to 1."""

    members: tuple[Hypothesis, ...]
    losses: tuple[float, ...]
    votes: tuple[float, ...]

    @property
    def best(self) -> Hypothesis:
        """The hypothesis with most votes."""
        return self.members[0]


def fit(
    known: Data,
    effort: Effort,
    *,
    near: Sequence[Hypothesis] = (),
    origin: Hypothesis | None = None,
) -> Committee:
    """The committee of observations.

    Args:
        known: The observations.
        effort: How hard to try.
        near: Hypotheses to start from beside the fresh ones; they come first among equals.
        origin: A rule that was in force before; where rules explain equally well, those that
            differ less from it have more votes.
    """
    triples = possible_triples(known)
    purpose = str(len(known.points))  # other starts at every revision
    swarms = []
    for family in FAMILIES:
        count = effort.lexicographic_starts if family == LEXICOGRAPHIC else effort.starts
        own = hypotheses.swarm(family, [h for h in near if h.family == family])
        own = own.pick(np.flatnonzero(starts.allowed(own.fields, triples)))
        many = hypotheses.join([own, starts.fresh(family, triples, count, purpose)])
        swarms.append(_settled(many, known, effort))
    return committee(_evolved(swarms, known, triples, effort), known, origin)


def revise(known: Data, held: Committee, origin: Hypothesis | None, effort: Effort) -> Committee:
    """The committee after more observations: its members fitted again, if that is enough."""
    swarms = []
    for family in dict.fromkeys(member.family for member in held.members):
        many = hypotheses.swarm(family, [m for m in held.members if m.family == family])
        swarms.append(fitting.polish(many, known, 8))
    refined = committee(swarms, known, origin)
    if refined.losses[0] <= SETTLED and len(known.points) >= ENOUGH:
        return refined
    return fit(known, effort, near=refined.members, origin=origin)


def possible_triples(known: Data) -> Triples:
    """Triples of columns that the fewest pairs of points contradict (none, without a drift)."""
    differ, apart = _pairs(known)
    differ = differ[apart]
    against = [int((~(differ[:, a] | differ[:, b] | differ[:, c])).sum()) for a, b, c in _TRIPLES]
    return tuple(t for t, n in zip(_TRIPLES, against, strict=True) if n == min(against))


def moved_columns(known: Data) -> tuple[int, ...]:
    """Columns that mattered for certain: two points differ in one of them alone, and in the answer."""
    differ, apart = _pairs(known)
    alone = apart & (differ.sum(axis=1) == 1)
    return tuple(int(c) for c in np.flatnonzero(differ[alone].any(axis=0)))


def _pairs(known: Data) -> tuple[Flags, Flags]:
    """For all pairs of points: where they differ, (pairs, 8), and whether their answers do."""
    i, k = np.triu_indices(len(known.points), 1)
    apart = known.low[0][:, 0][i] > known.high[0][:, 0][k]
    apart |= known.high[0][:, 0][i] < known.low[0][:, 0][k]
    return known.points[i] != known.points[k], apart & known.single[i] & known.single[k]


def _settled(many: Swarm, known: Data, effort: Effort) -> Swarm:
    """The best of a swarm after fitting, the worst being dropped on the way."""
    for steps, part in ((2, 4), (3, 4), (4, 1)):
        many = fitting.polish(many, known, steps)
        many = _best(many, known, max(effort.members, many.band.size // part))
    return _best(many, known, effort.members)


def _evolved(swarms: list[Swarm], known: Data, triples: Triples, effort: Effort) -> list[Swarm]:
    """Swarms after some rounds of mutants, for the families that are still in the race."""
    for turn in range(effort.rounds):
        least = [float(fitting.loss_of(many, known)[0]) for many in swarms]
        bar = min(least)
        if bar <= SETTLED and (turn or len(known.points) >= ENOUGH):
            break
        swarms = [
            many
            if loss <= SETTLED or loss > 3.0 * bar + 0.1
            else _bred(many, known, triples, effort, turn)
            for many, loss in zip(swarms, least, strict=True)
        ]
    return swarms


def _bred(many: Swarm, known: Data, triples: Triples, effort: Effort, turn: int) -> Swarm:
    """A swarm with its best mutants in the place of its worst members."""
    parents = many.pick(distinct(many)[: effort.parents])
    young = starts.mutants(parents, effort.copies, triples, f"{len(known.points)} {turn}")
    young = _best(fitting.polish(young, known, 3), known, effort.members)
    young = fitting.polish(young, known, 6)
    return _best(hypotheses.join([many, young]), known, effort.members)


def distinct(many: Swarm) -> Indices:
    """Position of the first hypothesis of every structure, in the swarm's order."""
    order = np.argsort(many.fields, axis=0)
    if many.family == LEXICOGRAPHIC:
        order = np.broadcast_to(np.arange(3)[:, None], order.shape)  # here the order has a meaning
    fields = np.take_along_axis(many.fields, order, axis=0)
    signs = np.take_along_axis(many.signs, order, axis=0).astype(np.intp)
    structures = np.concatenate([fields, signs])
    return np.sort(np.unique(structures, axis=1, return_index=True)[1])


def _best(many: Swarm, known: Data, count: int) -> Swarm:
    return many.pick(np.argsort(fitting.loss_of(many, known), kind="stable")[:count])


def committee(swarms: Sequence[Swarm], known: Data, origin: Hypothesis | None) -> Committee:
    """The members of several swarms by their loss, without those that have no vote to speak of."""
    found = []
    for many in swarms:
        for i, loss in enumerate(fitting.loss_of(many, known)):
            member = many.one(i)
            away = 0 if origin is None else changes(origin, member)
            found.append((round(float(loss) + TEMPERATURE * away, 9), float(loss), member))
    found.sort(key=lambda entry: entry[0])
    least = found[0][0]
    kept = [entry for entry in found if entry[0] - least < 6.0 * TEMPERATURE]
    odds = [1.0 + (cost - least) / TEMPERATURE for cost, _, _ in kept]
    raw = [1.0 / (o * o * o) for o in odds]
    total = sum(raw)
    return Committee(
        members=tuple(member for _, _, member in kept),
        losses=tuple(loss for _, loss, _ in kept),
        votes=tuple(round(r / total, 9) for r in raw),
    )


def changes(before: Hypothesis, after: Hypothesis) -> int:
    """How many changes make one rule the other: fields, directions of kept fields, family."""
    old, new = before.directions, after.directions
    replaced = len(set(new) - set(old))
    reversed_ = sum(1 for field, d in new.items() if old.get(field, d) != d)
    return replaced + reversed_ + 2 * (before.family != after.family)


# -- what a committee believes -----------------------------------------------------------------


def predicted_scores(held: Committee, points: Floats) -> Floats:
    """Clipped scores, shape (members, n), at normalised points, shape (n, 8)."""
    result = np.empty((len(held.members), len(points)))
    for family in FAMILIES:
        own = [i for i, member in enumerate(held.members) if member.family == family]
        if own:
            many = hypotheses.swarm(family, [held.members[i] for i in own])
            result[own] = np.clip(hypotheses.scores(many, points), -1.0, 1.0).T
    return result


def expected_utilities(held: Committee, points: Floats) -> Floats:
    """Utilities of the four actions that the members expect on the average, shape (n, 4)."""
    index = np.rint((predicted_scores(held, points) + 1.0) * _TABLE_STEPS).astype(np.intp)
    weighted = _table()[index] * np.asarray(held.votes)[:, None, None]
    total: Floats = np.add.reduce(weighted, axis=0)
    return np.round(total, 9)


def best_actions(held: Committee, points: Floats) -> list[int]:
    """Action index with the highest expected utility at each point."""
    return [int(a) for a in np.argmax(expected_utilities(held, points), axis=1)]


@lru_cache(maxsize=1)
def _table() -> Floats:
    # Utilities are looked up, because numpy's exp differs between processors.
    grid = [i / _TABLE_STEPS for i in range(-_TABLE_STEPS, _TABLE_STEPS + 1)]
    return np.asarray(utility.of_scores(grid))
