"""The record of a played episode: all that metrics, reports and audits need.

A record is a function of the episode and the replies: no clock, no host, nothing that a second run
would not make again. Utilities are unrounded (to 12 digits, so that records are the same bytes on
every processor); the truth stands beside what was done, so a record can be scored by itself.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from adaexplore.benchmark.game.assessment import Assessment, Phase
from adaexplore.benchmark.game.protocol import Reply
from adaexplore.benchmark.game.settings import Setting
from adaexplore.benchmark.world.episodes import World

Status = Literal["completed", "overflow", "content_filter"]


@dataclass(slots=True, kw_only=True)
class Counts:
    """Protocol accounting of one episode."""

    turns: int = 0
    """Replies received, assessments and regenerations included."""
    repairs: int = 0
    fallbacks: int = 0
    truncations: int = 0
    calculator_calls: int = 0
    lenient_would_accept: int = 0
    """Replies that strict reading refused and lenient reading would have accepted."""
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0

    def add(self, reply: Reply) -> None:
        """Count one reply with its tokens."""
        self.turns += 1
        self.input_tokens += reply.input_tokens
        self.cached_tokens += reply.cached_tokens
        self.output_tokens += reply.output_tokens
        self.reasoning_tokens += reply.reasoning_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A reply of the main conversation that was rejected or cut off; assessments tell their own."""

    batch_number: int
    decision: str
    kind: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)  # without slots, it is written three times as fast
class ProbeRecord:
    """One probe: the point on the agent-facing grid (in hundredths) and what it answered."""

    context_id: str
    batch_number: int
    base_context_id: str | None
    row: tuple[int, ...]
    utilities: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)  # without slots, it is written three times as fast
class CaseRecord:
    """One evaluation case: the choice (index, None when unanswered) and the four utilities."""

    context_id: str
    batch_number: int
    action: int | None
    utilities: tuple[float, ...]

    @property
    def utility(self) -> float:
        """Utility earned, unrounded; 0 when unanswered."""
        return 0.0 if self.action is None else self.utilities[self.action]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRecord:
    """One episode as it was played."""

    episode_id: str
    domain_id: str
    family: str
    setting: str
    drifts: bool
    """Whether the rule changed between two windows that were to be played: not in a stationary
    setting, nor where the protocol's `batches` end the episode first."""
    change_batch: int
    """The episode's, after which the rule changes where it drifts."""
    visible_fields: tuple[str, ...]
    status: Status
    hidden_digest: str
    """Digest of the hidden side; joined before any paired comparison."""
    observation_digest: str
    """Digest of everything the environment said in the main conversation, forks apart; what an audit
    compares."""
    truth: dict[Phase, dict[str, int]]
    """Direction by relevant field; `pre` only where the rule drifts."""
    cases: tuple[CaseRecord, ...]
    probes: tuple[ProbeRecord, ...]
    assessments: tuple[Assessment, ...]
    faults: tuple[Fault, ...]
    counts: Counts

    def to_document(self) -> dict[str, Any]:
        """The record as plain JSON data."""
        return asdict(self)


def from_document(document: dict[str, Any]) -> EpisodeRecord:
    """The record of a document; KeyError, TypeError or ValueError if it is not one."""
    return EpisodeRecord(
        **{
            **document,
            "visible_fields": tuple(document["visible_fields"]),
            "cases": tuple(
                CaseRecord(**{**case, "utilities": tuple(case["utilities"])})
                for case in document["cases"]
            ),
            "probes": tuple(
                ProbeRecord(**{**p, "row": tuple(p["row"]), "utilities": tuple(p["utilities"])})
                for p in document["probes"]
            ),
            "assessments": tuple(Assessment(**a) for a in document["assessments"]),
            "faults": tuple(
                Fault(**{**f, "reasons": tuple(f["reasons"])}) for f in document["faults"]
            ),
            "counts": Counts(**document["counts"]),
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What happened in an episode, as the game collects it."""

    status: Status
    drifts: bool
    probes: Sequence[ProbeRecord]
    results: Sequence[CaseRecord]
    assessments: Sequence[Assessment]
    faults: Sequence[Fault]
    counts: Counts
    observation_digest: str


def episode_record(world: World, setting: Setting, played: Played) -> EpisodeRecord:
    """The record of what was played, with the truth beside it."""
    episode = world.episode
    final = episode.post if played.drifts else episode.pre
    truth: dict[Phase, dict[str, int]] = {"post": final.directions}
    if played.drifts:
        truth = {"pre": episode.pre.directions, **truth}
    return EpisodeRecord(
        episode_id=episode.episode_id,
        domain_id=episode.domain_id,
        family=episode.pre.family,
        setting=setting.name,
        drifts=played.drifts,
        change_batch=episode.change_batch,
        visible_fields=episode.visible_fields,
        status=played.status,
        hidden_digest=world.digest,
        observation_digest=played.observation_digest,
        truth=truth,
        cases=tuple(played.results),
        probes=tuple(played.probes),
        assessments=tuple(played.assessments),
        faults=tuple(played.faults),
        counts=played.counts,
    )
