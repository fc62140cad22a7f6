"""Audits: what of a stored sweep is not as it should be, each finding with its place.

Every journal and result is read, every episode is replayed, the tables are made again, and every
object below `cells/` and `sweeps/` has to be one that this platform writes and that some sweep owns.
Nothing is changed. A sweep that is being launched at the moment is audited as far as it is.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from adaexplore.benchmark.game import prompts
from adaexplore.benchmark.game.protocol import PROTOCOL_VERSION
from adaexplore.benchmark.world.episodes import World
from adaexplore.errors import AdaExploreError
from adaexplore.experiments import (
    attempts,
    identity,
    replays,
    statuses,
    stored,
    sweeps,
    tables,
    tallies,
)
from adaexplore.experiments.attempts import Found
from adaexplore.experiments.replays import Rules
from adaexplore.experiments.stored import StoredCell, StoredSweep
from adaexplore.experiments.stores import Store
from adaexplore.experiments.tallies import Tally

Kind = Literal[
    "cell", "missing", "journal", "result", "table", "foreign", "unowned", "document", "mlflow"
]
HERE: Final[Mapping[str, Any]] = {
    "identity_version": identity.IDENTITY_VERSION,
    "protocol_version": PROTOCOL_VERSION,
    "prompts": prompts.DIGEST,
}
"""Semantic keys that the code decides, with the values of this code."""
_ATTEMPT: Final = re.compile(
    r"cells/[0-9a-f]{32}/[^/]+/attempt-\d{4,}-[0-9a-f]{12}/"
    r"(journal\.jsonl|(result|failure|usage|superseded)\.json)"
)
_SWEEP: Final = re.compile(
    r"sweeps/[^/]+/((sweep|projector)\.json|frozen\.yaml|accounting\.csv|(tables|figures|report)/.+"
    r"|frozen/[0-9a-f]{16}\.yaml|submissions/\d{4,}-[a-z0-9-]+\.json"
    r"|projectors/[0-9a-f]{12}\.json"
    r"|(launches|governors|served)/[^/]+\.json)"
)
_SHOWN: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong."""

    kind: Kind
    where: str
    """A key of the store, or what it is about."""
    what: str

    def document(self) -> dict[str, str]:
        """The finding as plain data."""
        return asdict(self)


@dataclass
class Audit:
    """One audit of one sweep."""

    store: Store
    sweep: StoredSweep
    worlds: Mapping[str, World]
    """The sweep's episodes by id; an episode that is not among them cannot be replayed."""
    processes: int = 1
    on_replay: Callable[[], None] = lambda: None
    """Called after each attempt."""
    replayed: int = 0
    """Attempts that were replayed so far."""
    tallies: dict[str, Tally] = field(default_factory=dict)
    """Of the records that were computed again from the journals that count, by cell id."""
    counted: int = 0
    """Episode runs that have a result that counts."""

    def findings(self) -> Iterator[Finding]:
        """Everything that is wrong, as it is found."""
        keys = list(self.store.keys("cells/"))
        runs = by_run(keys)
        yield from self.of_cells()
        yield from self.of_missing(runs)
        yield from self.of_attempts(runs)
        yield from self.of_tables()
        yield from self.of_objects(keys, runs)

    # -- cells and episodes --------------------------------------------------------------------

    def of_cells(self) -> Iterator[Finding]:
        """Cells whose content does not give their id, or that this code cannot play."""
        edited = {cell.label for cell in stored.well_named(self.sweep.cells)}
        where = sweeps.document_key(self.sweep.name)
        for cell in self.sweep.cells:
            if cell.label in edited:
                what = f"the content of cell {cell.label} does not give its id {cell.cell_id}"
                yield Finding(kind="cell", where=where, what=what)
            elif keys := stored.foreign_code(cell, HERE):
                what = (
                    f"cell {cell.label} was played with other rules ({', '.join(keys)} differ): "
                    "audit it with the code that its frozen.yaml names"
                )
                yield Finding(kind="cell", where=where, what=what)

    def of_missing(self, runs: Mapping[tuple[str, str], Sequence[Found]]) -> Iterator[Finding]:
        """Episode runs of the sweep without a result."""
        for cell in self._cells():
            for episode_id in self.sweep.selection.episode_ids:
                found = runs.get((cell.cell_id, episode_id), ())
                if attempts.result_of(found) is not None:
                    self.counted += 1
                    continue
                where = f"cells/{cell.cell_id}/{episode_id}"
                what = f"{cell.label} {episode_id} {statuses.of_run(self.store, found)}"
                yield Finding(kind="missing", where=where, what=what)

    def of_attempts(self, runs: Mapping[tuple[str, str], Sequence[Found]]) -> Iterator[Finding]:
        """Journals and results that are damaged, or do not say the same."""
        rules = self._rules()
        counting = {attempts.result_of(found) for found in runs.values()}
        found = [
            attempt
            for (cell_id, episode_id), several in runs.items()
            if cell_id in rules.cells and episode_id in rules.worlds
            for attempt in several
        ]
        count = self.processes if len(found) > replays.FEW else 1
        for again in replays.check_all(replays.read(self.store, found), rules, processes=count):
            self.replayed += 1
            self.on_replay()
            if again.record is not None and f"{again.prefix}{attempts.RESULT}" in counting:
                self.tallies.setdefault(again.prefix.split("/")[1], Tally()).add(again.record)
            for file, what in again.faults:
                kind: Kind = "result" if file == attempts.RESULT else "journal"
                yield Finding(kind=kind, where=f"{again.prefix}{file}", what=what)

    def _cells(self) -> list[StoredCell]:
        """The sweep's cells; two of one meaning are one."""
        return list({cell.cell_id: cell for cell in self.sweep.cells}.values())

    def _rules(self) -> Rules:
        """What the cells are played by that this code can play."""
        cells = {}
        for cell in self._cells():
            if not stored.foreign_code(cell, HERE):
                cells[cell.cell_id] = (cell.setting, cell.protocol)
        return Rules(worlds=self.worlds, cells=cells)

    # -- tables --------------------------------------------------------------------------------

    def of_tables(self) -> Iterator[Finding]:
        """Tables that are not the bytes that the replayed records give.

        Where a result that counts could not be replayed there is nothing to compare with: that is
        found already.
        """
        if not self.tallies or sum(t.counted.runs for t in self.tallies.values()) < self.counted:
            return
        yield from table_findings(self.store, self.sweep.name, self.tables())

    def tables(self) -> tuple[tables.Table, ...]:
        """The tables that the replayed records give."""
        cells = ((c.group, self.tallies.get(c.cell_id, Tally())) for c in self.sweep.cells)
        found = tallies.grouped(cells)
        return tables.all_tables(found, tables.scores(found))

    # -- objects -------------------------------------------------------------------------------

    def of_objects(
        self, keys: Iterable[str], runs: Mapping[tuple[str, str], Sequence[Found]]
    ) -> Iterator[Finding]:
        """Objects that are not ours, and attempts that no sweep owns."""
        below = list(self.store.keys("sweeps/"))
        for key in keys:
            if not _ATTEMPT.fullmatch(key):
                yield _foreign(key)
        known = {key.split("/")[1] for key in below if key.endswith("/sweep.json")}
        for key in below:
            if not _SWEEP.fullmatch(key) or key.split("/")[1] not in known:
                yield _foreign(key)
        yield from self._unowned(sorted(known), runs)

    def _unowned(
        self, names: Iterable[str], runs: Mapping[tuple[str, str], Sequence[Found]]
    ) -> Iterator[Finding]:
        owned: set[tuple[str, str]] = set()
        for name in names:
            try:
                sweep = stored.read(self.store, name)
            except AdaExploreError as error:
                where = sweeps.document_key(name)
                yield Finding(kind="document", where=where, what=str(error))
                continue
            episodes = sweep.selection.episode_ids
            owned |= {(cell.cell_id, episode) for cell in sweep.cells for episode in episodes}
        for cell_id, episode_id in sorted(runs.keys() - owned):
            what = "attempts of an episode run that belongs to no sweep of this store"
            yield Finding(kind="unowned", where=f"cells/{cell_id}/{episode_id}", what=what)


def table_findings(store: Store, sweep: str, made: Iterable[tables.Table]) -> Iterator[Finding]:
    """Stored tables of a sweep that are not these, and stored ones that are none of these."""
    prefix = f"sweeps/{sweep}/tables/"
    expected = {f"{prefix}{table.name}.csv": table.csv() for table in made}
    for key, data in expected.items():
        kept = store.get(key)
        if kept != data:
            what = "missing: launch again" if kept is None else _changed(kept, data)
            yield Finding(kind="table", where=key, what=what)
    for key in store.keys(prefix):
        if key not in expected:
            yield _foreign(key)


def _changed(kept: bytes, data: bytes) -> str:
    """The first line in which a table differs."""
    old, new = kept.splitlines(), data.splitlines()
    number = next(
        (i for i, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), -1
    )
    if number < 0:
        return f"has {len(old)} lines, the results give {len(new)}"
    lines = [line.decode(errors="replace")[:_SHOWN] for line in (old[number], new[number])]
    return f"line {number + 1} is {lines[0]!r}, the results give {lines[1]!r}"


def _foreign(key: str) -> Finding:
    return Finding(kind="foreign", where=key, what="nothing that this platform writes")


def by_run(keys: Iterable[str]) -> dict[tuple[str, str], list[Found]]:
    """Attempts by (cell id, episode id), in their order, of keys below `cells/`."""
    files: dict[str, set[str]] = {}
    for key in keys:
        if _ATTEMPT.fullmatch(key):
            folder, _, name = key.rpartition("/")
            files.setdefault(f"{folder}/", set()).add(name)
    found: dict[tuple[str, str], list[Found]] = {}
    for folder in sorted(files):
        _, cell_id, episode_id, *_ = folder.split("/")
        attempt = Found(prefix=folder, files=frozenset(files[folder]))
        found.setdefault((cell_id, episode_id), []).append(attempt)
    return found
