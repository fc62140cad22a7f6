"""Which episodes a sweep plays: it may grow and never shrinks, and other episodes are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.errors import ConfigError
from adaexplore.experiments import sweeps
from adaexplore.experiments.sweeps import Selection

IDS = tuple(f"e{n}" for n in range(12))
LITE, TEST, DEV = IDS[:4], IDS[:8], IDS[8:]
SPLITS = {"lite": LITE, "test": TEST, "dev": DEV}


def selection(split, limit=None):
    return Selection(split=split, limit=limit, episode_ids=SPLITS[split][:limit])


def joined(*selections):
    """What a sweep plays after launches with these selections."""
    document = None
    for chosen in selections:
        document = sweeps.join(document, "mine", (), chosen)
    return sweeps.selected(document)


@pytest.mark.parametrize(
    ("launches", "expected"),
    [
        ([("lite", None), ("test", None)], ("test", None)),
        ([("test", None), ("lite", None)], ("test", None)),
        ([("test", 2), ("lite", None)], ("lite", None)),
        ([("lite", None), ("test", 6), ("lite", 1)], ("test", 6)),
        ([("test", 2), ("test", 5)], ("test", 5)),
        ([("test", None), ("test", 2)], ("test", None)),
        ([("lite", None), ("test", 4)], ("test", 4)),
    ],
)
def test_the_larger_selection_is_the_sweeps(launches, expected):
    assert selection(*expected) == joined(*(selection(*launch) for launch in launches))


@pytest.mark.parametrize("first", [("lite", None), ("test", 3)])
def test_other_episodes_are_refused_with_both_selections_named(first):
    with pytest.raises(ConfigError) as caught:
        joined(selection(*first), selection("dev"))

    message = str(caught.value)
    assert "sweep 'mine' plays split " in message
    assert "split dev (4 episodes) neither holds these episodes nor is part of them" in message
    assert "\n" not in message


@given(st.lists(st.tuples(st.sampled_from(["lite", "test"]), st.integers(1, 8)), min_size=1))
def test_a_sweep_plays_the_most_that_was_asked_for(launches):
    """Splits of one line: whatever the order of launches, the longest selection stays."""
    chosen = [selection(split, limit) for split, limit in launches]
    longest = max(len(c.episode_ids) for c in chosen)

    assert TEST[:longest] == joined(*chosen).episode_ids
