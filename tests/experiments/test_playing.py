"""An episode killed at any reply goes on where it was, asks nothing twice, and ends the same."""

import asyncio
import json
import shutil

import pytest

from adaexplore.backends.folder import FolderStore
from adaexplore.benchmark.game.agents.oracle import Told
from adaexplore.benchmark.game.protocol import Reply, Request
from adaexplore.errors import StoreError
from adaexplore.experiments import attempts, grids, journals, sweeps
from adaexplore.experiments.playing import play_job
from adaexplore.models.endpoints import Answer, ModelError
from adaexplore.models.profiles import ScriptedProfile
from adaexplore.models.scripted import OracleEndpoint


class Killed(BaseException):
    """The process dies here."""


class Counting:
    """An endpoint that counts its calls and can die, or fail, at one of them."""

    def __init__(self, inner, *, stop_at=None, error=Killed):
        self.inner, self.stop_at, self.error, self.calls = inner, stop_at, error, 0

    async def ask(self, request):
        if self.calls == self.stop_at:
            raise self.error("no more")
        self.calls += 1
        return await self.inner.ask(request)


def make_job(world, setting):
    profile = ScriptedProfile(kind="scripted", agent="oracle", version=1)
    cell = grids.Cell(
        model="oracle", profile=profile, setting=setting, seed=0, semantic={}, cell_id="c" * 32
    )
    return sweeps.Job(cell=cell, world=world)


def play(job, store, protocol, **options):
    endpoint = Counting(
        OracleEndpoint(Told(world=job.world, drifts=job.cell.setting.drifts)), **options
    )
    outcome = asyncio.run(play_job(job, endpoint, store, protocol, on_call=lambda: None))
    return outcome, endpoint


@pytest.fixture
def job(world, settings):
    return make_job(world, settings["default"])


def test_killed_at_every_reply_the_record_is_the_same(job, protocol, tmp_path):
    whole, endpoint = play(job, FolderStore(tmp_path / "whole"), protocol)
    for stop in range(endpoint.calls):
        store = FolderStore(tmp_path / str(stop))
        with pytest.raises(Killed):
            play(job, store, protocol, stop_at=stop)
        resumed, rest = play(job, store, protocol)

        assert whole.record == resumed.record
        assert stop == resumed.replayed
        assert endpoint.calls == stop + rest.calls


def test_killed_at_every_reply_in_one_store(job, protocol, tmp_path):
    """Many deaths in a row: every attempt carries on the longest journal."""
    whole, endpoint = play(job, FolderStore(tmp_path / "whole"), protocol)
    store = FolderStore(tmp_path / "one")
    for _ in range(endpoint.calls - 1):
        with pytest.raises(Killed):
            play(job, store, protocol, stop_at=1)
    last, rest = play(job, store, protocol)

    assert whole.record == last.record
    assert 1 == rest.calls


def test_a_torn_line_is_asked_again_and_only_that_one(job, protocol, tmp_path):
    whole, endpoint = play(job, FolderStore(tmp_path / "whole"), protocol)
    store = FolderStore(tmp_path / "torn")
    with pytest.raises(Killed):
        play(job, store, protocol, stop_at=10)
    journal = next(tmp_path.glob("torn/cells/*/*/*/journal.jsonl"))
    journal.write_bytes(journal.read_bytes()[:-7])
    resumed, rest = play(job, store, protocol)

    assert whole.record == resumed.record
    assert resumed.torn
    assert endpoint.calls - 9 == rest.calls


def test_a_damaged_journal_is_refused_and_left_alone(job, protocol, tmp_path):
    store = FolderStore(tmp_path)
    with pytest.raises(Killed):
        play(job, store, protocol, stop_at=10)
    journal = next(tmp_path.glob("cells/*/*/*/journal.jsonl"))
    damaged = journal.read_bytes().replace(b"request_next_batch", b"request_last_batch", 1)
    journal.write_bytes(damaged)
    with pytest.raises(StoreError, match=r"journal.jsonl line 2: damaged") as caught:
        play(job, store, protocol)

    assert "\n" not in str(caught.value)
    assert damaged == journal.read_bytes()
    assert 1 == len(list(tmp_path.glob("cells/*/*/*")))


def test_a_journal_of_another_episode_is_refused(job, worlds, settings, protocol, tmp_path):
    store = FolderStore(tmp_path)
    with pytest.raises(Killed):
        play(job, store, protocol, stop_at=3)
    other = make_job(worlds[1], settings["default"])
    journal = next(tmp_path.glob("cells/*/*/*/journal.jsonl"))
    foreign = tmp_path / other.key.attempt(1, store.writer) / "journal.jsonl"
    foreign.parent.mkdir(parents=True)
    foreign.write_bytes(journal.read_bytes())
    with pytest.raises(StoreError, match="episode_id"):
        play(other, store, protocol)


def test_a_failed_model_is_an_attempt_and_the_next_launch_goes_on(job, protocol, tmp_path):
    store = FolderStore(tmp_path)
    failed, _ = play(job, store, protocol, stop_at=5, error=ModelError)
    whole, _ = play(job, store, protocol)

    assert (None, "no more") == (failed.record, failed.failure)
    assert 5 == whole.replayed
    assert whole.record.status == "completed"
    assert {"reason": "no more", "kind": "model", "attempts": []} == json.loads(
        next(tmp_path.glob("cells/*/*/*/failure.json")).read_text()
    )


def test_the_lowest_complete_attempt_counts(job, protocol, tmp_path):
    """Two launchers at once: both may finish, one result is read."""
    store = FolderStore(tmp_path)
    play(job, store, protocol)
    mine = tmp_path / job.key.attempt(1, store.writer)
    for name in ("attempt-0001-ffffffffffff", "attempt-0002-000000000000"):
        shutil.copytree(mine, mine.with_name(name))
    found = attempts.finished(store, job.cell.cell_id)

    assert {job.key.episode_id: f"{job.key.attempt(1, store.writer)}result.json"} == found


def test_what_another_launcher_finished_is_read_and_not_played(job, protocol, tmp_path):
    first, _ = play(job, FolderStore(tmp_path), protocol)
    second, endpoint = play(job, FolderStore(tmp_path), protocol)

    assert first.record == second.record
    assert (0, 0) == (second.calls, endpoint.calls)


def test_what_a_living_writer_plays_is_left_alone_until_it_is_gone(job, protocol, tmp_path):
    whole, endpoint = play(job, FolderStore(tmp_path / "whole"), protocol)
    other, mine = FolderStore(tmp_path / "one"), FolderStore(tmp_path / "one")
    with pytest.raises(Killed):
        play(job, other, protocol, stop_at=7)
    meanwhile, none = play(job, mine, protocol)
    other.close()
    after, rest = play(job, mine, protocol)

    assert meanwhile.elsewhere
    assert 0 == none.calls
    assert whole.record == after.record
    assert endpoint.calls == 7 + rest.calls


def test_two_that_begin_at_the_same_moment_both_step_back(job, protocol, tmp_path, monkeypatch):
    """The other's attempt appears between the look and the claim."""
    mine, other = FolderStore(tmp_path), FolderStore(tmp_path)
    create = mine.create

    def create_after_the_other(key, data):
        other.create(f"{job.key.attempt(1, other.writer)}journal.jsonl", data).close()
        return create(key, data)

    monkeypatch.setattr(mine, "create", create_after_the_other)
    outcome, endpoint = play(job, mine, protocol)

    assert outcome.elsewhere
    assert 0 == endpoint.calls
    assert '"kind":"yielded"' in next(tmp_path.glob("cells/*/*/*/failure.json")).read_text()


class Overflowing(Counting):
    """The context is too small at one call."""

    async def ask(self, request):
        answer = await self.inner.ask(request)
        self.calls += 1
        if self.calls - 1 == self.stop_at:
            return Answer(reply=Reply(text="", finish_reason="overflow"), seconds=0.0)
        return answer


def test_an_unscored_result_is_played_again_only_when_it_is_superseded(job, protocol, tmp_path):
    """With every reply before the overflow kept."""
    whole, endpoint = play(job, FolderStore(tmp_path / "whole"), protocol)
    store = FolderStore(tmp_path / "one")
    told = Told(world=job.world, drifts=True)
    short = asyncio.run(
        play_job(
            job, Overflowing(OracleEndpoint(told), stop_at=9), store, protocol, on_call=lambda: None
        )
    )
    again, none = play(job, store, protocol)
    attempts.supersede(store, attempts.finished(store, job.cell.cell_id)[job.key.episode_id])
    redone, rest = play(job, store, protocol)

    assert ("overflow", 0) == (again.record.status, none.calls)
    assert short.record == again.record
    assert whole.record == redone.record
    assert endpoint.calls == 9 + rest.calls


def test_a_result_reads_back_and_its_damage_is_noticed(job, protocol, tmp_path):
    store = FolderStore(tmp_path)
    outcome, _ = play(job, store, protocol)
    key = f"{job.key.attempt(1, store.writer)}result.json"

    assert outcome.record == attempts.read_result(store, key)

    path = tmp_path / key
    path.write_bytes(path.read_bytes().replace(b'"action":2', b'"action":1', 1))
    with pytest.raises(StoreError, match="damaged result"):
        attempts.read_result(store, key)


def test_a_result_of_something_else_is_refused(job, worlds, settings, protocol, tmp_path):
    """Moved from another episode, from another cell, or made of another hidden side."""
    store = FolderStore(tmp_path)
    play(job, store, protocol)
    key = f"{job.key.attempt(1, store.writer)}result.json"
    data = store.get(key)
    other = make_job(worlds[1], settings["default"]).key
    moved = {
        "episode_id": f"{other.attempt(1, store.writer)}result.json",
        "cell_id": key.replace(job.key.cell_id, "d" * 32),
    }
    for wrong, place in moved.items():
        store.put(place, data)
        with pytest.raises(StoreError, match=rf"a result of something else \({wrong} differ\)"):
            attempts.read_result(store, place)

    assert attempts.read_result(store, key, hidden_digest=job.key.hidden_digest)
    with pytest.raises(StoreError, match="hidden_digest differ"):
        attempts.read_result(store, key, hidden_digest="0" * 64)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (b"[" * 200_000 + b"]" * 200_000, "damaged result"),
        (b"{", "damaged result"),
        (b"[]", "expected an episode's record"),
        (b'{"cases":3}', "expected an episode's record"),
    ],
)
def test_a_result_that_checks_and_is_no_record_is_one_line(record, message, job, tmp_path):
    store = FolderStore(tmp_path)
    key = f"{job.key.attempt(1, store.writer)}result.json"
    body = b'{"result":1,"record":' + record + b"}"
    store.put(key, b'%b,"check":"%b"}\n' % (body[:-1], journals._check(body)))
    with pytest.raises(StoreError, match=message) as caught:
        attempts.read_result(store, key)

    assert "\n" not in str(caught.value)


SOUND = {
    "sweep_version": sweeps.SWEEP_VERSION, "name": "s",
    "episodes": {"split": "test", "limit": None, "episode_ids": ["e-1"]},
    "cells": {"m/default/0": {"cell_id": "c" * 32, "semantic": {}}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sweep_version": 1, "cells": None}, "expected sweep_version 2, got 1"),
        ({"cells": ["m/default/0"]}, "not a sweep document"),
        ({"cells": {"m/default/0": "c"}}, "not a sweep document"),
        ({"cells": {"m/default/0": {"cell_id": "c"}}}, "not a sweep document"),
        ({"cells": {"m/default/0": {"cell_id": "c", "semantic": []}}}, "not a sweep document"),
        ({"episodes": {"split": "test"}}, "not a sweep document"),
        ({"episodes": {**SOUND["episodes"], "limit": "3"}}, "not a sweep document"),
    ],
)
def test_a_sweep_document_of_another_shape_is_refused(changed, message, tmp_path):
    store = FolderStore(tmp_path)
    store.put(sweeps.document_key("s"), json.dumps(SOUND).encode())
    assert SOUND == sweeps.read(store, "s")

    store.put(sweeps.document_key("s"), json.dumps({**SOUND, **changed}).encode())
    with pytest.raises(StoreError, match=message) as caught:
        sweeps.read(store, "s")
    assert "\n" not in str(caught.value)


def test_an_oracle_that_raises_is_a_failed_model(world):
    endpoint = OracleEndpoint(Told(world=world, drifts=True))
    with pytest.raises(ModelError, match="agent oracle raised "):
        asyncio.run(endpoint.ask(Request(messages=())))


def test_no_clock_and_no_host_in_a_result(job, protocol, tmp_path):
    """The same bytes from two runs."""
    for name in ("one", "two"):
        play(job, FolderStore(tmp_path / name), protocol)
    one, two = (
        next((tmp_path / name).glob("cells/*/*/*/result.json")).read_bytes()
        for name in ("one", "two")
    )

    assert one == two
