"""The shipped episodes' rules and drifts, rechecked against catalog, events and fresh populations.

The search measured its own sample; here each episode's population is drawn anew, so shares agree
with the limits up to sampling error.
"""

from fractions import Fraction

import numpy as np
import pytest

import twins
from adaexplore.benchmark.world import population, rules, seeds

SIZE = 6000
ERROR = 0.03
"""Over three standard errors of a difference of two shares of 6000 rows."""


@pytest.fixture(scope="module")
def pools(worlds):
    """A fresh population sample of each episode, by episode id."""
    return {
        world.episode.episode_id: population.draw(
            world.domain,
            world.episode.visible_fields,
            SIZE,
            seeds.generator("test pool", world.episode.episode_id),
            drifting=(world.episode.transition.outgoing, world.episode.transition.incoming),
        )
        for world in worlds
    }


def both_rules(world):
    return world.episode.pre, world.episode.post


def best(world, rule, values):
    """Best actions and distances to the nearest boundary, of population rows."""
    scores = world.scores(rule, values)
    boundaries = np.array([-0.5, 0.0, 0.5])
    distances = np.abs(scores[:, None] - boundaries).min(axis=1)
    return (scores[:, None] > boundaries).sum(axis=1), distances


# -- against the catalog and the events --------------------------------------------------------


def test_directions_before_the_change_are_the_catalogs(worlds):
    for world in worlds:
        for slot in world.episode.pre.slots:
            assert world.domain.catalog[slot.field_id].pressure_direction == slot.direction


def test_drift_is_exactly_the_declared_event(worlds):
    """One replacement in its slot, one reversal, everything else kept; the event is authored."""
    for world in worlds:
        episode, transition = world.episode, world.episode.transition
        event = next(e for e in world.domain.events if e.event_id == transition.event_id)
        for name in ("outgoing", "incoming", "reversed", "trigger_event", "change_reason"):
            assert getattr(event, name) == getattr(transition, name)
        assert (episode.pre.family, episode.pre.band) == (episode.post.family, episode.post.band)
        kinds = []
        for was, now in zip(episode.pre.slots, episode.post.slots, strict=True):
            assert was.weight == now.weight
            if was.field_id != now.field_id:
                kinds.append("replacement")
                assert (transition.outgoing, transition.incoming) == (was.field_id, now.field_id)
                assert was.direction == now.direction
                continue
            assert was.threshold == now.threshold
            if was.direction != now.direction:
                kinds.append("reversal")
                assert transition.reversed == was.field_id
        assert ["replacement", "reversal"] == sorted(kinds)


def test_the_replacement_is_an_authored_handoff_and_the_reversal_has_its_account(worlds):
    for world in worlds:
        transition = world.episode.transition
        handoffs = {
            (t.outgoing, t.incoming)
            for group in world.domain.replacement_groups
            for t in group.transitions
        }
        assert (transition.outgoing, transition.incoming) in handoffs
        assert world.domain.catalog[transition.reversed].reversal.is_reversal


def test_relevant_fields_are_eligible_before_and_after(worlds):
    """By family; a lexicographic rule follows an authored triple before and after."""
    for world in worlds:
        triples = {triple.fields for triple in world.domain.ordered_triples}
        for rule in both_rules(world):
            if rule.family == "lexicographic_priority":
                assert rule.field_ids in triples
            else:
                fields = (world.domain.catalog[name] for name in rule.field_ids)
                assert all(rule.family in field.eligible_families for field in fields)


def test_weights_follow_effect_strengths(worlds):
    """Additive sizes sum to 1 before the change, in proportion to the strengths; others have none."""
    for world in worlds:
        rule = world.episode.pre
        weights = [slot.weight for slot in rule.slots]
        if rule.family != "additive_aggregation":
            assert [0.0] * 3 == weights
            continue
        strengths = [world.domain.catalog[name].effect_strength for name in rule.field_ids]
        expected = [strength / sum(strengths) for strength in strengths]
        assert expected == pytest.approx(weights, abs=1e-11)
        assert sum(weights) == pytest.approx(1.0, abs=1e-11)


def test_only_lexicographic_rules_have_a_band(worlds):
    for world in worlds:
        for rule in both_rules(world):
            assert (rule.family == "lexicographic_priority") == (rule.band > 0.0)


# -- against a fresh population ----------------------------------------------------------------


def test_thresholds_lie_between_the_30_and_70_percent_quantiles(worlds, pools):
    """Of the field's own population; the incoming field's at the quantile of the outgoing one's."""
    for world in worlds:
        if world.episode.pre.family == "additive_aggregation":
            slots = [slot for rule in both_rules(world) for slot in rule.slots]
            assert {0.0} == {slot.threshold for slot in slots}
            continue
        columns = pools[world.episode.episode_id].columns()
        for was, now in zip(world.episode.pre.slots, world.episode.post.slots, strict=True):
            old, new = (share_below(columns[s.field_id], s.threshold) for s in (was, now))
            assert old[0] <= 0.70 + ERROR
            assert old[1] >= 0.30 - ERROR
            # Integer fields make steps, so that a quantile is a stretch: the two must meet.
            assert max(old[0], new[0]) <= min(old[1], new[1]) + ERROR


def share_below(values, threshold):
    """Shares of a population (below, at or below) a threshold."""
    return float((values < threshold - 1e-9).mean()), float((values < threshold + 1e-9).mean())


def test_priorities_settle_about_half_each(worlds, pools):
    """The first field settles 35 to 65 % of the population, the second 35 to 65 % of the rest."""
    for world in worlds:
        rule = world.episode.pre
        if rule.family != "lexicographic_priority":
            continue
        columns = pools[world.episode.episode_id].columns()
        first, second = (np.abs(rules.margin(slot, columns)) for slot in rule.slots[:2])
        # A margin that equals the band to the last digits counts for either side.
        rest = first <= rule.band
        assert 0.35 - ERROR <= (first > rule.band - 1e-9).mean()
        assert (first > rule.band + 1e-9).mean() <= 0.65 + ERROR
        assert 0.35 - 2 * ERROR <= (second[rest] > rule.band).mean() <= 0.65 + 2 * ERROR


def test_calibration_is_that_of_the_population_before_the_change(worlds, pools):
    """A quarter, a half and three quarters of a fresh population lie below the quartiles."""
    for world in worlds:
        fitted = world.episode.calibration
        columns = pools[world.episode.episode_id].columns()
        evidence = rules.evidence(world.episode.pre, columns)
        for share, quartile in ((0.25, fitted.q25), (0.5, fitted.q50), (0.75, fitted.q75)):
            below, at_or_below = share_below(evidence, quartile)
            assert below - ERROR <= share <= at_or_below + ERROR


def test_actions_flips_and_boundaries_stay_within_the_limits(worlds, pools):
    """Boundary mass, the rarest action, and the natural flip rate of a fresh population."""
    for world in worlds:
        values = pools[world.episode.episode_id].values
        (before, near), (after, near_after) = (best(world, r, values) for r in both_rules(world))
        clear = np.minimum(near, near_after) > 0.01
        assert 1.0 - clear.mean() <= 0.10 + ERROR
        for actions, least in ((before, 0.10), (after, 0.05)):
            shares = [(actions[clear] == action).mean() for action in range(4)]
            assert min(shares) >= least - ERROR / 2
        assert 0.25 - ERROR <= (before != after).mean() <= 0.85 + ERROR


def test_every_relevant_field_matters(worlds, pools):
    """Redrawn alone it changes the best action of a tenth of the cases, before and after."""
    for world in worlds:
        pool = pools[world.episode.episode_id]
        rng = seeds.generator("test relevance", world.episode.episode_id)
        for rule in both_rules(world):
            kept, _ = best(world, rule, pool.values)
            for name in rule.field_ids:
                redrawn = pool.values.copy()
                column = redrawn[:, world.episode.visible_fields.index(name)]
                column[:] = rng.choice(column, size=SIZE)
                changed, _ = best(world, rule, redrawn)
                assert (changed != kept).mean() >= 0.10 - ERROR / 2


def test_population_scores_equal_the_equations(worlds, pools):
    """The vectorised scores used here are the equations' own, on some rows of each population."""
    for world in worlds:
        rows = pools[world.episode.episode_id].values[:8]
        for rule in both_rules(world):
            for row, actual in zip(rows.tolist(), world.scores(rule, rows), strict=True):
                values = twins.normalised_row(world, row)
                gaps = [abs(abs(m) - Fraction(rule.band)) for m in twins.margins(rule, values)]
                if rule.band == 0.0 or min(gaps) > 1e-9:
                    expected = float(twins.row_score(world, rule, row))
                    assert expected == pytest.approx(actual, abs=1e-9)


def test_no_case_hangs_on_the_last_digits_of_a_band(worlds):
    """Where a margin equals the band, rounding would choose the decisive field."""
    bands = 0
    for world in worlds:
        rows = np.asarray(
            [row for b in (*world.episode.cases, *world.episode.iid_cases) for row in b]
        )
        columns = population.normalised(world.fields, rows)
        for rule in (world.episode.pre, world.episode.post):
            bands += rule.band > 0.0
            for slot in rule.slots[:2] if rule.band > 0.0 else ():
                gaps = abs(abs(rules.margin(slot, columns)) - rule.band)
                assert gaps.min() >= 1e-9

    assert 16 == bands
