"""Calibration: quartiles onto -0.5, 0 and 0.5, and a score that never falls with the evidence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import twins
from adaexplore.benchmark.world import calibration
from adaexplore.benchmark.world.calibration import Calibration
from strategies import calibrations

EVIDENCE = st.floats(-4.0, 4.0)


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ([4.0, 0.0, 2.0, 1.0, 3.0], (1.0, 2.0, 3.0)),
        ([3.0, 1.0, 2.0, 0.0], (0.75, 1.5, 2.25)),
        ([0.0, 10.0], (2.5, 5.0, 7.5)),
    ],
)
def test_quartiles_by_hand(sample, expected):
    """Linear interpolation between order statistics (type 7), by hand."""
    fitted = calibration.fit(np.array(sample))

    assert expected == (fitted.q25, fitted.q50, fitted.q75)


@given(st.sets(st.integers(-1000, 1000), min_size=4, max_size=60))
def test_quartiles_land_on_the_boundaries(sample):
    """The fitted quartiles score -0.5, 0 and 0.5 exactly."""
    fitted = calibration.fit(np.array(sorted(sample)) / 8.0)
    quartiles = np.array([fitted.q25, fitted.q50, fitted.q75])

    assert [-0.5, 0.0, 0.5] == calibration.score(fitted, quartiles).tolist()


@given(st.lists(st.integers(-500, 500), min_size=3, max_size=60, unique=True))
def test_a_quarter_of_the_sample_falls_between_boundaries(sample):
    """Where evidence has no ties, each action is best for a quarter, give or take one row."""
    evidence = np.array(sample, dtype=float)
    scores = calibration.score(calibration.fit(evidence), evidence)
    for low, high in ((-2.0, -0.5), (-0.5, 0.0), (0.0, 0.5), (0.5, 2.0)):
        inside = sum(low < s < high for s in scores)
        touching = sum(low <= s <= high for s in scores)
        assert inside - 1 <= len(sample) / 4 <= touching + 1


@pytest.mark.parametrize("sample", [[1.0], [0.0] * 9, [0.0] * 6 + [1.0, 2.0], [0.0] + [1.0] * 9])
def test_coinciding_quartiles_are_refused(sample):
    with pytest.raises(ValueError, match="strictly rising"):
        calibration.fit(np.array(sample))


@pytest.mark.parametrize("quartiles", [(1.0, 1.0, 2.0), (0.0, 1.0, 1.0), (2.0, 1.0, 3.0)])
def test_quartiles_must_rise(quartiles):
    with pytest.raises(ValueError, match="strictly rising"):
        Calibration(q25=quartiles[0], q50=quartiles[1], q75=quartiles[2])


@given(calibrations(), st.lists(EVIDENCE, min_size=1, max_size=20))
def test_score_equals_its_scalar_twin(fitted, evidence):
    expected = [float(twins.score(fitted, e)) for e in evidence]

    assert expected == pytest.approx(calibration.score(fitted, np.array(evidence)), abs=1e-12)


@given(calibrations(), EVIDENCE, EVIDENCE)
def test_score_is_weakly_monotone_in_evidence(fitted, first, second):
    low, high = calibration.score(fitted, np.array(sorted((first, second))))

    assert -1.0 <= low <= high <= 1.0
