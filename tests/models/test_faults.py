"""What went wrong is told apart by status, headers and words; waits are understood in every form."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import refusals
from adaexplore.models import faults
from adaexplore.models.faults import RETRIED, Fault, FaultKind

NOW_S = 1_800_000_000.0
CANARY = "canary-Ub3rS3cret/+=42"
REFUSALS = refusals.at(NOW_S)


def classify(status, body=b"", headers=None):
    return faults.classify(status, headers or {}, body, now_s=NOW_S)


@pytest.mark.parametrize("name", REFUSALS)
def test_every_refusal_is_told_apart_and_its_wait_understood(name):
    refusal = REFUSALS[name]
    found = classify(refusal.status, refusal.body, refusal.headers)

    assert (refusal.kind, refusal.status) == (found.kind, found.status)
    assert refusal.wait_s == pytest.approx(found.wait_s)
    assert found.message.startswith(f"HTTP {refusal.status}: ")
    assert "\n" not in found.message


def test_only_what_another_attempt_can_mend_is_retried():
    """Kinds as in the contract: auth, bad request, overflow, filter and quota are final."""
    final = {"auth", "bad_request", "overflow", "filtered", "quota"}

    assert final == set(FaultKind) - RETRIED


@pytest.mark.parametrize(
    ("wait_s", "value"),
    [
        (0.0, "0"),
        (1.5, "1.5"),
        (0.006, "6ms"),
        (90.0, "1m30s"),
        (360.0, "6m0s"),
        (3723.5, "1h2m3.5s"),
        (172800.0, "2d"),
        (60.0, f"{NOW_S + 60:.0f}"),
        (60.0, f"{(NOW_S + 60) * 1000:.0f}"),
        (0.0, "Wed, 21 Oct 2015 07:28:00 GMT"),
        (30.0, "2027-01-15T08:00:30Z"),
        (30.0, "2027-01-15T08:00:30"),
        (30.0, "2027-01-15T10:00:30+02:00"),
        (None, "soon"),
        (None, "-5"),
        (None, "nan"),
        (None, "inf"),
        (None, ""),
    ],
)
def test_a_wait_is_a_number_a_duration_or_a_moment(wait_s, value):
    assert wait_s == faults.retry_after({"retry-AFTER": value}, "", now_s=NOW_S)


@pytest.mark.parametrize(
    ("wait_s", "words"),
    [
        (0.644, "Please try again in 644ms."),
        (432.0, "try again in 7m12s. Visit us"),
        (20.04466179, "Please retry in 20.04466179s."),
        (7.0, "Please retry after 7 seconds."),
        (0.5, "retry after 500 milliseconds"),
        (60.0, "Retry after 1 minute."),
        (7200.0, "try again in 2 hours"),
    ],
)
def test_a_wait_in_words_is_understood(wait_s, words):
    assert wait_s == pytest.approx(faults.retry_after({}, words, now_s=NOW_S))


def test_a_header_wins_over_words_and_the_exact_header_over_the_rough_one():
    both = {"Retry-After": "2", "retry-after-ms": "1500"}

    assert 1.5 == faults.retry_after(both, "try again in 9s", now_s=NOW_S)
    assert 2.0 == faults.retry_after({"Retry-After": "2"}, "try again in 9s", now_s=NOW_S)


def test_of_several_used_up_limits_the_last_to_reset_counts():
    headers = {
        "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "4s",
        "x-ratelimit-remaining-images": "5", "x-ratelimit-reset-images": "9s",
    }  # fmt: skip

    assert 4.0 == faults.retry_after(headers, "", now_s=NOW_S)


@given(
    status=st.integers(300, 599),
    headers=st.dictionaries(
        st.sampled_from(("Retry-After", "retry-after-ms", "x-ratelimit-reset", "x")), st.text()
    ),
    body=st.binary() | st.text().map(str.encode),
)
def test_any_answer_at_all_is_classified(status, headers, body):
    found = faults.classify(status, headers, body, now_s=NOW_S)

    assert found.wait_s is None or found.wait_s >= 0.0
    assert found.message.startswith(f"HTTP {status}: ")


@given(value=st.from_regex(r"[\d.:TZ+,a-zA-Z -]{1,30}", fullmatch=True))
def test_no_header_can_raise(value):
    wait_s = faults.retry_after({"retry-after": value}, f"try again in {value}", now_s=NOW_S)

    assert wait_s is None or wait_s >= 0.0


# -- secrets -----------------------------------------------------------------------------------


@given(before=st.integers(0, 700))
def test_a_secret_is_taken_out_wherever_it_stands_even_across_the_clipping(before):
    text = "x" * before + " " + CANARY + " tail"
    shown = faults.scrubbed(text, [CANARY])

    assert CANARY[:8] not in shown
    assert len(shown) <= faults.MESSAGE_CHARS + 3


@given(before=st.integers(0, 700))
def test_a_long_message_of_a_server_loses_its_secret_too(before):
    body = json.dumps({"error": {"message": f"{'y' * before} {CANARY} refused"}}).encode()
    shown = faults.scrubbed(classify(401, body).message, [CANARY])

    assert CANARY[:8] not in shown


def test_one_secret_may_begin_with_another():
    assert "***|***" == faults.scrubbed("abcdef|abc", ["abc", "abcdef"])


def test_what_looks_like_a_key_is_taken_out_though_nobody_told_it():
    shown = faults.scrubbed("bad key: sk-proj-Abc123*****xyz. Again", [])

    assert "bad key: ***. Again" == shown


def test_no_secret_leaves_the_text_alone():
    assert "a plain text" == faults.scrubbed("a plain text", ["", "unrelated"])


def test_a_fault_as_a_document_is_plain_data():
    fault = Fault(kind=FaultKind.RATE, message="HTTP 429: slow", status=429, wait_s=3.0)

    assert {
        "kind": "rate",
        "status": 429,
        "message": "HTTP 429: slow",
        "seconds": 1.0,
    } == json.loads(json.dumps(faults.as_document(fault, seconds=1.0)))
