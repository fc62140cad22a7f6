"""Many numbers are rounded as Python rounds each."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.benchmark.world.rounding import rounded

TIES = st.builds(lambda k, n: (k + 0.5) / 10.0**n, st.integers(-99, 99), st.integers(0, 12))
NEXT = st.builds(lambda tie, way: float(np.nextafter(tie, way)), TIES, st.sampled_from([-9.0, 9.0]))


@given(
    st.lists(
        st.floats(-1.0, 1.0)
        | TIES.filter(lambda t: abs(t) <= 1.0)
        | NEXT.filter(lambda t: abs(t) <= 1.0),
        min_size=1,
    ),
    st.integers(0, 12),
)
def test_many_are_rounded_as_one(values, digits):
    """To the last bit and the sign of zero, at ties and next to them too."""
    expected = [round(value, digits) for value in values]

    assert list(map(repr, expected)) == list(map(repr, rounded(values, digits)))
