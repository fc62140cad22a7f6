"""`make bench`: everything that is promised about speed (docs/performance.md), as one table.

`python -m tests.benchmarks.bench [--only GROUPS] [--repeats N] [--json FILE] [--page FILE]`, with groups
parted by commas. Figures are medians of the repeats with their spread; ratios compare what was taken
in the same minutes and are what to believe, since other work on the machine moves absolute times.
Nothing passes or fails by a clock: a missed target is told in the table, and only a group that could
not be measured makes the exit code 1. `--from FILE ...` takes what earlier runs kept instead of measuring.
"""

import argparse
import os
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks import (
    audits,
    builds,
    calls,
    capacities,
    environments,
    journals_s3,
    machines,
    memory,
    mlflow_rates,
    starts,
)
from tests.benchmarks.rows import Row, dumps, loads, replaced, table

GROUPS = {
    "calls": calls.rows,
    "memory": memory.rows,
    "starts": starts.rows,
    "environments": environments.rows,
    "audits": audits.rows,
    "builds": builds.rows,
    "mlflow": mlflow_rates.rows,
    "s3": journals_s3.rows,
}
"""What measures each group, in the order of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What a group is told."""

    group: str
    repeats: int
    started: float

    def say(self, what):
        """Show that something is going on, on stderr."""
        passed = time.monotonic() - self.started
        print(f"[{passed:5.0f} s] {self.group}: {what}", file=sys.stderr, flush=True)


def measured(groups, repeats):
    """All rows of these groups; a group that fails is a row that says why."""
    started, found = time.monotonic(), []
    for group in groups:
        bench = Bench(group=group, repeats=repeats, started=started)
        try:
            found += _loud(GROUPS[group](bench), bench)
        except Exception as error:  # noqa: BLE001 (the other groups are measured all the same)
            traceback.print_exc()
            note = f"failed: {error}"
            found.append(Row(key=f"{group}.failed", what=f"group {group}", note=note))
    return found


def _loud(rows, bench):
    for row in rows:
        if row.state == "SKIPPED":
            bench.say(f"SKIPPED, NOT MEASURED: {row.what}: {row.note}")
        yield row


def page_block(machine, rows):
    """What a page shows of a run."""
    shown = [machines.shown(machine), table(rows)]
    if (capacity := capacities.table(rows)) is not None:
        shown.append(capacity)
    return "\n\n".join(shown)


def asked():
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default=",".join(GROUPS), help=", ".join(GROUPS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--json", type=Path, help="default: runs/bench/TIME.json; a .md goes with it"
    )
    parser.add_argument("--page", type=Path, help="a page whose marked block becomes this run's")
    parser.add_argument(
        "--from", type=Path, nargs="+", dest="sources", help="JSON of earlier runs, put together"
    )
    words = parser.parse_args()
    words.groups = [name for name in words.only.split(",") if name]
    if unknown := [name for name in words.groups if name not in GROUPS]:
        parser.error(f"unknown group {unknown[0]}: expected some of {', '.join(GROUPS)}")
    return words


def main():
    words = asked()
    if words.sources is not None:
        runs = [loads(path.read_text()) for path in words.sources]
        machine, rows = runs[0][0], [row for _, found in runs for row in found]
    else:
        machine = machines.described()
        with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
            os.environ["TMPDIR"] = scratch  # of all that is started
            rows = measured(words.groups, words.repeats)
        machine = machines.ended(machine)
        keep(words.json, machine, rows)
    if words.page is not None:
        words.page.write_text(replaced(words.page.read_text(), page_block(machine, rows)))
    print(page_block(machine, rows))
    return int(any(row.key.endswith(".failed") for row in rows))


def keep(file, machine, rows):
    """Write a run as JSON and, beside it, as Markdown."""
    file = file or Path("runs/bench") / time.strftime("%Y-%m-%d-%H%M%S.json", time.gmtime())
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(dumps(machine, rows))
    file.with_suffix(".md").write_text(page_block(machine, rows) + "\n")
    print(f"kept as {file} and {file.with_suffix('.md')}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
