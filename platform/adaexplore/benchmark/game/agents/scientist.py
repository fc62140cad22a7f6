"""`scientist`: explore where rivals disagree, keep checking, start over when the answers change.

The first window moves one field at a time, as `one_factor` does, and the next ones place their
probes where the rules that still explain the answers disagree. Then exploring stops, because a probe
that tells nothing new is wasted: only a few known points are asked again in every window, those at
which the rules that may come next would differ from the present one. An answer that has changed
proves that the rule has, and exploring starts again. Then what was seen before is evidence about the
old rule, and only serves to prefer, among the rules that explain the new answers, those that differ
less from it.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from adaexplore.benchmark.game.agents import calls, designs, inference, points
from adaexplore.benchmark.game.agents.beliefs import choose, observed, report
from adaexplore.benchmark.game.agents.hypotheses import Hypothesis
from adaexplore.benchmark.game.agents.inference import Committee, Effort
from adaexplore.benchmark.game.agents.one_factor import first_design
from adaexplore.benchmark.game.agents.points import Space
from adaexplore.benchmark.game.agents.reading import SeenCase, SeenProbe, View, read
from adaexplore.benchmark.game.agents.simple import filler
from adaexplore.benchmark.game.protocol import Message
from adaexplore.benchmark.world.episodes import Row

REPEATED: Final = 8
"""Known points that are asked again in every window."""
EXPLORING_WINDOWS: Final = 3
"""Windows of full exploration, at the beginning and after a change that was noticed."""
_CANDIDATES: Final = 400
_CASES: Final = 40
"""Finished cases that are used beside the probes, the latest ones; more cost time and tell little."""
_UNDERSTOOD: Final = 3
"""Windows after which a poor batch is no longer put down to ignorance."""
_POOR: Final = 0.3
"""Mean utility of a batch that is poor; best actions earn about 0.6."""
_FIRST: Final = Effort()
_LATER: Final = Effort(starts=100, lexicographic_starts=300, rounds=4, parents=5, copies=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """What is held about the rule in force since the last change that was noticed."""

    probes: tuple[SeenProbe, ...]
    cases: tuple[SeenCase, ...]
    """Evidence since that change."""
    origin: Hypothesis | None
    """The rule before it."""
    committee: Committee


def scientist(messages: tuple[Message, ...], _seed: int) -> str:
    """Reply of the agent that keeps checking."""
    view = read(messages)
    where = points.space(view)
    belief = _belief(where, view.probes, view.cases)
    held = None if belief is None else belief.committee
    if view.decision == "explore":
        return calls.explore(view, _design(where, view, belief), filler(view))
    if view.decision == "assess":
        return calls.assess(report(view, held))
    return calls.submit(view, choose(view, held))


# -- believing ---------------------------------------------------------------------------------


def _belief(
    where: Space, probes: tuple[SeenProbe, ...], cases: tuple[SeenCase, ...]
) -> Belief | None:
    """Belief at the last probed window.

    Cases count from the window after their own, so that a window whose probes reveal a change is
    never judged by the cases before it.
    """
    if not probes:
        return None
    last = probes[-1].window
    return _belief_at(where, probes, tuple(case for case in cases if case.window < last))


@lru_cache(maxsize=512)
def _belief_at(where: Space, probes: tuple[SeenProbe, ...], past: tuple[SeenCase, ...]) -> Belief:
    """Belief at the last probed window, from the belief at the one before it."""
    new = tuple(probe for probe in probes if probe.window == probes[-1].window)
    before = _belief(where, probes[: len(probes) - len(new)], past)
    if before is None:
        held = inference.fit(observed(where, new), _FIRST)
        return Belief(probes=new, cases=(), origin=None, committee=held)
    if contradicted(before.probes, new):
        return _afresh(where, before, new)
    start = before.probes[0].window
    recent = tuple(case for case in past if case.window >= start)[-_CASES:]
    return _revised(where, before, new, recent)


def contradicted(old: tuple[SeenProbe, ...], new: tuple[SeenProbe, ...]) -> bool:
    """Whether a point that was asked again is answered differently."""
    known = {probe.row: probe.utilities for probe in old}
    return any(known.get(probe.row, probe.utilities) != probe.utilities for probe in new)


def _afresh(where: Space, before: Belief, new: tuple[SeenProbe, ...]) -> Belief:
    """Belief from new answers alone, preferring rules near the one that was in force."""
    origin = before.committee.best
    near = [origin, *designs.neighbours(origin)]
    held = inference.fit(observed(where, new), _LATER, near=near, origin=origin)
    return Belief(probes=new, cases=(), origin=origin, committee=held)


def _revised(
    where: Space, before: Belief, new: tuple[SeenProbe, ...], cases: tuple[SeenCase, ...]
) -> Belief:
    """Belief from all evidence since the last change."""
    probes = before.probes + new
    known = observed(where, probes, cases)
    held = inference.revise(known, before.committee, before.origin, _LATER)
    return Belief(probes=probes, cases=cases, origin=before.origin, committee=held)


# -- asking ------------------------------------------------------------------------------------


def _design(where: Space, view: View, belief: Belief | None) -> tuple[Row, ...]:
    if belief is None:
        return first_design(where)
    most = view.probe_limits[1]
    if disappointed(view):
        return _repeated(where, belief, most)
    again = _repeated(where, belief, min(most, REPEATED))
    if view.window - belief.probes[0].window >= EXPLORING_WINDOWS:
        return again
    return again + _new(where, view, belief, most - len(again))


def disappointed(view: View) -> bool:
    """Whether the last batch earned much less than a rule that is understood would earn."""
    if len(view.outcomes) < _UNDERSTOOD:
        return False
    earned = view.outcomes[-1].utilities
    return round(sum(earned) / len(earned), 9) < _POOR


def _repeated(where: Space, belief: Belief, count: int) -> tuple[Row, ...]:
    """Known points at which the rules that may come next differ most from the present one."""
    rows = tuple(dict.fromkeys(probe.row for probe in belief.probes))
    return _most_telling(where, rows, _next_rules(belief.committee), count)


def _new(where: Space, view: View, belief: Belief, count: int) -> tuple[Row, ...]:
    """New points at which the members disagree, then those that tell what may come next."""
    asked = {probe.row for probe in view.probes}
    rows = tuple(r for r in points.sample(where, _CANDIDATES, str(view.window)) if r not in asked)
    held = belief.committee
    telling = _most_telling(where, rows, held, count)
    rest = tuple(row for row in rows if row not in telling)
    return telling + _most_telling(where, rest, _next_rules(held), count - len(telling))


def _next_rules(held: Committee) -> Committee:
    """The present rule and its neighbours, with equal votes."""
    rules = (held.best, *designs.neighbours(held.best))
    return Committee(
        members=rules, losses=(0.0,) * len(rules), votes=(1.0 / len(rules),) * len(rules)
    )


def _most_telling(
    where: Space, rows: tuple[Row, ...], rivals: Committee, count: int
) -> tuple[Row, ...]:
    scores = inference.predicted_scores(rivals, points.normalised(where.fields, rows))
    return tuple(rows[i] for i in designs.spread_out(scores, rivals.votes, count))
