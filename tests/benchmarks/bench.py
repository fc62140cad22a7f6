"""`make bench`: what the client costs per call, beside the plain openai SDK in the same run.

Figures are CPU seconds of the client's process over its calls, and wall time over the ideal (turns
of the longest episode times latency). They are printed with targets; nothing passes or fails by a clock.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
TURNS = 26
"""Replies of one episode under default: two a window and two assessments."""


def drive(script, latency_s, episodes):
    server = subprocess.Popen(
        [sys.executable, HERE / "mock_server.py", str(latency_s)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        port = server.stdout.readline().strip()
        done = subprocess.run(
            [sys.executable, HERE / script, port, str(episodes)],
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(done.stdout)
    finally:
        server.stdin.close()
        server.wait()


def main():
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    pairs = [
        (drive("drive_ours.py", 0.1, 100), drive("drive_openai.py", 0.1, 100))
        for _ in range(repeats)
    ]
    ours = median(1000 * a["cpu_s"] / a["calls"] for a, _ in pairs)
    theirs = median(1000 * b["cpu_s"] / b["calls"] for _, b in pairs)
    shares = [(a["cpu_s"] / a["calls"]) / (b["cpu_s"] / b["calls"]) for a, b in pairs]
    wide = drive("drive_ours.py", 0.5, 400)
    over = wide["wall_s"] / (TURNS * 0.5)
    print(
        f"machine: {os.cpu_count()} cores, Python {sys.version.split()[0]}, {repeats} repeats, medians\n"
    )
    print("| what | result | target |")
    print("|---|---|---|")
    print(f"| whole-loop client CPU per call, 100 episodes, 100 ms | {ours:.2f} ms | |")
    print(f"| the same through the plain openai SDK, nothing kept | {theirs:.2f} ms | |")
    print(
        f"| ratio, {min(shares):.2f} to {max(shares):.2f} | {median(shares):.2f} | at most 0.20 |"
    )
    print(f"| wall over ideal, 400 episodes, 500 ms | {over:.2f} | at most 1.10 |")
    missed = [name for name, bad in (("ratio", median(shares) > 0.2), ("wall", over > 1.1)) if bad]
    print(f"\nmissed: {', '.join(missed) or 'none'}")


main()
