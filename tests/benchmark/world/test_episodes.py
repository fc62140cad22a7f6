"""Episodes: what a drift changes, what distractors cannot change, and documents that read back."""

import json
import pickle
from dataclasses import replace
from fractions import Fraction

import pytest

import twins
from adaexplore.benchmark.world import episodes, seeds
from adaexplore.benchmark.world.episodes import Review


def test_documents_read_back_as_the_same_episode(worlds):
    """Through JSON text, hidden side and cases included."""
    for world in worlds:
        document = json.loads(json.dumps(episodes.to_document(world)))
        assert world.episode == episodes.from_document(document, world.domain)


def test_reviews_are_kept(world):
    review = Review(field_realism=4.1, rule_change_realism=3.9, distractor_quality=5.0)
    reviewed = replace(world, episode=replace(world.episode, review=review))
    document = episodes.to_document(reviewed)

    assert review == episodes.from_document(document, world.domain).review


def test_distractors_never_change_utilities(worlds):
    """In every shipped episode, under both rules: redrawn fields outside the rule change nothing."""
    for world in worlds:
        episode = world.episode
        rows = [row for batch in episode.cases for row in batch]
        order = seeds.generator("test distractors", episode.episode_id).permutation(len(rows))
        for rule in (episode.pre, episode.post):
            relevant = [name in rule.field_ids for name in episode.visible_fields]
            assert 3 == sum(relevant)
            mixed = [
                tuple(
                    own if keep else other
                    for keep, own, other in zip(relevant, row, rows[partner], strict=True)
                )
                for row, partner in zip(rows, order.tolist(), strict=True)
            ]
            assert mixed != rows
            assert world.utilities(rule, rows) == world.utilities(rule, mixed)


def test_utilities_equal_the_equations(worlds):
    """A case of every batch, under both rules, from value to utility.

    Left out is a case whose margin equals the band of a lexicographic rule to the last digits.
    """
    for world in worlds:
        for rule in (world.episode.pre, world.episode.post):
            rows = [b[0] for b in world.episode.cases if not on_the_band(world, rule, b[0])]
            assert len(rows) >= episodes.BATCHES - 1
            for row, actual in zip(rows, world.utilities(rule, rows), strict=True):
                expected = [float(u) for u in twins.utilities(twins.row_score(world, rule, row))]
                assert expected == pytest.approx(actual, abs=1e-9)


def on_the_band(world, rule, row):
    oriented = twins.margins(rule, twins.normalised_row(world, row))
    return rule.band > 0.0 and any(abs(abs(m) - Fraction(rule.band)) < 1e-9 for m in oriented)


def test_a_world_that_has_been_asked_goes_to_another_process(world):
    """It is the same there, and answers the same."""
    rows = world.episode.cases[0]
    asked = world.batch_utilities(world.episode.pre, rows)
    there = pickle.loads(pickle.dumps(world))  # noqa: S301

    assert world == there
    assert asked == there.batch_utilities(there.episode.pre, rows)


def test_rule_in_force_changes_after_the_change_batch(world):
    """Only where the rule drifts, and not before the batch has completed."""
    episode = world.episode
    for number in range(1, episodes.BATCHES + 1):
        drifted = number > episode.change_batch
        expected = episode.post if drifted else episode.pre
        assert expected is episode.rule_in_force(number, drifts=True)
        assert episode.pre is episode.rule_in_force(number, drifts=False)


def test_case_ids_count_through_the_episode():
    """An id says the place of a case and nothing else."""
    ids = [episodes.case_id(b, p) for b in range(1, episodes.BATCHES + 1) for p in range(8)]

    assert [f"case_{number:03d}" for number in range(1, 97)] == ids


def test_numbers_are_what_the_agent_sees(worlds):
    """Whole numbers for integer fields, two places for decimals, in the order of the fields."""
    for world in worlds:
        row = world.episode.cases[0][0]
        numbers = world.numbers(row)
        assert list(world.episode.visible_fields) == list(numbers)
        for field, value in zip(world.fields, row, strict=True):
            seen = numbers[field.field_id]
            assert isinstance(seen, int if field.type == "integer" else float)
            assert value == round(seen * 100)
            assert seen == round(seen, 2)


def test_constraints_of_an_episode_are_those_it_can_evaluate(worlds):
    """A constraint counts when its fields are visible, and only then."""
    for world in worlds:
        shown = set(world.episode.visible_fields)
        for constraint in world.domain.constraints:
            text = json.dumps(constraint.expression)
            hidden = [f for f in world.domain.catalog if f'"{f}"' in text and f not in shown]
            assert (constraint in world.constraints) == (not hidden)
