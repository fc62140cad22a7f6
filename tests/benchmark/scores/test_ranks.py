"""Ranks of resamples by their counts equal the ranks of resamples written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from adaexplore.benchmark.scores import ranks

COUNTED = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 4)), min_size=1, max_size=10)


@given(COUNTED)
def test_mid_ranks_equal_those_of_the_written_out_sample(pairs):
    values, counts = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    written = np.repeat(values, counts.astype(int))
    expected = stats.rankdata(written)
    found = np.repeat(ranks.mid_ranks(values, counts), counts.astype(int))

    assert expected.tolist() == found.tolist()


def test_many_resamples_are_ranked_at_once():
    """Leading axes are resamples; each is ranked by itself."""
    values = np.array([5.0, 1.0, 5.0, 2.0])
    counts = np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 3.0, 2.0, 1.0]])
    found = ranks.mid_ranks(values, counts)

    assert [3.5, 1.0, 3.5, 2.0] == found[0].tolist()
    assert [2.0, 5.5, 4.0] == found[1, 1:].tolist()
    assert [ranks.mid_ranks(values, row).tolist() for row in counts] == found.tolist()


@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_nothing_has_no_ranks(shape):
    assert shape == ranks.mid_ranks(np.zeros(0), np.zeros(shape)).shape
