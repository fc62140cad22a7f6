"""Acceptance: which candidates make an episode, and which of its population become its cases.

A candidate is worth playing only if every action pays somewhere, every relevant field matters, the
drift changes enough answers but not nearly all, and no constant answer does well. Each test has a
reason by which its rejections are counted. Source: paper, episode generation; the thresholds of
`Parameters` are decisions of ours.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adaexplore.benchmark.world import utility
from adaexplore.benchmark.world.episodes import BATCH_SIZE, BATCHES, World
from adaexplore.benchmark.world.population import Population
from adaexplore.benchmark.world.rules import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What a candidate must satisfy; frozen with the dataset."""

    pool_size: int = 6000
    """Rows of the population sample that calibration and acceptance are measured on."""
    attempts: int = 400
    """Candidates tried for one episode before the search ends with an error."""
    threshold_quantiles: tuple[float, float] = (0.30, 0.70)
    """Thresholds lie between these quantiles of the field's own population."""
    settled_share: tuple[float, float] = (0.35, 0.65)
    """Share of cases that a lexicographic rule's first, and then second, field settles."""
    boundary_margin: float = 0.01
    """Cases whose score lies this near to a boundary, under either rule, are not drawn."""
    max_boundary_share: float = 0.10
    min_action_share_pre: float = 0.10
    min_action_share_post: float = 0.05
    min_relevance: float = 0.10
    """Share of rows whose best action changes when one relevant field alone is redrawn."""
    flip_rate: tuple[float, float] = (0.25, 0.85)
    max_constant_ca: float = 0.20
    """Calibrated accuracy that no constant action may exceed in either phase."""
    change_batches: tuple[int, ...] = (5, 6, 7, 8)


class RejectedError(Exception):
    """A candidate that fails a test; the argument is the reason."""


def require(condition: object, reason: str) -> None:
    """Reject the candidate under this reason unless the condition holds (RejectedError)."""
    if not condition:
        raise RejectedError(reason)


def accept(world: World, pool: Population, limits: Parameters, rng: np.random.Generator) -> Any:
    """Flags of the pool rows outside the boundary margin, once every test has passed."""
    episode = world.episode
    scores = [world.scores(rule, pool.values) for rule in (episode.pre, episode.post)]
    best = [utility.best_actions(s) for s in scores]
    eligible = np.ones(len(pool.values), dtype=bool)
    for s in scores:
        eligible &= utility.boundary_distances(s) > limits.boundary_margin
    require(1.0 - eligible.mean() <= limits.max_boundary_share, "mass at boundaries")
    least = (limits.min_action_share_pre, limits.min_action_share_post)
    for name, actions, share in zip(("pre", "post"), best, least, strict=True):
        shares = np.bincount(actions[eligible], minlength=4) / eligible.sum()
        require(shares.min() >= share, f"rare action {name}")
    flips = float((best[0] != best[1]).mean())
    require(limits.flip_rate[0] <= flips <= limits.flip_rate[1], "flip rate")
    for rule, actions in zip((episode.pre, episode.post), best, strict=True):
        _require_relevance(world, pool, rule, limits.min_relevance, actions, rng)
    return eligible


def _require_relevance(
    world: World, pool: Population, rule: Rule, least: float, best: Any, rng: np.random.Generator
) -> None:
    for field_id in rule.field_ids:
        redrawn = pool.values.copy()
        column = world.episode.visible_fields.index(field_id)
        redrawn[:, column] = rng.permutation(redrawn[:, column])
        changed = utility.best_actions(world.scores(rule, redrawn)) != best
        require(changed.mean() >= least, "irrelevant field")


# -- cases -------------------------------------------------------------------------------------


def with_cases(
    world: World,
    pool: Population,
    eligible: Any,
    limits: Parameters,
    rng: np.random.Generator,
) -> World:
    """The world with its cases, half of every batch flip cases, no vector twice.

    Args:
        world: A candidate that `accept` has passed.
        pool: Its population, shape (n, 8).
        eligible: Flags of the rows that may become cases, shape (n,).
        limits: For the last test, on constant actions.
        rng: Generator to draw from.

    Raises:
        RejectedError: Too few distinct rows, or a constant action does well on the drawn cases.
    """
    _, first = np.unique(pool.values, axis=0, return_index=True)
    rows = np.sort(first)[eligible[np.sort(first)]]
    pre, post = (
        utility.best_actions(world.scores(rule, pool.values[rows]))
        for rule in (world.episode.pre, world.episode.post)
    )
    total = BATCHES * BATCH_SIZE
    flips, stays = rows[pre != post], rows[pre == post]
    require(min(len(flips), len(stays)) >= total // 2, "too few distinct cases")
    batches = _mixed(flips, stays, rng)
    iid = rng.permutation(rows)[:total].reshape(BATCHES, BATCH_SIZE)
    episode = replace(
        world.episode,
        cases=tuple(_rows(pool, batch) for batch in batches),
        iid_cases=tuple(_rows(pool, batch) for batch in iid),
    )
    world = replace(world, episode=episode)
    require_no_constant(world, limits)
    return world


def _mixed(flips: Any, stays: Any, rng: np.random.Generator) -> list[Any]:
    """Batches of row numbers, half from each side, in shuffled positions."""
    half = BATCH_SIZE // 2
    first, second = (rng.permutation(part)[: BATCHES * half] for part in (flips, stays))
    parts = (slice(number * half, (number + 1) * half) for number in range(BATCHES))
    return [rng.permutation(np.concatenate([first[part], second[part]])) for part in parts]


def require_no_constant(world: World, limits: Parameters) -> None:
    """Reject a world where one action, given always, does well in a phase (RejectedError)."""
    episode = world.episode
    for rule, phase in (
        (episode.pre, episode.cases[: episode.change_batch]),
        (episode.post, episode.cases[episode.change_batch :]),
    ):
        values = np.asarray(world.utilities(rule, [row for batch in phase for row in batch]))
        low, high = values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True)
        share = ((values - low) / (high - low)).mean(axis=0)
        accuracy = (share - share.mean()) / (1.0 - share.mean())
        require(accuracy.max() <= limits.max_constant_ca, "constant action scores")


def _rows(pool: Population, indices: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(v) for v in pool.values[i]) for i in indices)
