"""The shipped episodes: every acceptance criterion that their cases and rules can show, rechecked.

Each test collects what breaks the criterion and expects nothing, so that a failure names it all.
"""

from collections import Counter
from fractions import Fraction
from itertools import chain

import pytest
from scipy import stats

import twins
from adaexplore.benchmark.world.episodes import BATCH_SIZE, BATCHES
from adaexplore.benchmark.world.fields import FAMILIES

MARGIN = Fraction("0.01")
MAX_CONSTANT_CA = 0.20


@pytest.fixture(scope="module")
def scores(worlds):
    """Twin scores (before, after) by episode id and row, of all cases of both kinds."""
    found = {}
    for world in worlds:
        episode = world.episode
        for row in chain(*episode.cases, *episode.iid_cases):
            pair = (twins.row_score(world, rule, row) for rule in (episode.pre, episode.post))
            found[episode.episode_id, row] = tuple(pair)
    return found


def is_flip(scores, world, row):
    before, after = scores[world.episode.episode_id, row]
    return twins.best_action(before) != twins.best_action(after)


def both_kinds(world):
    return world.episode.cases, world.episode.iid_cases


# -- cases -------------------------------------------------------------------------------------


def test_every_batch_is_full(worlds):
    for world in worlds:
        for cases in both_kinds(world):
            assert [BATCH_SIZE] * BATCHES == [len(batch) for batch in cases]


def test_cases_are_distinct(worlds):
    """No two cases of an episode are the same vector, so none can be answered from memory."""
    for world in worlds:
        for cases in both_kinds(world):
            assert BATCHES * BATCH_SIZE == len(set(chain(*cases)))


def test_cases_are_legal(worlds):
    """On the grid, inside the range of their field, and feasible."""
    for world in worlds:
        visible = world.episode.visible_fields
        for row in chain(*chain(*both_kinds(world))):
            for field, value in zip(world.fields, row, strict=True):
                assert field.minimum * 100 <= value <= field.maximum * 100
                assert field.type == "decimal" or value % 100 == 0
            case = dict(zip(visible, row, strict=True))
            assert all(twins.holds(c.expression, case) for c in world.constraints)


def test_cases_keep_away_from_the_boundaries(scores):
    """Under both rules: whoever has the rule nearly right still sees the best action."""
    near = {
        key: pair
        for key, pair in scores.items()
        if min(map(twins.boundary_distance, pair)) <= MARGIN
    }

    assert {} == near


def test_half_of_every_batch_are_flip_cases(worlds, scores):
    """Before and after the change alike, so that the share of flips tells nothing."""
    for world in worlds:
        flips = [sum(is_flip(scores, world, row) for row in b) for b in world.episode.cases]
        assert [BATCH_SIZE // 2] * BATCHES == flips


def test_flip_cases_are_shuffled_in_their_batch(worlds, scores):
    """Over all batches each position holds flips about half of the time."""
    batches = [(world, batch) for world in worlds for batch in world.episode.cases]
    share = [
        sum(is_flip(scores, world, batch[position]) for world, batch in batches) / len(batches)
        for position in range(BATCH_SIZE)
    ]

    assert all(0.4 < s < 0.6 for s in share), share
    for world in worlds:
        patterns = {
            tuple(is_flip(scores, world, r) for r in batch) for batch in world.episode.cases
        }
        assert len(patterns) > BATCHES // 2


def test_iid_cases_are_drawn_without_control_of_flips(worlds, scores):
    """Their batches hold all numbers of flips, at the natural rate of each episode."""
    for world in worlds:
        flips = [sum(is_flip(scores, world, row) for row in b) for b in world.episode.iid_cases]
        assert len(set(flips)) > 2
        assert 0.15 * 96 < sum(flips) < 0.95 * 96


def test_no_constant_action_pays(worlds, scores):
    """Calibrated accuracy of each constant action in each phase, from the formula."""
    for world in worlds:
        episode = world.episode
        phases = (episode.cases[: episode.change_batch], episode.cases[episode.change_batch :])
        for late, batches in enumerate(phases):
            taken, chance, count = [0.0] * 4, 0.0, 0
            for row in chain(*batches):
                utilities = twins.utilities(scores[episode.episode_id, row][late])
                low, high = min(utilities), max(utilities)
                shares = [float((u - low) / (high - low)) for u in utilities]
                taken = [t + s for t, s in zip(taken, shares, strict=True)]
                chance += sum(shares) / 4
                count += 1
            assert all((t - chance) / (count - chance) <= MAX_CONSTANT_CA for t in taken)


# -- composition -------------------------------------------------------------------------------


def test_families_and_change_batches_are_balanced(worlds, dataset):
    """8 episodes of each family and 8 of each change batch; the same within each domain."""
    each = dataset.manifest["splits"][dataset.split]["episodes_each"]
    domains = len({world.domain.domain_id for world in worlds})

    families = Counter(world.episode.pre.family for world in worlds)
    assert dict.fromkeys(FAMILIES, each * domains) == families
    changes = Counter(world.episode.change_batch for world in worlds)
    assert dict.fromkeys((5, 6, 7, 8), len(worlds) // 4) == changes
    groups = Counter((world.domain.domain_id, world.episode.pre.family) for world in worlds)
    assert {each} == set(groups.values())
    by_group = Counter(
        (world.domain.domain_id, world.episode.pre.family, world.episode.change_batch)
        for world in worlds
    )
    assert max(by_group.values()) - min(by_group.values()) <= 1


def test_every_round_of_ids_holds_each_group_once_in_another_order(worlds):
    """An id tells nothing of its family, and the first episodes are as balanced as all."""
    assert len(worlds) == len({world.episode.episode_id for world in worlds})
    assert list(worlds) == sorted(worlds, key=lambda w: w.episode.episode_id)
    groups = [(world.domain.domain_id, world.episode.pre.family) for world in worlds]
    size = len(set(groups))
    rounds = [tuple(groups[i : i + size]) for i in range(0, len(groups), size)]
    assert all(size == len(set(order)) for order in rounds)
    assert len(rounds) == len(set(rounds))


def test_visible_fields_are_the_rules_fields_and_four_distractors(worlds):
    for world in worlds:
        visible, episode = set(world.episode.visible_fields), world.episode
        assert 8 == len(visible) == len(episode.visible_fields)
        assert visible <= set(world.domain.catalog)
        core = {*episode.pre.field_ids, episode.transition.incoming}
        assert 4 == len(core)
        assert core <= visible
        assert core == {*episode.post.field_ids, episode.transition.outgoing}


def test_the_order_of_fields_says_nothing_of_their_roles(worlds):
    """Relevant fields stand at every position, as often as chance has it."""
    positions = Counter(
        world.episode.visible_fields.index(name)
        for world in worlds
        for name in (*world.episode.pre.field_ids, world.episode.transition.incoming)
    )

    assert stats.chisquare([positions[i] for i in range(8)]).pvalue > 0.001


def test_families_differ_in_nothing_that_is_shown(worlds):
    """No position of the relevant field of a slot is fixed: slots are shuffled too."""
    slots = Counter(
        world.episode.visible_fields.index(name)
        for world in worlds
        for name in world.episode.pre.field_ids[:1]
    )

    assert len(slots) > 4
