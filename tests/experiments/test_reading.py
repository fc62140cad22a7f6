"""Reading ahead gives what reading one by one gives, and keeps no more than what is under way."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.experiments import reading


@given(st.integers(0, 200), st.sampled_from([0.0, 1e9]))
def test_everything_comes_once_and_in_order(count, near_s):
    wanted = list(range(count))

    assert [i * i for i in wanted] == list(reading.ahead(lambda i: i * i, wanted, near_s=near_s))


def test_of_a_far_store_several_are_read_at_once():
    """Each but the first waits until all readers are there: one after another they would never be."""
    together = threading.Barrier(reading.READERS, timeout=20)
    found = reading.ahead(lambda i: i and together.wait(), range(reading.READERS + 1), near_s=0.0)

    assert reading.READERS + 1 == len(list(found))


def test_a_near_store_is_read_by_who_asks_and_no_further():
    readers = []
    found = reading.ahead(lambda _: readers.append(threading.get_ident()), range(10), near_s=1e9)
    next(found), next(found)

    assert [threading.get_ident()] * 2 == readers


def test_who_takes_one_has_few_read_ahead():
    begun = []
    found = reading.ahead(begun.append, range(10_000), near_s=0.0)
    next(found), next(found)
    found.close()

    assert len(begun) <= 2 * reading.READERS + 1


@pytest.mark.parametrize("near_s", [0.0, 1e9])
def test_a_fault_comes_at_its_turn(near_s):
    found = reading.ahead(lambda number: 1 // (number - 40), range(50), near_s=near_s)

    assert 40 == len([next(found) for _ in range(40)])
    with pytest.raises(ZeroDivisionError):
        next(found)
