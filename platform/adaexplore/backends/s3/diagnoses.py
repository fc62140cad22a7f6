"""From what botocore raises to a fault: its class, what came, and how to mend it.

Everything is said in our words where the reason is known: the words of a service may hold parts of a
request. The tables are in order of precedence.

Source: the error codes of the Amazon S3 API reference, and what SeaweedFS, MinIO and Ceph answer.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final

from botocore import exceptions
from botocore.parsers import ResponseParserError

from adaexplore.backends.s3.faults import Fault, Kind, short

CAUGHT: Final = (
    exceptions.BotoCoreError,
    exceptions.ClientError,
    ResponseParserError,
    RecursionError,
    OSError,
    ValueError,
)
"""What a call of botocore raises where something outside is wrong."""

_AGAIN: Final = "launch again when it is back: nothing that was acknowledged is lost"
_BUSY: Final = frozenset(
    {
        "SlowDown", "ServiceUnavailable", "InternalError", "InternalFailure", "RequestTimeout",
        "Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests",
        "OperationAborted", "ConditionalRequestConflict", "IncompleteBody", "BadDigest",
        "RequestTimeoutException", "ServerBusy", "XMinioServerNotInitialized",
    }
)  # fmt: skip
_BUSY_STATUS: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_EXPIRED: Final = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"})
_KEYS: Final = frozenset(
    {
        "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "InvalidClientTokenId",
        "AuthFailure", "UnrecognizedClientException", "MissingSecurityHeader",
    }
)  # fmt: skip
_ELSEWHERE: Final = frozenset(
    {"PermanentRedirect", "AuthorizationHeaderMalformed", "TemporaryRedirect",
     "IllegalLocationConstraintException", "301", "307"}
)  # fmt: skip
_FULL: Final = frozenset(
    {"InsufficientStorage", "QuotaExceeded", "XMinioStorageFull", "XAmzStorageFull", "507"}
)
_CHECKSUM_WORDS: Final = ("checksum", "trailer", "aws-chunked", "content-sha256")


def of(error: Exception, *, clock: Callable[[], float] = time.time) -> Fault:
    """The fault behind an exception of `CAUGHT`.

    Args:
        error: What was raised.
        clock: This machine's clock, in seconds since 1970; compared with the service's for clock skew.
    """
    if isinstance(error, exceptions.ClientError):
        return _answered(error.response, clock)
    # botocore follows a redirect that names no region by asking for it, without end.
    if isinstance(getattr(error, "kwargs", {}).get("error", error), RecursionError):
        return _final("the bucket is somewhere else", _MOVED)
    for kinds, fault in _UNANSWERED:
        if isinstance(error, kinds):
            return fault
    return Fault(
        kind=Kind.FINAL,
        what=f"the request cannot be made ({type(error).__name__}: {short(str(error))})",
        mend="mend the store's configuration (conf/store/s3.yaml names its keys)",
    )


def _final(what: str, mend: str) -> Fault:
    return Fault(kind=Kind.FINAL, what=what, mend=mend)


def _busy(what: str) -> Fault:
    return Fault(
        kind=Kind.BUSY, what=what, mend=f"is the service up, and store.endpoint right? {_AGAIN}"
    )


# -- no answer -----------------------------------------------------------------------------------

_MOVED: Final = "set store.region=... or store.endpoint=... to where it is"
_NO_S3: Final = "what answers does not speak S3"
_NO_S3_MEND: Final = "set store.endpoint to the address of an S3 service"
_NO_KEYS: Final = "give keys: {keys}"
_UNANSWERED: Final[tuple[tuple[tuple[type[Exception], ...], Fault], ...]] = (
    (
        (exceptions.SSLError,),
        _final(
            "the service's certificate is not trusted, or it does not speak TLS",
            "give its CA as store.ca_file=FILE, or http:// in store.endpoint where there is no TLS",
        ),
    ),
    ((exceptions.NoCredentialsError,), _final("there are no keys", _NO_KEYS)),
    ((exceptions.PartialCredentialsError,), _final("only a part of the keys is there", _NO_KEYS)),
    ((exceptions.ProfileNotFound,), _final("the profile in AWS_PROFILE does not exist", _NO_KEYS)),
    (
        (exceptions.CredentialRetrievalError, exceptions.MetadataRetrievalError),
        Fault(kind=Kind.BUSY, what="the keys cannot be fetched", mend="mend their source: {keys}"),
    ),
    (
        (exceptions.EndpointConnectionError, exceptions.ProxyConnectionError),
        _busy("nothing answers at this address"),
    ),
    (
        (exceptions.ConnectTimeoutError, exceptions.ReadTimeoutError),
        _busy("the service does not answer in time"),
    ),
    (
        (exceptions.HTTPClientError, exceptions.ResponseStreamingError,
         exceptions.IncompleteReadError, ConnectionError),
        _busy("the connection was lost"),
    ),
    (
        (exceptions.FlexibleChecksumError,),
        _final(
            "the checksum of what was read is wrong",
            "set store.checksums=when_required, or mend the object",
        ),
    ),
    ((ResponseParserError,), _final(_NO_S3, _NO_S3_MEND)),
)  # fmt: skip


# -- an answer -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """An answer that is an error."""

    code: str
    status: int
    said: str
    error: dict[str, Any]
    headers: dict[str, str]
    ahead_s: float | None
    """How far this machine's clock is ahead of the service's; None if it did not say."""

    @property
    def words(self) -> str:
        """Everything that names the reason."""
        return f"{self.code} {self.said}".lower()

    @property
    def is_page(self) -> bool:
        """Whether it is meant for a browser."""
        return self.headers.get("content-type", "").startswith("text/html")


def _answered(response: dict[str, Any], clock: Callable[[], float]) -> Fault:
    error = response.get("Error", {})
    meta = response.get("ResponseMetadata", {})
    headers = meta.get("HTTPHeaders", {})
    seen = _Seen(
        code=str(error.get("Code", "")),
        status=int(meta.get("HTTPStatusCode", 0)),
        said=short(str(error.get("Message", ""))),
        error=error,
        headers=headers,
        ahead_s=_ahead(headers, clock),
    )
    kind, what, mend = next(
        (kind, what(seen), mend) for applies, kind, what, mend in _ANSWERS if applies(seen)
    )
    return Fault(kind=kind, what=what, mend=mend, code=seen.code, status=seen.status)


def _ahead(headers: dict[str, str], clock: Callable[[], float]) -> float | None:
    try:
        return clock() - parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError):
        return None


def _skew(seen: _Seen) -> str:
    if seen.ahead_s is None:
        return "this machine's clock differs too much from the service's"
    side = "ahead of" if seen.ahead_s > 0 else "behind"
    return (
        f"this machine's clock is {abs(seen.ahead_s):.0f} s {side} the service's, which is too much"
    )


def _region(seen: _Seen) -> str:
    region = seen.error.get("Region") or seen.headers.get("x-amz-bucket-region")
    named = f"in region '{short(str(region))}'" if region else "somewhere else"
    place = seen.error.get("Endpoint")
    return f"the bucket is {named}" + (f", at {short(str(place))}" if place else "")


def _named(seen: _Seen) -> str:
    said = f" ({seen.said})" if seen.said and seen.said != seen.code else ""
    page = " with a web page: is it an S3 service?" if seen.is_page else ""
    return f"the service answers {seen.code or seen.status}{said}{page}"


def _is_busy(seen: _Seen) -> bool:
    return seen.code in _BUSY or seen.status in _BUSY_STATUS


def _is_no_bucket(seen: _Seen) -> bool:
    return seen.code == "NoSuchBucket" or (seen.code == "404" and seen.status == 404)


_ANSWERS: Final[tuple[tuple[Callable[[_Seen], bool], Kind, Callable[[_Seen], str], str], ...]] = (
    (
        lambda s: s.code in _EXPIRED,
        Kind.EXPIRED,
        lambda _: "the credentials have expired",
        "renew them: {keys}",
    ),
    (
        lambda s: s.code in _KEYS,
        Kind.KEYS,
        lambda s: f"the service refuses the keys ({s.code})",
        "give keys that it knows: {keys}",
    ),
    # Answers to a head have no body, so no reason: expired is 400 then, and a wrong key 403.
    (
        lambda s: s.code in ("400", "403"),
        Kind.EXPIRED,
        lambda s: f"the service refuses without a reason (HTTP {s.code})",
        "renew the keys, or grant them get, put, list and delete below store.prefix: {keys}",
    ),
    (
        lambda s: s.code == "RequestTimeTooSkewed",
        Kind.FINAL,
        _skew,
        "set this machine's clock (NTP) and launch again",
    ),
    (
        lambda s: s.code in _ELSEWHERE,
        Kind.FINAL,
        _region,
        _MOVED,
    ),
    (
        lambda s: s.code in _FULL,
        Kind.FINAL,
        lambda s: f"there is no space left ({s.code})",
        f"free some space; {_AGAIN}",
    ),
    (_is_busy, Kind.BUSY, _named, _AGAIN),
    (lambda s: s.is_page, Kind.FINAL, lambda _: _NO_S3, _NO_S3_MEND),
    (
        lambda s: any(word in s.words for word in _CHECKSUM_WORDS),
        Kind.FINAL,
        lambda s: f"the service does not take this kind of checksum ({s.code})",
        "set store.checksums=when_required",
    ),
    (
        _is_no_bucket,
        Kind.FINAL,
        lambda _: "there is no such bucket",
        "make it, or set store.bucket=... to one that exists",
    ),
    (
        lambda s: s.status in (401, 403),
        Kind.FINAL,
        lambda s: f"access is denied ({s.code})",
        "grant get, put, list and delete below store.prefix to these keys: {keys}",
    ),
    (
        lambda _: True,
        Kind.FINAL,
        _named,
        "mend what it names (store.bucket, store.prefix, store.endpoint)",
    ),
)
