"""`replay` and `verify`: what is stored, computed again and compared.

Neither asks a model or changes a sweep. A replay gives the records and tables of a sweep from its
journals alone; an audit looks at everything else as well.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rich.console import Console

from adaexplore import arguments, assemble, display
from adaexplore.backends.folder import store_error
from adaexplore.errors import ConfigError, TrackingError
from adaexplore.experiments import attempts, audits, stored
from adaexplore.experiments.audits import Audit, Finding
from adaexplore.experiments.config import Places
from adaexplore.experiments.stored import StoredSweep
from adaexplore.experiments.stores import Store
from adaexplore.experiments.tables import Table
from adaexplore.opening import opened, tracked

DONE: Final = 0
FOUND: Final = 4

REPLAY_HELP: Final = """\
usage: adaexplore replay SWEEP [--out FOLDER] [runs_dir=FOLDER] [store=KIND store.KEY=VALUE ...]

Computes every finished episode of a sweep again from its journal, without any model, and compares
records and tables with those that are stored, byte for byte. The stored sweep is not changed.

  --out FOLDER   also write the tables there, as CSV

exit codes: 0 bit-identical, 4 a difference, each named with its episode and field"""

VERIFY_HELP: Final = """\
usage: adaexplore verify SWEEP [--json] [runs_dir=FOLDER] [store=KIND ...] [tracking=KIND ...]

Audits a sweep: every journal and result with its check and owner, every episode replayed, episodes
that are missing, cells that are not what their id says, tables that the results do not give, objects
under cells/ and sweeps/ that are not ours or that no sweep owns, and what MLflow shows against what is
stored. Changes nothing. One line for each finding:

  KIND  WHERE: WHAT    KIND is one of cell, missing, journal, result, table, foreign, unowned,
                       document, mlflow
  --json               one JSON object instead

exit codes: 0 nothing found, 4 findings"""


def replay(words: Sequence[str]) -> int:
    """Exit code of `replay`."""
    if {"--help", "-h"} & set(words) or not words:
        print(REPLAY_HELP)
        return DONE if words else 2
    given = arguments.read("replay", words, options=["out"])
    (name,) = given.expect("SWEEP")
    output = display.console()
    with opened(given) as (_, store):
        sweep = stored.read(store, name)
        audit = _audit(store, sweep)
        found = [*audit.of_cells()] or _replayed(audit, output)
        made = () if found else audit.tables()
        if made and list(store.keys(f"sweeps/{name}/tables/")):
            found = list(audits.table_findings(store, name, made))
    _print(output, found)
    out = given.one("out")
    if out is not None and made:
        _write(Path(out), made)
    if found:
        display.show_lines(output, [f"not what is stored; differences: {len(found)}"])
        return FOUND
    told = [f"records and tables of sweep {name} are bit-identical to what is stored"]
    told += [f"tables:  {out}"] if out is not None else []
    display.show_lines(output, told)
    return DONE


def _replayed(audit: Audit, output: Console) -> list[Finding]:
    """Replay what counts; ConfigError if nothing does."""
    counting = {
        run: [attempt for attempt in found if attempt.result == attempts.result_of(found)]
        for run, found in audits.by_run(audit.store.keys("cells/")).items()
        if attempts.result_of(found) is not None
    }
    with _timed(audit, output):
        found = list(audit.of_attempts(counting))
    if not audit.replayed:
        raise ConfigError(
            f"sweep '{audit.sweep.name}' has no finished episode yet: launch it first"
        )
    return found


def verify(words: Sequence[str]) -> int:
    """Exit code of `verify`."""
    if {"--help", "-h"} & set(words) or not words:
        print(VERIFY_HELP)
        return DONE if words else 2
    given = arguments.read("verify", words, flags=["json"])
    (name,) = given.expect("SWEEP")
    quiet = "json" in given.flags
    output = display.console()
    with opened(given) as (places, store):
        audit = _audit(store, stored.read(store, name))
        start = time.monotonic()
        with _timed(audit, None if quiet else output):
            found = list(audit.findings())
        found += _of_tracking(tracked(given, places, store, name), store, name)
    if quiet:
        document = {
            "sweep": name,
            "replayed": audit.replayed,
            "seconds": round(time.monotonic() - start, 3),
            "findings": [finding.document() for finding in found],
        }
        print(json.dumps(document, indent=2))
        return FOUND if found else DONE
    _print(output, found)
    told = f"findings: {len(found)}" if found else "nothing found: all is as it should be"
    display.show_lines(output, [told])
    return FOUND if found else DONE


def _of_tracking(places: Places, store: Store, sweep: str) -> list[Finding]:
    """What MLflow shows that is not stored; that it cannot be asked hides no other finding."""
    try:
        shown = assemble.tracking_differences(places, store, sweep)
    except TrackingError as error:
        shown = [str(error)]
    return [Finding(kind="mlflow", where=sweep, what=line) for line in shown]


def _audit(store: Store, sweep: StoredSweep) -> Audit:
    worlds = stored.worlds(stored.dataset(store, sweep), sweep)
    return Audit(store=store, sweep=sweep, worlds=worlds, processes=assemble.cores())


@contextmanager
def _timed(audit: Audit, output: Console | None) -> Iterator[None]:
    """Show how many attempts are replayed, and at the end how fast."""
    if output is None:
        yield
        return
    start = time.monotonic()
    with output.status("replaying") as status:
        audit.on_replay = _shower(audit, status.update)
        yield
    seconds = max(time.monotonic() - start, 1e-9)
    rate = audit.replayed / seconds
    line = f"replayed {audit.replayed} attempts in {seconds:.1f} s ({rate:.0f} a second)"
    display.show_lines(output, [line])


def _shower(audit: Audit, update: Callable[[str], None]) -> Callable[[], None]:
    return lambda: update(f"replaying: {audit.replayed} attempts")


def _print(output: Console, found: Iterable[Finding]) -> None:
    lines = [display.plain(f"{f.kind:<8} {f.where}: {f.what}") for f in found]
    display.show_lines(output, lines)


def _write(folder: Path, made: Iterable[Table]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for table in made:
            (folder / f"{table.name}.csv").write_bytes(table.csv())
    except OSError as error:
        raise store_error(folder, error, option="--out") from None
