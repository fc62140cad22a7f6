"""Calls: one question to a model, its validator, and every attempt at it, stored.

An attempt is a readable JSON file with the messages, the raw reply and the faults that the validator
found, under a check of its own content; a file that was torn or edited does not check and is asked
again. What an attempt is worth is never read from the file: its reply is judged anew, so a run
resumes and replays from the replies alone. A round is an answer and, where it has faults, one
repair that quotes them; a run that fails keeps its attempts, and the next round is numbered on.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Protocol

from adaexplore.authoring import shapes
from adaexplore.authoring.shapes import Schema
from adaexplore.benchmark.game import replies
from adaexplore.benchmark.game.protocol import Message, Reply, Request
from adaexplore.errors import StageError
from adaexplore.models.endpoints import Answer, Endpoint, ModelError

ATTEMPT_VERSION: Final = 1
ROUND: Final = 2
"""Attempts in a round: the answer and its one repair."""
MAX_REPLY_CHARS: Final = 1_000_000
MAX_QUOTED: Final = 60
"""Faults that a repair quotes; an answer with more is told how many more."""
CUT_OFF: Final = "the reply is not whole"

SYSTEM: Final = """\
{contract}

Answer with one JSON object and nothing else: no prose, no Markdown. It must satisfy this JSON \
Schema:
{schema}"""
REPAIR: Final = """\
A validator read your answer and found {count} faults:
{faults}
Send the whole answer again with every fault mended, as one JSON object of the same schema. Leave \
what had no fault as it was."""


class Shelf(Protocol):
    """Where attempts are kept: objects by key, written whole or not at all."""

    def put(self, key: str, data: bytes) -> None:
        """Write an object; durable when it returns."""

    def get(self, key: str) -> bytes | None:
        """The object's bytes, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One question of a stage."""

    name: str
    """Its folder, such as `03-priors-2`."""
    contract: str
    """What is asked, in words."""
    payload: dict[str, Any]
    schema: Schema
    check: Callable[[Any], list[str]]
    """Faults of an answer that has the right shape."""

    def opening(self) -> tuple[Message, ...]:
        """The messages of a first attempt."""
        schema = json.dumps(self.schema, separators=(",", ":"))
        system = SYSTEM.format(contract=self.contract, schema=schema)
        user = json.dumps(self.payload, indent=1, ensure_ascii=False)
        return (Message("system", system), Message("user", user))

    def request(self, messages: tuple[Message, ...]) -> Request:
        """The request of these messages, held to the schema where the endpoint can."""
        return Request(messages, shapes.response_format(self.name, self.schema))


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A reply as the call's validator sees it."""

    answer: Any
    """The JSON object; None if there was none."""
    faults: list[str]


def judge(call: Call, reply: Reply) -> Judged:
    """The answer in a reply and all its faults."""
    if reply.finish_reason != "stop":
        return Judged(
            answer=None,
            faults=[
                f"the reply ended with '{reply.finish_reason}' before it was whole; be briefer"
            ],
        )
    try:
        read = replies.read_object(reply.text, parsing="lenient", max_chars=MAX_REPLY_CHARS)
    except replies.RejectedError as rejected:
        return Judged(answer=None, faults=list(rejected.reasons))
    answer = json.loads(json.dumps(read, default=float))  # exact decimals end here
    try:
        json.dumps(answer, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return Judged(answer=None, faults=["half a surrogate pair in a text; use whole characters"])
    if found := shapes.faults(answer, call.schema):
        return Judged(answer=answer, faults=found)
    answer = shapes.arranged(answer, call.schema)
    return Judged(answer=answer, faults=call.check(answer))


def request_digest(request: Request) -> str:
    """SHA-256 of everything that is asked, in hex."""
    document = {"messages": [list(m) for m in request.messages], "schema": request.schema}
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def after(call: Call, messages: tuple[Message, ...], reply: Reply, found: list[str]) -> Request:
    """The request that follows a faulty reply in its round."""
    shown = [f"- {fault}" for fault in found[:MAX_QUOTED]]
    if len(found) > MAX_QUOTED:
        shown.append(f"- and {len(found) - MAX_QUOTED} more")
    repair = REPAIR.format(count=len(found), faults="\n".join(shown))
    # An empty message is refused by some endpoints.
    said = Message("assistant", reply.text or "(nothing)")
    return call.request((*messages, said, Message("user", repair)))


# -- stored attempts ---------------------------------------------------------------------------


def key(call: str, number: int) -> str:
    """Where an attempt is kept; attempts of a call count from 1."""
    return f"{call}/attempt-{number}.json"


def sealed(document: Mapping[str, Any]) -> bytes:
    """A document as a readable file with a check over its content."""
    whole = {**document, "check": _check(document)}
    # A raw reply may hold anything, also what UTF-8 proper has no bytes for.
    text = json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "surrogatepass")


def unsealed(data: bytes | None) -> dict[str, Any] | None:
    """The document of a file; None if there is none or it is not what was written."""
    try:
        document = json.loads(data or b"")
        check = document.pop("check")
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return document if check == _check(document) else None


def _check(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]


# -- asking ------------------------------------------------------------------------------------

_MISSING: Final = "it has no stored answer, and this run may not ask for one"
Connect = Callable[[str, int], Endpoint]
"""The model, bound to one attempt (call name, number) of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt as progress is told of it."""

    call: str
    number: int
    faults: int
    stored: bool
    """Whether it was taken from the shelf; otherwise the model was asked."""
    model: dict[str, Any]
    """Semantic part of the profile of the model that answered."""


def _unwatched(_attempt: Attempt) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Answers calls from what is stored, and asks the model only for the rest."""

    shelf: Shelf
    connect: Connect
    model: Callable[[str, int], dict[str, Any]]
    """Semantic part of the profile of the model that is asked in an attempt (call, number)."""
    prompts: str
    """Digest of all prompts, stored with every attempt."""
    rounds: int = 1
    """Rounds asked in this run for each call; 0 takes stored answers only."""
    on_attempt: Callable[[Attempt], None] = _unwatched

    async def answer(self, call: Call) -> Any:
        """The faultless answer of a call, stored or new.

        Raises:
            StageError: There is none, and the rounds of this run are used up.
        """
        spent, asked, number, request = 0, False, 1, call.request(call.opening())
        found: list[str] = []
        while True:
            stored = self._stored(call.name, number, request)
            if stored is None and spent >= self.rounds:
                raise StageError(call.name, found or [_MISSING])
            asked = asked or stored is None
            attempt = stored or await self._ask(call, number, request, found)
            reply = Reply(**attempt["reply"])
            judged = judge(call, reply)
            self._tell(attempt, judged, stored=stored is not None)
            if not judged.faults:
                return judged.answer
            found = judged.faults
            if number % ROUND:
                request = after(call, request.messages, reply, found)
            else:  # the next round starts afresh
                spent, asked, request = spent + asked, False, call.request(call.opening())
            number += 1

    def _stored(self, name: str, number: int, request: Request) -> dict[str, Any] | None:
        """An attempt that was made with exactly this request."""
        document = unsealed(self.shelf.get(key(name, number)))
        if document is None or document["request_sha256"] != request_digest(request):
            return None
        return document

    async def _ask(
        self, call: Call, number: int, request: Request, before: list[str]
    ) -> dict[str, Any]:
        """A new attempt, stored; `before` holds the faults of the one that it follows."""
        try:
            answer = await self.connect(call.name, number).ask(request)
        except ModelError as error:
            trouble = f"attempt {number} could not be made: {error}"
            raise StageError(call.name, [*before, trouble]) from error
        document = {
            "attempt_version": ATTEMPT_VERSION,
            "call": call.name,
            "number": number,
            "request_sha256": request_digest(request),
            "model": self.model(call.name, number),
            "prompts_sha256": self.prompts,
            "messages": [message._asdict() for message in request.messages],
            "reply": asdict(answer.reply),
            "faults": judge(call, answer.reply).faults,
            "meta": _meta(answer),
        }
        self.shelf.put(key(call.name, number), sealed(document))
        return document

    def _tell(self, attempt: dict[str, Any], judged: Judged, *, stored: bool) -> None:
        told = Attempt(
            call=attempt["call"], number=attempt["number"], faults=len(judged.faults),
            stored=stored, model=attempt["model"],
        )  # fmt: skip
        self.on_attempt(told)


def _meta(answer: Answer) -> dict[str, Any]:
    """How an answer came; nothing is computed from it."""
    return {
        "seconds": round(answer.seconds, 6),
        "attempts": answer.attempts,
        "served_by": answer.served_by,
    }
