"""Episodes: one hidden rule, its drift, and the cases that an agent must decide.

An episode shows 8 fields of its domain: the three relevant ones, the incoming one and four
distractors, in a seeded order that says nothing of their roles. Every branch of an episode shares
the same cases; branches differ only in whether the rule changes after `change_batch`.
Source: paper, episode generation.
"""

import hashlib
import json
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final, TypeVar

import numpy as np

from adaexplore.benchmark.world import calibration, cases, population, rules, utility
from adaexplore.benchmark.world.calibration import Calibration
from adaexplore.benchmark.world.constraints import Constraint
from adaexplore.benchmark.world.domains import Domain
from adaexplore.benchmark.world.fields import Field, Floats, Hundredths
from adaexplore.benchmark.world.rules import Rule, Slot

T = TypeVar("T")
VISIBLE: Final = 8
BATCHES: Final = 12
BATCH_SIZE: Final = 8

Row = tuple[int, ...]
"""One case: a value for each visible field, in hundredths."""
Batches = tuple[tuple[Row, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """The compound change: one replacement, one reversal, and the event that explains both."""

    event_id: str
    outgoing: str
    incoming: str
    reversed: str
    trigger_event: str
    change_reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """Quality scores of an episode, each 0.0 to 5.0 (paper, appendix on quality review)."""

    field_realism: float
    rule_change_realism: float
    distractor_quality: float


@dataclass(frozen=True, kw_only=True)
class Episode:
    """One episode, hidden side included."""

    episode_id: str
    domain_id: str
    visible_fields: tuple[str, ...]
    pre: Rule
    post: Rule
    calibration: Calibration
    change_batch: int
    """The rule changes after this batch completes; batches count from 1."""
    transition: Transition
    cases: Batches
    """Half of every batch are flip cases: their best action differs between the two rules."""
    iid_cases: Batches
    """Drawn without control of flips, for the stationary_iid setting."""
    review: Review | None
    """None until a review has been made; never invented."""

    def rule_in_force(self, batch_number: int, *, drifts: bool) -> Rule:
        """The rule for probes and cases of a batch window."""
        return self.post if drifts and batch_number > self.change_batch else self.pre


@dataclass(frozen=True, kw_only=True)
class World:
    """An episode bound to its domain: what probes and cases are worth."""

    domain: Domain
    episode: Episode

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """Visible fields, in the order the agent sees."""
        return tuple(self.domain.catalog[field_id] for field_id in self.episode.visible_fields)

    @cached_property
    def digest(self) -> str:
        """Digest of everything the episode hides and shows: equal digests mean equal episodes."""
        document = to_document(self)
        return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        """Constraints that cases and probes of this episode must satisfy."""
        return self.domain.constraints_among(self.episode.visible_fields)

    def scores(self, rule: Rule, rows: Sequence[Row] | Hundredths) -> Floats:
        """Intervention scores of rows (hundredths, shape (n, 8)) under a rule; shape (n,)."""
        places = [self.episode.visible_fields.index(name) for name in rule.field_ids]
        used = tuple(self.fields[place] for place in places)
        columns = population.normalised(used, np.asarray(rows, dtype=np.int64)[:, places])
        return calibration.score(self.episode.calibration, rules.evidence(rule, columns))

    def utilities(self, rule: Rule, rows: Sequence[Row]) -> list[utility.Utilities]:
        """Unrounded utilities of the four actions for each row under a rule."""
        score = self.once(
            rule, lambda: cases.scorer(self.fields, rule, self.episode.calibration)
        )  # fmt: skip
        return utility.of_scores(map(score, rows))

    def batch_utilities(self, rule: Rule, rows: tuple[Row, ...]) -> list[utility.Utilities]:
        """As `utilities`, for a batch of cases: kept, since all models and settings meet the same."""
        return self.once((rule, rows), lambda: self.utilities(rule, rows))

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` returns, made once and shared by all models and seeds that meet the episode.

        `key` says what it is made of, beside the world itself; nobody may change what is shared.
        """
        found: T | None = self._made.get(key)
        if found is None:
            found = self._made[key] = make()
        return found

    @cached_property
    def _made(self) -> dict[Hashable, Any]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """What goes to another process: all but what is made of it, which is made there again."""
        return {name: value for name, value in vars(self).items() if name != "_made"}

    def numbers(self, row: Row) -> dict[str, int | float]:
        """A row as the numbers that the agent sees, by field id."""
        return {
            field.field_id: field.from_hundredths(value)
            for field, value in zip(self.fields, row, strict=True)
        }


@cache
def case_id(batch_number: int, position: int, batch_size: int = BATCH_SIZE) -> str:
    """Id of a case: numbered through the episode, so that it says nothing but its place.

    All episodes under way share these few words, and those of `probe_id`.
    """
    return f"case_{(batch_number - 1) * batch_size + position + 1:03d}"


@cache
def probe_id(number: int) -> str:
    """Id of the episode's probe of this number; the first is 1."""
    return f"probe_{number:03d}"


# -- documents ---------------------------------------------------------------------------------


def to_document(world: World) -> dict[str, Any]:
    """The episode as plain JSON data, values as the agent sees them."""
    episode = world.episode
    return {
        "episode_id": episode.episode_id,
        "domain_id": episode.domain_id,
        "visible_fields": list(episode.visible_fields),
        "change_batch": episode.change_batch,
        "transition": _plain(episode.transition),
        "pre": _rule_document(episode.pre),
        "post": _rule_document(episode.post),
        "calibration": _plain(episode.calibration),
        "review": None if episode.review is None else _plain(episode.review),
        "cases": _case_document(world, episode.cases),
        "iid_cases": _case_document(world, episode.iid_cases),
    }


def from_document(document: dict[str, Any], domain: Domain) -> Episode:
    """The episode of a document; KeyError, TypeError or ValueError if it is not one."""
    visible = tuple(document["visible_fields"])
    fields = [domain.catalog[field_id] for field_id in visible]
    review = document["review"]
    return Episode(
        episode_id=document["episode_id"],
        domain_id=document["domain_id"],
        visible_fields=visible,
        pre=_rule(document["pre"]),
        post=_rule(document["post"]),
        calibration=Calibration(**document["calibration"]),
        change_batch=document["change_batch"],
        transition=Transition(**document["transition"]),
        cases=_rows(document["cases"], fields),
        iid_cases=_rows(document["iid_cases"], fields),
        review=None if review is None else Review(**review),
    )


def _plain(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in type(record).__dataclass_fields__}


def _rule_document(rule: Rule) -> dict[str, Any]:
    return {
        "family": rule.family,
        "band": rule.band,
        "slots": [_plain(slot) for slot in rule.slots],
    }


def _rule(document: dict[str, Any]) -> Rule:
    slots = tuple(Slot(**slot) for slot in document["slots"])
    return Rule(family=document["family"], slots=slots, band=document["band"])


def _case_document(world: World, batches: Batches) -> list[list[list[int | float]]]:
    return [[list(world.numbers(row).values()) for row in batch] for batch in batches]


def _rows(batches: list[list[list[float]]], fields: list[Field]) -> Batches:
    return tuple(
        tuple(
            tuple(field.to_hundredths(v) for field, v in zip(fields, row, strict=True))
            for row in batch
        )
        for batch in batches
    )
