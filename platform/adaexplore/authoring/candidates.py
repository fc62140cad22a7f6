"""Candidates: episodes that the search found, on their way through audit, review and selection.

Selection keeps, for each family, the same number of the best among those whose every score is high
enough. Source: paper, episode generation and quality review.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adaexplore.authoring import drafts
from adaexplore.authoring.ideas import Minimum
from adaexplore.benchmark.world import search
from adaexplore.benchmark.world.domains import Domain
from adaexplore.benchmark.world.episodes import Review, World
from adaexplore.benchmark.world.fields import Family, Field
from adaexplore.benchmark.world.rules import Rule
from adaexplore.errors import SearchError


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One searched episode; its id stands in the episode until a dataset gives it another."""

    world: World
    refused: frozenset[frozenset[str]] = frozenset()
    """Sets of distractors that an audit has refused for it."""

    @property
    def candidate_id(self) -> str:
        """Such as `conjunctive_gating-03`."""
        return self.world.episode.episode_id

    @property
    def family(self) -> Family:
        """Family of the hidden rule."""
        return self.world.episode.pre.family

    @property
    def distractors(self) -> frozenset[str]:
        """Visible fields that neither rule reads."""
        episode = self.world.episode
        read = {*episode.pre.field_ids, *episode.post.field_ids}
        return frozenset(episode.visible_fields) - read

    def scenario(self) -> dict[str, Any]:
        """Title, role, question and action ladder of the domain."""
        domain = self.world.domain
        actions = [
            {"action_id": a.action_id, "display_name": a.display_name, "description": a.description}
            for a in domain.actions
        ]
        head = {"title": domain.title, "role": domain.role, "question": domain.question}
        return drafts.scenario({**head, "actions": actions})

    def shown(self, *, texts: bool) -> dict[str, Any]:
        """The candidate as auditors and reviewers read it; `texts`: with those of its event."""
        episode = self.world.episode
        change = episode.transition
        told = {"trigger_event": change.trigger_event, "change_reason": change.change_reason}
        return {
            "candidate_id": self.candidate_id,
            "family": self.family,
            "fields": [_told(field) for field in self.world.fields],
            "core_before": _core(episode.pre),
            "core_after": _core(episode.post),
            "change": {
                "replaced": change.outgoing,
                "replaced_by": change.incoming,
                "direction_reversed": change.reversed,
                **(told if texts else {}),
            },
            "distractors": [f for f in episode.visible_fields if f in self.distractors],
        }


def _told(field: Field) -> dict[str, Any]:
    return {
        "field_id": field.field_id, "display_name": field.display_name, "unit": field.unit,
        "description": field.description, "pressure_direction": field.pressure_direction,
    }  # fmt: skip


def _core(rule: Rule) -> list[dict[str, Any]]:
    return [{"field_id": slot.field_id, "direction": slot.direction} for slot in rule.slots]


# -- searching ---------------------------------------------------------------------------------


def searcher(domain: Domain, family: Family, seed: int) -> search.Searcher:
    """The search that finds, and redraws, candidates of one family."""
    return search.Searcher(domain=domain, family=family, seed=seed, parameters=search.Parameters())


def found(domain: Domain, family: Family, seed: int, count: int) -> list[Candidate]:
    """`count` candidates of one family; SearchError if the domain does not carry them."""
    ids = tuple(f"{family}-{number:02d}" for number in range(1, count + 1))
    result = searcher(domain, family, seed).search(ids)
    return [Candidate(world=world) for world in result.worlds]


def redrawn(candidate: Candidate, seed: int) -> Candidate | None:
    """The candidate after its distractors were refused, with new ones; None if there are none."""
    refused = candidate.refused | {candidate.distractors}
    finder = searcher(candidate.world.domain, candidate.family, seed)
    try:
        world = finder.redraw(candidate.world, refused, len(refused))
    except SearchError:
        return None
    return Candidate(world=world, refused=refused)


# -- selecting ---------------------------------------------------------------------------------


def reviewed(candidate: Candidate, review: Review) -> Candidate:
    """The candidate with its scores in the episode."""
    episode = replace(candidate.world.episode, review=review)
    return replace(candidate, world=replace(candidate.world, episode=episode))


def qualified(candidates: Iterable[Candidate], minimum: Minimum) -> list[Candidate]:
    """Those that score above the minimum on every dimension, best aggregate first.

    The aggregate is the sum of the three scores; equal ones keep their order.
    """
    passed = [c for c in candidates if _above(c.world.episode.review, minimum)]
    return sorted(passed, key=lambda c: -_aggregate(c.world.episode.review))


def _above(review: Review | None, minimum: Minimum) -> bool:
    names = Review.__dataclass_fields__
    return review is not None and all(getattr(review, n) > getattr(minimum, n) for n in names)


def _aggregate(review: Review | None) -> int:
    """Tenths of a point, so that sums of scores compare exactly."""
    if review is None:
        return 0
    return sum(round(10 * getattr(review, name)) for name in Review.__dataclass_fields__)


def selected(
    ranked: Mapping[Family, Sequence[Candidate]], each: int, domain_id: str
) -> list[Candidate]:
    """The best `each` of every family, in rounds; SearchError naming the families that have fewer."""
    short = [f"{family} {len(best)}" for family, best in ranked.items() if len(best) < each]
    if short:
        raise SearchError(
            f"{domain_id}: expected {each} episodes of each family to pass audit and review, got "
            f"{', '.join(short)}; ask for more candidates (plan.candidates_each), or for fewer "
            "episodes (plan.episodes_each), and run again"
        )
    return [best[number] for number in range(each) for best in ranked.values()]
