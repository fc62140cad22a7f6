"""How fast stored episodes are replayed and audited.

The sweep is one of the reference agents, full episodes, played through a launch. The rate per core is
that of one process over its CPU time; the command's is that of `adaexplore verify` by the clock, its
start and its worker processes included.
"""

import json
import tempfile
import time
from pathlib import Path

from tests.benchmarks.children import HERE, Launched, run, told
from tests.benchmarks.rows import measured

EPISODES, AGENTS, SETTINGS = 40, 6, 2
PER_CORE = 150


def rows(bench):
    """The rows of the group."""
    count = EPISODES * AGENTS * SETTINGS
    with tempfile.TemporaryDirectory() as folder:
        bench.say(f"playing {count} episodes of the reference agents")
        Launched(
            [
                "models=reference", "settings=[default,stationary]", "dataset=lite",
                f"dataset.limit={EPISODES}", "backend.processes=null", "tracking=none",
                "report=false", "name=audited",
            ],
            Path(folder),
        )  # fmt: skip
        bench.say("replaying and auditing them")
        words = [HERE / "drive_audit.py", Path(folder) / "runs", "audited", bench.repeats]
        found = told(words)
        commands = [_command(folder) for _ in range(bench.repeats)]
    for kind, what in (("replay", "replay, one core"), ("verify", "audit (verify), one core")):
        yield measured(f"audits.{kind}", what, found[kind], "episodes/s", PER_CORE, least=True)
    what = f"`adaexplore verify` of {count} episodes, start to end, all cores"
    yield measured("audits.command", what, commands, "episodes/s")


def _command(folder):
    """Episodes per second of the command."""
    start = time.perf_counter()
    words = ["-m", "adaexplore", "verify", "audited", "--json", "tracking=none"]
    found = json.loads(run(words, cwd=folder).stdout)
    assert [] == found["findings"]
    return found["replayed"] / (time.perf_counter() - start)
