"""The table of `make bench` says what was measured, and whether a target is met."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.benchmarks import capacities, rows
from tests.benchmarks.rows import BEGIN, END, Row

FIGURES = st.lists(st.floats(0, 1e9), min_size=1, max_size=5).map(tuple)


def row(**fields):
    return Row(**{"key": "k", "what": "thing", **fields})


@pytest.mark.parametrize(
    ("found", "target", "least", "state"),
    [
        ((1.0, 9.0, 2.0), 2.0, False, "met"),
        ((1.0, 9.0, 2.1), 2.0, False, "MISSED"),
        ((1.0, 9.0, 2.0), 2.0, True, "met"),
        ((1.0, 9.0, 1.9), 2.0, True, "MISSED"),
        ((1.0,), None, False, ""),
        ((), 2.0, False, "SKIPPED"),
        ((), None, True, "SKIPPED"),
    ],
)
def test_a_target_is_judged_by_the_median_in_its_direction(found, target, least, state):
    """Met on the target itself; without a figure nothing is met."""
    assert state == row(found=found, target=target, least=least).state


@given(found=FIGURES, target=st.floats(0, 1e9))
def test_the_two_directions_differ_unless_the_target_is_hit(found, target):
    """What misses `at most` meets `at least`, and the other way round."""
    most, least = row(found=found, target=target), row(found=found, target=target, least=True)

    assert (most.middle == target) == (most.state == least.state)


def test_a_line_shows_median_spread_target_and_state():
    """Three digits that count, thousands with commas, the direction of the target in words."""
    line = row(found=(0.5, 0.72345, 9.0), unit="ms", target=0.6).line()
    rate = row(found=(1234.0,), unit="runs/s", target=150.0, least=True, note="warm").line()

    assert "| thing | 0.723 ms | 0.5 to 9 | at most 0.6 ms | MISSED |" == line
    assert "| thing (warm) | 1,234 runs/s | once | at least 150 runs/s | met |" == rate


def test_a_note_stays_in_its_cell():
    """An error of several lines with bars does not end the row."""
    assert "| thing (no / such file) | | |  | SKIPPED |" == row(note="no | such\n file").line()


def test_the_table_names_what_is_missed_and_what_is_skipped():
    """Below it, in words; a skipped row says why."""
    made = rows.table(
        [
            row(what="slow", found=(2.0,), target=1.0),
            row(what="gone", note="no network"),
            row(found=(1.0,)),
        ]
    )

    assert "| gone (no network) | | |  | SKIPPED |" in made
    assert made.endswith("Missed: slow.\nSkipped: gone.")
    assert rows.table([row(found=(1.0,), target=1.0)]).endswith("Missed: none.")


@given(st.lists(st.builds(Row, key=st.text(), what=st.text(), found=FIGURES | st.just(()),
    target=st.none() | st.floats(0, 1e9), least=st.booleans(), note=st.text())))  # fmt: skip
def test_json_gives_the_same_rows_back(some):
    """And the machine with them."""
    assert ({"cores": 2}, some) == rows.loads(rows.dumps({"cores": 2}, some))


def test_only_the_marked_block_of_a_page_is_replaced():
    """What stands before and behind it stays, and a second run replaces the first one's."""
    page = f"before\n\n{BEGIN}\nold\n{END}\n\nbehind\n"
    first = rows.replaced(page, "new")

    assert f"before\n\n{BEGIN}\n\nnew\n\n{END}\n\nbehind\n" == first
    assert first == rows.replaced(rows.replaced(page, "other"), "new")


@pytest.mark.parametrize("page", ["", BEGIN, END + BEGIN, BEGIN + BEGIN + END, BEGIN + END + END])
def test_a_page_without_its_two_markers_is_refused(page):
    """Rather than overwritten in the wrong place."""
    with pytest.raises(ValueError, match="expected one"):
        rows.replaced(page, "new")


def test_capacity_is_latency_over_cost_at_seventy_percent():
    """0.5 s a call at 0.5 ms each: a thousand would fill the core, 700 are promised."""
    assert math.isclose(700, capacities.episodes(0.5, 0.5))

    made = capacities.table(
        [row(key=capacities.COST, found=(0.5,)), row(key=capacities.MEMORY, found=(100.0,))]
    )
    assert "| 0.5 | 700 | 1,400 | 70 MB |" in made
    assert "| 10 | 14,000 | 1,400 | 1,400 MB |" in made
    assert capacities.table([]) is None
