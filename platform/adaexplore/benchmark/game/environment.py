"""The environment: a small state machine over the batch windows of an episode.

A window has two decisions. *Explore*: the batch is hidden, and `probe_batch` or
`request_next_batch` reveals it. *Act*: `submit_action_batch` answers it. `calculator` is possible in
both, never twice in a row. A call is either accepted, whole, or refused, whole, with reasons.
Source: paper, interaction protocol and appendix on tool feedback.
"""

from decimal import Decimal
from functools import cache
from typing import Any, Final, Literal

from adaexplore.benchmark.game import calculator, feedback
from adaexplore.benchmark.game.probing import ProbeLog
from adaexplore.benchmark.game.protocol import TOOLS, Protocol
from adaexplore.benchmark.game.records import CaseRecord
from adaexplore.benchmark.game.replies import Call, RejectedError, quoted
from adaexplore.benchmark.game.settings import Setting
from adaexplore.benchmark.game.written import Written, WrittenList
from adaexplore.benchmark.world import constraints
from adaexplore.benchmark.world.episodes import Batches, Row, World, case_id
from adaexplore.benchmark.world.fields import Field
from adaexplore.benchmark.world.rules import Rule
from adaexplore.benchmark.world.utility import ACTIONS

Decision = Literal["explore", "act", "done"]
_NEW: Final = {"values"}
_CHANGED: Final = {"base_context_id", "changes"}
"""Keys of the two ways to probe."""
_WHOLE: Final = Decimal(1)
_CENT: Final = Decimal("0.01")


class Environment:
    """One episode under one setting, from the first window to the last."""

    def __init__(self, world: World, setting: Setting, protocol: Protocol) -> None:
        """Start before window 1, its batch hidden."""
        self._world = world
        self._setting = setting
        self._protocol = protocol
        cases = world.episode.cases if setting.cases == "controlled" else world.episode.iid_cases
        self._batches: Batches = cases[: protocol.batches]
        self._constraints = world.constraints
        self._fields = world.once(_Legal, lambda: {f.field_id: _Legal(f) for f in world.fields})
        self._earned = 0.0
        self._after_calculator = False
        self.batch_number = 1
        self.decision: Decision = "explore"
        self.probes = ProbeLog()
        self.results: list[CaseRecord] = []

    @property
    def drifts(self) -> bool:
        """Whether the rule changes between two windows that are played."""
        return self._setting.drifts and len(self._batches) > self._world.episode.change_batch

    # -- what the agent may know ---------------------------------------------------------------

    def card(self) -> dict[str, Any]:
        """The `Current state` card: the authoritative snapshot of this moment."""
        remaining = len(self._batches) - self.batch_number + 1
        return {
            "cumulative_utility": self.cumulative_utility,
            "cumulative_probes": len(self.probes),
            "remaining_action_batches": 0 if self.decision == "done" else remaining,
            "pending_action_batch": self._pending() if self.decision == "act" else None,
            "tool_usability": self.usability(),
        }

    @property
    def cumulative_utility(self) -> float:
        """Utility earned so far, as shown: two decimals."""
        return feedback.shown(self._earned)

    @property
    def batch_id(self) -> str:
        """Id of the current window's batch."""
        return f"batch_{self.batch_number:02d}"

    def usability(self) -> list[dict[str, Any]]:
        """Availability of each tool, with the reason where it is unavailable."""
        return _usability(self.decision, self._setting.probing, self._after_calculator)

    def _pending(self) -> Written:
        return self._world.once((Written, self.batch_number, self._rows), self._revealed)

    def _revealed(self) -> Written:
        cases = [
            {"context_id": case_id(self.batch_number, i), "raw_values": self._world.numbers(row)}
            for i, row in enumerate(self._rows)
        ]
        batch = {"batch_id": self.batch_id, "batch_number": self.batch_number, "cases": cases}
        return Written(batch)

    @property
    def _rows(self) -> tuple[Row, ...]:
        return self._batches[self.batch_number - 1]

    @property
    def _rule(self) -> Rule:
        return self._world.episode.rule_in_force(self.batch_number, drifts=self._setting.drifts)

    # -- calls ---------------------------------------------------------------------------------

    def apply(self, call: Call) -> dict[str, Any] | None:
        """Carry out a call, all or nothing.

        Returns:
            The result that goes into the feedback; None for `request_next_batch`, which the card
            alone answers, and for `submit_action_batch`, whose results are `finished_batch`.

        Raises:
            RejectedError: The call is refused; the episode is where it was, except that it is
                remembered whether the call was one of the calculator.
        """
        reason = _unavailable(
            call.tool, self.decision, self._setting.probing, after_calculator=self._after_calculator
        )
        self._after_calculator = call.tool == "calculator"  # a refused call counts as one too
        if reason is not None:
            raise RejectedError([f"{call.tool} is not available: {reason}"])
        if call.tool == "calculator":
            return self._calculate(call.arguments)
        if call.tool == "probe_batch":
            return self._probe(call.arguments)
        if call.tool == "request_next_batch":
            _require_keys(call.arguments, set())
            self.decision = "act"
            return None
        self._finish(self._chosen(call.arguments))
        return None

    def skip(self) -> None:
        """The fallback after a second fault: reveal without probing, or end the batch unanswered."""
        if self.decision == "explore":
            self.decision = "act"
        else:
            self._finish({})

    # -- probing -------------------------------------------------------------------------------

    def _probe(self, arguments: dict[str, Any]) -> dict[str, Any]:
        _require_keys(arguments, {"probes"})
        probes = arguments["probes"]
        least, most = self._setting.min_probes, self._protocol.max_probes
        if not isinstance(probes, list) or not least <= len(probes) <= most:
            count = len(probes) if isinstance(probes, list) else quoted(probes)
            raise RejectedError(
                [f"expected 'probes' to be a list of {least} to {most}, got {count}"]
            )
        faults: list[str] = []
        read = [self._read_probe(probe, f"probes[{i}]", faults) for i, probe in enumerate(probes)]
        if faults:
            raise RejectedError(faults)
        bases, rows = zip(*read, strict=True)
        utilities = self._world.utilities(self._rule, rows)
        ids = self.probes.add(self.batch_number, bases, rows, utilities)
        self.decision = "act"
        return {"results": feedback.probes(ids, bases, utilities)}

    def _read_probe(self, probe: object, where: str, faults: list[str]) -> tuple[str | None, Row]:
        """(base id, row) of one probe; what is wrong with it is added to `faults`."""
        if isinstance(probe, dict) and probe.keys() == _NEW:
            base, given, start = None, probe["values"], None
        elif isinstance(probe, dict) and probe.keys() == _CHANGED:
            base, given = probe["base_context_id"], probe["changes"]
            earlier = self.probes.known(base) if isinstance(base, str) else None
            if earlier is None:
                faults.append(f"{where}: {quoted(base)} is not the id of an earlier probe result")
                return None, ()
            base, start = earlier
        else:
            faults.append(f"{where}: expected 'values', or 'base_context_id' with 'changes'")
            return None, ()
        if not isinstance(given, dict):
            faults.append(
                f"{where}: expected an object of numbers by field id, got {quoted(given)}"
            )
            return None, ()
        return base, self._read_row(given, start, where, faults)

    def _read_row(
        self, given: dict[str, Any], start: Row | None, where: str, faults: list[str]
    ) -> Row:
        if start is not None and not given:
            return start
        fields, own = self._fields, []
        if not given.keys() <= fields.keys():
            own = [f"{where}: unknown field {quoted(key)}" for key in given if key not in fields]
        row = []
        for place, (field_id, legal) in enumerate(fields.items()):
            if field_id in given:
                value = legal.hundredths(given[field_id])
                if isinstance(value, str):
                    own.append(f"{where}.{field_id}: {value}")
                else:
                    row.append(value)
            elif start is not None:
                row.append(start[place])
            else:
                own.append(f"{where}: '{field_id}' is missing; a full probe names every field")
        if self._constraints and not own:
            values = dict(zip(fields, row, strict=True))
            own = [
                f"{where}: breaks the constraint {constraints.to_text(c.expression)}"
                for c in self._constraints
                if not constraints.holds(c.expression, values)
            ]
        faults += own
        return () if own else tuple(row)

    # -- calculating ---------------------------------------------------------------------------

    def _calculate(self, arguments: dict[str, Any]) -> dict[str, Any]:
        _require_keys(arguments, {"expressions"})
        expressions, most = arguments["expressions"], self._protocol.max_expressions
        if (
            not isinstance(expressions, list)
            or not 1 <= len(expressions) <= most
            or not all(isinstance(text, str) for text in expressions)
        ):
            raise RejectedError([f"expected 'expressions' to be a list of 1 to {most} strings"])
        answers = calculator.calculate(expressions)
        good = [answer for answer in answers if answer.error is None]
        return {
            "results": [_calculator_feedback(i, answer) for i, answer in enumerate(answers)],
            "variables": {a.variable: a.value for a in good if a.variable is not None},
            "successful_expression_count": len(good),
            "invalid_expression_count": len(answers) - len(good),
            "tool_usability": self.usability(),
        }

    # -- acting --------------------------------------------------------------------------------

    def _chosen(self, arguments: dict[str, Any]) -> dict[str, int]:
        _require_keys(arguments, {"batch_id", "actions"})
        faults = []
        if arguments["batch_id"] != self.batch_id:
            got = quoted(arguments["batch_id"])
            faults.append(f"expected batch_id '{self.batch_id}', the pending one, got {got}")
        actions = arguments["actions"]
        if not isinstance(actions, dict):
            raise RejectedError(
                [*faults, f"expected 'actions' to be an object, got {quoted(actions)}"]
            )
        pending = {case_id(self.batch_number, i) for i in range(len(self._rows))}
        faults += [f"{quoted(key)} is not a pending case" for key in actions if key not in pending]
        faults += [
            f"{quoted(key)}: unknown action {quoted(action)}; the actions are {', '.join(ACTIONS)}"
            for key, action in actions.items()
            if action not in ACTIONS
        ]
        if faults:
            raise RejectedError(faults)
        return {key: ACTIONS.index(action) for key, action in actions.items()}

    def _finish(self, chosen: dict[str, int]) -> None:
        for i, values in enumerate(self._world.batch_utilities(self._rule, self._rows)):
            context_id = case_id(self.batch_number, i)
            result = CaseRecord(
                context_id=context_id,
                batch_number=self.batch_number,
                action=chosen.get(context_id),
                utilities=values,
            )
            self.results.append(result)
            self._earned += result.utility
        last = self.batch_number == len(self._batches)
        self.decision = "done" if last else "explore"
        self.batch_number += 0 if last else 1

    def finished_batch(self) -> list[CaseRecord]:
        """Results of the batch that completed last."""
        size = len(self._batches[self.results[-1].batch_number - 1])
        return self.results[-size:]


@cache
def _usability(decision: Decision, probing: str, after_calculator: bool) -> WrittenList:
    reasons = {
        tool: _unavailable(tool, decision, probing, after_calculator=after_calculator)
        for tool in TOOLS
    }
    return WrittenList(
        {"tool": tool, "available": reason is None, "reason": reason}
        for tool, reason in reasons.items()
    )


def _unavailable(
    tool: str, decision: Decision, probing: str, *, after_calculator: bool
) -> str | None:
    """Why a tool cannot be used now, or None."""
    if decision == "done":
        return "the episode is complete"
    if tool == "calculator":
        repeated = "two calculator calls in a row are not allowed; use another tool first"
        return repeated if after_calculator else None
    if tool == "submit_action_batch":
        hidden = decision == "explore"
        return "no action batch is pending; reveal one first" if hidden else None
    if decision == "act":
        return "an action batch is pending; answer it with submit_action_batch first"
    if tool == "request_next_batch" and probing == "forced":
        return "every batch window must be probed here; reveal the batch with probe_batch"
    return None


def _calculator_feedback(index: int, answer: calculator.Answer) -> dict[str, Any]:
    told: dict[str, Any] = {"index": index, "ok": answer.error is None}
    told |= {"value": answer.value} if answer.error is None else {"error": answer.error}
    return told | ({} if answer.variable is None else {"variable": answer.variable})


def _require_keys(arguments: dict[str, Any], expected: set[str]) -> None:
    if set(arguments) != expected:
        wanted = ", ".join(sorted(expected)) or "no arguments"
        got = ", ".join(quoted(key) for key in list(arguments)[:6]) or "none"
        raise RejectedError([f"expected exactly these arguments: {wanted}; got: {got}"])


class _Legal:
    """What a probe may give for one field; its limits are made exact once."""

    def __init__(self, field: Field) -> None:
        self._whole = field.type == "integer"
        self._low, self._high = field.bounds
        self._least, self._most = Decimal(str(self._low)), Decimal(str(self._high))

    def hundredths(self, value: object) -> int | str:
        """The grid value of a number in a probe, or what is wrong with it."""
        kinds = "a whole number" if self._whole else "a number"
        if type(value) is int and self._low <= value <= self._high:
            return value * 100
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            return f"expected {kinds}, got {quoted(value)}"
        if not self._least <= value <= self._most:
            return f"{quoted_number(value)} is outside the range {self._low} to {self._high}"
        # A product would round what it is to tell.
        nearest = Decimal(value).quantize(_WHOLE if self._whole else _CENT)
        if nearest != value:
            places = "no decimals" if self._whole else "at most two decimal places"
            return f"expected {kinds} with {places}, got {quoted_number(value)}"
        return int(nearest * 100)


def quoted_number(value: int | Decimal) -> str:
    """A number that the agent wrote, shortened."""
    text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
