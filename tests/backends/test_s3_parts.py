"""Growing and large objects where things go wrong in the middle: nothing acknowledged is ever lost."""

import threading
from concurrent.futures import ThreadPoolExecutor

import boto3
import pytest

import s3_proxy
from adaexplore.backends.s3 import growing, multiparts
from adaexplore.backends.s3.store import S3Store
from adaexplore.errors import StoreError

pytestmark = pytest.mark.stack

ALWAYS = 10**9


def puts(proxy, key):
    """How many puts of a key the proxy has seen."""
    return sum(method == "PUT" and f"/{key}" in path for method, path in proxy.seen)


# -- answers that are lost or late ---------------------------------------------------------------


def test_a_put_that_arrives_after_newer_ones_takes_nothing_back(behind, proxy):
    """The client gave up on it long ago, and has written on."""
    store = behind()
    appender = store.create("j", b"head\n")
    proxy.rule("PUT", "j.parts", s3_proxy.arrives_late)
    for word in (b"one\n", b"two\n", b"three\n"):
        appender.append(word).result()
    (late,) = proxy.late

    assert 200 == late()
    assert b"head\none\ntwo\nthree\n" == store.get("j")
    appender.close()
    assert 200 == late()
    assert b"head\none\ntwo\nthree\n" == store.get("j")
    assert ["j"] == [key for key in store.keys("") if not key.startswith("writers/")]


@pytest.mark.parametrize("first", [b"head\n", b""])
def test_who_took_a_key_without_hearing_of_it_has_taken_it(first, behind, proxy):
    store = behind()
    rule = proxy.rule("PUT", "j.parts", s3_proxy.lost_answer)
    appender = store.create("j", first)
    appender.append(b"one\n").result()

    assert 1 == rule.met
    assert 1 == puts(proxy, "j.parts/00001")
    assert first + b"one\n" == store.get("j")


def test_who_hears_nothing_and_came_second_has_not(behind, proxy):
    store = behind()
    store.create("j", b"head\n")
    proxy.rule("PUT", "j.parts", s3_proxy.reset_before)

    assert store.create("j", b"other\n") is None
    assert b"head\n" == store.get("j")


def test_after_an_append_that_failed_for_good_none_is_taken(behind, proxy):
    store = behind(max_attempts=2)
    appender = store.create("j", b"head\n")
    rule = proxy.rule("PUT", "j.parts", s3_proxy.refusal(503, "SlowDown"), times=2)
    with pytest.raises(StoreError, match="SlowDown"):
        appender.append(b"one\n").result()
    with pytest.raises(StoreError, match="SlowDown"):
        appender.append(b"two\n").result()
    appender.close()

    assert 2 == rule.met
    assert b"head\n" == store.get("j")


def test_appends_that_wait_are_written_together(behind, proxy):
    store = behind()
    appender = store.create("j", b"0")
    entered, go_on = threading.Event(), threading.Event()
    proxy.rule("PUT", "j.parts", s3_proxy.held(entered, go_on))
    waiting = [appender.append(b"1")]
    assert entered.wait(60)
    waiting += [appender.append(b"%d" % n) for n in range(2, 9)]
    assert not any(done.done() for done in waiting)
    go_on.set()
    for done in waiting:
        done.result()

    assert 3 == puts(proxy, "j.parts")
    assert b"012345678" == store.get("j")


def test_a_part_grows_to_a_size_and_no_further(behind, proxy):
    """So that what is sent grows with the journal, not with its square."""
    store = behind()
    appender = store.create("j", b"")
    line = b"x" * (growing.ROLL_BYTES // 4)
    for _ in range(9):
        appender.append(line).result()

    assert 9 * line == store.get("j")
    assert 3 == len({path for method, path in proxy.seen if method == "PUT" and "j.parts" in path})


# -- readers at odd moments ----------------------------------------------------------------------


def read_while(proxy, store, path, act):
    """What a reader gets if all this happens while one of its requests is under way."""
    entered, go_on = threading.Event(), threading.Event()
    proxy.rule("GET", path, s3_proxy.held(entered, go_on))
    with ThreadPoolExecutor(1) as thread:
        seen = thread.submit(store.get, "j")
        assert entered.wait(60)
        act()
        go_on.set()
        return seen.result()


def test_a_part_that_grows_while_it_is_read_leaves_no_gap(behind, proxy):
    store = behind()
    appender = store.create("j", b"head\n")

    def act():
        appender.append(b"one\n").result()
        appender.cut()
        appender.append(b"two\n").result()

    assert b"head\none\ntwo\n" == read_while(proxy, store, "j.parts/00000", act)


@pytest.mark.parametrize("path", ["/j$", "/j.parts/00000", "/j.parts/00001"])
def test_an_object_that_is_closed_while_it_is_read_is_seen_whole(path, behind, proxy):
    store = behind()
    appender = store.create("j", b"head\n")
    appender.cut()
    appender.append(b"one\n").result()

    assert b"head\none\n" == read_while(proxy, store, path, appender.close)


@pytest.mark.parametrize("status", [500, 403])
def test_parts_that_cannot_be_deleted_do_no_harm(status, behind, proxy):
    store = behind()
    appender = store.create("a/j", b"head\n")
    appender.cut()
    appender.append(b"one\n").result()
    proxy.rule("DELETE", "j.parts", s3_proxy.refusal(status, "No"), ALWAYS)
    appender.close()

    assert b"head\none\n" == store.get("a/j")
    assert ["a/j"] == store.keys("a/")
    assert store.create("a/j", b"other\n") is None


def test_closing_while_the_service_is_away_loses_nothing(behind, proxy):
    store = behind()
    appender = store.create("j", b"head\n")
    appender.append(b"one\n").result()
    proxy.down()
    appender.close()
    proxy.up()

    assert b"head\none\n" == store.get("j")


def test_nothing_is_appended_to_what_is_closed(behind):
    store = behind()
    appender = store.create("j", b"head\n")
    appender.close()
    appender.close()
    with pytest.raises(StoreError, match="it has been closed"):
        appender.append(b"late\n").result()

    assert b"head\n" == store.get("j")


# -- services without conditional puts -----------------------------------------------------------


@pytest.mark.parametrize(("status", "code"), [(501, "NotImplemented"), (400, "InvalidArgument")])
def test_a_service_without_conditional_puts_serves_too(status, code, behind, proxy):
    store = behind()
    proxy.rule("PUT", "", s3_proxy.refused_condition(status, code), ALWAYS)
    appender = store.create("j", b"head\n")
    appender.append(b"one\n").result()

    assert store.create("j", b"other\n") is None
    assert b"head\none\n" == store.get("j")
    appender.close()
    assert store.create("j", b"other\n") is None
    assert b"head\none\n" == store.get("j")


def test_a_service_that_ignores_conditions_is_found_out(behind, proxy):
    """It says yes to a conditional put of a key that is taken; nothing is overwritten."""
    store = behind()
    rule = proxy.rule("PUT", "writers/", s3_proxy.without_condition, ALWAYS)
    store.create("j", b"head\n")

    assert store.create("j", b"other\n") is None
    assert b"head\n" == store.get("j")
    assert rule.met


# -- listings ------------------------------------------------------------------------------------


def test_more_keys_than_a_page_holds_are_all_listed(behind, proxy, s3_config):
    store, straight = behind(), S3Store(s3_config())
    expected = sorted(f"a/{n:04d}" for n in range(1003))
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda key: straight.put(key, b""), expected))
    proxy.seen.clear()

    assert expected == store.keys("a/")
    assert 2 == len(proxy.seen)


def test_a_listing_that_lags_hides_a_key_and_takes_nothing_from_a_journal(behind, proxy):
    store = behind()
    appender = store.create("a/j", b"head\n")
    appender.cut()
    appender.append(b"one\n").result()
    store.put("a/result", b"{}")
    proxy.hidden |= {"a/j.parts/00001", "a/result"}

    assert ["a/j"] == store.keys("a/")
    assert b"head\none\n" == store.get("a/j")
    assert b"{}" == store.get("a/result")
    proxy.hidden.clear()
    assert ["a/j", "a/result"] == store.keys("a/")


def test_what_others_put_below_the_prefix_is_left_alone(behind, s3_config):
    """Folder markers of other tools are no keys; anything else is shown for readers to judge."""
    store = behind()
    config = s3_config()
    client = boto3.client("s3", endpoint_url=config.endpoint, region_name="us-east-1")
    for key in ("a/", "a/b.parts/x", "a/c.parts/00000"):
        client.put_object(Bucket=config.bucket, Key=f"{config.prefix}/{key}", Body=b"theirs")

    assert ["a/b.parts/x", "a/c"] == store.keys("a/")
    assert store.get("a/c") is None
    client.close()


# -- large objects -------------------------------------------------------------------------------

LARGE = bytes(2 * multiparts.LARGE_BYTES + 5)


def test_of_a_large_object_only_the_part_that_broke_is_sent_again(behind, proxy):
    store = behind()
    proxy.rule("PUT", "partNumber=2", s3_proxy.reset_before, times=2)
    proxy.rule("PUT", "partNumber=3", s3_proxy.refusal(503, "SlowDown"))
    store.put("a", LARGE)

    sent = [path.partition("partNumber=")[2][:1] for method, path in proxy.seen if method == "PUT"]
    assert ["1", "2", "2", "2", "3", "3"] == sent
    assert LARGE == store.get("a")


def test_a_large_object_that_was_completed_without_our_hearing_of_it_is_there(behind, proxy):
    store = behind()
    proxy.rule("POST", "uploadId", s3_proxy.lost_answer)
    proxy.rule("POST", "uploadId", s3_proxy.refusal(404, "NoSuchUpload"))
    store.put("a", LARGE)

    assert LARGE == store.get("a")


def test_an_upload_that_somebody_removed_is_named(behind, proxy):
    store = behind()
    proxy.rule("POST", "uploadId", s3_proxy.refusal(404, "NoSuchUpload"))
    with pytest.raises(StoreError, match="the upload was removed by somebody; launch again"):
        store.put("a", LARGE)


def test_a_large_object_that_fails_leaves_the_old_one_and_no_parts(behind, proxy, s3_config):
    store = behind()
    store.put("a", b"old")
    proxy.rule("PUT", "partNumber=2", s3_proxy.refusal(403, "AccessDenied"))
    with pytest.raises(StoreError, match="access is denied"):
        store.put("a", LARGE)

    assert b"old" == store.get("a")
    config = s3_config()
    client = boto3.client("s3", endpoint_url=config.endpoint, region_name="us-east-1")
    uploads = client.list_multipart_uploads(Bucket=config.bucket).get("Uploads", [])
    client.close()
    assert [] == [upload for upload in uploads if upload["Key"].startswith(config.prefix)]
