"""Episode search: candidates are drawn and tested until enough are accepted.

Every candidate is a pure function of (domain, family, parameters, seed, index, attempt). A rejected
one is counted under its reason, and the counts are reported with the dataset; a search that cannot
succeed ends with an error that names the dominating reason. Source: paper, episode generation; the
thresholds below are decisions of ours.
"""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adaexplore.benchmark.world import calibration, population, rules, seeds, utility
from adaexplore.benchmark.world import fields as field_module
from adaexplore.benchmark.world.domains import Domain, Event
from adaexplore.benchmark.world.episodes import (
    BATCH_SIZE,
    BATCHES,
    VISIBLE,
    Episode,
    Transition,
    World,
)
from adaexplore.benchmark.world.fields import Family, Floats
from adaexplore.benchmark.world.population import Population
from adaexplore.benchmark.world.rules import Rule, Slot
from adaexplore.errors import SearchError


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Accepted episodes and why the other candidates were rejected."""

    worlds: tuple[World, ...]
    rejections: dict[str, int]


class _RejectedError(Exception):
    """A candidate that fails a test; the argument is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compound:
    """A change that a family can use; `triple` is the authored order of a lexicographic rule."""

    event: Event
    triple: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Searcher:
    """One domain and family, searched under one seed."""

    domain: Domain
    family: Family
    seed: int
    parameters: Parameters

    def search(self, episode_ids: tuple[str, ...]) -> Result:
        """One accepted episode for each id.

        Raises:
            SearchError: An episode is not found within `parameters.attempts` candidates, or the
                domain has no event that the family can use.
        """
        compounds = self._compounds()
        if not compounds:
            raise SearchError(
                f"domain {self.domain.domain_id} has no event that {self.family} can use: "
                "author events whose fields are eligible for the family"
            )
        rejections: Counter[str] = Counter()
        worlds = []
        for index, episode_id in enumerate(episode_ids):
            world = self._one(compounds, index, len(episode_ids), rejections)
            worlds.append(replace(world, episode=replace(world.episode, episode_id=episode_id)))
        return Result(worlds=tuple(worlds), rejections=dict(sorted(rejections.items())))

    def _one(
        self, compounds: list[_Compound], index: int, count: int, rejections: Counter[str]
    ) -> World:
        own: Counter[str] = Counter()
        for attempt in range(self.parameters.attempts):
            # A stubborn event is left after some tries for one that no other index starts with.
            compound = compounds[(index + count * (attempt // 20)) % len(compounds)]
            rng = self._rng("candidate", index, attempt)
            try:
                world = self._candidate(compound, self._change_batch(index), rng)
            except _RejectedError as rejected:
                own[str(rejected)] += 1
            except population.InfeasibleError as infeasible:
                own[infeasible.reason] += 1
            else:
                rejections.update(own)
                return world
        reason, times = own.most_common(1)[0]
        raise SearchError(
            f"no episode {index} of {self.domain.domain_id} / {self.family} in "
            f"{self.parameters.attempts} candidates; the dominating reason is '{reason}' ({times})"
        )

    def _rng(self, *purpose: str | int) -> np.random.Generator:
        return seeds.generator("search", self.seed, self.domain.domain_id, self.family, *purpose)

    def _change_batch(self, index: int) -> int:
        """Stratified: every block of four episodes holds each change batch once."""
        options = self.parameters.change_batches
        block = self._rng("change", index // len(options)).permutation(len(options))
        return options[int(block[index % len(options)])]

    def _compounds(self) -> list[_Compound]:
        if self.family == field_module.LEXICOGRAPHIC:
            found = [c for event in self.domain.events for c in self._ordered(event)]
        else:
            found = [
                _Compound(event=e, triple=None) for e in self.domain.events if self._eligible(e)
            ]
        order = self._rng("events").permutation(len(found))
        # One compound an event first, so that events repeat only when all have been used.
        shuffled = [found[i] for i in order]
        seen: Counter[str] = Counter()
        ranked = []
        for compound in shuffled:
            ranked.append((seen[compound.event.event_id], compound))
            seen[compound.event.event_id] += 1
        return [compound for _, compound in sorted(ranked, key=lambda pair: pair[0])]

    def _eligible(self, event: Event) -> bool:
        return all(
            self.family in self.domain.catalog[field_id].eligible_families
            for field_id in (event.outgoing, event.incoming, event.reversed)
        )

    def _ordered(self, event: Event) -> list[_Compound]:
        authored = {triple.fields for triple in self.domain.ordered_triples}
        return [
            _Compound(event=event, triple=triple)
            for triple in sorted(authored)
            if {event.outgoing, event.reversed} <= set(triple)
            and event.incoming not in triple
            and tuple(event.incoming if f == event.outgoing else f for f in triple) in authored
        ]

    # -- one candidate -------------------------------------------------------------------------

    def _candidate(self, compound: _Compound, change_batch: int, rng: np.random.Generator) -> World:
        event = compound.event
        relevant = compound.triple or self._relevant(event, rng)
        visible = self._visible((*relevant, event.incoming), rng)
        pool = population.draw(
            self.domain, visible, self.parameters.pool_size, rng,
            drifting=(event.outgoing, event.incoming),
        )  # fmt: skip
        pre, post = self._rules(event, relevant, pool, rng)
        columns = pool.columns()
        try:
            fitted = calibration.fit(rules.evidence(pre, columns))
        except ValueError:
            raise _RejectedError("quartiles coincide") from None
        episode = Episode(
            episode_id="", domain_id=self.domain.domain_id, visible_fields=visible, pre=pre,
            post=post, calibration=fitted, change_batch=change_batch, transition=_transition(event),
            cases=(), iid_cases=(), review=None,
        )  # fmt: skip
        world = World(domain=self.domain, episode=episode)
        eligible = self._accept(world, pool, rng)
        return self._with_cases(world, pool, eligible, rng)

    def _relevant(self, event: Event, rng: np.random.Generator) -> tuple[str, ...]:
        taken = {event.outgoing, event.incoming, event.reversed}
        thirds = [
            field.field_id
            for field in self.domain.fields
            if self.family in field.eligible_families and field.field_id not in taken
        ]
        _require(thirds, "no third eligible field")
        chosen = [event.outgoing, event.reversed, thirds[int(rng.integers(len(thirds)))]]
        return tuple(chosen[i] for i in rng.permutation(3))

    def _visible(self, core: tuple[str, ...], rng: np.random.Generator) -> tuple[str, ...]:
        rest = [field.field_id for field in self.domain.fields if field.field_id not in core]
        distractors = [
            rest[i] for i in rng.choice(len(rest), size=VISIBLE - len(core), replace=False)
        ]
        shown = [*core, *distractors]
        return tuple(shown[i] for i in rng.permutation(VISIBLE))

    def _rules(
        self, event: Event, relevant: tuple[str, ...], pool: Population, rng: np.random.Generator
    ) -> tuple[Rule, Rule]:
        columns, catalog = pool.columns(), self.domain.catalog
        strengths = [catalog[field_id].effect_strength for field_id in relevant]
        additive = self.family == field_module.ADDITIVE
        quantiles = rng.uniform(*self.parameters.threshold_quantiles, size=len(relevant))
        slots = tuple(
            Slot(
                field_id=field_id,
                direction=catalog[field_id].pressure_direction,
                weight=round(strength / sum(strengths), 12) if additive else 0.0,
                threshold=0.0 if additive else _quantile(columns[field_id], quantile),
            )
            for field_id, strength, quantile in zip(relevant, strengths, quantiles, strict=True)
        )
        pre = Rule(family=self.family, slots=slots, band=0.0)
        if self.family == field_module.LEXICOGRAPHIC:
            pre = replace(pre, band=self._band(pre, columns, rng))
        at = quantiles[relevant.index(event.outgoing)]
        post = rules.drift(
            pre, outgoing=event.outgoing, incoming=event.incoming, reversed_=event.reversed,
            threshold=0.0 if additive else _quantile(columns[event.incoming], at),
        )  # fmt: skip
        return pre, post

    def _band(self, rule: Rule, columns: rules.Columns, rng: np.random.Generator) -> float:
        low, high = self.parameters.settled_share
        first, second = (np.abs(rules.margin(slot, columns)) for slot in rule.slots[:2])
        band = _quantile(first, 1.0 - rng.uniform(low, high))
        rest = first <= band
        settled = float((second[rest] > band).mean())
        if not (low <= 1.0 - float(rest.mean()) <= high and low <= settled <= high):
            raise _RejectedError("lexicographic shares")
        return band

    # -- acceptance ----------------------------------------------------------------------------

    def _accept(self, world: World, pool: Population, rng: np.random.Generator) -> Any:
        """Flags of the pool rows outside the boundary margin, once every test has passed."""
        limits, episode = self.parameters, world.episode
        scores = [world.scores(rule, pool.values) for rule in (episode.pre, episode.post)]
        best = [utility.best_actions(s) for s in scores]
        eligible = np.ones(len(pool.values), dtype=bool)
        for s in scores:
            eligible &= utility.boundary_distances(s) > limits.boundary_margin
        _require(1.0 - eligible.mean() <= limits.max_boundary_share, "mass at boundaries")
        least = (limits.min_action_share_pre, limits.min_action_share_post)
        for name, actions, share in zip(("pre", "post"), best, least, strict=True):
            shares = np.bincount(actions[eligible], minlength=4) / eligible.sum()
            _require(shares.min() >= share, f"rare action {name}")
        flips = float((best[0] != best[1]).mean())
        _require(limits.flip_rate[0] <= flips <= limits.flip_rate[1], "flip rate")
        for rule, actions in zip((episode.pre, episode.post), best, strict=True):
            self._require_relevance(world, pool, rule, actions, rng)
        return eligible

    def _require_relevance(
        self, world: World, pool: Population, rule: Rule, best: Any, rng: np.random.Generator
    ) -> None:
        for field_id in rule.field_ids:
            redrawn = pool.values.copy()
            column = world.episode.visible_fields.index(field_id)
            redrawn[:, column] = rng.permutation(redrawn[:, column])
            changed = utility.best_actions(world.scores(rule, redrawn)) != best
            _require(changed.mean() >= self.parameters.min_relevance, "irrelevant field")

    # -- cases ---------------------------------------------------------------------------------

    def _with_cases(
        self, world: World, pool: Population, eligible: Any, rng: np.random.Generator
    ) -> World:
        _, first = np.unique(pool.values, axis=0, return_index=True)
        rows = np.sort(first)[eligible[np.sort(first)]]
        pre, post = (
            utility.best_actions(world.scores(rule, pool.values[rows]))
            for rule in (world.episode.pre, world.episode.post)
        )
        half, total = BATCH_SIZE // 2, BATCHES * BATCH_SIZE
        flips, stays = rows[pre != post], rows[pre == post]
        _require(min(len(flips), len(stays)) >= total // 2, "too few distinct cases")
        flips, stays = (rng.permutation(part).reshape(-1)[: total // 2] for part in (flips, stays))
        batches = []
        for number in range(BATCHES):
            part = slice(number * half, (number + 1) * half)
            batch = rng.permutation(np.concatenate([flips[part], stays[part]]))
            batches.append(_rows(pool, batch))
        iid = rng.permutation(rows)[:total].reshape(BATCHES, BATCH_SIZE)
        episode = replace(
            world.episode,
            cases=tuple(batches),
            iid_cases=tuple(_rows(pool, batch) for batch in iid),
        )
        world = replace(world, episode=episode)
        self._require_no_constant(world)
        return world

    def _require_no_constant(self, world: World) -> None:
        episode = world.episode
        for rule, phase in (
            (episode.pre, episode.cases[: episode.change_batch]),
            (episode.post, episode.cases[episode.change_batch :]),
        ):
            values = np.asarray(world.utilities(rule, [row for batch in phase for row in batch]))
            low, high = values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True)
            share = ((values - low) / (high - low)).mean(axis=0)
            accuracy = (share - share.mean()) / (1.0 - share.mean())
            _require(accuracy.max() <= self.parameters.max_constant_ca, "constant action scores")


def _require(condition: object, reason: str) -> None:
    if not condition:
        raise _RejectedError(reason)


def _quantile(values: Floats, q: float) -> float:
    return round(float(np.quantile(values, q, method=calibration.QUANTILE_METHOD)), 12)


def _rows(pool: Population, indices: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(v) for v in pool.values[i]) for i in indices)


def _transition(event: Event) -> Transition:
    return Transition(
        event_id=event.event_id, outgoing=event.outgoing, incoming=event.incoming,
        reversed=event.reversed, trigger_event=event.trigger_event,
        change_reason=event.change_reason,
    )  # fmt: skip
