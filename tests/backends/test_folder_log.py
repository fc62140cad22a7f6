"""What the folder store acknowledged is there after any crash, of the process or of the machine."""

import fcntl
import multiprocessing
import os
import random
import shutil
import sys

import pytest

from adaexplore.backends.folder import FolderStore, log
from adaexplore.errors import StoreError


def lines(name, count):
    return [b"%s %d %s\n" % (name.encode(), n, b"x" * (n % 7)) for n in range(count)]


def grow(store, names, count):
    """Several journals that grow in turns; the appenders are left open, as a crash leaves them."""
    appenders = {name: store.create(f"j/{name}", b"head\n") for name in names}
    futures = []
    for n in range(count):
        for name, appender in appenders.items():
            futures.append(appender.append(lines(name, count)[n]))
    for future in futures:
        future.result()
    return appenders


@pytest.mark.parametrize("seed", range(20))
def test_after_the_machine_died_every_acknowledged_line_is_there(seed, tmp_path):
    """Unsynced files lose their ends, or keep their length and lose what was in it."""
    rng = random.Random(seed)
    live = tmp_path / "live"
    grow(FolderStore(live), "abc", 12)
    dead = tmp_path / "dead"
    shutil.copytree(live, dead)
    for name in "abc":
        path = dead / "j" / name
        data = path.read_bytes()
        kept = rng.randint(len(b"head\n"), len(data))
        path.write_bytes(data[:kept] + (b"\0" * (len(data) - kept) if rng.random() < 0.5 else b""))
    store = FolderStore(dead)

    for name in "abc":
        assert b"head\n" + b"".join(lines(name, 12)) == store.get(f"j/{name}")
    assert [] == list((dead / "writers").iterdir())


@pytest.mark.parametrize("behind", [b"", bytes(5000)])
def test_a_log_that_was_torn_gives_what_was_acknowledged_and_no_more(behind, tmp_path):
    """At any byte: its end is missing, or still the zeros that were written ahead."""
    live, dead = tmp_path / "live", tmp_path / "dead"
    store = FolderStore(live)
    grow(store, "a", 3)
    written = (live / "writers" / store.writer).read_bytes().rstrip(b"\0")
    for cut in range(len(written)):
        shutil.copytree(live, dead)
        (dead / "writers" / store.writer).write_bytes(written[:cut] + behind)
        (dead / "j" / "a").write_bytes(b"head\n")
        data = FolderStore(dead).get("j/a")
        shutil.rmtree(dead)

        whole = b"head\n" + b"".join(lines("a", 3))
        assert whole.startswith(data)
        assert data.endswith(b"\n")


def test_a_journal_that_is_moved_away_stays_away(tmp_path):
    """By a person, once the store has been opened again; or while its writer goes on."""
    live, dead = tmp_path / "live", tmp_path / "dead"
    store = FolderStore(live)
    grow(store, "ab", 2)
    shutil.copytree(live, dead)
    FolderStore(dead)
    for root in (live, dead):
        (root / "j" / "a").unlink()
    store.close()

    assert ["j/b"] == list(FolderStore(dead).keys("j/"))
    assert ["j/b"] == list(FolderStore(live).keys("j/"))
    assert [] == list((live / "writers").iterdir())


def test_after_the_machine_died_names_and_ends_of_attempts_are_there(tmp_path):
    """Files that no sync had named, and files of no bytes, as a rename without a sync leaves them."""
    live, dead = tmp_path / "live", tmp_path / "dead"
    store = FolderStore(live)
    lost, empty = (f"cells/c/{name}/attempt-0001-{store.writer}" for name in "ab")
    for key in (lost, empty):
        store.create(f"{key}/journal.jsonl", b"head\n").append(b"line\n").result()
        store.put(f"{key}/result.json", b"the result")
    shutil.copytree(live, dead)
    shutil.rmtree(dead / "cells/c/a")
    for name in ("journal.jsonl", "result.json"):
        (dead / empty / name).write_bytes(b"")
    store = FolderStore(dead)

    for key in (lost, empty):
        assert b"head\nline\n" == store.get(f"{key}/journal.jsonl")
        assert b"the result" == store.get(f"{key}/result.json")


def test_what_others_may_write_too_is_never_written_again(tmp_path):
    """A table that a living launcher wrote is not undone when the log of a dead one is read."""
    live, dead = tmp_path / "live", tmp_path / "dead"
    store = FolderStore(live)
    grow(store, "a", 2)
    store.put("sweeps/s/tables/runs.csv", b"old")
    FolderStore(live).put("sweeps/s/tables/runs.csv", b"new")
    shutil.copytree(live, dead)

    assert b"new" == FolderStore(dead).get("sweeps/s/tables/runs.csv")


@pytest.mark.parametrize(("limit", "most"), [("CHECKPOINT_BYTES", 200), ("CHECKPOINT_FILES", 1)])
def test_a_long_log_is_emptied_and_nothing_is_lost(limit, most, tmp_path, monkeypatch):
    monkeypatch.setattr(log, limit, most)
    live, dead = tmp_path / "live", tmp_path / "dead"
    store = FolderStore(live)
    grow(store, "ab", 40)
    shutil.copytree(live, dead)

    assert 400 > (live / "writers" / store.writer).stat().st_size
    for name in "ab":
        assert b"head\n" + b"".join(lines(name, 40)) == FolderStore(dead).get(f"j/{name}")


def test_a_writer_lives_until_it_closes_and_leaves_no_log(tmp_path):
    store, other = FolderStore(tmp_path), FolderStore(tmp_path)
    for appender in grow(store, "a", 2).values():
        appender.close()

    assert other.alive(store.writer)
    assert not other.alive(other.writer)
    store.close()
    assert not other.alive(store.writer)
    assert [] == list((tmp_path / "writers").iterdir())


def test_a_close_right_behind_an_append_loses_nothing_and_touches_no_other_file(tmp_path):
    """As when an episode is cancelled; the number of a closed file soon means another file."""
    store = FolderStore(tmp_path)
    for number in range(200):
        appender = store.create(f"j/{number}", b"head\n")
        appender.append(b"x" * 10_000 + b"\n")
        appender.close()
        store.put(f"p/{number}", b"{}")

    assert {b"{}"} == {store.get(key) for key in store.keys("p/")}
    assert {b"head\n" + b"x" * 10_000 + b"\n"} == {store.get(key) for key in store.keys("j/")}


def test_a_closed_writer_writes_nothing_more_and_says_so(tmp_path):
    """As when a launch breaks off while threads still end their episodes."""
    store = FolderStore(tmp_path)
    appender = store.create("j", b"head\n")
    store.close()
    late = appender.append(b"late\n")

    with pytest.raises(StoreError, match="closed"):
        late.result(timeout=60)
    with pytest.raises(StoreError, match="closed"):
        store.put(f"cells/c/e/attempt-0001-{store.writer}/result.json", b"{}")
    with pytest.raises(StoreError, match="closed"):
        store.create("k", b"head\n")
    assert [] == list((tmp_path / "writers").iterdir())


def test_a_killed_writer_is_seen_dead_and_its_journals_are_whole(tmp_path):
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=write_and_wait, args=(tmp_path, theirs))
    child.start()
    writer = ours.recv()
    store = FolderStore(tmp_path)
    living = store.alive(writer)
    child.kill()
    child.join()

    assert living
    assert not store.alive(writer)
    assert b"head\n" + b"".join(lines("a", 5)) == store.get("j/a")


def write_and_wait(root, pipe):
    store = FolderStore(root)
    grow(store, "a", 5)
    pipe.send(store.writer)
    pipe.recv()


def test_after_a_fault_nothing_more_is_written(tmp_path):
    """A line behind a half one would be damage in the middle: here a full disk, then space again."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=fill_up, args=(tmp_path, theirs))
    child.start()
    messages = ours.recv()
    child.join()

    assert [True, True] == ["file size limit" in message for message in messages]
    assert b"head\none\n" == FolderStore(tmp_path).get("j")[:9]
    assert b"three" not in FolderStore(tmp_path).get("j")


def fill_up(root, pipe):
    import resource
    import signal

    sys.dont_write_bytecode = True  # half of a module's might stay behind
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    store = FolderStore(root)
    appender = store.create("j", b"head\n")
    appender.append(b"one\n").result()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    messages = []
    for data, limit in ((b"two" * 5000 + b"\n", 1000), (b"three\n", soft)):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            appender.append(data).result()
        except StoreError as error:
            messages.append(str(error))
    pipe.send(messages)
    os._exit(0)


def test_all_of_several_objects_are_durable_also_if_the_last_needs_no_log(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "GATHER_S", 0.3)  # the log takes its time
    live, dead = tmp_path / "live", tmp_path / "dead"
    store = FolderStore(live)
    own = f"cells/c/e/attempt-0001-{store.writer}/usage.json"
    store.put_all({own: b"spent", "shared": b"by all"}).result()
    shutil.copytree(live, dead)
    (dead / own).unlink()  # as after the death of a machine that had not synced it

    assert b"spent" == FolderStore(dead).get(own)


def opened_before_a_lock(root, monkeypatch):
    """Let another open a store right before the next lock is taken."""
    lock = fcntl.flock

    def late(handle, how):
        monkeypatch.setattr(log.fcntl, "flock", lock)
        FolderStore(root)
        lock(handle, how)

    monkeypatch.setattr(log.fcntl, "flock", late)


def test_a_writer_that_begins_while_others_look_for_the_dead_is_not_taken_for_one(
    tmp_path, monkeypatch
):
    """They look at the worst moment, right before its log is locked."""
    opened_before_a_lock(tmp_path, monkeypatch)
    store = FolderStore(tmp_path)
    store.create("j", b"head\n").close()

    assert FolderStore(tmp_path).alive(store.writer)


def test_who_opens_the_log_of_a_dead_writer_that_another_has_just_recovered_finds_nothing_to_do(
    tmp_path, monkeypatch
):
    live, dead = tmp_path / "live", tmp_path / "dead"
    grow(FolderStore(live), "a", 3)
    shutil.copytree(live, dead)
    opened_before_a_lock(dead, monkeypatch)

    assert b"head\n" + b"".join(lines("a", 3)) == FolderStore(dead).get("j/a")
    assert [] == list((dead / "writers").iterdir())
