"""Reading the conversation: from messages to what an agent can know.

A reference agent is a function of the messages it is sent, so everything it knows has to be read
from them at every call: fields and constraints from the first user message, the values of its own
probes from its earlier calls, answers and outcomes from the environment's results, and the present
moment from the latest state card. Source: the forms of `game.prompts` and of the paper's appendix
on tool feedback.
"""

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal

from adaexplore.benchmark.game.protocol import Message
from adaexplore.benchmark.world.episodes import Row
from adaexplore.benchmark.world.utility import ACTIONS

_FIELD: Final = re.compile(
    r"^- \*\*.*?\*\* \(`(\w+)`, type: (integer|decimal), .*minimum: (\S+), maximum: ([^\s)]+)\):",
    re.MULTILINE,
)
_CONSTRAINT: Final = re.compile(r"^- .*`([^`]+)`$", re.MULTILINE)
_PART: Final = re.compile(r"^(Environment result|Current state): ", re.MULTILINE)
_LIMITS: Final = re.compile(r"(\d+) to (\d+) probes in it")
_QUESTION: Final = '"relevant_fields"'
_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownField:
    """One listed field; bounds in hundredths of its unit."""

    field_id: str
    whole: bool
    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenProbe:
    """One answered probe: its row in hundredths and the four utilities, rounded to two places."""

    context_id: str
    window: int
    row: Row
    utilities: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenOutcome:
    """Utilities that the cases of one finished batch earned, in the order of its cases."""

    window: int
    utilities: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCase:
    """A case of a finished batch that is still readable; utility by action index, rounded."""

    window: int
    row: Row
    utilities: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the conversation tells at one moment."""

    fields: tuple[ShownField, ...]
    constraints: tuple[str, ...]
    """Infix texts, to be parsed with `world.constraints.from_text`."""
    probe_limits: tuple[int, int]
    """Fewest and most probes of one call."""
    decision: Literal["explore", "act", "assess"]
    can_request: bool
    """Whether the batch may be revealed without a probe."""
    windows: int
    finished: int
    """Windows of the episode, and how many of them are complete."""
    batch_id: str
    pending: tuple[tuple[str, Row], ...]
    """Id and row of each pending case; empty while the batch is hidden."""
    probes: tuple[SeenProbe, ...]
    outcomes: tuple[SeenOutcome, ...]
    cases: tuple[SeenCase, ...]

    @property
    def window(self) -> int:
        """Number of the open window, from 1."""
        return self.finished + 1


@lru_cache(maxsize=8)
def read(messages: tuple[Message, ...]) -> View:
    """The view of a conversation that starts with the environment's two first messages."""
    first = messages[1].content
    shown = _fields(first)
    story = _Story(order=tuple(f.field_id for f in shown))
    for before, message in itertools.pairwise(messages):
        if message.role == "user":
            story.hear(before, message)
    limits = _LIMITS.search(messages[0].content)
    card = story.card
    pending = card["pending_action_batch"]
    asked = any(_QUESTION in m.content for m in messages[2:] if m.role == "user")
    return View(
        fields=shown,
        constraints=_constraints(first),
        probe_limits=(int(limits[1]), int(limits[2])) if limits else (1, 1),
        decision="assess" if asked else "act" if pending else "explore",
        can_request=_available(card, "request_next_batch"),
        windows=story.windows,
        finished=story.windows - card["remaining_action_batches"],
        batch_id=pending["batch_id"] if pending else "",
        pending=tuple(story.case_rows(pending["cases"]).items()) if pending else (),
        probes=tuple(story.probes),
        outcomes=tuple(story.outcomes),
        cases=tuple(story.cases),
    )


@dataclass(slots=True, kw_only=True)
class _Story:
    """What has been read so far, message by message."""

    order: tuple[str, ...]
    windows: int = 0
    window: int = 1
    card: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)
    """Rows of the cases that some card still shows, by id."""
    probes: list[SeenProbe] = field(default_factory=list)
    outcomes: list[SeenOutcome] = field(default_factory=list)
    cases: list[SeenCase] = field(default_factory=list)

    def hear(self, before: Message, message: Message) -> None:
        """Take in one message of the environment and the call that it answers."""
        for kind, document in _parts(message.content):
            if kind == "Current state":
                self._see(document)
            elif "batch_number" in document:
                self._close(document)
            elif document.get("results") and "probe_mode" in document["results"][0]:
                self._answer(_asked(before.content), document["results"])

    def case_rows(self, cases: list[dict[str, Any]]) -> dict[str, Row]:
        """Rows of shown cases by id, in their order."""
        return {case["context_id"]: self._row(case["raw_values"]) for case in cases}

    def _row(self, values: Mapping[str, float]) -> Row:
        return tuple(round(values[name] * 100) for name in self.order)

    def _see(self, card: dict[str, Any]) -> None:
        self.card = card
        self.windows = self.windows or card["remaining_action_batches"]
        pending = card["pending_action_batch"]
        if pending:
            self.rows |= self.case_rows(pending["cases"])

    def _answer(self, asked: list[dict[str, Any]], results: list[dict[str, Any]]) -> None:
        known = {probe.context_id: probe.row for probe in self.probes}
        for probe, result in zip(asked, results, strict=True):
            base = probe.get("base_context_id")
            values = {} if base is None else dict(zip(self.order, known[base], strict=True))
            given = probe["values"] if base is None else probe["changes"]
            values |= {name: round(value * 100) for name, value in given.items()}
            self.probes.append(
                SeenProbe(
                    context_id=result["context_id"],
                    window=self.window,
                    row=tuple(values[name] for name in self.order),
                    utilities=tuple(result["utilities"][action] for action in ACTIONS),
                )
            )

    def _close(self, outcome: dict[str, Any]) -> None:
        results, window = outcome["results"], outcome["batch_number"]
        earned = tuple(result["utility"] for result in results)
        self.outcomes.append(SeenOutcome(window=window, utilities=earned))
        for result in results:
            known = tuple(_known_utilities(result))
            if known and result["context_id"] in self.rows:
                row = self.rows[result["context_id"]]
                self.cases.append(SeenCase(window=window, row=row, utilities=known))
        self.window = window + 1


def _known_utilities(result: dict[str, Any]) -> Iterator[tuple[int, float]]:
    """(action index, utility) of each action whose worth an outcome tells."""
    if "utilities" in result:
        yield from ((i, result["utilities"][action]) for i, action in enumerate(ACTIONS))
    elif result.get("action_id"):
        yield ACTIONS.index(result["action_id"]), result["utility"]


@lru_cache(maxsize=64)
def _asked(call: str) -> list[dict[str, Any]]:
    """The probes of an earlier call of the agent's own."""
    probes: list[dict[str, Any]] = json.loads(call)["arguments"]["probes"]
    return probes


@lru_cache(maxsize=256)
def _parts(text: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    """(kind, document) of each result and card in a message of the environment."""
    return tuple(
        (match[1], _DECODER.raw_decode(text, match.end())[0]) for match in _PART.finditer(text)
    )


@lru_cache(maxsize=16)
def _fields(first: str) -> tuple[ShownField, ...]:
    return tuple(
        ShownField(
            field_id=name,
            whole=kind == "integer",
            low=round(float(low) * 100),
            high=round(float(high) * 100),
        )
        for name, kind, low, high in _FIELD.findall(first)
    )


def _constraints(first: str) -> tuple[str, ...]:
    _, _, listed = first.partition("\nConstraints. ")
    return tuple(_CONSTRAINT.findall(listed))


def _available(card: dict[str, Any], tool: str) -> bool:
    return any(entry["tool"] == tool and entry["available"] for entry in card["tool_usability"])
