"""How much memory a launch takes, and with what it grows.

Each figure is the peak of a whole launch in a process of its own: configuration, dataset, play, tables.
There is no MLflow and no report (a report is made from all records, and can be made elsewhere). Growth
with finished episodes is shown with short episodes, so that ten thousand take minutes; what an active
episode takes is shown with whole ones, whose histories are as long as they get.
"""

import resource
import tempfile
from pathlib import Path

from tests.benchmarks.children import Launched, mock, remote
from tests.benchmarks.rows import measured

EPISODES_OF_SEED = 200
SWEEPS = (100, 1_000, 10_000)
AT_ONCE = 100
MANY_AT_ONCE = 1_000
SHORT = "protocol.batches=2"
BASE_MB, ACTIVE_KB, GROWTH_PERCENT = 150, 200, 5
FILES_OF_EPISODE = 3
"""Open at once: its journal, its connection, and room for what is being written."""


def rows(bench):
    """The rows of the group."""
    room_for_files()
    bench.say("a launch of one episode")
    base = peak(1, 1, SHORT)
    yield measured("memory.base", "peak RSS of a launch, one episode", base, "MB", BASE_MB)
    peaks = {}
    for episodes in SWEEPS:
        bench.say(f"a sweep of {episodes:,} short episodes, {AT_ONCE} at once")
        peaks[episodes] = peak(episodes, AT_ONCE, SHORT)
        what = f"peak RSS, sweep of {episodes:,} short episodes, {AT_ONCE} at once"
        yield measured(f"memory.sweep.{episodes}", what, peaks[episodes], "MB")
    _, thousand, most = (peaks[episodes] for episodes in SWEEPS)
    what = "growth of peak RSS, 10,000 episodes against 1,000"
    yield measured("memory.growth", what, 100 * (most / thousand - 1), "%", GROWTH_PERCENT)
    yield from _active(bench)


def _active(bench):
    few_many = []
    for at_once in (AT_ONCE, MANY_AT_ONCE):
        bench.say(f"{MANY_AT_ONCE:,} whole episodes, {at_once:,} at once")
        few_many.append(peak(MANY_AT_ONCE, at_once))
        what = f"peak RSS, sweep of {MANY_AT_ONCE:,} whole episodes, {at_once:,} at once"
        yield measured(f"memory.at_once.{at_once}", what, few_many[-1], "MB")
    each = 1024 * (few_many[1] - few_many[0]) / (MANY_AT_ONCE - AT_ONCE)
    what = "memory per active episode, with its whole history"
    yield measured("memory.active", what, each, "KB", ACTIVE_KB)


def peak(episodes, at_once, *words):
    """Peak RSS in MB of a launch that plays so many episodes, so many at once."""
    limit = min(episodes, EPISODES_OF_SEED)
    asked = [
        "dataset=v1", f"dataset.limit={limit}", f"seeds={list(range(episodes // limit))}",
        "tracking=none", "report=false", *words,
    ]  # fmt: skip
    with mock(0.0) as server, tempfile.TemporaryDirectory() as folder:
        return Launched([*remote(server.port, at_once), *asked], Path(folder)).rss_mb


def room_for_files():
    """Let this process and its children open as many files as many episodes at once need."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_OF_EPISODE * MANY_AT_ONCE + 256
    if most != resource.RLIM_INFINITY and most < wanted:
        raise RuntimeError(f"expected room for {wanted} open files, got {most}: raise ulimit -n")
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), most))
