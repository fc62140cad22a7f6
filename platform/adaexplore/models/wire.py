"""The wire format of OpenAI-compatible chat endpoints: bodies out, replies in. Pure.

Histories are prefix-stable, so the serialised form of messages is kept and only what is new is
serialised again. What comes back is believed only as far as it is consistent: a reply that used the
whole output limit was cut off, whatever its finish reason says, and reasoning that was never closed
is not an answer.
"""

import re
from typing import Any, Final, NamedTuple

import orjson

from adaexplore.benchmark.game.protocol import FinishReason, Message, Reply, Request
from adaexplore.models.faults import CallFaultError, Fault, FaultKind
from adaexplore.models.profiles import RemoteProfile

_FINISH: Final[dict[str, FinishReason]] = {
    "length": "length", "max_tokens": "length", "model_length": "length",
    "content_filter": "content_filter", "safety": "content_filter", "refusal": "content_filter",
}  # fmt: skip
SHOWN_BYTES: Final = 4000
"""How much of a body is told when it is no answer; clipped where secrets are taken out."""
_THINK: Final = re.compile(r"\s*<think(?:ing)?>(?P<inside>.*?)</think(?:ing)?>\s*", re.DOTALL)
_THINK_OPEN: Final = re.compile(r"\s*<think(?:ing)?>")
_THINK_CLOSE: Final = re.compile(r"</think(?:ing)?>\s*")


class Content(NamedTuple):
    """A request's body in parts, which belong to the conversation that it repeats."""

    parts: tuple[bytes, ...]
    size: int
    """Bytes of all parts."""

    def whole(self) -> bytes:
        """The parts, joined."""
        return b"".join(self.parts)


class Body:
    """Request bodies of one conversation that grows."""

    def __init__(self, profile: RemoteProfile, seed: int) -> None:
        """Serialise once what is the same in every request."""
        self._profile = profile
        fixed = orjson.dumps(_fixed(profile, seed))[:-1]
        self._head = fixed + (b"," if len(fixed) > 1 else b"") + b'"messages":['
        self._said: tuple[Message, ...] = ()
        """What the last request repeated and added."""
        self._parts: list[bytes] = []
        """The same, serialised, each but the first with the comma before it."""

    def of(self, request: Request) -> Content:
        """The body of a request; messages that stood there before are not serialised again."""
        messages, same = request.messages, len(self._said)
        # What is new is at the end, so this ends after a step or two.
        while messages[:same] != self._said[:same]:
            same -= 1
        del self._parts[same:]
        for message in messages[same:]:
            part = orjson.dumps({"role": message.role, "content": message.content})
            comma = b"," if self._parts else b""
            self._parts.append(b"%b%b" % (comma, part))  # a copy: the original holds a large buffer
        self._said = messages
        parts = (self._head, *self._parts, b"]%b}" % self._format(request))
        return Content(parts, sum(map(len, parts)))

    def _format(self, request: Request) -> bytes:
        wanted = self._profile.sampling.reply_format
        if wanted == "text" or "response_format" in self._profile.dialect.refused:
            return b""
        if wanted == "json_schema" and request.schema is not None:
            form = {"type": wanted, "json_schema": request.schema}
            return b',"response_format":' + orjson.dumps(form)
        return b',"response_format":{"type":"json_object"}'


def _fixed(profile: RemoteProfile, seed: int) -> dict[str, Any]:
    sampling, dialect = profile.sampling, profile.dialect
    fields: dict[str, Any] = {
        "model": profile.model,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": seed if sampling.send_seed else None,
        "reasoning_effort": sampling.reasoning_effort,
        dialect.output_limit_field: sampling.max_output_tokens,
        **sampling.body,
    }
    return {
        name: value
        for name, value in fields.items()
        if value is not None and name not in dialect.refused
    }


class Received(NamedTuple):
    """A reply with what the server said of itself."""

    reply: Reply
    served_by: dict[str, Any]


def read(body: bytes, profile: RemoteProfile) -> Received:
    """The reply in the body of a successful answer.

    Raises:
        CallFaultError: The body is no chat completion (cut, another type, no choice).
    """
    try:
        document = orjson.loads(body)
        choice = document["choices"][0]
        message = choice["message"]
        content = message.get("content")
    except (orjson.JSONDecodeError, KeyError, IndexError, TypeError, AttributeError):
        shown = " ".join(body[:SHOWN_BYTES].decode("utf-8", "replace").split())
        raise CallFaultError(
            Fault(
                kind=FaultKind.JUNK,
                message=f"no chat completion: {shown or 'an empty body'}",
                status=200,
            )
        ) from None
    text, reasoning, closed = _parted(_text(content), message, profile)
    usage = _usage(document.get("usage"))
    finish = _FINISH.get(str(choice.get("finish_reason")).lower(), "stop")
    capped = usage["output_tokens"] >= profile.sampling.max_output_tokens
    if finish == "stop" and (capped or not closed):
        finish = "length"
    reply = Reply(text=text, finish_reason=finish, reasoning=reasoning, **usage)
    served = {
        key: document.get(key) for key in ("model", "system_fingerprint") if document.get(key)
    }
    return Received(reply=reply, served_by=served)


def error_status(body: bytes) -> int | None:
    """The HTTP status of an error that a gateway passes on in an answer of its own success."""
    try:
        code = int(orjson.loads(body)["error"]["code"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, OverflowError):
        return None
    return code if 400 <= code < 600 else None


def _text(content: Any) -> str:
    """Text of a content that may be a string, null, or a list of parts."""
    if isinstance(content, list):
        parts = [part.get("text", "") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _parted(text: str, message: dict[str, Any], profile: RemoteProfile) -> tuple[str, str, bool]:
    """(reply, reasoning, whether the reasoning was closed)."""
    fields = (message.get(name) for name in profile.dialect.reasoning_fields)
    reasoning = next((value for value in fields if isinstance(value, str) and value), "")
    if not profile.dialect.think_tags:
        return text, reasoning, True
    inside = _THINK.match(text)
    if inside is not None:
        return text[inside.end() :], reasoning or inside["inside"], True
    if _THINK_OPEN.match(text):
        return "", reasoning or text, False
    # Some servers' templates open the block in the prompt, so that only its end is generated.
    closing = _THINK_CLOSE.search(text)
    if closing is not None and not text.lstrip().startswith("{"):
        return text[closing.end() :], reasoning or text[: closing.start()], True
    return text, reasoning, True


def _usage(usage: Any) -> dict[str, int]:
    """Token counts, as far as the server tells them."""
    usage = usage if isinstance(usage, dict) else {}
    prompt = _details(usage, "prompt_tokens_details")
    completion = _details(usage, "completion_tokens_details")
    cached = prompt.get("cached_tokens") or usage.get("prompt_cache_hit_tokens")
    return {
        "input_tokens": _count(usage.get("prompt_tokens")),
        "cached_tokens": _count(cached),
        "output_tokens": _count(usage.get("completion_tokens")),
        "reasoning_tokens": _count(completion.get("reasoning_tokens")),
    }


def _details(usage: dict[str, Any], name: str) -> dict[str, Any]:
    found = usage.get(name)
    return found if isinstance(found, dict) else {}


def _count(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and 0 <= value < 1e12 else 0
