"""What it costs to keep journals and results in a bucket instead of a folder.

The same whole loop as in `calls`, 100 episodes at once at 100 ms a call, against the stack's SeaweedFS on
this machine, which takes processor time of its own. A journal in a bucket is durable when its part is
uploaded, so waits appear in the wall time; what is bought is a store that all machines reach.
"""

import os

from tests.benchmarks import stacks
from tests.benchmarks.calls import cpu_ms
from tests.benchmarks.children import HERE, mock, told
from tests.benchmarks.rows import Row, measured

EPISODES, LATENCY_S = 100, 0.1


def rows(bench):
    """The rows of the group."""
    found = {"folder": [], "s3": []}
    try:
        with stacks.started(bench) as stack:
            os.environ.update(stack.environment)
            for i in range(bench.repeats):
                # A prefix of its own: what an earlier repeat finished would not be played again.
                fresh = [*stacks.store_words(stack), f"store.prefix=repeat-{i}"]
                words = {"folder": [], "s3": fresh}
                for store, runs in found.items():
                    bench.say(f"repeat {i + 1}: journals in {store}")
                    runs.append(_played(words[store]))
    except stacks.NoStackError as error:
        yield Row(key="s3", what="journals in a bucket", note=str(error))
        return
    folder, bucket = found["folder"], found["s3"]
    for store, runs in found.items():
        shown = "a folder" if store == "folder" else "a bucket (SeaweedFS)"
        what = f"whole-loop client CPU per call, journals in {shown}"
        yield measured(f"s3.cpu.{store}", what, list(map(cpu_ms, runs)), "ms")
        over = [run["wall_s"] / (run["calls"] / EPISODES * LATENCY_S) for run in runs]
        yield measured(f"s3.wall.{store}", f"wall over ideal, journals in {shown}", over)
    more = [
        1000 * (b["cpu_s"] - a["cpu_s"]) / EPISODES for a, b in zip(folder, bucket, strict=True)
    ]
    yield measured("s3.episode", "more CPU per episode for a bucket", more, "ms")


def _played(words):
    with mock(LATENCY_S) as server:
        return told([HERE / "drive_ours.py", server.port, EPISODES, *words])
