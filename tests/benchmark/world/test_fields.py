"""The grid that values live on, and the names that random streams are found by."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.benchmark.world import seeds


@pytest.fixture(scope="module")
def decimal(world):
    """A decimal field from -2.5 to 1.5."""
    return replace(world.domain.fields[0], type="decimal", minimum=-2.5, maximum=1.5)


@pytest.fixture(scope="module")
def integer(decimal):
    """An integer field from 0 to 40."""
    return replace(decimal, type="integer", minimum=0, maximum=40)


@given(value=st.floats(-4.0, 4.0) | st.floats(-10.0, 50.0))
def test_grid_takes_the_nearest_legal_value(decimal, integer, value):
    """No value of the grid inside the range is nearer than the one chosen."""
    for field, step in ((decimal, 1), (integer, 100)):
        chosen = int(field.grid(np.array([value]))[0])
        low, high = int(field.minimum * 100), int(field.maximum * 100)
        nearest = min(abs(Fraction(value) * 100 - legal) for legal in range(low, high + 1, step))
        assert chosen in range(low, high + 1, step)
        assert abs(Fraction(value) * 100 - chosen) == pytest.approx(float(nearest), abs=1e-9)


@given(hundredths=st.integers(-250, 150))
def test_numbers_go_to_the_agent_and_back(decimal, integer, hundredths):
    """What an agent sees reads back as the same grid value; integers are whole numbers."""
    assert hundredths == decimal.to_hundredths(decimal.from_hundredths(hundredths))
    whole = integer.from_hundredths(hundredths // 100 * 100)
    assert isinstance(whole, int)
    assert hundredths // 100 * 100 == integer.to_hundredths(whole)


def test_range_ends_are_minus_one_and_one(decimal, integer):
    assert (-2.5, 1.5) == decimal.bounds
    assert (0, 40) == integer.bounds
    assert [-1.0, 0.0, 1.0] == decimal.normalise(np.array([-250, -50, 150])).tolist()
    assert [-1.0, -0.5, 1.0] == integer.normalise(np.array([0, 1000, 4000])).tolist()


def test_streams_belong_to_their_names():
    """Equal names give the same stream; another name, order, type or length another one."""

    def stream(*path):
        return tuple(seeds.generator(*path).integers(2**63, size=4).tolist())

    paths = [
        ("a",),
        ("b",),
        ("a", "b"),
        ("b", "a"),
        ("ab",),
        ("a", 1),
        ("a", "1"),
        (1, "a"),
        ("a", 11),
    ]

    assert len(paths) == len({stream(*path) for path in paths})
    assert stream("a", 1) == stream("a", 1)


def test_streams_never_change():
    """The first numbers of one stream, so that datasets can be built again in years."""
    drawn = seeds.generator("golden", 7).integers(1000, size=6).tolist()

    assert [654, 157, 166, 363, 614, 467] == drawn


def test_a_stream_needs_a_name():
    with pytest.raises(ValueError, match="at least one name"):
        seeds.generator()
