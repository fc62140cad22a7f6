"""What providers answer when they refuse: statuses, headers and bodies with their true meaning.

One table for every test that meets them: read directly, through a scripted transport, or served by
`fault_server`. The forms (status, field names, header names, telling words) are the providers' own,
the sentences around them are not.
"""

import json
import time
from email.utils import formatdate
from typing import NamedTuple

from adaexplore.models.faults import FaultKind


class Refusal(NamedTuple):
    """An answer that is no success, and what it means."""

    kind: FaultKind
    status: int
    headers: dict[str, str]
    body: bytes
    wait_s: float | None = None


def _error(message, **more):
    return json.dumps({"error": {"message": message, **more}}).encode()


def _google(message, *quota_ids, delay=None):
    details = [
        {
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{"quotaId": name} for name in quota_ids],
        }
    ]
    if delay is not None:
        kind = "type.googleapis.com/google.rpc.RetryInfo"
        details.append({"@type": kind, "retryDelay": f"{delay:g}s"})
    error = {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": details}
    return json.dumps([{"error": error}]).encode()


SPENT = "You exceeded your current quota; see plan and billing."
"""One provider's words for both: an empty account, and a limit of the present minute."""


def at(now_s, wait_s=30.0):
    """Every refusal by name; those that ask for a wait ask for `wait_s` from `now_s` on."""
    return (
        _rates(now_s, wait_s)
        | _quotas()
        | _overloads(wait_s)
        | _overflows()
        | _filters()
        | _final()
    )


def _rates(now_s, wait_s):
    iso = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_s + wait_s))
    plain = _error("Too many requests.", type="rate_limit_error")
    headers = {
        "rate_seconds": {"Retry-After": f"{wait_s:g}"},
        "rate_date": {"Retry-After": formatdate(now_s + wait_s, usegmt=True)},
        "rate_milliseconds": {"retry-after-ms": f"{wait_s * 1000:g}", "Retry-After": "999"},
        "rate_duration": {
            "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": f"{wait_s:g}s",
            "x-ratelimit-remaining-tokens": "512", "x-ratelimit-reset-tokens": "6m0s",
        },
        "rate_moment": {
            "anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": iso,
        },
        "rate_epoch_ms": {
            "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": f"{(now_s + wait_s) * 1000:.0f}",
        },
    }  # fmt: skip
    texts = {
        "rate_told": _error(
            "Rate limit reached on tokens per min (TPM): Limit 30000, Used 29937. Please try again "
            f"in {wait_s:g}s. More at /settings/billing",
            code="rate_limit_exceeded",
        ),
        "rate_told_ms": _error(f"Slow down; try again in {wait_s * 1000:g}ms."),
        "rate_told_words": _error(
            f"Over the call rate limit. Please retry after {wait_s:g} seconds."
        ),
        "rate_info": _google("Resource has been exhausted.", delay=wait_s),
        "rate_minute": _google(SPENT, "GenerateRequestsPerMinutePerProjectPerModel", delay=wait_s),
    }
    rate = FaultKind.RATE
    return (
        {name: Refusal(rate, 429, given, plain, wait_s) for name, given in headers.items()}
        | {name: Refusal(rate, 429, {}, text, wait_s) for name, text in texts.items()}
        | {"rate_plain": Refusal(rate, 429, {}, plain)}
    )


def _quotas():
    day = _google(
        SPENT, "GenerateRequestsPerMinutePerProject", "GenerateRequestsPerDayPerProject", delay=51
    )
    rpd = "Rate limit reached on requests per day (RPD): Limit 200. Please try again in 7m12s."
    quota = FaultKind.QUOTA
    return {
        "quota_spent": Refusal(quota, 429, {}, _error(SPENT, code="insufficient_quota")),
        "quota_unnamed": Refusal(quota, 429, {}, _google(SPENT)),
        "quota_day": Refusal(quota, 429, {}, day, 51.0),
        "quota_rpd": Refusal(quota, 429, {}, _error(rpd), 432.0),
        "quota_free": Refusal(quota, 429, {}, _error("Over the limit: free-models-per-day.")),
        "quota_balance": Refusal(quota, 402, {}, _error("Insufficient Balance")),
        "quota_credit": Refusal(quota, 400, {}, _error("The credit balance is too low.")),
        "quota_volume": Refusal(quota, 403, {}, _error("Out of call volume quota.")),
    }


def _overloads(wait_s):
    html = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
    told = _error("Overloaded", type="overloaded_error")
    page = {"Content-Type": "text/html"}
    over = FaultKind.OVERLOADED
    return {
        "broken_500": Refusal(over, 500, {}, _error("The server had an error.")),
        "broken_502": Refusal(over, 502, page, html),
        "busy_503": Refusal(over, 503, {"Retry-After": f"{wait_s:g}"}, told, wait_s),
        "late_504": Refusal(over, 504, page, b""),
        "busy_529": Refusal(over, 529, {}, told),
        "late_408": Refusal(over, 408, {}, b"request timeout"),
        "conflict_409": Refusal(over, 409, {}, b""),
    }


def _overflows():
    told = {
        "overflow_code": _error("Too long.", code="context_length_exceeded"),
        "overflow_length": _error("This model's maximum context length is 8192 tokens."),
        "overflow_serving": _error(
            "The prompt (9000) is longer than the maximum model length of 8."
        ),
        "overflow_count": _error("The input token count (9) exceeds the maximum number of tokens."),
        "overflow_prompt": _error("prompt is too long: 210000 tokens > 200000 maximum"),
        "overflow_size": _error("too big", type="exceed_context_size_error"),
    }
    return {name: Refusal(FaultKind.OVERFLOW, 400, {}, body) for name, body in told.items()}


def _filters():
    inner = {"code": "ResponsibleAIPolicyViolation"}
    told = {
        "filter_policy": _error("Filtered.", code="content_filter", innererror=inner),
        "filter_risk": _error("Content Exists Risk", type="invalid_request_error"),
    }
    return {name: Refusal(FaultKind.FILTERED, 400, {}, body) for name, body in told.items()}


def _final():
    auth, bad = FaultKind.AUTH, FaultKind.BAD_REQUEST
    large = _error("Request too large on tokens per minute (TPM): Limit 6000, Requested 9000")
    return {
        "auth_key": Refusal(auth, 401, {}, _error("Incorrect API key provided.")),
        "auth_region": Refusal(auth, 403, {}, _error("Not available in your country.")),
        "bad_field": Refusal(bad, 400, {}, _error("Unknown parameter: top_k")),
        "bad_model": Refusal(bad, 404, {}, _error("The model does not exist.")),
        "bad_size": Refusal(bad, 413, {}, large),
        "moved": Refusal(bad, 301, {"Location": "http://elsewhere.invalid/"}, b""),
    }
