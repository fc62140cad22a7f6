"""One case scores what it scores among many, to the last bit."""

import pytest

from adaexplore.benchmark.world import cases, seeds
from adaexplore.benchmark.world.fields import FAMILIES


def test_one_by_one_scores_are_those_of_arrays(worlds):
    """In every shipped episode, under both rules: its own cases, and rows from anywhere in the ranges."""
    families = set()
    for world in worlds:
        episode = world.episode
        rng = seeds.generator("test cases", episode.episode_id)
        anywhere = zip(
            *(rng.integers(*(round(100 * end) for end in f.bounds), 60, endpoint=True).tolist()
              for f in world.fields), strict=True
        )  # fmt: skip
        rows = [row for batch in episode.cases for row in batch] + list(anywhere)
        for rule in (episode.pre, episode.post):
            families.add(rule.family)
            score = cases.scorer(world.fields, rule, episode.calibration)

            assert world.scores(rule, rows).tolist() == list(map(score, rows))
    assert set(FAMILIES) == families


@pytest.mark.parametrize("rows", [[], [(0,) * 8]])
def test_utilities_come_one_for_each_row(rows, world):
    assert len(rows) == len(world.utilities(world.episode.pre, rows))
