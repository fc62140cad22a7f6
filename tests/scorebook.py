"""Records with planted results, for tests of statistics: small, legal, and known in advance."""

from adaexplore.benchmark.game.assessment import Assessment
from adaexplore.benchmark.game.records import CaseRecord, Counts, EpisodeRecord, ProbeRecord

VISIBLE = tuple(f"f{i}" for i in range(8))
PRE = {"f0": 1, "f1": 1, "f2": -1}
POST = {"f0": 1, "f1": -1, "f3": -1}
"""f3 takes the place of f2, f1 turns round."""
UTILITIES = (0.6, 0.2, -0.4, -0.4)
"""p is 1, 0.6, 0 and 0 by action, b is 0.4; calibrated: 1, 1/3, -2/3 and -2/3."""
BEST, MIDDLING, WORST = 0, 1, 2


def case(number, batch, action):
    return CaseRecord(
        context_id=f"case_{number:03d}", batch_number=batch, action=action, utilities=UTILITIES
    )


def cases(actions):
    """Cases from the actions of each batch: {batch: [action, ...]}."""
    chosen = [(batch, action) for batch, row in sorted(actions.items()) for action in row]
    return tuple(case(number, batch, action) for number, (batch, action) in enumerate(chosen, 1))


def probes(before=(), after=(), change_batch=6):
    """Probes at named points, before and after the change."""
    placed = [(change_batch, x) for x in before] + [(change_batch + 1, x) for x in after]
    return tuple(
        ProbeRecord(
            context_id=f"probe_{number:03d}",
            batch_number=batch,
            base_context_id=None,
            row=(point,) * 8,
            utilities=UTILITIES,
        )
        for number, (batch, point) in enumerate(placed, 1)
    )


def assessments(pre=None, post=None, status="completed"):
    told = {"pre": pre, "post": post}
    return tuple(
        Assessment(phase=phase, status=status, directions=directions)
        for phase, directions in told.items()
        if directions is not None
    )


def record(episode="e1", *, actions=None, drifts=True, change_batch=6, **parts):
    """An episode run; what is not given is empty."""
    actions = {1: [BEST]} if actions is None else actions
    return EpisodeRecord(
        **{
            "episode_id": episode,
            "domain_id": "ward",
            "family": "additive_aggregation",
            "setting": "default" if drifts else "stationary",
            "drifts": drifts,
            "change_batch": change_batch,
            "visible_fields": VISIBLE,
            "status": "completed",
            "hidden_digest": f"digest of {episode}",
            "observation_digest": "",
            "truth": {"pre": PRE, "post": POST} if drifts else {"post": PRE},
            "cases": cases(actions),
            "probes": (),
            "assessments": (),
            "faults": (),
            "counts": Counts(),
            **parts,
        }
    )


def scoring(episode, hits, of=8, **parts):
    """An episode run with so many best and otherwise worst actions, all in one batch."""
    return record(episode, actions={1: [BEST] * hits + [WORST] * (of - hits)}, **parts)


def accuracy(hits, of=8):
    """Calibrated accuracy of `scoring`."""
    return (hits / of - 0.4) / 0.6
