"""Summaries: what a dataset is made of, in numbers that a reader can check.

Flip rates are told twice. The *natural* rate is measured on a population drawn anew, with a seed of
its own, so it does not repeat what the search measured; the *sampled* rate is that of the cases drawn
without control of flips. The evaluation cases themselves hold half by design.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np

from adaexplore.benchmark.world import population, rules, seeds, utility
from adaexplore.benchmark.world.episodes import Batches, World
from adaexplore.benchmark.world.fields import FAMILIES, Family, Floats

POOL: Final = 2000
"""Rows of the fresh population of each episode."""
PHASES: Final = ("before", "after")
ACTION_COUNT: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeSummary:
    """One episode in numbers."""

    episode_id: str
    domain_id: str
    family: Family
    change_batch: int
    natural_flip_rate: float
    sampled_flip_rate: float
    best: Mapping[str, Floats]
    """By phase: cases for which each action is best, shape (4,)."""
    evidence: Floats
    """Raw evidence of the fresh population under the rule before the change, shape (n,)."""
    scores: Mapping[str, Floats]
    """By phase: intervention scores of the fresh population, shape (n,)."""


def summarise(world: World) -> EpisodeSummary:
    """The summary of an episode, the same on every machine."""
    episode = world.episode
    pool = population.draw(
        world.domain,
        episode.visible_fields,
        POOL,
        seeds.generator("dataset summary", episode.episode_id),
        drifting=(episode.transition.outgoing, episode.transition.incoming),
    )
    scores = [world.scores(rule, pool.values) for rule in (episode.pre, episode.post)]
    before, after = (utility.best_actions(s) for s in scores)
    return EpisodeSummary(
        episode_id=episode.episode_id,
        domain_id=world.domain.domain_id,
        family=episode.pre.family,
        change_batch=episode.change_batch,
        natural_flip_rate=float((before != after).mean()),
        sampled_flip_rate=_flip_rate(world, episode.iid_cases),
        best=_best(world),
        evidence=rules.evidence(episode.pre, pool.columns()),
        scores=dict(zip(PHASES, scores, strict=True)),
    )


def _flip_rate(world: World, batches: Batches) -> float:
    rows = list(chain(*batches))
    pre, post = (
        utility.best_actions(world.scores(rule, rows))
        for rule in (world.episode.pre, world.episode.post)
    )
    return float((pre != post).mean())


def _best(world: World) -> dict[str, Floats]:
    episode = world.episode
    phases = (
        (episode.pre, episode.cases[: episode.change_batch]),
        (episode.post, episode.cases[episode.change_batch :]),
    )
    counts = {}
    for name, (rule, batches) in zip(PHASES, phases, strict=True):
        best = utility.best_actions(world.scores(rule, list(chain(*batches))))
        counts[name] = np.bincount(best, minlength=ACTION_COUNT).astype(np.float64)
    return counts


# -- over episodes -----------------------------------------------------------------------------


def by_family(found: Sequence[EpisodeSummary]) -> dict[Family, list[EpisodeSummary]]:
    """Summaries by family, in the usual order, without the families that have none."""
    groups = {family: [s for s in found if s.family == family] for family in FAMILIES}
    return {family: group for family, group in groups.items() if group}


def by_domain(found: Sequence[EpisodeSummary]) -> dict[str, list[EpisodeSummary]]:
    """Summaries by domain, sorted."""
    domains = sorted({s.domain_id for s in found})
    return {domain: [s for s in found if s.domain_id == domain] for domain in domains}


def action_shares(found: Sequence[EpisodeSummary], phase: str) -> list[float]:
    """Share of the phase's cases, over all episodes, for which each of the four actions is best."""
    total = np.sum([s.best[phase] for s in found], axis=0)
    return [float(count) for count in total / total.sum()]


def change_batches(found: Sequence[EpisodeSummary]) -> dict[int, int]:
    """Episodes by change batch, in order."""
    counts = Counter(s.change_batch for s in found)
    return {batch: counts[batch] for batch in sorted(counts)}
