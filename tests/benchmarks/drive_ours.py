"""Our whole loop against a mock model: environment, client, governor, journal and record.

`python drive_ours.py PORT EPISODES` prints calls, CPU seconds and wall seconds as JSON.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

from adaexplore import assemble, configure, loops
from adaexplore.authoring import datasets
from adaexplore.backends.folder import FolderStore
from adaexplore.backends.local import Lane, Player
from adaexplore.experiments import grids, sweeps
from adaexplore.models.budget import Budget


async def play(config, plan, store):
    calls = 0

    def count():
        nonlocal calls
        calls += 1

    models = assemble.Models(config, plan, Budget())
    player = Player(
        store=store, protocol=config.protocol, concurrency=len(plan.jobs), on_call=count
    )
    async with models:
        cpu, wall = time.process_time(), time.perf_counter()
        lane = Lane(jobs=plan.jobs, open=lambda: models.connected("openai_compatible"))
        async for outcome in player.outcomes([lane]):
            assert outcome.record is not None, outcome.failure
    return {
        "calls": calls,
        "cpu_s": time.process_time() - cpu,
        "wall_s": time.perf_counter() - wall,
    }


def main():
    port, episodes = int(sys.argv[1]), int(sys.argv[2])
    profile = "+profiles.openai_compatible"
    worlds = datasets.load("first").worlds
    seeds = list(range(-(-episodes // len(worlds))))
    config = configure.sweep(
        [
            "+grid=smoke", "models=[openai_compatible]", "dataset=first", f"seeds={seeds}",
            f"{profile}.model=mock",
            f"{profile}.route.base_url=http://127.0.0.1:{port}/v1",
            f"{profile}.limits.concurrency_start={episodes}", f"{profile}.limits.concurrency_max={episodes}",
        ]
    )  # fmt: skip
    # The mock keeps no list of models; the list is asked for once, outside what is measured.
    with tempfile.TemporaryDirectory() as folder:
        store = FolderStore(Path(folder))
        plan = sweeps.plan(store, "bench", grids.expand(config, "bench"), worlds)
        plan = sweeps.Plan(
            sweep=plan.sweep,
            cells=plan.cells,
            worlds=plan.worlds,
            finished={},
            jobs=plan.jobs[:episodes],
        )
        print(json.dumps(loops.run(play(config, plan, store))))


main()
