"""One episode, as a function of the replies.

`play` is a generator: it yields a request, is sent the reply, and returns the record. It does no
I/O, knows no clock and never waits. So resume is replay (feed the recorded replies back and go on),
audit is replay (compare the record), and the same code plays scripted agents, language models and
tests. Source: paper, interaction protocol; platform decision "an episode is a function of its
replies".
"""

from collections.abc import Generator
from dataclasses import dataclass, field

from adaexplore.benchmark.game import assessment, feedback, openings, prompts, replies, schemas
from adaexplore.benchmark.game.assessment import Assessment, Phase
from adaexplore.benchmark.game.environment import Environment
from adaexplore.benchmark.game.feedback import shown
from adaexplore.benchmark.game.history import History
from adaexplore.benchmark.game.openings import Opening
from adaexplore.benchmark.game.protocol import Message, Protocol, Reply, Request
from adaexplore.benchmark.game.records import (
    CaseRecord,
    Counts,
    EpisodeRecord,
    Fault,
    Played,
    Status,
    episode_record,
)
from adaexplore.benchmark.game.replies import RejectedError
from adaexplore.benchmark.game.settings import Setting
from adaexplore.benchmark.world.episodes import World

Playing = Generator[Request, Reply, EpisodeRecord]


class UnscoredError(Exception):
    """The provider ended the episode; the argument is the status it is recorded with."""

    def __init__(self, status: Status) -> None:
        """Keep the status."""
        super().__init__(status)
        self.status = status


def play(world: World, setting: Setting, protocol: Protocol) -> Playing:
    """Play one episode.

    Yields:
        Each request, in order; the reply is sent back in.

    Returns:
        The record. It holds nothing that a second run of the same replies would not make again.
    """
    game = _Game(world, setting, protocol)
    status: Status = "completed"
    try:
        while game.environment.decision != "done":
            before = game.environment.batch_number
            yield from game.turn()
            changes = game.environment.drifts and before == world.episode.change_batch
            if changes and game.completed(before):
                yield from game.assess("pre")
        yield from game.assess("post")
    except UnscoredError as unscored:
        status = unscored.status
    return game.record(status)


@dataclass
class _Game:
    """The moving parts of one episode."""

    world: World
    setting: Setting
    protocol: Protocol
    environment: Environment = field(init=False)
    history: History = field(init=False)
    opening: Opening = field(init=False)
    counts: Counts = field(default_factory=Counts)
    faults: list[Fault] = field(default_factory=list)
    assessments: list[Assessment] = field(default_factory=list)
    repaired: bool = False
    """Whether the repair of the present scope has been used."""

    def __post_init__(self) -> None:
        self.environment = Environment(self.world, self.setting, self.protocol)
        self.opening = openings.opening(
            self.world, self.setting, self.protocol, self.environment.card
        )
        rewrites = self.setting.evidence == "rewritten"
        self.history = History(self.opening.messages, rewrites=rewrites)

    def completed(self, batch_number: int) -> bool:
        """Whether the batch has been answered or ended."""
        results = self.environment.results
        return bool(results) and results[-1].batch_number == batch_number

    # -- one turn ------------------------------------------------------------------------------

    def turn(self) -> Generator[Request, Reply, None]:
        """One reply of the agent and what the environment makes of it."""
        reply = yield from self._ask(self.history.messages, self.opening.call_schema)
        if reply is None:
            self._fault("truncated", ())
            self._fall_back(prompts.CUT_OFF_ECHO, (), cut_off=True)
            return
        decision = self.environment.decision
        try:
            call = replies.read_call(
                reply.text,
                parsing=self.protocol.reply_parsing,
                max_chars=self.protocol.max_reply_chars,
            )
            result = self.environment.apply(call)
        except RejectedError as rejected:
            self._reject(reply.text, rejected.reasons)
            return
        echo = prompts.clean(reply.text)
        if call.tool == "calculator":
            self.counts.calculator_calls += 1
        if self.environment.decision == decision:
            self.history.exchange(echo, prompts.result(result or {}), self._card())
        elif decision == "explore":
            head = "" if result is None else prompts.result(result)
            self.history.reveal(echo, head, self._card(), forced=False)
            self._new_decision()
        else:
            self._complete(echo, accepted=True)

    def _ask(
        self, messages: tuple[Message, ...], schema: schemas.Schema
    ) -> Generator[Request, Reply, Reply | None]:
        """A reply that was not cut off, or None when regeneration did not help."""
        for _ in range(1 + self.protocol.regenerations):
            reply = yield Request(messages, schema, self.environment.batch_number)
            self.counts.add(reply)
            if reply.finish_reason in ("overflow", "content_filter"):
                raise UnscoredError(reply.finish_reason)
            if reply.finish_reason != "length":
                return reply
            self.counts.truncations += 1
        return None

    # -- faults --------------------------------------------------------------------------------

    def _reject(self, text: str, reasons: tuple[str, ...]) -> None:
        self._fault("rejected", reasons)
        if self.protocol.reply_parsing == "strict" and replies.would_be_lenient(
            text, max_chars=self.protocol.max_reply_chars
        ):
            self.counts.lenient_would_accept += 1
        if self.repaired:
            self._fall_back(prompts.clipped(text), reasons, cut_off=False)
            return
        self.repaired = True
        self.counts.repairs += 1
        head = prompts.result(prompts.rejection(reasons, prompts.repair_message()))
        self.history.exchange(prompts.clipped(text), head, self._card())

    def _fall_back(self, echo: str, reasons: tuple[str, ...], *, cut_off: bool) -> None:
        self.counts.fallbacks += 1
        decision = self.environment.decision
        self.environment.skip()
        if decision == "act":
            self._complete(echo, accepted=False)
            return
        message = prompts.fallback_message(decision, cut_off=cut_off)
        head = prompts.result(prompts.rejection(reasons, message))
        self.history.reveal(echo, head, self._card(), forced=True)
        self._new_decision()

    def _fault(self, kind: str, reasons: tuple[str, ...]) -> None:
        self.faults.append(
            Fault(
                batch_number=self.environment.batch_number,
                decision=self.environment.decision,
                kind=kind,
                reasons=reasons,
            )
        )

    def _new_decision(self) -> None:
        if self.protocol.repair_scope == "decision":
            self.repaired = False

    # -- completing a batch --------------------------------------------------------------------

    def _complete(self, echo: str, *, accepted: bool) -> None:
        self.repaired = False
        outcome = prompts.result(
            self._outcome(self.environment.finished_batch(), accepted=accepted)
        )
        self.history.complete(echo, outcome, self._card())

    def _outcome(self, results: list[CaseRecord], *, accepted: bool) -> dict[str, object]:
        number = results[0].batch_number
        kept = self.setting.evidence != "rewritten"
        batch = {"batch_id": f"batch_{number:02d}"} if kept else {}
        return {
            "message": prompts.outcome_message(number, accepted=accepted, kept=kept),
            **batch,
            "batch_number": number,
            "results": feedback.cases(results, self.setting),
            "batch_utility": shown(sum(result.utility for result in results)),
            "cumulative_utility": self.environment.cumulative_utility,
            "cumulative_probes": len(self.environment.probes),
        }

    def _card(self) -> str:
        return prompts.state(self.environment.card())

    # -- assessments ---------------------------------------------------------------------------

    def assess(self, phase: Phase) -> Generator[Request, Reply, None]:
        """Ask for the believed rule on a fork; one repair, one regeneration, else missing."""
        messages = self.history.fork(prompts.assessment())
        for last in (False, True):
            reply = yield from self._ask(messages, self.opening.assessment_schema)
            if reply is None:
                self._assessed(phase, "truncated", {})
                return
            try:
                directions = assessment.read(
                    reply.text,
                    self.world.episode.visible_fields,
                    parsing=self.protocol.reply_parsing,
                    max_chars=self.protocol.max_reply_chars,
                )
            except RejectedError as rejected:
                if last:
                    self._assessed(phase, "rejected", {})
                    return
                self.counts.repairs += 1
                repair = Message("user", prompts.assessment_rejection(rejected.reasons))
                messages = (*messages, Message("assistant", prompts.clipped(reply.text)), repair)
            else:
                self._assessed(phase, "completed", directions)
                return

    def _assessed(
        self, phase: Phase, status: assessment.Status, directions: dict[str, int]
    ) -> None:
        self.assessments.append(Assessment(phase=phase, status=status, directions=directions))

    # -- the record ----------------------------------------------------------------------------

    def record(self, status: Status) -> EpisodeRecord:
        """Everything that was observed and done, with the truth beside it."""
        played = Played(
            status=status,
            drifts=self.environment.drifts,
            probes=self.environment.probes.records(),
            results=self.environment.results,
            assessments=self.assessments,
            faults=self.faults,
            counts=self.counts,
            observation_digest=self.history.digest,
        )
        return episode_record(self.world, self.setting, played)
