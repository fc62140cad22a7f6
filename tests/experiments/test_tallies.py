"""Tallies keep what tables need of records, to the bit, however the records come."""

import gc
from dataclasses import replace
from math import isnan

import numpy as np
import pytest

from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.scores import comparisons, estimates, metrics
from adaexplore.experiments import tables, tallies
from adaexplore.experiments.tallies import CURVE, SHOWN, Counted, Tally
from scorebook import scoring

GROUP = ("model", "default")
KEPT = [*SHOWN, *CURVE.values()]


@pytest.fixture(scope="module")
def records():
    """Three seeds of five episodes, in the order of cells, one of them ended by the provider."""
    found = [scoring(f"e{(3 * i) % 5}", (i * seed) % 9) for seed in (1, 2, 3) for i in range(5)]
    return [*found[:-1], replace(found[-1], status="overflow")]


@pytest.mark.parametrize("metric", KEPT, ids=lambda metric: metric.name)
def test_rows_and_values_are_those_of_the_records(metric, records):
    tally, scored = Tally.of(records), estimates.scored(records)

    assert np.array_equal(metrics.contributions(metric, scored), tally.rows(metric))
    assert [metrics.value(metric, scored)] == pytest.approx(
        [tally.value(metric)], rel=0, nan_ok=True
    )


def test_estimates_are_those_of_the_records_to_the_bit(records):
    found = tables.scores({GROUP: Tally.of(records)}).known

    for metric in SHOWN:
        expected = tables.estimate(metric, records, *GROUP)
        assert repr(expected) == repr(found[GROUP, metric.name])  # repr: nan is not nan


def test_pairs_are_those_of_the_records(records):
    metric = metrics.CALIBRATED_ACCURACY
    other = [replace(r, cases=r.cases[::-1]) for r in records[2:9]]
    keyed = [zip(t.keys, t.rows(metric), strict=True) for t in map(Tally.of, (records, other))]
    expected = comparisons.pair(metric, records, other)
    found = comparisons.pair_rows(metric, *keyed)

    assert expected.episodes == found.episodes
    assert np.array_equal(expected.first, found.first)
    assert np.array_equal(expected.second, found.second)


def test_cells_counted_apart_are_the_group_counted_at_once(records):
    cells = [((*GROUP,), Tally.of(part)) for part in (records[:5], records[5:10], records[10:])]
    whole, found = Tally.of(records), tallies.grouped(cells)[GROUP]

    assert whole.keys == found.keys
    assert vars(whole.counted) == vars(found.counted)
    for metric in KEPT:
        assert np.array_equal(whole.rows(metric), found.rows(metric))


def test_unscored_runs_are_counted_and_not_scored(records):
    tally = Tally.of(records)

    assert (15, 14, 1) == (tally.counted.runs, tally.counted.scored, tally.counted.unscored)
    assert tally.counted.unanswered == Counted.of(records).unanswered
    assert 15 * records[0].counts.turns == tally.counted.counts["turns"]


def test_nothing_is_undefined_and_not_an_error():
    tally = Tally()

    assert isnan(tally.value(metrics.EXACT_ACCURACY))
    assert (0, []) == (len(tally.rows(metrics.EXACT_ACCURACY)), tally.keys)


def test_records_are_let_go_one_by_one(records):
    """However many there are, no more than the one at hand and the one before it are alive."""

    def alive():
        return sum(isinstance(found, EpisodeRecord) for found in gc.get_objects())

    before, most = alive(), []

    def read():
        for record in records:
            yield replace(record)
            most.append(alive() - before)

    assert len(records) == Tally.of(read()).counted.runs
    assert max(most) <= 2
