"""Pages of the episodes that a report names, so that a reader gets from a table to a conversation.

Which ones they are is the report's own choice (`reports.analyses.looks`); they are written beside it, and
it links to what is there.
"""

from collections.abc import Iterator

from adaexplore.experiments import attempts, stored
from adaexplore.experiments.stored import StoredCell, StoredSweep
from adaexplore.experiments.stores import Store
from adaexplore.reports import page
from adaexplore.reports.analyses import looks
from adaexplore.reports.analyses.looks import Look
from adaexplore.reports.episodes import pages, runs
from adaexplore.reports.evidence import Evidence


def made(store: Store, name: str, evidence: Evidence) -> Iterator[tuple[str, bytes]]:
    """(path beside the report, page) of each run that the report of a sweep points out.

    Runs of other sweeps, which a common report may point out too, have none.
    """
    sweep = stored.read(store, name)
    worlds = stored.worlds(stored.dataset(store, sweep), sweep)
    beside = pages.report_key(name).removesuffix(page.REPORT)
    for look in looks.chosen(evidence):
        cell = _cell(store, sweep, look)
        if cell is None:
            continue
        run = runs.read(store, name, cell, worlds[look.record.episode_id])
        key = pages.key(name, cell, look.record.episode_id)
        yield key.removeprefix(beside), pages.page_of(run, report=pages.UP + page.REPORT)


def _cell(store: Store, sweep: StoredSweep, look: Look) -> StoredCell | None:
    """The cell of a sweep that played just this run; several seeds may have the same one."""
    for cell in sweep.cells:
        if cell.group == (look.model, look.record.setting):
            key = attempts.finished(store, cell.cell_id).get(look.record.episode_id)
            if key is not None and attempts.read_result(store, key) == look.record:
                return cell
    return None
