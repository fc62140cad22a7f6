"""What showing runs in MLflow costs a sweep that waits for its models.

`python tests/benchmarks/projection.py [EPISODES]` plays the same episodes twice against a mock model
of 200 ms a call, 32 at once: without MLflow, and projected to an MLflow server on PostgreSQL (the
services of `make stack`, in a folder of their own). The sweep's time is that of playing; the final
drain is told apart. Target: at most 5 % slower.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from stack.services import Stack

from stack import layout

HERE = Path(__file__).parent
LATENCY_S = 0.2
AT_ONCE = 32
EPISODES_OF_FIRST = 32
DRAIN = re.compile(r"^projected (\d+) runs", re.MULTILINE)


def words(port, episodes):
    profile = "+profiles.openai_compatible"
    seeds = list(range(-(-episodes // EPISODES_OF_FIRST)))
    return [
        "+grid=smoke", "models=[openai_compatible]", "dataset=first", "dataset.limit=null",
        f"seeds={seeds}", "protocol.batches=4", f"backend.concurrency={AT_ONCE}",
        f"{profile}.model=mock", f"{profile}.route.base_url=http://127.0.0.1:{port}/v1",
        f"{profile}.limits.concurrency_start={AT_ONCE}", f"{profile}.limits.concurrency_max={AT_ONCE}",
    ]  # fmt: skip


def play(port, episodes, *extra):
    """(seconds from the first reply to the last result, seconds after it, output) of a launch."""
    with tempfile.TemporaryDirectory() as folder:
        child = subprocess.run(
            [sys.executable, "-m", "adaexplore.launch", *words(port, episodes), *extra],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        ended = time.time()
        assert child.returncode == 0, child.stderr
        first = min(p.stat().st_ctime for p in Path(folder).glob("runs/cells/*/*/*/journal.jsonl"))
        last = max(p.stat().st_mtime for p in Path(folder).glob("runs/cells/*/*/*/result.json"))
        return last - first, ended - last, child.stdout


def main():
    episodes = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    with tempfile.TemporaryDirectory() as folder:
        stack = Stack(Path(folder) / "stack", layout.free_ports())
        server = subprocess.Popen(
            [sys.executable, HERE / "mock_server.py", str(LATENCY_S)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            port = server.stdout.readline().strip()
            stack.up()
            os.environ.update(stack.environment)
            alone, rest, _ = play(port, episodes, "tracking=none")
            told = play(
                port, episodes, "tracking=server", f"tracking.uri={stack.tracking_uri}",
                "tracking.drain_s=300",
            )  # fmt: skip
        finally:
            server.stdin.close()
            server.wait()
            stack.down()
    shown, drain, _ = told
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


main()
