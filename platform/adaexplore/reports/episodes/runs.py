"""One episode run as the store holds it: its record, its conversation, and how far it came.

A finished run has a record beside its journal. One that was cut short has only replies, and the record
as far as they lead is computed from them. Where this code plays by other rules than those of the
replies, they are shown by themselves: nothing is guessed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adaexplore.benchmark.game.protocol import Reply, Request
from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.world.episodes import World
from adaexplore.errors import StoreError
from adaexplore.experiments import attempts, audits, journals, statuses, stored, turns
from adaexplore.experiments.attempts import Found
from adaexplore.experiments.journals import Journal
from adaexplore.experiments.statuses import RunStatus
from adaexplore.experiments.stored import StoredCell
from adaexplore.experiments.stores import Store
from adaexplore.experiments.turns import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One reply, with what was asked and how it came."""

    number: int
    request: Request | None
    """None where it could not be computed again."""
    reply: Reply
    meta: Mapping[str, Any]
    """What the journal notes: seconds, attempts, who served it."""

    @property
    def seconds(self) -> float:
        """How long the call took."""
        return float(self.meta.get("seconds", 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRun:
    """All that there is of one episode run."""

    sweep: str
    cell: StoredCell
    world: World
    status: RunStatus
    record: EpisodeRecord | None
    """As far as the run came; None where nothing can be said."""
    exchanges: tuple[Exchange, ...]
    torn: bool
    """Whether the journal's last line was torn off."""
    trouble: str | None
    """Why the conversation could not be computed again."""
    journal: str | None
    """Store key of the journal; a page that is passed on tells nobody's folders."""

    @property
    def finished(self) -> bool:
        """Whether there is a result that counts."""
        return self.status.state == "finished"

    @property
    def drifts(self) -> bool:
        """Whether the rule changes in this run."""
        if self.record is not None:
            return self.record.drifts
        return bool(self.cell.semantic["setting"].get("drifts"))


def read(store: Store, sweep: str, cell: StoredCell, world: World) -> EpisodeRun:
    """The run of an episode by a cell.

    Raises:
        StoreError: Its result is damaged or of something else.
    """
    episode_id = world.episode.episode_id
    listed = attempts.listed(store, f"cells/{cell.cell_id}/{episode_id}/")
    found: Sequence[Found] = listed.get(episode_id, ())
    status = statuses.of_run(store, found)
    result = attempts.result_of(found)
    record = None
    if result is not None:
        record = attempts.read_result(store, result, hidden_digest=world.digest)
    where = None if status.attempt is None else f"{status.attempt}journal.jsonl"
    journal, trouble = (None, None) if where is None else _journal(store, where)
    exchanges, so_far, fault = _followed(cell, world, journal, record)
    return EpisodeRun(
        sweep=sweep,
        cell=cell,
        world=world,
        status=status,
        record=so_far if record is None else record,
        exchanges=exchanges,
        torn=journal is not None and journal.torn,
        trouble=trouble or fault,
        journal=where,
    )


def _journal(store: Store, key: str) -> tuple[Journal | None, str | None]:
    """(journal, what is wrong with it)."""
    data = store.get(key)
    if data is None:
        return None, f"{key}: the journal is missing"
    try:
        return journals.read(data, key), None
    except StoreError as error:
        return None, str(error)


def _followed(
    cell: StoredCell, world: World, journal: Journal | None, record: EpisodeRecord | None
) -> tuple[tuple[Exchange, ...], EpisodeRecord | None, str | None]:
    """(exchanges, the record they lead to, what does not fit)."""
    if journal is None:
        return (), None, None
    alone = _exchanges(journal, ())
    if keys := stored.foreign_code(cell, audits.HERE):
        differ = ", ".join(keys)
        return alone, None, f"the run was played by other rules than this code's ({differ} differ)"
    followed = turns.follow(world, cell.setting, cell.protocol, journal.replies)
    if record is not None and followed.record != record:
        return (
            alone,
            None,
            "the journal does not lead to the stored result: run 'adaexplore verify'",
        )
    return _exchanges(journal, followed.turns), followed.record, None


def _exchanges(journal: Journal, known: Sequence[Turn]) -> tuple[Exchange, ...]:
    requests = [request for request, _ in known]
    return tuple(
        Exchange(
            number=number,
            request=requests[number - 1] if number <= len(requests) else None,
            reply=reply,
            meta=entry.get("meta", {}),
        )
        for number, (reply, entry) in enumerate(
            zip(journal.replies, journal.entries, strict=True), start=1
        )
    )
