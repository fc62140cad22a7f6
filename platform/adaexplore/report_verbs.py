"""`report` and `compare`: what sweeps say, as a page with its tables and figures, and two of them in pairs."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from adaexplore import arguments, display, episode_pages, publish
from adaexplore.arguments import Arguments
from adaexplore.backends.folder import store_error
from adaexplore.benchmark.scores.estimates import Estimate
from adaexplore.errors import ConfigError
from adaexplore.experiments.stores import Store
from adaexplore.experiments.tables import P, Table
from adaexplore.opening import opened
from adaexplore.reports import collect, page, report
from adaexplore.reports.analyses import contrasts
from adaexplore.reports.sections import Analysis, shown, shown_p

DONE: Final = 0

REPORT_HELP: Final = """\
usage: adaexplore report SWEEP [SWEEP ...] [--against SWEEP] [--out FOLDER]
                         [runs_dir=FOLDER] [store=KIND store.KEY=VALUE ...]

Makes every table and figure of the benchmark from the stored records, as one page that needs no
network (report.html) with each table also as CSV and LaTeX and each figure also as PNG and SVG.
Several sweeps are told together; a cell that they share counts once.

  --against SWEEP   a section compares what is reported with this sweep, episode by episode
  --out FOLDER      where to write; else report/ of the first sweep, in the store"""

COMPARE_HELP: Final = """\
usage: adaexplore compare A B [--out FOLDER] [runs_dir=FOLDER] [store=KIND store.KEY=VALUE ...]

Compares sweep B with sweep A on the episodes that both have scored with the same hidden rules and
cases: difference, 95 % interval, Wilcoxon signed-rank test with Holm's correction. Models and settings
are matched by name; where each sweep has a single model, the two are compared.

  --out FOLDER   also write the table there, as CSV"""


def make(words: Sequence[str]) -> int:
    """Exit code of `report`."""
    if {"--help", "-h"} & set(words) or not words:
        print(REPORT_HELP)
        return DONE if words else 2
    given = arguments.read("report", words, options=["out", "against"])
    if not given.names:
        raise ConfigError("report: expected SWEEP, got none")
    out, other = given.one("out"), given.one("against")
    with opened(given) as (_, store):
        found = collect.evidence(store, given.names, options=given.keys)
        against = collect.evidence(store, [other]) if other is not None else None
        looks = list(episode_pages.made(store, given.names[0], found))
        written(store, given.names[0], looks, out)
        if out is None:
            found = collect.with_pages(store, found)
        else:
            found = replace(found, origin=replace(found.origin, pages=tuple(p for p, _ in looks)))
        made = report.build(found, against)
        where = written(store, given.names[0], report.files(made), out)
    lines = [f"warning: {display.plain(caution)}" for caution in made.cautions]
    lines.append(f"{len(made.made)} analyses of {found.scored} scored episode runs")
    display.show_lines(display.console(), [*lines, f"report:  {where}"])
    return DONE


def written(
    store: Store, sweep: str, files: Iterable[tuple[str, bytes]], out: str | None = None
) -> str:
    """Write a report's files and say where its page is.

    Args:
        store: Where the sweep is kept.
        sweep: Its name.
        files: (path, content), the page last.
        out: A folder to write to instead of the store.
    """
    if out is None:
        for path, data in files:
            store.put(publish.report_key(sweep, path), data)
        return store.locate(publish.report_key(sweep))
    for path, data in files:
        _save(Path(out) / path, data)
    return str(Path(out) / page.REPORT)


def _save(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise store_error(path, error, option="--out") from None


# -- two sweeps --------------------------------------------------------------------------------


def compare(words: Sequence[str]) -> int:
    """Exit code of `compare`."""
    if {"--help", "-h"} & set(words) or not words:
        print(COMPARE_HELP)
        return DONE if words else 2
    given = arguments.read("compare", words, options=["out"])
    names = given.expect("A", "B")
    found = _contrast(given, names)
    if found.absent:
        raise ConfigError(f"compare {' '.join(names)}: {found.absent}")
    (table,) = found.tables
    lines = [table.title, *_rows(table), "", found.reading]
    lines += [f"warning: {warning}" for warning in found.warnings]
    out = given.one("out")
    if out is not None:
        _save(Path(out) / f"{table.name}.csv", table.csv())
        lines.append(f"table:  {Path(out) / table.name}.csv")
    display.show_lines(display.console(), [display.plain(line) for line in lines])
    return DONE


def _contrast(given: Arguments, names: Sequence[str]) -> Analysis:
    with opened(given) as (_, store):
        first, second = (collect.evidence(store, [name]) for name in names)
    return contrasts.contrast(first, second)


SHOWN: Final = ("model", "setting", "metric", "n", "first", "second", "difference", "p_holm")


def _rows(table: Table) -> list[str]:
    """The columns that matter most, in columns."""
    places = [table.columns.index(name) for name in SHOWN]
    heads = [name.replace("p_holm", "p (Holm)") for name in SHOWN]
    rows = [heads, *([_cell(row[i]) for i in places] for row in table.rows)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(SHOWN))]
    return ["  " + "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in rows]


def _cell(value: str | float | Estimate) -> str:
    if isinstance(value, Estimate):
        low, high = shown(value.low, signed=True), shown(value.high, signed=True)
        return shown(value.value, signed=True) + (f" [{low}, {high}]" if low else "")
    if isinstance(value, P):
        return shown_p(value)
    return shown(value) if isinstance(value, float) else str(value)
