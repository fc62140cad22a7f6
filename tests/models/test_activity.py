"""The board of runs: what shows while it lasts, and what counts as waiting."""

import pytest

from adaexplore.models.activity import CALLING, Activity


class Clock:
    now_s = 10.0

    def __call__(self):
        return self.now_s


def test_waiting_is_booked_and_calling_is_not():
    clock = Clock()
    board = Activity(clock)
    for what in ("queued", CALLING, "retrying (rate)"):
        with board.doing("run", what, 3.0):
            assert (what, clock.now_s, clock.now_s + 3.0) == (
                board.now["run"].what, board.now["run"].since_s, board.now["run"].until_s,
            )  # fmt: skip
            clock.now_s += 2.0
        assert {} == board.now

    assert {"run": 4.0} == board.waited_s


def test_an_error_ends_what_is_shown_and_passes_through():
    clock = Clock()
    board = Activity(clock)

    def fail():
        clock.now_s += 1.5
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), board.doing("run", "queued"):
        fail()

    assert ({}, {"run": 1.5}) == (board.now, board.waited_s)


def test_the_longest_waits_come_first_and_calls_are_none():
    clock = Clock()
    board = Activity(clock)
    with board.doing("old", "queued"):
        clock.now_s += 5.0
        with board.doing("new", "retrying (rate)", 45.0), board.doing("busy", CALLING):
            clock.now_s += 1.0

            assert ["old: queued for 6 s", "new: retrying (rate) in 44 s"] == board.longest_waits(9)
            assert ["old: queued for 6 s"] == board.longest_waits(1)
