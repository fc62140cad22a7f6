"""Our whole loop against a mock model: environment, client, governor, journal and record.

`python drive_ours.py PORT EPISODES [--keep-nothing] [KEY=VALUE …]` plays so many episode runs at once, with
further words of configuration, and prints calls, CPU seconds, wall seconds and peak memory as JSON; with
`--keep-nothing` in a store that forgets everything, to tell what journals cost. What it wrote is left
where temporary files are: for five minutes after a thousand files were removed, ext4 takes a millisecond to
make a new one, and the next run would pay for it.
"""

import json
import resource
import sys
import tempfile
import time
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace

from adaexplore import assemble, configure, loops
from adaexplore.authoring import datasets
from adaexplore.backends.local import Lane, Player
from adaexplore.experiments import grids, sweeps
from adaexplore.models.budget import Budget

KEEP_NOTHING = "--keep-nothing"
DONE = Future()
DONE.set_result(None)


class KeepsNothing:
    """A store, and a journal in it, that acknowledges everything at once and forgets it."""

    writer, near, at_once = "0" * 12, True, 1

    def create(self, _key, _data):
        return self

    def append(self, _data):
        return DONE

    def put_all(self, _objects):
        return DONE

    def put(self, _key, _data):
        pass

    def get(self, _key):
        return None

    def keys(self, _prefix):
        return []

    def cut(self):
        pass

    def close(self):
        pass


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
        # The mock keeps no list of models; the list is asked for once, outside what is measured.
        cpu, wall = time.process_time(), time.perf_counter()
        lane = Lane(jobs=plan.jobs, open=lambda: models.connected("openai_compatible"))
        async for outcome in player.outcomes([lane]):
            assert outcome.record is not None, outcome.failure
    return {
        "calls": calls,
        "cpu_s": time.process_time() - cpu,
        "wall_s": time.perf_counter() - wall,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main():
    port, episodes, *further = sys.argv[1:]
    forgets = KEEP_NOTHING in further
    further = [word for word in further if word != KEEP_NOTHING]
    profile = "+profiles.openai_compatible"
    worlds = datasets.load("first").worlds
    seeds = list(range(-(-int(episodes) // len(worlds))))
    folder = tempfile.mkdtemp()
    config = configure.sweep(
        [
            "+grid=smoke", "models=[openai_compatible]", "dataset=first", f"seeds={seeds}",
            f"{profile}.model=mock", f"runs_dir={folder}",
            f"{profile}.route.base_url=http://127.0.0.1:{port}/v1",
            f"{profile}.limits.concurrency_start={episodes}",
            f"{profile}.limits.concurrency_max={episodes}", *further,
        ]
    )  # fmt: skip
    with closing(KeepsNothing() if forgets else assemble.store(config)) as store:
        plan = sweeps.plan(store, "bench", grids.expand(config, "bench"), worlds)
        plan = replace(plan, jobs=plan.jobs[: int(episodes)], finished={})
        print(json.dumps(loops.run(play(config, plan, store))))


if __name__ == "__main__":
    main()
