"""Errands to a store are done on the spot while that is quick, and by threads where it is slow."""

import asyncio
import threading

import pytest

from adaexplore.backends.folder import FolderStore
from adaexplore.errors import StoreError
from adaexplore.experiments import errands


class FarStore(FolderStore):
    near = False


def places(store, count):
    """Where so many errands in a row were done: `here`, or `thread`."""

    async def run():
        here = threading.get_ident()
        done = [await errands.run(store, threading.get_ident) for _ in range(count)]
        return ["here" if place == here else "thread" for place in done]

    return asyncio.run(run())


def test_a_near_store_is_served_on_the_spot(tmp_path, monkeypatch):
    monkeypatch.setattr(errands, "SLOW_S", float("inf"))

    assert ["here"] * 40 == places(FolderStore(tmp_path), 40)


def test_a_far_store_is_served_by_threads(tmp_path):
    assert ["thread"] * 40 == places(FarStore(tmp_path), 40)


def test_a_slow_store_is_tried_again_more_and_more_seldom(tmp_path, monkeypatch):
    """And once it is quick, it is served on the spot, as if it had never been slow."""
    store = FolderStore(tmp_path)
    monkeypatch.setattr(errands, "SLOW_S", -1.0)
    assert ["here", *["thread"] * 8, "here", *["thread"] * 16] == places(store, 26)

    monkeypatch.setattr(errands, "SLOW_S", float("inf"))
    assert ["here"] * 10 == places(store, 10)
    monkeypatch.setattr(errands, "SLOW_S", -1.0)
    assert ["here", *["thread"] * 8, "here"] == places(store, 10)


def test_a_store_stays_slow_for_a_thousand_errands_at_most(tmp_path, monkeypatch):
    monkeypatch.setattr(errands, "SLOW_S", -1.0)
    runs = "".join("h" if place == "here" else "t" for place in places(FolderStore(tmp_path), 5000))

    assert [8, 16, 32, 64, 128, 256, 512, 1024, 1024] == [len(run) for run in runs.split("h")[1:10]]


@pytest.mark.parametrize("kind", [FolderStore, FarStore])
def test_what_an_errand_raises_is_raised(kind, tmp_path):
    def fail():
        raise StoreError("the disk is full")

    with pytest.raises(StoreError, match="the disk is full"):
        asyncio.run(errands.run(kind(tmp_path), fail))


def test_others_have_their_turn_between_errands(tmp_path):
    """Many in a row do not keep the loop from what else is ready."""
    store, turns = FolderStore(tmp_path), []

    async def other():
        for _ in range(5):
            turns.append("other")
            await asyncio.sleep(0)

    async def run():
        task = asyncio.create_task(other())
        for _ in range(5):
            await errands.run(store, lambda: turns.append("errand"))
        await task

    asyncio.run(run())
    assert ["other", "errand"] == turns[:2]
    assert turns.index("other", 1) < 4
