"""The contract of every store; a new store joins the parameters."""

import itertools
import multiprocessing
import os
import random
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from growers import append_for_ever, line, opened

NUMBERS = itertools.count()


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.stack)])
def recipe(request, tmp_path):
    if request.param == "folder":
        return "folder", tmp_path / "root"
    return "s3", request.getfixturevalue("s3_config")()


@pytest.fixture
def store(recipe):
    store = opened(recipe)
    yield store
    store.close()


@pytest.fixture
def other(recipe):
    """Another writer."""
    store = opened(recipe)
    yield store
    store.close()


def grown(store, key, *words):
    appender = store.create(key, words[0])
    for word in words[1:]:
        appender.append(word).result()
    return appender


# -- whole objects -------------------------------------------------------------------------------


def test_an_object_reads_back_and_is_replaced_whole(store, other):
    assert store.get("a/b") is None
    store.put("a/b", b"one")
    store.put("a/b", b"two")

    assert b"two" == store.get("a/b")
    assert b"two" == other.get("a/b")


def test_several_objects_are_written_in_their_order_and_replaced(store, other):
    attempt = f"cells/c/e/attempt-0001-{store.writer}"
    store.put_all({f"{attempt}/usage.json": b"spent", f"{attempt}/result.json": b"done"}).result()
    store.put_all({"a": b"one", f"{attempt}/usage.json": b"more", "b": b"two"}).result()
    store.put_all({}).result()

    kept = {key: other.get(key) for key in other.keys("cells/c/")}
    assert {f"{attempt}/usage.json": b"more", f"{attempt}/result.json": b"done"} == kept
    assert (b"one", b"two") == (other.get("a"), other.get("b"))


def test_keys_are_listed_below_a_prefix_in_order(store):
    for key in ("a/c/2", "a/c/1", "a/b", "a/b.x", "a/b-1/x", "ab/1"):
        store.put(key, b"")

    assert ["a/b", "a/b-1/x", "a/b.x", "a/c/1", "a/c/2"] == list(store.keys("a/"))
    assert [] == list(store.keys("nothing/"))


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=5000))
def test_any_bytes_read_back(data, store):
    store.put("a", data)

    assert data == store.get("a")


def test_an_object_of_many_megabytes_reads_back(store):
    data = random.Random(1).randbytes(33 * 2**20 + 7)
    store.put("tables/large", data)

    assert data == store.get("tables/large")
    assert ["tables/large"] == list(store.keys("tables/"))


def test_readers_of_an_object_that_is_replaced_see_old_bytes_or_new(store):
    words = [bytes([n]) * 20_000 for n in range(20)]
    store.put("a", words[0])
    with ThreadPoolExecutor(1) as thread:
        written = thread.submit(lambda: [store.put("a", word) for word in words])
        while not written.done():
            assert store.get("a") in words
        written.result()


# -- growing objects -----------------------------------------------------------------------------


def test_a_growing_object_has_one_first_writer(store, other):
    first = store.create("j", b"head\n")
    second = other.create("j", b"other\n")
    first.append(b"one\n")
    first.append(b"two\n").result()
    first.close()

    assert second is None
    assert b"head\none\ntwo\n" == store.get("j")


def test_the_key_of_a_closed_object_is_taken_too(store, other):
    grown(store, "a/j", b"head\n", b"one\n").close()

    assert other.create("a/j", b"other\n") is None
    assert b"head\none\n" == other.get("a/j")
    assert ["a/j"] == list(store.keys("a/"))


def test_of_sixteen_that_start_at_once_one_wins(store):
    gate = threading.Barrier(16)

    def begin(number):
        gate.wait()
        return number if store.create("j", b"%d\n" % number) else None

    with ThreadPoolExecutor(16) as threads:
        won = [number for number in threads.map(begin, range(16)) if number is not None]

    assert 1 == len(won)
    assert b"%d\n" % won[0] == store.get("j")


def test_a_growing_object_is_readable_while_it_grows(store, other):
    appender = grown(store, "a/j", b"head\n", b"one\n")

    assert b"head\none\n" == other.get("a/j")
    appender.cut()
    appender.cut()
    assert b"head\none\n" == other.get("a/j")
    appender.append(b"two\n").result()
    assert b"head\none\ntwo\n" == other.get("a/j")
    assert ["a/j"] == list(other.keys("a/"))
    appender.close()
    assert b"head\none\ntwo\n" == other.get("a/j")
    assert ["a/j"] == list(other.keys("a/"))


WORDS = st.lists(st.one_of(st.none(), st.binary(max_size=300)), max_size=8)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=st.binary(min_size=1, max_size=20), words=WORDS)
def test_whatever_is_appended_and_cut_reads_back_in_order(first, words, store):
    """None is a cut. Without waiting in between, and after closing."""
    key = f"j{next(NUMBERS)}"
    appender = store.create(key, first)
    waiting = []
    for word in words:
        if word is None:
            appender.cut()
        else:
            waiting.append(appender.append(word))
    for done in waiting:
        done.result()

    expected = first + b"".join(word for word in words if word is not None)
    assert expected == store.get(key)
    appender.close()
    assert expected == store.get(key)


def test_a_reader_sees_a_beginning_that_holds_all_that_was_acknowledged(store, other):
    """At any moment: while parts grow, are cut, are put together and are deleted."""
    lines = [b"%d\n" % n for n in range(40)]
    whole = b"".join(lines)
    acknowledged = [len(lines[0])]
    for _ in range(2):
        key = f"j{next(NUMBERS)}"
        acknowledged[0] = len(lines[0])
        appender = store.create(key, lines[0])
        growing = threading.Thread(target=grow, args=(appender, lines[1:], acknowledged))
        growing.start()
        while growing.is_alive():
            before = acknowledged[0]
            seen = other.get(key)
            assert whole.startswith(seen)
            assert len(seen) >= before
        growing.join()

        assert whole == other.get(key)


def grow(appender, lines, acknowledged):
    for number, word in enumerate(lines):
        appender.append(word).result()
        acknowledged[0] += len(word)
        if number % 3 == 0:
            appender.cut()
    appender.close()


# -- writers -------------------------------------------------------------------------------------


def test_a_writer_has_a_fresh_name(store, other):
    assert re.fullmatch(r"[0-9a-f]{12}", store.writer)
    assert store.writer != other.writer


def test_a_writer_lives_from_its_first_object_until_it_closes(store, other):
    assert not other.alive(store.writer)
    assert not other.alive("0" * 12)
    grown(store, "j", b"head\n").close()
    assert other.alive(store.writer)
    assert store.alive(store.writer)
    store.close()
    assert not other.alive(store.writer)
    store.close()


def test_what_was_acknowledged_survives_a_kill_and_the_killed_is_seen_dead(recipe, store):
    """Two processes append until they are killed, at moments of their own."""
    context = multiprocessing.get_context("spawn")
    running = []
    for seed in range(2):
        told, tell = context.Pipe(duplex=False)
        child = context.Process(
            target=append_for_ever, args=(recipe, f"j{seed}", tell), daemon=True
        )
        child.start()
        tell.close()
        running.append((seed, told, child))
    for seed, told, child in running:
        writer = told.recv()
        until = random.Random(seed).randint(3, 25)
        while told.recv() < until:
            pass
        alive = store.alive(writer)
        child.kill()
        child.join()
        acknowledged = last(told, until)
        seen = store.get(f"j{seed}").splitlines(keepends=True)
        print(f"seed {seed}: killed at {until}, acknowledged {acknowledged}, found {len(seen)}")

        assert alive
        assert not store.alive(writer)
        assert acknowledged <= len(seen) <= acknowledged + 2
        assert [line(n) for n in range(len(seen))] == seen


def last(told, known):
    """The last number that was told before the pipe broke."""
    try:
        while True:
            known = told.recv()
    except EOFError:
        return known


# -- people --------------------------------------------------------------------------------------


def test_a_person_is_told_where_an_object_is(recipe, store):
    kind, place = recipe
    where = store.locate("tables/a.csv")

    if kind == "folder":
        assert os.fspath(place / "tables/a.csv") == where
    else:
        assert f"s3://adaexplore/{place.prefix}/tables/a.csv" == where
