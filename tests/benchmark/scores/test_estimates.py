"""Estimates carry their n, keep silent on too little, and draw whole episodes."""

from dataclasses import replace
from math import isnan

import numpy as np
import pytest

from adaexplore.benchmark.scores import estimates, metrics, statistics
from adaexplore.benchmark.scores.estimates import Estimate
from adaexplore.benchmark.world import seeds
from adaexplore.experiments import tables
from scorebook import accuracy, scoring


def stream(*names):
    return seeds.generator("test estimates", *names)


def of_accuracy(records, name="x"):
    return estimates.of_metric(metrics.CALIBRATED_ACCURACY, records, rng=stream(name))


def test_a_metric_with_its_interval_and_n():
    """Pooled over the cases of all runs; three seeds an episode count as runs, not as episodes."""
    records = [scoring(f"e{i}", hits) for i, hits in enumerate((2, 4, 6)) for _ in range(3)]
    found = of_accuracy(records)

    assert accuracy(4) == pytest.approx(found.value)
    assert accuracy(2) - 1e-9 <= found.low < found.value < found.high <= accuracy(6) + 1e-9
    assert 9 == found.n
    once = of_accuracy(records[::3])
    assert (once.low, once.high) == pytest.approx((found.low, found.high))


def test_the_estimate_is_that_of_the_tables():
    """The same records and the same stream of random numbers give what the tables print."""
    records = [scoring(f"e{i}", i) for i in range(8)]
    metric = metrics.EXACT_ACCURACY
    printed = tables.estimate(metric, records, "model", "default")
    rng = seeds.generator("bootstrap", metric.name, "model", "default")
    found = estimates.of_metric(metric, records, rng=rng)

    assert (printed.value, printed.low, printed.high, printed.n) == (
        found.value, found.low, found.high, found.n,
    )  # fmt: skip


def test_too_little_is_undefined_and_n_says_why():
    nothing = of_accuracy([])
    one = of_accuracy([scoring("e1", 4)] * 3)
    unmeasured = estimates.of_metric(
        metrics.CHANGE_RECOGNITION, [scoring("e1", 4), scoring("e2", 4)], rng=stream("none")
    )

    assert (0, 3, 0) == (nothing.n, one.n, unmeasured.n)
    assert isnan(nothing.value)
    assert accuracy(4) == pytest.approx(one.value)
    assert isnan(one.low)
    assert isnan(one.high)
    assert isnan(unmeasured.value)
    assert isnan(unmeasured.low)


def test_episodes_that_the_provider_ended_do_not_count():
    kept, lost = scoring("e2", 8), replace(scoring("e1", 0), status="overflow")

    assert [kept] == estimates.scored([kept, lost])
    assert accuracy(8) == pytest.approx(of_accuracy([kept, lost]).value)


def test_neither_order_nor_names_matter():
    records = [scoring(f"e{i}", i) for i in range(8)]
    renamed = [replace(r, episode_id=f"other-{r.episode_id}") for r in records]

    assert of_accuracy(records) == of_accuracy(records[::-1]) == of_accuracy(renamed)
    assert of_accuracy(records) != of_accuracy(records, "y")


def test_an_undefined_value_has_no_interval():
    found = Estimate.resampled(float("nan"), np.arange(10.0), 7)

    assert 7 == found.n
    assert all(isnan(x) for x in (found.value, found.low, found.high))


def test_draws_take_episodes_whole():
    """All rows of an episode are drawn together; each resample draws as many episodes as there are."""
    episodes = ["b", "a", "b", "c", "a"]
    counts = estimates.draws(episodes, stream("draws"))

    assert (statistics.RESAMPLES, 5) == counts.shape
    assert np.array_equal(counts[:, 0], counts[:, 2])
    assert np.array_equal(counts[:, 1], counts[:, 4])
    assert np.all(3 == counts[:, [0, 1, 3]].sum(axis=1))
    assert 1.0 == pytest.approx(counts.mean(), abs=0.02)


@pytest.mark.parametrize("episodes", [[], ["a"], ["a", "a"]])
def test_fewer_than_two_episodes_are_not_drawn(episodes):
    assert (0, len(episodes)) == estimates.draws(episodes, stream("few")).shape


def test_several_metrics_at_once_are_each_alone():
    """One metric asked alone with the same stream is the same estimate, values and n in any case."""
    records = [scoring(f"e{i}", i % 9) for i in range(10) for _ in range(2)]
    wanted = (*metrics.MAIN, *metrics.BESIDE)
    found = estimates.of_metrics(wanted, records, rng=stream("several"))
    alone = {m.name: estimates.of_metric(m, records, rng=stream("several")) for m in wanted}

    assert [m.name for m in wanted] == list(found)
    for name, estimate in found.items():
        assert repr(alone[name]) == repr(estimate)
    nothing = estimates.of_metrics(wanted, [], rng=stream("several"))
    assert {0} == {estimate.n for estimate in nothing.values()}
    one = estimates.of_metrics(wanted, records[:2], rng=stream("several"))
    assert isnan(one["ca"].low)
