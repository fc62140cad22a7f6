"""The search: it ends with a named reason where it cannot succeed, and never depends on chance."""

from collections import Counter
from dataclasses import replace

import pytest

from adaexplore.benchmark.world import search
from adaexplore.benchmark.world.constraints import Constraint
from adaexplore.benchmark.world.fields import FAMILIES
from adaexplore.errors import SearchError

ATTEMPTS = 3
IDS = ("e0",)
WIDE = {
    "max_boundary_share": 1.0, "min_action_share_pre": 0.0, "min_action_share_post": 0.0,
    "min_relevance": 0.0, "flip_rate": (0.0, 1.0), "max_constant_ca": 2.0,
}  # fmt: skip
"""Limits that every candidate meets."""


def find(domain, family="conjunctive_gating", ids=IDS, seed=5, **changed):
    parameters = search.Parameters(**{"attempts": ATTEMPTS, **changed})
    searcher = search.Searcher(domain=domain, family=family, seed=seed, parameters=parameters)
    return searcher.search(ids)


@pytest.mark.parametrize(
    ("reason", "family", "changed"),
    [
        (
            "mass at boundaries",
            "additive_aggregation",
            {"boundary_margin": 0.4, "max_boundary_share": 0.1},
        ),
        ("mass at boundaries", "conjunctive_gating", {"max_boundary_share": -1.0}),
        ("rare action pre", "additive_aggregation", {"min_action_share_pre": 0.3}),
        ("rare action post", "disjunctive_sufficiency", {"min_action_share_post": 0.3}),
        ("flip rate", "additive_aggregation", {"flip_rate": (0.98, 1.0)}),
        ("flip rate", "conjunctive_gating", {"flip_rate": (0.0, 0.02)}),
        ("irrelevant field", "additive_aggregation", {"min_relevance": 0.99}),
        ("constant action scores", "additive_aggregation", {"max_constant_ca": -1.0}),
        ("lexicographic shares", "lexicographic_priority", {"settled_share": (0.5, 0.5)}),
    ],
)
def test_an_impossible_limit_is_the_dominating_reason(world, reason, family, changed):
    """One limit that nothing can meet, the others wide open: the error names it, with its count."""
    with pytest.raises(SearchError) as caught:
        find(world.domain, family, **{**WIDE, **changed})

    message = str(caught.value)
    assert f"the dominating reason is '{reason}' ({ATTEMPTS})" in message
    assert f"no episode 0 of {world.domain.domain_id} / {family} in 3 candidates" in message
    assert "\n" not in message


def test_too_few_distinct_cases_are_a_reason(world):
    with pytest.raises(SearchError, match="too few distinct cases"):
        find(world.domain, **{**WIDE, "pool_size": 90})


def with_impossible_event(domain, *others):
    """The domain with its first event, made infeasible by a constraint, and some other events."""
    event = domain.events[0]
    impossible = Constraint(
        constraint_id="never_true",
        description="",
        expression={
            "op": "ge",
            "left": {"field": event.incoming},
            "right": {"op": "add", "args": [{"field": event.outgoing}, {"const": 10**9}]},
        },
    )
    families = ("conjunctive_gating",)
    fields = tuple(replace(f, eligible_families=families) for f in domain.fields)
    return replace(domain, fields=fields, events=(event, *others), constraints=(impossible,))


def test_an_infeasible_domain_names_the_constraint(world):
    """A constraint that no event can meet: the reason carries its id."""
    with pytest.raises(SearchError, match=r"'infeasible: never_true' \(3\)"):
        find(with_impossible_event(world.domain))


def test_the_reason_that_is_named_is_the_most_frequent_one(world):
    """Two events fail for a reason each; the first of them is tried 30 times in 50, not 20."""
    pair = {world.domain.events[0].outgoing, world.domain.events[0].incoming}
    other = next(e for e in world.domain.events if not {e.outgoing, e.incoming} & pair)
    wide = {**WIDE, "flip_rate": (0.98, 1.0), "pool_size": 500}
    with pytest.raises(SearchError) as caught:
        find(with_impossible_event(world.domain, other), **{**wide, "attempts": 50})
    count = int(str(caught.value).rpartition("(")[2].rstrip(")"))

    assert 25 < count < 50


def test_coarse_fields_make_quartiles_coincide(world):
    """Fields of two values leave a conjunctive rule nothing to measure."""
    fields = tuple(replace(f, type="integer", minimum=0, maximum=1) for f in world.domain.fields)
    with pytest.raises(SearchError, match="quartiles coincide"):
        find(replace(world.domain, fields=fields, constraints=()))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_domain_without_usable_events_is_refused(world, family):
    """The error says what to author."""
    with pytest.raises(SearchError, match=f"no event that {family} can use: author events"):
        find(replace(world.domain, events=()), family)


@pytest.mark.parametrize("family", FAMILIES[:3])
def test_an_event_needs_three_fields_of_the_family(world, family):
    """Outgoing, incoming and reversed must all be eligible, or the event does not count."""
    other = next(f for f in FAMILIES[:3] if f != family)
    event = world.domain.events[0]
    for spoilt in (event.outgoing, event.incoming, event.reversed):
        fields = tuple(
            replace(f, eligible_families=(other if f.field_id == spoilt else family,))
            for f in world.domain.fields
        )
        with pytest.raises(SearchError, match="has no event"):
            find(replace(world.domain, fields=fields, events=(event,)), family)


def test_lexicographic_events_need_both_triples(world):
    """Without the triple that holds the incoming field, the change would leave authored ground."""
    outgoing = {(e.outgoing, e.incoming) for e in world.domain.events}
    kept = tuple(
        triple
        for triple in world.domain.ordered_triples
        if not {b for a, b in outgoing} & set(triple.fields)
    )
    with pytest.raises(SearchError, match="has no event"):
        find(replace(world.domain, ordered_triples=kept), "lexicographic_priority")


def test_a_family_with_three_eligible_fields_has_no_third_relevant_one(world):
    """Outgoing, incoming and reversed are taken; the search ends and says what is missing."""
    event = world.domain.events[0]
    core = (event.outgoing, event.incoming, event.reversed)
    fields = tuple(
        replace(
            f,
            eligible_families=("additive_aggregation",)
            if f.field_id in core
            else ("conjunctive_gating",),
        )
        for f in world.domain.fields
    )
    with pytest.raises(SearchError, match=r"'no third eligible field' \(3\)"):
        find(replace(world.domain, fields=fields, events=(event,)), "additive_aggregation")


# -- the same inputs ---------------------------------------------------------------------------


def test_an_episode_does_not_depend_on_the_ones_after_it(world):
    """Which event the first index starts with and how its candidates are drawn is its own."""
    one = find(world.domain, attempts=100, pool_size=2000).worlds
    two = find(world.domain, attempts=100, pool_size=2000, ids=("e0", "e1")).worlds

    assert one[0].episode == two[0].episode
    assert two[0].episode.transition.event_id != two[1].episode.transition.event_id


def test_seeds_and_families_have_streams_of_their_own(world):
    """Another seed gives other episodes, the same seed the same ones with their rejections."""
    first, again = (
        find(world.domain, attempts=100, pool_size=2000),
        find(world.domain, attempts=100, pool_size=2000),
    )
    other = find(world.domain, attempts=100, pool_size=2000, seed=6)

    assert first == again
    assert first.worlds[0].episode.cases != other.worlds[0].episode.cases


def test_rejections_are_counted_by_reason(dataset):
    """The manifest tells how often each test refused a candidate, in reasons that the search has."""
    known = {
        "quartiles coincide", "mass at boundaries", "rare action pre", "rare action post",
        "flip rate", "irrelevant field", "lexicographic shares", "too few distinct cases",
        "constant action scores",
    }  # fmt: skip
    counts = dataset.manifest["splits"][dataset.split]["rejections"]

    assert all(count > 0 for count in counts.values())
    assert {reason for reason in counts if not reason.startswith("infeasible: ")} <= known


def test_change_batches_come_in_blocks(world):
    """Every four episodes of a search hold each change batch once."""
    ids = tuple(f"e{i}" for i in range(8))
    found = find(world.domain, ids=ids, **{**WIDE, "attempts": 100, "pool_size": 1500}).worlds
    batches = [w.episode.change_batch for w in found]

    assert {5, 6, 7, 8} == set(batches[:4]) == set(batches[4:])
    assert Counter(ids) == Counter(w.episode.episode_id for w in found)
