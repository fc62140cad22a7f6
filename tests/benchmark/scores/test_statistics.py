"""Bootstrap intervals: they cover what they say, respect clusters, and keep silent on too little."""

from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.benchmark.scores import statistics
from adaexplore.benchmark.world import seeds


def ratio_of_sums(sums):
    """A mean: the first sum over the second."""
    return sums[..., 0] / sums[..., 1]


def rows_of(values):
    """Contributions of a mean: one row a value."""
    return np.stack([values, np.ones(len(values))], axis=1)


def names(count):
    return [f"e{i}" for i in range(count)]


def interval(values, clusters, seed=0):
    rng = seeds.generator("test interval", seed)
    return statistics.interval(rows_of(values), clusters, ratio_of_sums, rng=rng)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(-9, 9)), min_size=1, max_size=20))
def test_cluster_sums_equal_their_twin(pairs):
    """Sums by name, in the order of the names."""
    expected = {}
    for name, value in pairs:
        total, count = expected.get(name, (0, 0))
        expected[name] = (total + value, count + 1)
    clusters, values = zip(*pairs, strict=True)
    sums = statistics.cluster_sums(rows_of(np.array(values, dtype=float)), clusters)

    assert [list(expected[name]) for name in sorted(expected)] == sums.tolist()


@pytest.mark.parametrize("copies", [1, 3])
def test_95_percent_intervals_cover_about_95_percent(copies):
    """200 simulated cells of 30 episodes, skewed, each with seeds that agree within the episode.

    Percentile intervals of 30 clusters cover a little less than they say; far less would be wrong.
    """
    runs, episodes = 200, 30
    data = seeds.generator("test coverage", copies)
    covered = 0
    for run in range(runs):
        values = np.repeat(data.gamma(4.0, 0.25, size=episodes), copies)
        low, high = interval(values, np.repeat(names(episodes), copies).tolist(), run)
        covered += low <= 1.0 <= high

    assert 0.90 <= covered / runs <= 0.97


def test_paired_intervals_cover_the_difference():
    """A true difference of 0.5 between conditions that share their episodes."""
    runs, covered = 200, 0
    data = seeds.generator("test paired coverage")
    for run in range(runs):
        base = data.normal(0.0, 3.0, size=30)
        other = base + 0.5 + data.normal(0.0, 1.0, size=30)
        rng = seeds.generator("test paired", run)
        low, high = statistics.paired_interval(
            rows_of(base), rows_of(other), ratio_of_sums, rng=rng
        )
        covered += low <= 0.5 <= high
        assert high - low < 1.5  # pairing removes the spread between episodes

    assert 0.90 <= covered / runs <= 0.97


def test_bootstrap_spread_is_the_standard_error():
    """The standard deviation of resampled means is the closed form of the mean's error."""
    values = seeds.generator("test spread").normal(size=50)
    resampled = statistics.bootstrap_values(
        rows_of(values), ratio_of_sums, seeds.generator("test resampling")
    )

    assert (statistics.RESAMPLES,) == resampled.shape
    assert values.std() / np.sqrt(50) == pytest.approx(resampled.std(), rel=0.06)
    assert values.mean() == pytest.approx(resampled.mean(), abs=0.02)


def test_clusters_widen_the_interval_when_seeds_are_copies():
    """Copies add nothing: with clusters the interval stays, without them it would shrink."""
    values = seeds.generator("test copies").normal(size=12)
    copied, clusters = np.repeat(values, 4), np.repeat(names(12), 4).tolist()
    once = interval(values, names(12))
    clustered = interval(copied, clusters)
    naive = interval(copied, names(48))

    assert once == pytest.approx(clustered)
    assert clustered[0] < naive[0] < naive[1] < clustered[1]
    assert (naive[1] - naive[0]) / (once[1] - once[0]) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0, 3.0]])
def test_fewer_than_two_episodes_have_no_interval(values):
    """One episode, however often played, says nothing about spread."""
    low, high = interval(np.array(values), ["only"] * len(values))

    assert isnan(low)
    assert isnan(high)


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_pairs_have_no_interval(count):
    sums = np.ones((count, 2))
    rng = seeds.generator("test")

    low, high = statistics.paired_interval(sums, sums, ratio_of_sums, rng=rng)

    assert isnan(low)
    assert isnan(high)


@given(st.lists(st.floats(-5.0, 5.0), min_size=2, max_size=12))
def test_identical_conditions_differ_by_exactly_nothing(values):
    rows = rows_of(np.array(values))
    rng = seeds.generator("test identical")

    assert (0.0, 0.0) == statistics.paired_interval(rows, rows, ratio_of_sums, rng=rng)


def test_a_constant_shift_is_found_exactly():
    """Second minus first, whatever the spread between episodes."""
    rows = rows_of(np.array([1.0, 40.0, -7.0, 3.0]))
    shifted = rows + np.array([2.0, 0.0])
    found = statistics.paired_interval(
        rows, shifted, ratio_of_sums, rng=seeds.generator("test shift")
    )

    assert (2.0, 2.0) == pytest.approx(found)


def test_unlike_shapes_cannot_be_paired():
    rng = seeds.generator("test")
    with pytest.raises(ValueError, match=r"shapes \(3, 2\) and \(4, 2\)"):
        statistics.paired_interval(np.ones((3, 2)), np.ones((4, 2)), ratio_of_sums, rng=rng)


def test_percentiles_by_hand():
    """Of 0 to 100: 2.5 % below and 2.5 % above; undefined resamples are left out."""
    values = np.array([np.nan, *range(101), np.inf, np.nan], dtype=float)

    assert (2.5, 97.5) == pytest.approx(statistics.percentile_interval(values))
    assert (25.0, 75.0) == pytest.approx(statistics.percentile_interval(values, level=0.5))
    assert all(isnan(bound) for bound in statistics.percentile_interval(np.array([np.nan])))


def test_the_same_generator_gives_the_same_interval():
    """Reports can be made again to the last digit; order and names of episodes do not matter."""
    values = seeds.generator("test order").normal(size=9)
    first = interval(values, names(9))

    assert first == interval(values, names(9))
    assert first != interval(values, names(9), seed=1)
    backwards = interval(values[::-1], names(9)[::-1])
    assert first == pytest.approx(backwards, abs=1e-12)
