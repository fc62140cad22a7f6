"""What showing runs in MLflow costs a sweep that waits for its models.

`python -m tests.benchmarks.projection [EPISODES]` plays the same episodes twice against a mock model of
200 ms a call, 32 at once: without MLflow, and projected to an MLflow server on PostgreSQL (the services
of `make stack`, in a folder of their own). The sweep's time is that of playing; the final drain is told
apart. Target: at most 5 % slower.
"""

import os
import sys
import tempfile
from pathlib import Path

from stack.services import Stack
from tests.benchmarks.children import Launched, mock, remote

from stack import layout

LATENCY_S = 0.2
AT_ONCE = 32
EPISODES_OF_FIRST = 32


def play(port, episodes, *extra):
    """(seconds from the first reply to the last result, seconds after it) of a launch."""
    seeds = list(range(-(-episodes // EPISODES_OF_FIRST)))
    words = [
        *remote(port, AT_ONCE), "dataset=first", "dataset.limit=null", f"seeds={seeds}",
        "protocol.batches=4", *extra,
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        launched = Launched(words, Path(folder))
        ended = launched.began_at + launched.wall_s
        first = min(p.stat().st_ctime for p in Path(folder).glob("runs/cells/*/*/*/journal.jsonl"))
        last = max(p.stat().st_mtime for p in Path(folder).glob("runs/cells/*/*/*/result.json"))
        return last - first, ended - last


def compared(stack, episodes):
    """((playing, rest) without MLflow, the same projected to the stack's MLflow), in seconds."""
    with mock(LATENCY_S) as server:
        alone = play(server.port, episodes, "tracking=none")
        told = play(
            server.port, episodes, "tracking=server", f"tracking.uri={stack.tracking_uri}",
            "tracking.drain_s=300",
        )  # fmt: skip
    return alone, told


def main():
    episodes = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    with tempfile.TemporaryDirectory() as folder:
        stack = Stack(Path(folder) / "stack", layout.free_ports())
        try:
            stack.up()
            os.environ.update(stack.environment)
            (alone, rest), (shown, drain) = compared(stack, episodes)
        finally:
            stack.down()
    print(f"\n{episodes} episode runs, {AT_ONCE} at once, {1000 * LATENCY_S:.0f} ms a call")
    print("| what | result | target |\n|---|---|---|")
    print(f"| playing, tracking=none | {alone:.1f} s | |")
    print(f"| playing, projected to MLflow on PostgreSQL | {shown:.1f} s | |")
    print(f"| slower by | {100 * (shown / alone - 1):+.1f} % | at most 5 % |")
    print(
        f"| after the last result (tables, report, drain) | {drain:.1f} s, without MLflow {rest:.1f} s | |"
    )
    rate = episodes / (shown + drain - rest)
    print(f"| rate of projection, over playing and drain | {rate:.1f} runs/s | |")


if __name__ == "__main__":
    main()
