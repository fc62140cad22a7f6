"""Traces: an episode as a conversation that MLflow's page can show.

The journal holds only replies; the requests are what the episode asked when they are played to it again.
A trace has one span for the whole, with the conversation as it stood at the end, and one a turn, with the
messages that were new in it. Its id follows from the run's, so a trace that is sent twice is there once.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Final

from adaexplore.backends.mlflow.service import Conversation, Service, Span
from adaexplore.benchmark.game.protocol import Message, Reply, Request
from adaexplore.benchmark.world.episodes import World
from adaexplore.errors import StoreError
from adaexplore.experiments import projections, stored, turns
from adaexplore.experiments.contents import Place
from adaexplore.experiments.journals import Journal
from adaexplore.experiments.stored import StoredCell
from adaexplore.experiments.stores import Store

INPUTS: Final = "mlflow.spanInputs"
OUTPUTS: Final = "mlflow.spanOutputs"
KIND: Final = "mlflow.spanType"
USAGE: Final = "mlflow.chat.tokenUsage"
MODEL: Final = "mlflow.llm.model"

Known = tuple[Mapping[str, StoredCell], Mapping[str, World]]
"""(cells by id, episodes by id)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracer:
    """Keeps the traces of one sweep's episode runs."""

    service: Service
    store: Store
    sweep: str
    start_ms: int
    wanted: bool
    _known: dict[str, Known] = field(default_factory=dict)
    """What all replays need, by name of the sweep; read when it is first needed."""

    def __call__(self, place: Place, run_id: str, experiment_id: str) -> tuple[str, int]:
        """Keep a trace if any are wanted; (its id or nothing, milliseconds that the calls took)."""
        journal = projections.journal(self.store, place)
        if not self.wanted or journal is None:
            return "", took_ms(journal)
        cell_id, _, episode_id = place.identity.partition("/")
        cells, worlds = self._rules()
        requests = _requests(place, journal, worlds[episode_id], cells[cell_id])
        talk = conversation(place, journal, requests, run_id=run_id, start_ms=self.start_ms)
        self.service.trace(experiment_id, talk)
        return talk.trace_id, took_ms(journal)

    def _rules(self) -> Known:
        """Cells and episodes of the sweep, read once."""
        if self.sweep not in self._known:
            found = stored.read(self.store, self.sweep)
            worlds = stored.worlds(stored.dataset(self.store, found), found)
            self._known[self.sweep] = {cell.cell_id: cell for cell in found.cells}, worlds
        return self._known[self.sweep]


def conversation(
    place: Place, journal: Journal, requests: Sequence[Request], *, run_id: str, start_ms: int
) -> Conversation:
    """The trace of one episode run.

    Args:
        place: Where its run stands.
        journal: Its replies.
        requests: What was asked for each of them.
        run_id: The run that it is linked to.
        start_ms: When it begins.
    """
    model = place.parent.name.split("/")[0] if place.parent else ""
    spans: list[Span] = []
    began_ms = start_ms
    seen: Sequence[Message] = ()
    for number, (request, reply) in enumerate(zip(requests, journal.replies, strict=True), start=1):
        end_ms = start_ms + _took_ms(journal, number - 1)
        new = request.messages[_common(seen, request.messages) :]
        attributes = {KIND: "CHAT_MODEL", MODEL: model, USAGE: _usage(reply), **_said(new, reply)}
        spans.append(_span(f"turn {number}", start_ms, end_ms, attributes, parent=True))
        seen, start_ms = request.messages, end_ms
    whole = {KIND: "AGENT", **_said(seen, journal.replies[-1])}
    root = _span(place.name, began_ms, start_ms, whole, parent=False)
    tags = {
        "adaexplore.id": place.identity,
        "adaexplore.cell": place.parent.name if place.parent else "",
    }
    return Conversation(
        trace_id=trace_id(place, run_id), run_id=run_id, tags=tags, spans=[root, *spans]
    )


def trace_id(place: Place, run_id: str) -> str:
    """Id of the trace of a run, 32 hex digits."""
    return hashlib.sha256(f"{run_id}/{place.identity}".encode()).hexdigest()[:32]


def took_ms(journal: Journal | None) -> int:
    """How long the calls of a journal took together."""
    return sum(_took_ms(journal, n) for n in range(len(journal.entries))) if journal else 0


def _took_ms(journal: Journal, number: int) -> int:
    return round(1000 * float(journal.entries[number].get("meta", {}).get("seconds", 0.0)))


def _span(
    name: str, start_ms: int, end_ms: int, attributes: Mapping[str, Any], *, parent: bool
) -> Span:
    return Span(name=name, parent=parent, start_ms=start_ms, end_ms=end_ms, attributes=attributes)


def _requests(place: Place, journal: Journal, world: World, cell: StoredCell) -> list[Request]:
    """What was asked for each reply, in order; StoreError if the replies do not end the episode."""
    followed = turns.follow(world, cell.setting, cell.protocol, journal.replies)
    if not followed.ended:
        raise StoreError(
            f"{place.identity}: expected a journal that ends its episode, got one that stops early"
        )
    return [request for request, _ in followed.turns]


def _common(before: Sequence[Message], now: Sequence[Message]) -> int:
    """How many messages both begin with."""
    pairs = zip(before, now, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _said(messages: Sequence[Message], reply: Reply) -> dict[str, Any]:
    asked = [{"role": message.role, "content": message.content} for message in messages]
    answer = {"role": "assistant", "content": reply.text}
    if reply.reasoning:
        answer["reasoning_content"] = reply.reasoning
    choice = {"index": 0, "message": answer, "finish_reason": reply.finish_reason}
    return {INPUTS: {"messages": asked}, OUTPUTS: {"choices": [choice]}}


def _usage(reply: Reply) -> dict[str, int]:
    total = reply.input_tokens + reply.output_tokens
    return {
        "input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens, "total_tokens": total
    }  # fmt: skip
