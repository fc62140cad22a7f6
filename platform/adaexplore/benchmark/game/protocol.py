"""The parameters of the environment's protocol and the records that pass through it.

An episode is a conversation: the environment sends messages, the agent answers with one JSON
object. Everything here is frozen with a run. Source: paper, runtime configuration; the marked
values are decisions of ours.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from adaexplore.benchmark.world.episodes import BATCHES

PROTOCOL_VERSION = 1
"""Raised whenever the same replies would be answered by other messages or scored otherwise."""

TOOLS = ("probe_batch", "request_next_batch", "submit_action_batch", "calculator")


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """Limits that are the same for every model of a sweep."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}  # configuration files know no other keys

    batches: int | None = None
    """Only the first so many windows of each episode are played; None plays all that it has. An
    episode that ends before its change takes effect is one phase, like one whose rule never changes:
    it is assessed at the end only, and its record says that it does not drift."""
    max_probes: int = 16
    """Most probes in one call; one call a window."""
    max_expressions: int = 32
    """Most expressions in one calculator call."""
    repair_scope: Literal["window", "decision"] = "window"
    """Decision: one repair for a whole window, or one for each of its two decisions."""
    regenerations: int = 1
    """How often a reply that was cut off by the length limit is generated again."""
    reply_parsing: Literal["strict", "lenient"] = "strict"
    """Decision: `lenient` accepts one Markdown fence around the JSON object."""
    max_reply_chars: int = 200_000
    """A longer reply is rejected unread."""

    def __post_init__(self) -> None:
        """Refuse sizes that no episode could be played with (ValueError)."""
        for name in ("max_probes", "max_expressions", "max_reply_chars"):
            if getattr(self, name) < 1:
                raise ValueError(f"expected {name} of at least 1, got {getattr(self, name)}")
        if self.batches is not None and not 1 <= self.batches <= BATCHES:
            raise ValueError(f"expected batches of 1 to {BATCHES}, or null, got {self.batches}")
        if self.regenerations < 0:
            raise ValueError(f"expected regenerations of at least 0, got {self.regenerations}")


class Message(NamedTuple):
    """One message of the conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """What the agent is asked: the whole conversation so far, ending with a user message."""

    messages: tuple[Message, ...]
    schema: dict[str, Any] | None = None
    """Form of the reply as `{"name", "strict", "schema"}`, for endpoints that can be held to one
    (the `json_schema` of a response format). The prompt says it too, and judges the reply."""
    batch_number: int = 0
    """Window in which it is asked."""


FinishReason = Literal["stop", "length", "overflow", "content_filter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back for one request; the journal of an episode is the list of these.

    `length` is a reply cut off by the output limit. `overflow` (the context window was too small)
    and `content_filter` are answers of the provider that end the episode unscored.
    """

    text: str
    finish_reason: FinishReason = "stop"
    reasoning: str = ""
    """Reasoning that the endpoint delimits; recorded, never sent back, never parsed."""
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
