"""Searches that belong together: first parts of a search, splits that share no change, redraws."""

from dataclasses import replace

import pytest

from adaexplore.benchmark.world import search
from adaexplore.benchmark.world.fields import FAMILIES
from adaexplore.errors import SearchError

IDS = ("e0", "e1", "e2", "e3")
QUICK = search.Parameters(pool_size=2000, attempts=100)


def searcher(domain, family="conjunctive_gating", seed=5, taken=frozenset(), parameters=QUICK):
    return search.Searcher(
        domain=domain, family=family, seed=seed, parameters=parameters, taken=taken
    )


def change(world):
    """What the episode turns on."""
    return world.episode.transition.event_id, frozenset(world.episode.pre.field_ids)


def core(world):
    return {*world.episode.pre.field_ids, world.episode.transition.incoming}


def distractors(world):
    return frozenset(world.episode.visible_fields) - core(world)


def test_the_first_part_of_a_search_is_that_of_the_whole(world):
    """So a small split can be built again without the rest of the large one."""
    whole = searcher(world.domain).search(IDS).worlds
    part = searcher(world.domain).search(IDS[:2], among=len(IDS)).worlds

    assert [w.episode for w in whole[:2]] == [w.episode for w in part]


@pytest.mark.parametrize("family", ["conjunctive_gating", "lexicographic_priority"])
def test_another_split_shares_no_change(world, family):
    """The same seed would find the same changes; told what is taken, it finds others."""
    first = searcher(world.domain, family).search(IDS).worlds
    taken = frozenset(map(change, first))
    other = searcher(world.domain, family, taken=taken).search(IDS).worlds

    assert taken & set(map(change, searcher(world.domain, family).search(IDS).worlds))
    assert not taken & set(map(change, other))


def test_a_domain_whose_only_change_is_taken_is_refused(world):
    """Three eligible fields beside the incoming one make a single change; then it ends."""
    event = world.domain.events[0]
    third = next(
        f.field_id
        for f in world.domain.fields
        if f.field_id not in (event.outgoing, event.incoming, event.reversed)
    )
    eligible = {event.outgoing, event.incoming, event.reversed, third}
    fields = tuple(
        replace(
            f,
            eligible_families=("conjunctive_gating",)
            if f.field_id in eligible
            else ("additive_aggregation",),
        )
        for f in world.domain.fields
    )
    domain = replace(world.domain, fields=fields, events=(event,))
    taken = frozenset([(event.event_id, frozenset((event.outgoing, event.reversed, third)))])

    with pytest.raises(SearchError, match="'taken by another split'"):
        searcher(domain, taken=taken, parameters=replace(QUICK, attempts=3)).search(("e0",))


@pytest.mark.parametrize("family", ["conjunctive_gating", "lexicographic_priority"])
def test_a_redraw_keeps_the_change_and_takes_other_distractors(world, family):
    """The same event, relevant fields in their order, change batch and id; nothing refused again."""
    finder = searcher(world.domain, family)
    (found,) = finder.search(IDS[:1]).worlds
    refused = {distractors(found)}
    for number in (1, 2):
        redrawn = finder.redraw(found, refused, number)
        assert change(found) == change(redrawn)
        assert found.episode.pre.field_ids == redrawn.episode.pre.field_ids
        assert found.episode.post.field_ids == redrawn.episode.post.field_ids
        assert found.episode.change_batch == redrawn.episode.change_batch
        assert found.episode.episode_id == redrawn.episode.episode_id
        assert distractors(redrawn) not in refused
        assert 4 == len(distractors(redrawn))
        refused.add(distractors(redrawn))


def test_a_redraw_that_finds_nothing_ends(world):
    """Where every set of distractors is refused."""

    class Everything:
        def __contains__(self, _):
            return True

    finder = searcher(world.domain)
    (found,) = finder.search(IDS[:1]).worlds
    strict = searcher(world.domain, parameters=replace(QUICK, attempts=4))

    with pytest.raises(SearchError, match=r"no other distractors for e0 of .* in 4 candidates"):
        strict.redraw(found, Everything(), 1)


@pytest.mark.parametrize("family", FAMILIES)
def test_usable_events_are_those_whose_fields_fit(worlds, family):
    """Each once: three eligible fields, or both authored triples of a lexicographic rule."""
    domain = worlds[0].domain
    triples = {triple.fields for triple in domain.ordered_triples}
    expected = set()
    for event in domain.events:
        fields = (event.outgoing, event.incoming, event.reversed)
        if family != "lexicographic_priority":
            fits = all(family in domain.catalog[name].eligible_families for name in fields)
        else:
            fits = any(
                event.outgoing in triple
                and event.reversed in triple
                and event.incoming not in triple
                and tuple(event.incoming if f == event.outgoing else f for f in triple) in triples
                for triple in triples
            )
        if fits:
            expected.add(event.event_id)
    usable = [event.event_id for event in searcher(domain, family).usable_events()]

    assert expected == set(usable)
    assert len(usable) == len(expected) > 0
