"""Episode search: candidates are drawn and tested until enough are accepted.

Every candidate is a pure function of (domain, family, parameters, seed, index, attempt). A rejected
one is counted under its reason, and the counts are reported with the dataset; a search that cannot
succeed ends with an error that names the dominating reason. What makes a candidate acceptable stands
in `acceptance`. Source: paper, episode generation.
"""

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from adaexplore.benchmark.world import acceptance, calibration, population, rules, seeds
from adaexplore.benchmark.world import fields as field_module
from adaexplore.benchmark.world.acceptance import Parameters, RejectedError, require
from adaexplore.benchmark.world.domains import Domain, Event
from adaexplore.benchmark.world.episodes import VISIBLE, Episode, Transition, World
from adaexplore.benchmark.world.fields import Family, Floats
from adaexplore.benchmark.world.population import Population
from adaexplore.benchmark.world.rules import Rule, Slot
from adaexplore.errors import SearchError

__all__ = ["Change", "Parameters", "Result", "Searcher"]

Change = tuple[str, frozenset[str]]
"""What an episode turns on: the id of its event and its relevant fields before the change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Accepted episodes and why the other candidates were rejected."""

    worlds: tuple[World, ...]
    rejections: dict[str, int]


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
    taken: frozenset[Change] = frozenset()
    """Changes of other splits, which no episode of this search may share."""

    def search(self, episode_ids: tuple[str, ...], *, among: int | None = None) -> Result:
        """One accepted episode for each id.

        Args:
            episode_ids: Ids of the episodes, in the order of their streams.
            among: How many episodes the whole search is for, when these ids are only its first
                ones; the episodes are then those of the whole search. None means just these.

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
            world = self._one(compounds, index, among or len(episode_ids), rejections)
            worlds.append(replace(world, episode=replace(world.episode, episode_id=episode_id)))
        return Result(worlds=tuple(worlds), rejections=dict(sorted(rejections.items())))

    def usable_events(self) -> tuple[Event, ...]:
        """Events of the domain that the family can use, in the order in which they are tried."""
        return tuple(dict.fromkeys(compound.event for compound in self._compounds()))

    def redraw(self, world: World, refused: Container[frozenset[str]], number: int) -> World:
        """The same change of the same relevant fields among other distractors.

        Args:
            world: An episode of this search.
            refused: Sets of distractors that may not come again.
            number: Which redraw of the episode this is, from 1.

        Raises:
            SearchError: None is found within `parameters.attempts` candidates.
        """
        episode = world.episode
        event = next(e for e in self.domain.events if e.event_id == episode.transition.event_id)
        compound = _Compound(event=event, triple=episode.pre.field_ids)
        core = {*episode.pre.field_ids, event.incoming}
        for attempt in range(self.parameters.attempts):
            rng = self._rng("redraw", episode.episode_id, number, attempt)
            try:
                found = self._candidate(compound, episode.change_batch, rng)
            except (RejectedError, population.InfeasibleError):
                continue
            if frozenset(found.episode.visible_fields) - core not in refused:
                return replace(found, episode=replace(found.episode, episode_id=episode.episode_id))
        raise SearchError(
            f"no other distractors for {episode.episode_id} of {self.domain.domain_id} / "
            f"{self.family} in {self.parameters.attempts} candidates"
        )

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
            except RejectedError as rejected:
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
            and (event.event_id, frozenset(triple)) not in self.taken
        ]

    # -- one candidate -------------------------------------------------------------------------

    def _candidate(self, compound: _Compound, change_batch: int, rng: np.random.Generator) -> World:
        event = compound.event
        relevant = compound.triple or self._relevant(event, rng)
        require((event.event_id, frozenset(relevant)) not in self.taken, "taken by another split")
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
            raise RejectedError("quartiles coincide") from None
        episode = Episode(
            episode_id="", domain_id=self.domain.domain_id, visible_fields=visible, pre=pre,
            post=post, calibration=fitted, change_batch=change_batch, transition=_transition(event),
            cases=(), iid_cases=(), review=None,
        )  # fmt: skip
        world = World(domain=self.domain, episode=episode)
        eligible = acceptance.accept(world, pool, self.parameters, rng)
        return acceptance.with_cases(world, pool, eligible, self.parameters, rng)

    def _relevant(self, event: Event, rng: np.random.Generator) -> tuple[str, ...]:
        taken = {event.outgoing, event.incoming, event.reversed}
        thirds = [
            field.field_id
            for field in self.domain.fields
            if self.family in field.eligible_families and field.field_id not in taken
        ]
        require(thirds, "no third eligible field")
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
        if self.family == field_module.LEXICOGRAPHIC:
            _require_clear_band((pre, post), columns)
        return pre, post

    def _band(self, rule: Rule, columns: rules.Columns, rng: np.random.Generator) -> float:
        low, high = self.parameters.settled_share
        first, second = (np.abs(rules.margin(slot, columns)) for slot in rule.slots[:2])
        band = _between(first, _quantile(first, 1.0 - rng.uniform(low, high)))
        rest = first <= band
        settled = float((second[rest] > band).mean())
        if not (low <= 1.0 - float(rest.mean()) <= high and low <= settled <= high):
            raise RejectedError("lexicographic shares")
        return band


BAND_MARGIN: Final = 1e-9
"""No margin of the population lies this near to the band: there the decisive field would hang on the
last bits of a float."""


def _between(values: Floats, cut: float) -> float:
    """A cut beside this one, midway between two values of the sample, so that none lies on it."""
    above, below = values[values > cut + BAND_MARGIN], values[values <= cut + BAND_MARGIN]
    if not len(above) or not len(below):
        raise RejectedError("lexicographic shares")
    return round((float(below.max()) + float(above.min())) / 2.0, 12)


def _require_clear_band(pair: tuple[Rule, Rule], columns: rules.Columns) -> None:
    for rule in pair:
        for slot in rule.slots[:2]:  # the last slot decides whatever its margin
            gaps = np.abs(np.abs(rules.margin(slot, columns)) - rule.band)
            if gaps.min() < BAND_MARGIN:
                raise RejectedError("values on the band")


def _quantile(values: Floats, q: float) -> float:
    return round(float(np.quantile(values, q, method=calibration.QUANTILE_METHOD)), 12)


def _transition(event: Event) -> Transition:
    return Transition(
        event_id=event.event_id, outgoing=event.outgoing, incoming=event.incoming,
        reversed=event.reversed, trigger_event=event.trigger_event,
        change_reason=event.change_reason,
    )  # fmt: skip
