"""Plans: how many calls are missing."""

import pytest

from adaexplore import configure
from adaexplore.benchmark.game.agents import Told, oracle
from adaexplore.experiments import grids
from adaexplore.experiments.sweeps import Job, Plan
from players import drive


@pytest.mark.parametrize("batches", ["null", 1, 6, 7, 12])
@pytest.mark.parametrize("setting", ["default", "stationary"])
def test_the_fewest_calls_are_those_of_the_oracle(worlds, setting, batches):
    """It reveals and answers every window without a probe, and is asked what it believes."""
    config = configure.sweep(
        ["+grid=smoke", "models=[oracle]", f"settings=[{setting}]", f"protocol.batches={batches}"]
    )
    cells = grids.expand(config, "d")
    jobs = [Job(cell=cells[0], world=world) for world in worlds[:2]]
    plan = Plan(sweep="s", cells=cells, worlds=worlds[:2], finished={}, jobs=tuple(jobs))

    made = 0
    for world in plan.worlds:
        told = Told(world=world, drifts=setting == "default")
        played = drive(
            world, cells[0].setting, lambda m, told=told: oracle(m, told), config.protocol
        )
        made += len(played.requests)
    assert made == plan.calls[0]
