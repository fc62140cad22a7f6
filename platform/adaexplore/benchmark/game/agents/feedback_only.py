"""`feedback_only`: learn from what one's own actions earn, and from nothing else.

Where finished cases stay readable, every case tells the utility of the action that was chosen, and
a rule is fitted to them. Where they are taken out, an outcome says only what each action earned in
cases that cannot be seen any more: a bandit with four arms (Robbins 1952). The agent's own actions
are taken out as well, so it plays a plan that follows from the outcomes and can be worked out
again. It never probes unless it has to, and shows what exploration is worth.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from adaexplore.benchmark.game.agents import calls, designs, inference, points
from adaexplore.benchmark.game.agents.beliefs import choose, observed, report
from adaexplore.benchmark.game.agents.hypotheses import Hypothesis
from adaexplore.benchmark.game.agents.inference import Committee, Effort
from adaexplore.benchmark.game.agents.points import Space
from adaexplore.benchmark.game.agents.reading import SeenCase, SeenOutcome, read
from adaexplore.benchmark.game.agents.simple import filler
from adaexplore.benchmark.game.protocol import Message
from adaexplore.benchmark.world.utility import ACTIONS

_TRIAL_WINDOWS: Final = 2
"""Windows in which the bandit tries every action in turn."""
_PRIOR: Final = (0.0, 0.06, 0.06, 0.0)
"""Expected utilities before any outcome: the middle actions miss by less."""
_PRIOR_CASES: Final = 32
"""Outcomes that the prior weighs as much as."""
_SURPRISE: Final = 0.25
"""Mean error of expected utilities in a batch that makes a settled belief look outdated."""
_SETTLED_CASES: Final = 16
_FIRST: Final = Effort(starts=160, lexicographic_starts=200, rounds=2, copies=16)
_LATER: Final = Effort(starts=60, lexicographic_starts=80, rounds=2, copies=16)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Belief:
    """What is held since the last change that was suspected."""

    evidence: tuple[SeenCase, ...]
    origin: Hypothesis | None
    committee: Committee


def feedback_only(messages: tuple[Message, ...], _seed: int) -> str:
    """Reply of the agent that learns from outcomes alone."""
    view = read(messages)
    if view.decision == "explore":
        return calls.explore(view, (), filler(view))
    belief = _belief(points.space(view), view.cases)
    held = None if belief is None else belief.committee
    if view.decision == "assess":
        return calls.assess(report(view, held))
    if held is None:
        return calls.submit(view, bandit(view.outcomes, len(view.pending)))
    return calls.submit(view, choose(view, held))


# -- cases that stay readable ------------------------------------------------------------------


@lru_cache(maxsize=512)
def _belief(where: Space, cases: tuple[SeenCase, ...]) -> _Belief | None:
    """Belief after some windows, from the belief before the last of them."""
    if not cases:
        return None
    new = tuple(case for case in cases if case.window == cases[-1].window)
    before = _belief(where, cases[: len(cases) - len(new)])
    if before is None:
        return _Belief(
            evidence=new, origin=None, committee=inference.fit(observed(where, (), new), _FIRST)
        )
    if (
        len(before.evidence) >= _SETTLED_CASES
        and _surprise(where, before.committee, new) > _SURPRISE
    ):
        origin = before.committee.best
        near = [origin, *designs.neighbours(origin)]
        held = inference.fit(observed(where, (), new), _LATER, near=near, origin=origin)
        return _Belief(evidence=new, origin=origin, committee=held)
    evidence = before.evidence + new
    held = inference.revise(observed(where, (), evidence), before.committee, before.origin, _LATER)
    return _Belief(evidence=evidence, origin=before.origin, committee=held)


def _surprise(where: Space, held: Committee, cases: tuple[SeenCase, ...]) -> float:
    """Mean distance of the utilities that were earned from those that were expected."""
    rows = tuple(case.row for case in cases)
    expected = inference.expected_utilities(held, points.normalised(where.fields, rows))
    errors = [
        abs(value - float(expected[i, action]))
        for i, case in enumerate(cases)
        for action, value in case.utilities
    ]
    return round(sum(errors) / len(errors), 9)


# -- cases that are taken out ------------------------------------------------------------------


def bandit(outcomes: tuple[SeenOutcome, ...], count: int) -> list[int]:
    """Actions of the next window: each in turn at first, then the one that has paid best."""
    earned: list[list[float]] = [[] for _ in ACTIONS]
    for window, outcome in enumerate(outcomes, start=1):
        for action, value in zip(
            _plan(earned, window, len(outcome.utilities)), outcome.utilities, strict=True
        ):
            earned[action].append(value)
    return _plan(earned, len(outcomes) + 1, count)


def _plan(earned: list[list[float]], window: int, count: int) -> list[int]:
    if window <= _TRIAL_WINDOWS:
        return [position % len(ACTIONS) for position in range(count)]
    means = [
        round((sum(values) + _PRIOR_CASES * prior) / (len(values) + _PRIOR_CASES), 9)
        for values, prior in zip(earned, _PRIOR, strict=True)
    ]
    return [means.index(max(means))] * count
