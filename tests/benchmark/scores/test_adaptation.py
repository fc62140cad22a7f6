"""Drop and recovery: the planted course of an episode comes back, with its tests."""

from dataclasses import replace
from math import isnan

import pytest

from adaexplore.benchmark.scores import adaptation, comparisons, metrics, significance
from adaexplore.benchmark.world import seeds
from scorebook import BEST, MIDDLING, WORST, accuracy, record

CHANGES = (5, 6, 7, 8)


def stream(*names):
    return seeds.generator("test adaptation", *names)


def batch(hits):
    return [BEST] * hits + [WORST] * (8 - hits)


def course(episode, change_batch, hits, **parts):
    """An episode whose hits in a batch are a function of the batches since the change."""
    actions = {b: batch(hits(b - change_batch, b)) for b in range(1, 13)}
    return record(episode, actions=actions, change_batch=change_batch, **parts)


def planted(offset, number):
    """3 hits while learning, 7 on the plateau, 1 after the change, 4 on the way, 6 in the end."""
    if number >= 11:
        return 6
    if offset > 0:
        return 1 if offset == 1 else 4
    return 7 if offset > -3 else 3


RECORDS = [course(f"e{i}", CHANGES[i % 4], planted) for i in range(8)]


def test_the_planted_course_is_found():
    """Whatever the change batch: windows are aligned at it, the last two batches close the episode."""
    found = adaptation.adaptation(RECORDS, rng=stream("planted"))

    assert [accuracy(7), accuracy(1), accuracy(6)] == pytest.approx(
        [found.plateau.value, found.first_after.value, found.final.value]
    )
    assert [-6 / 4.8, 5 / 4.8, -1 / 4.8] == pytest.approx(
        [c.difference.value for c in (found.drop, found.regained, found.recovery)]
    )
    assert (2 / 2**8,) * 3 == found.p_values
    assert [8] * 3 == [c.difference.n for c in (found.drop, found.regained, found.recovery)]
    assert (found.plateau.value, found.first_after.value) == pytest.approx(
        (found.drop.first, found.drop.second)
    )


def test_windows_hold_the_batches_they_name():
    """Three up to the change, one after it, the last two: 24, 8 and 16 cases."""
    windows = (adaptation.PLATEAU, adaptation.FIRST_AFTER, adaptation.FINAL)
    for change_batch in CHANGES:
        marked = {change_batch - 2: 1, change_batch - 1: 2, change_batch: 3, change_batch + 1: 4}
        run = course("e", change_batch, lambda _, b, m=marked: m.get(b, 8 if b >= 11 else 0))
        sums = [window.contribution(run) for window in windows]

        assert [6.0, 4.0, 16.0] == [s[0] for s in sums]
        assert [24.0, 8.0, 16.0] == [s[4] for s in sums]


def test_a_placebo_shows_no_drop():
    """The same cases without a change and without an effect: p is not small, the interval holds 0."""
    rng = stream("placebo data")
    records = [
        course(f"e{i}", CHANGES[i % 4], lambda *_: int(rng.integers(3, 7)), drifts=False)
        for i in range(24)
    ]
    found = adaptation.adaptation(records, rng=stream("placebo"))

    assert min(found.p_values) > 0.05
    assert found.drop.difference.low < 0.0 < found.drop.difference.high


def test_seeds_are_one_episode_and_order_is_none():
    once = adaptation.adaptation(RECORDS, rng=stream("seeds"))
    twice = adaptation.adaptation((RECORDS * 2)[::-1], rng=stream("seeds"))

    assert once.p_values == twice.p_values
    assert 16 == twice.plateau.n
    assert 8 == twice.drop.difference.n


def test_nothing_and_one_episode():
    nothing = adaptation.adaptation([], rng=stream("nothing"))
    one = adaptation.adaptation(RECORDS[:1], rng=stream("one"))

    assert (0, 0) == (nothing.plateau.n, nothing.drop.difference.n)
    assert all(isnan(p) for p in nothing.p_values)
    assert -6 / 4.8 == pytest.approx(one.drop.difference.value)
    assert isnan(one.drop.difference.low)
    assert (1.0, 1.0, 1.0) == one.p_values


def test_an_episode_without_a_window_is_not_compared():
    """Cut short before the change: no first batch after it, so no drop."""
    short = record("short", actions={b: batch(4) for b in range(1, 7)}, change_batch=6)
    caseless = record("empty", actions={})
    found = adaptation.adaptation([*RECORDS, short, caseless], rng=stream("short"))

    assert 8 == found.drop.difference.n
    assert 9 == found.recovery.difference.n


def test_drops_are_found_as_rarely_as_they_should_be_without_one():
    """100 groups of 12 episodes with equal chances in all batches: 5 %, give or take 2.2 twice."""
    rng, runs, rejected = stream("null data"), 100, 0
    windows = (adaptation.PLATEAU, adaptation.FIRST_AFTER)
    for _ in range(runs):
        hits = rng.binomial(8, 0.5, size=(12, 12))
        group = [course(f"e{i}", 6, lambda o, _, h=row: h[o + 5]) for i, row in enumerate(hits)]
        pairs = comparisons.pair_metrics(*windows, group)
        first, second = pairs.values()
        rejected += significance.signed_rank(second - first).p <= 0.05

    assert rejected / runs <= 0.1


# -- the curve ---------------------------------------------------------------------------------


def test_the_curve_is_aligned_at_the_change():
    found = adaptation.curve(RECORDS, rng=stream("curve"))
    hits = {-3: 3, -2: 7, -1: 7, 0: 7, 1: 1, 2: 4}
    by_offset = {point.offset: point.accuracy for point in found}

    assert metrics.OFFSETS == tuple(by_offset)
    assert [accuracy(h) for h in hits.values()] == pytest.approx(
        [by_offset[offset].value for offset in hits]
    )
    assert all(8 == point.n for point in by_offset.values())


def test_the_curve_equals_the_metric_of_each_offset():
    rng = stream("curve data")
    records = [
        course(f"e{i}", CHANGES[i % 4], lambda *_: int(rng.integers(0, 9))) for i in range(9)
    ]
    found = adaptation.curve(records * 2, rng=stream("band"))
    again = adaptation.curve(records[::-1] * 2, rng=stream("band"))

    for point, other in zip(found, again, strict=True):
        expected = metrics.value(metrics.at_offset(point.offset), records)
        assert expected == pytest.approx(point.accuracy.value)
        assert point.accuracy.low < expected < point.accuracy.high
        assert point.accuracy.low == pytest.approx(other.accuracy.low)


def test_curves_of_nothing_one_episode_and_a_missing_batch():
    nothing = adaptation.curve([], rng=stream("nothing"))
    one = adaptation.curve(RECORDS[:1], rng=stream("one"))
    gap = record("gap", actions={b: [MIDDLING] for b in range(1, 10)}, change_batch=6)
    gapped = adaptation.curve([gap, replace(gap, episode_id="gap2")], rng=stream("gap"))

    assert [0] * 8 == [point.accuracy.n for point in nothing]
    assert all(isnan(point.accuracy.value) for point in nothing)
    assert accuracy(7) == pytest.approx(one[3].accuracy.value)
    assert isnan(one[3].accuracy.low)
    assert (2, 0) == (gapped[6].accuracy.n, gapped[7].accuracy.n)
    assert isnan(gapped[7].accuracy.value)
