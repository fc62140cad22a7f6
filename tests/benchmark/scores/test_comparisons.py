"""Paired comparisons: planted differences are found, pairs are honest, and nothing else matters."""

from dataclasses import replace
from math import isnan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy import stats

from adaexplore.benchmark.scores import comparisons, metrics
from adaexplore.benchmark.scores.comparisons import Pairs
from adaexplore.benchmark.world import seeds
from adaexplore.experiments import tables
from adaexplore.experiments.tallies import Tally
from scorebook import accuracy, scoring

CA = metrics.CALIBRATED_ACCURACY
TWENTY = hypothesis_settings(max_examples=20)  # each draws its resamples
HITS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=2, max_size=9)


def stream(*names):
    return seeds.generator("test comparisons", *names)


def group(hits):
    return [scoring(f"e{i}", h) for i, h in enumerate(hits)]


def compare(first, second, **how):
    return comparisons.compare(comparisons.pair(CA, first, second, **how), rng=stream("one"))


def mean_pairs(first, second):
    """Pairs of plain numbers: the metric of an episode is its number, pooled it is the mean."""
    rows = [np.stack([v, np.ones(len(v))], axis=1) for v in (np.array(first), np.array(second))]
    names = tuple(f"e{i}" for i in range(len(first)))
    return Pairs(
        episodes=names, first=rows[0], second=rows[1], value=lambda s: s[..., 0] / s[..., 1]
    )


# -- one comparison ----------------------------------------------------------------------------


def test_a_comparison_by_hand():
    """Hits of 8 rise by 1, 2, 3 and fall by 4: differences of calibrated accuracy are hits / 4.8."""
    found = compare(group([1, 2, 3, 7]), group([2, 4, 6, 3]))
    rises = np.array([1, 2, 3, -4]) / 4.8

    assert (accuracy(13, 32), accuracy(15, 32)) == pytest.approx((found.first, found.second))
    assert rises.mean() == pytest.approx(found.difference.value)
    assert 4 == found.difference.n
    assert (6.0, 4.0) == (found.test.plus, found.test.minus)
    assert 0.2 == pytest.approx(found.rank_biserial.value)
    assert rises.mean() / rises.std(ddof=1) == pytest.approx(found.standardized.value)
    assert rises.min() <= found.difference.low < found.difference.high <= rises.max()


@TWENTY
@given(HITS)
def test_a_comparison_equals_scipy(hits):
    """The difference is that of the pooled metric; d_z is the paired t statistic over sqrt(n)."""
    first, second = ([h[i] for h in hits] for i in (0, 1))
    found = compare(group(first), group(second))
    differences = (np.array(second) - np.array(first)) / 4.8

    assert differences.mean() == pytest.approx(found.difference.value, abs=1e-9)
    if len(set(differences)) > 1:
        t = stats.ttest_1samp(differences, 0.0).statistic
        assert t / sqrt(len(hits)) == pytest.approx(found.standardized.value, abs=1e-9)
    else:
        assert isnan(found.standardized.value)
    assert found.test.rank_biserial == pytest.approx(found.rank_biserial.value, nan_ok=True)


@TWENTY
@given(HITS)
def test_exchanged_conditions_turn_the_sign_and_nothing_else(hits):
    first, second = (group([h[i] for h in hits]) for i in (0, 1))
    one, other = compare(first, second), compare(second, first)

    assert one.test.p == other.test.p
    for name in ("difference", "rank_biserial", "standardized"):
        there, back = getattr(one, name), getattr(other, name)
        expected = (-back.value, -back.high, -back.low)
        assert expected == pytest.approx((there.value, there.low, there.high), nan_ok=True)


def test_order_and_names_of_episodes_do_not_matter():
    first, second = group([1, 5, 3, 4, 8]), group([2, 4, 6, 3, 8])
    found = compare(first, second)
    renamed = [
        [replace(r, episode_id=f"x{r.episode_id}", hidden_digest=f"y{r.hidden_digest}") for r in g]
        for g in (first, second)
    ]

    assert found == compare(first[::-1], second) == compare(*renamed)


def test_the_difference_is_that_of_the_ablation_table():
    first, second = group([1, 5, 3, 4, 8]), group([2, 4, 6, 3, 8])
    records = {("m", "default"): first, ("m", "stationary"): second}
    tallied = {names: Tally.of(runs) for names, runs in records.items()}
    _, _, n, before, after, difference, *_ = tables.ablation_table(tallied).rows[0]
    found = compare(first, second)

    assert n == found.difference.n
    assert (before, after, difference) == pytest.approx(
        (found.first, found.second, found.difference.value)
    )


def test_equal_differences_have_no_spread_and_a_sure_interval():
    found = compare(group([1, 2, 3, 4, 5, 6]), group([2, 3, 4, 5, 6, 7]))
    sure = [1 / 4.8] * 3

    assert sure == pytest.approx(
        [found.difference.value, found.difference.low, found.difference.high]
    )
    assert isnan(found.standardized.value)
    assert (1.0, 1.0, 1.0) == (
        found.rank_biserial.value, found.rank_biserial.low, found.rank_biserial.high,
    )  # fmt: skip
    assert 2 / 64 == found.test.p


def test_conditions_that_do_not_differ_have_no_effect_to_measure():
    same = group([1, 2, 3])
    found = compare(same, same)

    assert (0.0, 0.0, 0.0) == (
        found.difference.value, found.difference.low, found.difference.high,
    )  # fmt: skip
    assert (1.0, 3, 3) == (found.test.p, found.test.n, found.test.zeros)
    assert isnan(found.rank_biserial.value)
    assert isnan(found.standardized.value)


def test_too_few_episodes_say_so():
    """None: all undefined, n = 0. One: a difference without interval, p 1, no spread."""
    none, one = compare([], group([3])), compare(group([3]), group([5]))

    assert (0, 0) == (none.difference.n, none.test.n)
    assert all(isnan(x) for x in (none.first, none.second, none.difference.value, none.test.p))
    assert 2 / 4.8 == pytest.approx(one.difference.value)
    assert (1, 1.0) == (one.difference.n, one.test.p)
    assert isnan(one.difference.low)
    assert isnan(one.standardized.value)
    assert isnan(one.rank_biserial.low)


# -- pairs -------------------------------------------------------------------------------------


def test_only_proven_pairs_are_compared():
    """Equal ids with other hidden sides are no pair, unless other cases are meant."""
    first, second = group([1, 2, 3]), group([4, 5, 6])
    second[1] = replace(second[1], hidden_digest="redrawn")
    strict = comparisons.pair(CA, first, second)
    loose = comparisons.pair(CA, first, second, same_cases=False)

    assert ("e0", "e2") == strict.episodes
    assert ("e0", "e1", "e2") == loose.episodes


def test_unscored_and_unshared_episodes_are_not_compared():
    first, second = group([1, 2, 3, 4]), group([4, 5, 6])
    second[0] = replace(second[0], status="content_filter")

    assert ("e1", "e2") == comparisons.pair(CA, first, second).episodes


def test_seeds_of_an_episode_are_pooled_before_they_are_compared():
    """Three seeds are one pair: they cannot make a difference surer."""
    first, second = group([1, 2, 3, 4, 5]), group([2, 4, 4, 6, 6])
    once, thrice = compare(first, second), compare(first * 3, second * 3)

    assert once.test == thrice.test
    assert once.difference.value == pytest.approx(thrice.difference.value)
    assert (once.difference.low, once.difference.high) == pytest.approx(
        (thrice.difference.low, thrice.difference.high)
    )


def test_episodes_without_a_value_are_left_out_on_both_sides():
    pairs = mean_pairs([1.0, float("nan"), 3.0, 9.0], [2.0, 5.0, 5.0, float("inf")])
    found = comparisons.compare(pairs, rng=stream("holes"))

    assert ("e0", "e2") == pairs.defined().episodes
    assert (2.0, 3.5, 1.5, 2) == (
        found.first, found.second, found.difference.value, found.difference.n,
    )  # fmt: skip


def test_metrics_of_unlike_form_are_not_subtracted():
    with pytest.raises(ValueError, match="expected metrics with the same value function, got ea"):
        comparisons.pair_metrics(metrics.EXACT_ACCURACY, CA, group([1]))


# -- intervals ---------------------------------------------------------------------------------


def test_intervals_of_effect_sizes_cover_about_95_percent():
    """80 comparisons of 40 normal differences with d_z 0.5: percentile intervals run a bit narrow.

    The true rank-biserial correlation is 2 P(d1 + d2 > 0) - 1, where d1 + d2 has mean 1 and
    deviation sqrt(2). Simulation noise is 2.4 points, one standard error.
    """
    truth = 2.0 * stats.norm.cdf(1.0 / sqrt(2.0)) - 1.0
    rng, runs, covered = stream("coverage"), 80, np.zeros(2)
    for _ in range(runs):
        rank, spread = comparisons._effects(rng.normal(0.5, 1.0, size=40), rng)
        covered += [rank.low <= truth <= rank.high, spread.low <= 0.5 <= spread.high]

    assert np.all(covered / runs >= 0.88)
    assert np.all(covered / runs <= 0.99)


def test_effects_of_a_resample_are_those_of_the_written_out_sample():
    differences = np.array([0.5, -0.25, 0.0, 0.5, 1.0])
    counts = np.array([2.0, 1.0, 2.0, 0.0, 3.0])
    written = np.repeat(differences, counts.astype(int))
    expected = comparisons.compare(mean_pairs(np.zeros(8), written), rng=stream("written"))
    found = [
        f(differences, counts) for f in (comparisons._rank_biserial, comparisons._standardized)
    ]

    assert [expected.rank_biserial.value, expected.standardized.value] == pytest.approx(
        [float(value) for value in found]
    )


# -- over models -------------------------------------------------------------------------------


def models(differences):
    """Pairs by model: model i changes by `differences[i]` on each of its five episodes, and noise."""
    noise = np.array([0.1, -0.1, 0.2, -0.2, 0.0])
    return {f"m{i}": mean_pairs(np.zeros(5), d + noise) for i, d in enumerate(differences)}


def test_over_models_the_models_are_the_sample():
    """Seven of seven models gain: p is 2 / 2**7; the mean of their differences is the estimate."""
    gains = np.arange(1.0, 8.0)
    found = comparisons.over_models(models(gains), rng=stream("models"))

    assert (4.0, 7) == pytest.approx((found.difference.value, found.difference.n))
    assert 2 / 128 == found.test.p
    assert stats.wilcoxon(gains).pvalue == pytest.approx(found.test.p, abs=1e-9)


def test_over_models_episodes_are_drawn_once_for_all():
    """The models share their noise, so the mean of many is no surer than one of them."""
    one = comparisons.over_models(models([1.0]), rng=stream("joint")).difference
    many = comparisons.over_models(models([1.0] * 20), rng=stream("joint")).difference

    assert (one.low, one.high) == pytest.approx((many.low, many.high))
    assert one.high - one.low > 0.1


def test_over_models_order_does_not_matter_and_empty_models_do_not_count():
    pairs = models([1.0, -2.0, 3.0])
    empty = comparisons.pair(CA, [], [])
    found = comparisons.over_models(pairs, rng=stream("order"))
    turned = comparisons.over_models(
        {"none": empty, **dict(reversed(pairs.items()))}, rng=stream("order")
    )

    assert found.test == turned.test
    assert (found.difference.value, found.difference.low, found.difference.n) == pytest.approx(
        (turned.difference.value, turned.difference.low, turned.difference.n)
    )


def test_over_no_models_and_over_one_episode():
    none = comparisons.over_models({"m": comparisons.pair(CA, [], [])}, rng=stream("none"))
    one = comparisons.over_models({"m": mean_pairs([1.0], [2.0])}, rng=stream("one"))

    assert (0, 0) == (none.difference.n, none.test.n)
    assert isnan(none.difference.value)
    assert (1.0, 1) == (one.difference.value, one.difference.n)
    assert isnan(one.difference.low)
