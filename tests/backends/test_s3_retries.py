"""What passes is waited out, what does not is told at once: a real service behind a bad line."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import s3_proxy
from adaexplore.backends.s3.store import S3Store
from adaexplore.errors import StoreError

pytestmark = pytest.mark.stack

ALWAYS = 10**9

PASSING = {
    "slow down": s3_proxy.refusal(503, "SlowDown"),
    "internal": s3_proxy.refusal(500, "InternalError"),
    "too many": s3_proxy.refusal(429, "TooManyRequests"),
    "timeout": s3_proxy.refusal(400, "RequestTimeout"),
    "conflict": s3_proxy.refusal(409, "ConditionalRequestConflict"),
    "gateway": s3_proxy.refusal(502, "no XML of S3"),
    "reset": s3_proxy.reset_before,
    "lost answer": s3_proxy.lost_answer,
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_a_fault_that_passes_is_tried_again_after_growing_pauses(fault, behind, proxy, pauses):
    store = behind()
    rules = [proxy.rule(method, "a", fault, times=3) for method in ("PUT", "GET")]
    store.put("a", b"data")

    assert b"data" == store.get("a")
    assert [3, 3] == [rule.met for rule in rules]
    assert [0.2, 0.4, 0.8, 0.2, 0.4, 0.8] == pauses


def test_listing_and_looking_are_tried_again_too(behind, proxy, pauses):
    store = behind()
    store.create("a/j", b"head\n")
    proxy.rule("GET", "list-type=2", s3_proxy.refusal(503, "SlowDown"), times=2)
    proxy.rule("HEAD", "", s3_proxy.refusal(503, "SlowDown"))

    assert ["a/j"] == store.keys("a/")
    assert store.alive(store.writer)
    assert [0.2, 0.4, 0.2] == pauses


def test_pauses_grow_to_a_cap_and_end(behind, proxy, pauses):
    store = behind(max_attempts=10)
    rule = proxy.rule("PUT", "a", s3_proxy.refusal(503, "SlowDown"), ALWAYS)
    with pytest.raises(StoreError, match=r"answers SlowDown \(no\) \(10 times\); launch again"):
        store.put("a", b"")

    assert 10 == rule.met
    assert [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 20.0, 20.0] == pytest.approx(pauses)


def test_a_service_that_is_away_for_a_while_is_waited_for(s3_config, proxy):
    pauses = []

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 4:
            proxy.up()

    store = S3Store(s3_config(endpoint=proxy.endpoint), sleep=sleep)
    proxy.down()
    store.put("a", b"data")

    assert 4 == len(pauses)
    assert b"data" == store.get("a")


def test_what_was_acknowledged_is_there_after_the_service_was_killed(s3_config, weed):
    """And a store that is open meanwhile goes on when the service is back."""
    missed, back = threading.Event(), threading.Event()

    def sleep(_):
        missed.set()
        back.wait(300)

    store = S3Store(s3_config(), sleep=sleep)
    store.put("a", b"data")
    appender = store.create("j", b"head\n")
    appender.append(b"one\n").result()
    weed.kill()
    waiting = appender.append(b"two\n")
    assert missed.wait(120)
    weed.start()
    back.set()
    waiting.result()

    assert b"data" == store.get("a")
    assert b"head\none\ntwo\n" == store.get("j")
    store.close()


def test_silence_ends_a_try(behind, proxy, pauses):
    store = behind(read_timeout_s=1.0)
    entered, go_on = threading.Event(), threading.Event()
    proxy.rule("PUT", "a", s3_proxy.held(entered, go_on))
    store.put("a", b"data")
    go_on.set()

    assert pauses
    assert b"data" == store.get("a")


def test_a_download_that_breaks_is_made_again_whole(behind, proxy, pauses):
    store = behind()
    store.put("a", b"x" * 100_000)
    proxy.rule("GET", "a", s3_proxy.cut_answer, times=2)

    assert b"x" * 100_000 == store.get("a")
    assert 2 == len(pauses)


FINAL = {
    "denied": (s3_proxy.refusal(403, "AccessDenied"), "access is denied"),
    "bucket": (s3_proxy.refusal(404, "NoSuchBucket"), "there is no such bucket"),
    "key": (s3_proxy.refusal(403, "InvalidAccessKeyId"), "refuses the keys"),
    "secret": (s3_proxy.refusal(403, "SignatureDoesNotMatch"), "refuses the keys"),
    "full": (s3_proxy.refusal(507, "InsufficientStorage"), "there is no space left"),
}


@pytest.mark.parametrize(("fault", "said"), FINAL.values(), ids=FINAL)
@pytest.mark.parametrize("method", ["PUT", "GET"])
def test_a_fault_that_stays_is_told_at_once(method, fault, said, behind, proxy, pauses):
    store = behind()
    rule = proxy.rule(method, "a$", fault, ALWAYS)
    with pytest.raises(StoreError, match=said):
        store.get("a") if method == "GET" else store.put("a", b"")

    assert (1, []) == (rule.met, pauses)


# -- credentials ---------------------------------------------------------------------------------


def test_expired_credentials_are_renewed_once(behind, proxy, pauses):
    store = behind()
    proxy.rule("PUT", "a", s3_proxy.refusal(400, "ExpiredToken"))
    store.put("a", b"data")

    assert [] == pauses
    rule = proxy.rule("PUT", "b", s3_proxy.refusal(400, "ExpiredToken"), ALWAYS)
    with pytest.raises(StoreError, match=r"the credentials have expired .*renew them: looked in"):
        store.put("b", b"")
    assert 2 == rule.met


def test_revoked_keys_are_replaced_by_those_that_the_file_holds_by_then(
    behind, proxy, pauses, monkeypatch, tmp_path
):
    """Both refused while they are wrong, and then good again without a new launch."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    form = "[default]\naws_access_key_id = {}\naws_secret_access_key = {}\n"
    file = tmp_path / "credentials"
    file.write_text(form.format("AKFIRST", "canary-secret-one"))
    store = behind()
    store.put("a", b"old")
    rule = proxy.rule("*", "", s3_proxy.refused_key("AKFIRST"), ALWAYS)
    with pytest.raises(StoreError, match="used those of 'shared-credentials-file'"):
        store.put("a", b"new")
    assert 1 == rule.met
    file.write_text(form.format("AKSECOND", "canary-secret-two"))
    store.put("a", b"new")

    assert b"new" == store.get("a")
    assert [] == pauses


def test_many_threads_meet_expired_credentials_and_all_go_on(behind, proxy):
    store = behind()
    all_asked = threading.Barrier(8)  # else who is fast would meet what was meant for the others
    expired = s3_proxy.refusal(400, "ExpiredToken")

    def fault(handler):
        all_asked.wait(120)
        expired(handler)

    rule = proxy.rule("PUT", "a", fault, times=8)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: store.put(f"a{n}", b""), range(8)))

    assert 8 == rule.met
    assert 8 == len(store.keys(""))
