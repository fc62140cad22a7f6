"""A detectable difference is what statsmodels solves for, and simulation finds it as often as is said."""

from math import isnan, pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.power import NormalIndPower

from adaexplore.benchmark.scores import power, significance


def test_it_is_what_statsmodels_solves_for():
    """One sample of n * 3/pi normal differences, both tails; the far tail is nothing at this power."""
    differences = np.random.default_rng(1).normal(0.1, 0.3, 50)
    solver = NormalIndPower(ddof=0)
    effect = solver.solve_power(
        effect_size=None, nobs1=50 * 3 / pi, alpha=0.05, power=0.8, ratio=0, alternative="two-sided"
    )

    expected = effect * differences.std(ddof=1)
    assert expected == pytest.approx(power.detectable(differences), rel=1e-4)


def test_four_times_the_episodes_halve_it():
    one = np.array([-0.1, 0.1] * 50)
    four = np.tile(one, 4)
    corrected = sqrt((400 - 1) / 400 / ((100 - 1) / 100))

    assert 0.5 == pytest.approx(power.detectable(four) / power.detectable(one) * corrected)


def test_with_too_little_there_is_none():
    for differences in ([], [0.3], [0.2, 0.2, 0.2]):
        assert isnan(power.detectable(np.array(differences)))


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=20), st.floats(0.5, 4))
def test_it_has_the_unit_of_the_differences(values, factor):
    differences = np.array(values)
    one, scaled = power.detectable(differences), power.detectable(factor * differences)

    assert isnan(one) or isnan(scaled) or scaled == pytest.approx(factor * one)


def test_a_stricter_level_needs_a_larger_difference():
    differences = np.random.default_rng(2).normal(0.0, 1.0, 30)

    assert power.detectable(differences, level=0.005) > power.detectable(differences)


def test_it_is_found_four_times_in_five():
    """300 simulated comparisons of 40 episodes: 0.8, give or take three standard errors."""
    rng = np.random.default_rng(3)
    size = power.detectable(np.array([-1.0, 1.0] * 20)) / np.array([-1.0, 1.0] * 20).std(ddof=1)
    found = [significance.signed_rank(rng.normal(size, 1.0, 40)).p < 0.05 for _ in range(300)]

    assert 0.8 == pytest.approx(np.mean(found), abs=0.07)
