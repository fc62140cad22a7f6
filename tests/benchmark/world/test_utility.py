"""From the score to the utilities: golden values, and what holds at every score."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import twins
from adaexplore.benchmark.world import utility

SCORES = st.floats(-1.0, 1.0)
GOLDEN = [
    (-0.875, (0.94, -0.27, -0.33, -0.33), 2),
    (-0.4293, (0.14, 0.50, -0.31, -0.33), 2),
    (-0.173, (-0.26, 0.67, -0.08, -0.33), 2),
    (-0.0765, (-0.30, 0.51, 0.12, -0.33), 2),
    (1.0, (-0.3333, -0.3333, -0.3094, 0.9760), 4),
]


@pytest.mark.parametrize(("score", "expected", "places"), GOLDEN)
def test_golden_utilities(score, expected, places):
    """The utilities that the paper prints, to the places it prints."""
    assert expected == tuple(round(u, places) for u in utility.utilities(score))


@given(SCORES)
def test_utilities_equal_the_formula_in_30_digits(score):
    """Twelve places are right, so that records do not depend on how `exp` rounds."""
    for expected, actual in zip(twins.utilities(score), utility.utilities(score), strict=True):
        assert float(expected) == pytest.approx(actual, abs=1e-12)


@given(SCORES)
def test_utilities_sum_to_zero(score):
    assert abs(sum(utility.utilities(score))) <= 4e-12


@given(SCORES)
def test_utilities_stay_within_their_scale(score):
    """The limits that the agent is told: -1/3 and about 0.976."""
    values = utility.utilities(score)

    assert min(values) >= round(-1 / 3, 12)
    assert max(values) <= utility.utilities(1.0)[3]


@given(SCORES)
def test_scale_is_symmetric(score):
    """Turning the score around turns the actions around."""
    assert utility.utilities(-score) == pytest.approx(utility.utilities(score)[::-1], abs=2e-12)


@given(SCORES.filter(lambda s: min(abs(s + 0.5), abs(s), abs(s - 0.5)) > 1e-9))
def test_best_action_has_the_highest_utility(score):
    """Between the boundaries, the action that scores best is the one that `best_actions` names."""
    values = utility.utilities(score)

    assert [values.index(max(values))] == utility.best_actions(np.array([score])).tolist()


@pytest.mark.parametrize(("index", "boundary"), [(0, -0.5), (1, 0.0), (2, 0.5)])
def test_best_action_changes_exactly_at_the_boundaries(index, boundary):
    """On a boundary two neighbours tie; a hair to its left and right each of them wins alone."""
    tied = utility.utilities(boundary)
    left, right = utility.utilities(boundary - 1e-9), utility.utilities(boundary + 1e-9)

    assert tied[index] == tied[index + 1] == max(tied)
    assert max(left) == left[index] > left[index + 1]
    assert max(right) == right[index + 1] > right[index]
    around = np.array([np.nextafter(boundary, -1.0), boundary, np.nextafter(boundary, 1.0)])
    assert [index, index + 1, index + 1] == utility.best_actions(around).tolist()


@given(st.lists(SCORES, min_size=1, max_size=20))
def test_boundary_distances_equal_their_twin(scores):
    expected = [min(abs(s + 0.5), abs(s), abs(s - 0.5)) for s in scores]

    assert expected == utility.boundary_distances(np.array(scores)).tolist()
