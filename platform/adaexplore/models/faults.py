"""Faults: what went wrong with a call, told apart as far as the answer allows.

Each kind has one treatment: a rate limit slows down, a used-up quota stops the account, overload and
lost connections are tried again, a refused key or request never is, and a prompt that does not fit
or is filtered ends the episode unscored. Providers word the same fault differently and put several
under one status, so both status and text are read.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any, Final

MESSAGE_CHARS: Final = 300


class FaultKind(StrEnum):
    """What a fault means for the call, the account and the episode."""

    RATE = "rate"
    QUOTA = "quota"
    OVERLOADED = "overloaded"
    NETWORK = "network"
    TIMEOUT = "timeout"
    JUNK = "junk"
    """An answer that is no answer: cut, of another type, or without a choice."""
    AUTH = "auth"
    BAD_REQUEST = "bad_request"
    OVERFLOW = "overflow"
    FILTERED = "filtered"


RETRIED: Final = frozenset(
    (FaultKind.RATE, FaultKind.OVERLOADED, FaultKind.NETWORK, FaultKind.TIMEOUT, FaultKind.JUNK)
)
"""Kinds that another attempt can mend."""
POSSIBLY_CHARGED: Final = frozenset((FaultKind.NETWORK, FaultKind.TIMEOUT, FaultKind.JUNK))
"""Kinds after which the provider may have done the work, and so may charge for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One failed attempt."""

    kind: FaultKind
    message: str
    status: int | None = None
    wait_s: float | None = None
    """How long the provider asks to wait."""


class CallFaultError(Exception):
    """A fault on its way to whoever decides what to do about it."""

    def __init__(self, fault: Fault) -> None:
        """Keep the fault."""
        super().__init__(fault.message)
        self.fault = fault


_OVERFLOW: Final = re.compile(
    r"context_length_exceeded|maximum (?:context|model|prompt) length|context window|context size"
    r"|context limit|context length|prompt is too long|input is too long"
    r"|input token count.{0,40}exceeds|exceeds the maximum number of (?:input )?tokens"
    r"|exceed_context|too many tokens in the prompt",
    re.IGNORECASE,
)
_FILTERED: Final = re.compile(
    r"content_filter|content_policy|content management policy|content exists risk"
    r"|prohibited_content|blocked by (?:the )?safety|responsibleaipolicy",
    re.IGNORECASE,
)
_SPENT: Final = re.compile(
    r"insufficient[_ ]quota|insufficient balance|credit balance|out of credits"
    r"|billing[_ ]hard[_ ]limit|usage limits?\b|out of call volume quota",
    re.IGNORECASE,
)
_LONG_LIMIT: Final = re.compile(
    r"per[ _-]?(?:day|month)|daily (?:quota|limit)|\((?:RPD|TPD)\)", re.IGNORECASE
)
_SHORT_LIMIT: Final = re.compile(
    r"per[ _-]?(?:min|sec)|\((?:RPM|TPM)\)|(?:try again|retry) in|retryDelay", re.IGNORECASE
)
_QUOTA: Final = re.compile(r"exceeded your current quota", re.IGNORECASE)


def classify(status: int, headers: Mapping[str, str], body: bytes, *, now_s: float) -> Fault:
    """The fault of an HTTP answer that is no success.

    Args:
        status: HTTP status, not 2xx.
        headers: Answer headers; names in any case.
        body: Answer body, read as far as it came.
        now_s: Seconds since the epoch, for waits that are given as moments.
    """
    text = body[:20_000].decode("utf-8", "replace")
    wait_s = retry_after(headers, text, now_s=now_s)
    return Fault(
        kind=_kind(status, text), message=_message(status, text), status=status, wait_s=wait_s
    )


def _kind(status: int, text: str) -> FaultKind:  # noqa: PLR0911 (one line a kind)
    if status in (400, 413, 422) and _OVERFLOW.search(text):
        return FaultKind.OVERFLOW
    if status in (400, 403, 422) and _FILTERED.search(text):
        return FaultKind.FILTERED
    if status == 402 or (status in (400, 403, 429) and _is_quota(status, text)):
        return FaultKind.QUOTA
    if status == 429:
        return FaultKind.RATE
    if status in (401, 403):
        return FaultKind.AUTH
    if status in (408, 409, 425) or status >= 500:
        return FaultKind.OVERLOADED
    return FaultKind.BAD_REQUEST


def _is_quota(status: int, text: str) -> bool:
    """Whether a limit will not pass by waiting a little.

    Providers mention quotas and billing in answers to plain rate limits too (one of them words both
    alike and tells them apart by the period only), so the period decides where it is named.
    """
    if _SPENT.search(text):
        return True
    if status == 400:
        return False
    if _LONG_LIMIT.search(text):
        return True
    return _QUOTA.search(text) is not None and _SHORT_LIMIT.search(text) is None


def _message(status: int, text: str) -> str:
    try:
        error = json.loads(text)
        if isinstance(error, list) and error:
            error = error[0]
        found = error.get("error", error) if isinstance(error, dict) else None
        told = found.get("message") if isinstance(found, dict) else found
    except ValueError:
        told = None
    words = " ".join(str(told or text).split())
    return f"HTTP {status}: {words or 'no message'}"


# -- waits -------------------------------------------------------------------------------------

_DURATION: Final = re.compile(
    r"(?:(?P<d>\d+(?:\.\d+)?)d)?(?:(?P<h>\d+(?:\.\d+)?)h)?(?:(?P<m>\d+(?:\.\d+)?)m(?!s))?"
    r"(?:(?P<s>\d+(?:\.\d+)?)s)?(?:(?P<ms>\d+(?:\.\d+)?)ms)?"
)
_SECONDS: Final = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_TRY_AGAIN: Final = re.compile(
    r"(?:try again|retry) (?:in|after) (?P<wait>[\d.]+ ?(?:milliseconds?|ms|s|m|h)?[\d.msh]*)",
    re.IGNORECASE,
)
_RETRY_DELAY: Final = re.compile(r'"retryDelay"\s*:\s*"(?P<wait>[^"]+)"')
_RESETS: Final = re.compile(r"ratelimit.*reset|reset.*ratelimit")


def retry_after(headers: Mapping[str, str], text: str, *, now_s: float) -> float | None:
    """Seconds that the provider asks to wait, in whatever form it says so; None if it does not."""
    lower = {name.lower(): value.strip() for name, value in headers.items()}
    if (milliseconds := _number(lower.get("retry-after-ms"))) is not None:
        return max(0.0, milliseconds / 1000.0)
    if (given := lower.get("retry-after")) is not None:
        wait_s = _wait(given, now_s)
        if wait_s is not None:
            return wait_s
    if (told := _RETRY_DELAY.search(text) or _TRY_AGAIN.search(text)) is not None:
        return _wait(_shortened(told["wait"]), now_s)
    waits = [_wait(value, now_s) for name, value in lower.items() if _is_exhausted(name, lower)]
    return max((wait for wait in waits if wait is not None), default=None)


def _is_exhausted(name: str, headers: Mapping[str, str]) -> bool:
    """Whether a reset header belongs to a limit of which nothing remains."""
    if not _RESETS.search(name):
        return False
    return _number(headers.get(name.replace("reset", "remaining"), "0")) == 0.0


def _shortened(words: str) -> str:
    """A duration in words as one in letters: `500 milliseconds` is `500ms`."""
    return re.sub(r"milliseconds?", "ms", words, flags=re.IGNORECASE).replace(" ", "").rstrip(".")


def _wait(value: str, now_s: float) -> float | None:
    """Seconds from now of a number, a duration such as 1m30s, a date, or a moment."""
    number = _number(value)
    if number is not None:
        if number > 1e9:  # a moment since the epoch, in seconds or in milliseconds
            number = (number / 1000.0 if number > 1e12 else number) - now_s
        return max(0.0, number)
    duration = _DURATION.fullmatch(value)
    if duration is not None and any(duration.groups()):
        return sum(
            float(part) * _SECONDS[unit] for unit, part in duration.groupdict().items() if part
        )
    moment_at = _moment(value)
    return None if moment_at is None else max(0.0, moment_at.timestamp() - now_s)


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else None
    except ValueError:
        return None
    return number if number is not None and 0.0 <= number < 1e14 else None


def _moment(value: str) -> datetime | None:
    """The moment of an HTTP date or an ISO 8601 time; without a zone it is UTC."""
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = read(value)
        except (ValueError, TypeError):
            continue
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return None


def scrubbed(text: str, secrets: list[str]) -> str:
    """A text without the secrets, nor anything that looks like a key, clipped.

    Clipped last: half a secret at the end of a clipped text would not be recognised.
    """
    for secret in sorted(secrets, key=len, reverse=True):  # one may begin with another
        if secret:
            text = text.replace(secret, "***")
    text = re.sub(r"\b(?:sk|key|pk|rk)-[A-Za-z0-9_*-]{6,}", "***", text)
    return text if len(text) <= MESSAGE_CHARS else f"{text[:MESSAGE_CHARS]}..."


def as_document(fault: Fault, **more: Any) -> dict[str, Any]:
    """A fault as plain data for the journal."""
    document = {"kind": str(fault.kind), "status": fault.status, "message": fault.message}
    return document | more
