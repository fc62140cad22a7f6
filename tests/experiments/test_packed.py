"""Packed rows come out as they went in, to the last bit, however they were put together."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.experiments import packed
from adaexplore.experiments.packed import Rows

COUNTS = st.integers(0, 70_000).map(float)
ANY = st.floats() | st.just(-0.0) | COUNTS


@st.composite
def tables(draw):
    """Several tables of one width, some columns of counts only, and how many rows are packed at once."""
    columns = draw(st.lists(st.sampled_from((COUNTS, ANY)), min_size=1, max_size=5))
    rows = st.lists(st.tuples(*columns), max_size=12)
    return draw(st.lists(rows, min_size=1, max_size=4)), draw(st.integers(1, 5))


@given(tables())
def test_rows_are_what_was_added(drawn):
    parts, at_once = drawn
    before, packed.ROWS = packed.ROWS, at_once
    try:
        found = [filled(part) for part in parts]
        for other in found[1:]:
            found[0].extend(other)
        rows = [row for part in parts for row in part]

        assert list(map(repr, map(list, rows))) == list(map(repr, found[0].array().tolist()))
        for part, one in zip(parts[1:], found[1:], strict=True):
            assert len(part) == len(one.array())
    finally:
        packed.ROWS = before


def filled(rows):
    found = Rows()
    for row in rows:
        found.add(np.array(row))
    return found


def test_counts_take_two_bytes():
    found = filled([(8.0, 0.5)] * packed.ROWS)
    ((_, counts, others),) = found._packed

    assert (2 * packed.ROWS, 8 * packed.ROWS) == (counts.nbytes, others.nbytes)
