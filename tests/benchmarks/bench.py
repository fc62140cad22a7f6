"""`make bench`: what the client costs per call, beside the plain openai SDK in the same run.

Figures are CPU seconds of the client's process over its calls, and wall time over the ideal (turns
of the longest episode times latency). Other work on the machine moves wall times far more than CPU
times. They are printed with targets; nothing passes or fails by a clock.

`python bench.py [REPEATS] [--json FILE]`
"""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
TURNS = 26
"""Replies of one episode under default: two a window and two assessments."""
OURS, THEIRS = "drive_ours.py", "drive_openai.py"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what was found in each repeat, and what it should be at most."""

    what: str
    found: list[float]
    unit: str = ""
    target: float | None = None

    @property
    def missed(self):
        return self.target is not None and median(self.found) > self.target

    def __str__(self):
        least, middle, most = (
            f"{x:.2f}" for x in (min(self.found), median(self.found), max(self.found))
        )
        target = "" if self.target is None else f"at most {self.target:g}{self.unit}"
        return f"| {self.what} | {middle}{self.unit} | {least} to {most} | {target} |"


def drive(script, latency_s, episodes):
    """What one client process measured against a mock server of its own."""
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


def cpu_ms(run):
    return 1000 * run["cpu_s"] / run["calls"]


def rows(repeats):
    """The table; ours and theirs are taken in turns, so that a busy minute hits both."""
    pairs = [(drive(OURS, 0.1, 100), drive(THEIRS, 0.1, 100)) for _ in range(repeats)]
    wide = [drive(OURS, 0.5, 400) for _ in range(repeats)]
    quick = [drive(OURS, 0.1, 400) for _ in range(repeats)]
    ours, theirs = ([cpu_ms(pair[i]) for pair in pairs] for i in (0, 1))
    shares = [a / b for a, b in zip(ours, theirs, strict=True)]
    return [
        Row("whole-loop client CPU per call, 100 episodes, 100 ms", ours, " ms", 0.6),
        Row("the same through the plain openai SDK, nothing kept", theirs, " ms"),
        Row("ratio", shares, target=0.1),
        Row("CPU per call, 400 episodes, 500 ms", [cpu_ms(run) for run in wide], " ms"),
        Row("wall over ideal, 400 episodes, 500 ms", [over(run, 0.5) for run in wide], target=1.05),
        Row("wall over ideal, 400 episodes, 100 ms", [over(run, 0.1) for run in quick], target=2.0),
    ]


def over(run, latency_s):
    return run["wall_s"] / (TURNS * latency_s)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("repeats", nargs="?", type=int, default=3)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    versions = {name: version(name) for name in ("aiohttp", "orjson", "openai")}
    machine = {"cores": os.cpu_count(), "python": sys.version.split()[0], **versions}
    table = rows(asked.repeats)
    load = os.getloadavg()[0]
    print(f"{', '.join(f'{k} {v}' for k, v in machine.items())}; load at the end {load:.1f}")
    print(f"\n| what | median of {asked.repeats} | spread | target |")
    print("|---|---|---|---|")
    print("\n".join(map(str, table)))
    print(f"\nmissed: {', '.join(row.what for row in table if row.missed) or 'none'}")
    if asked.json is not None:
        found = {"machine": machine, "load": load, "rows": [asdict(row) for row in table]}
        asked.json.write_text(json.dumps(found, indent=1))


main()
