"""Errands to a store: done on the spot where that is quick, by threads where it is slow.

A file on a disk of this machine is made in microseconds. A thread would ask for the interpreter after
each system call, which costs it and a busy client several times what the file does. A bucket, or a disk
that is far away, would hold up all episodes instead of one: there threads wait. Whether a disk is far
away shows when it is used.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from adaexplore.experiments.stores import Store

T = TypeVar("T")
SLOW_S: Final = 0.005
"""An errand that takes longer on the spot was one for a thread."""
FEWEST, MOST = 8, 1024
"""How many errands threads do after a slow one; twice as many each time that the next is slow again."""


class _Runner:
    """Who does the errands to one store."""

    def __init__(self, *, near: bool) -> None:
        self._near = near
        self._by_threads = 0
        self._after_slow = FEWEST

    def on_the_spot(self) -> bool:
        """Whether the next errand is done here."""
        if self._near and self._by_threads:
            self._by_threads -= 1
            return False
        return self._near

    def took(self, seconds: float) -> None:
        """Learn from an errand that was done here."""
        if seconds <= SLOW_S:
            self._after_slow = FEWEST
        else:
            self._by_threads = self._after_slow
            self._after_slow = min(2 * self._after_slow, MOST)


_RUNNERS: "WeakKeyDictionary[Store, _Runner]" = WeakKeyDictionary()


async def run(store: Store, act: Callable[..., T], *arguments: Any) -> T:
    """What an act on a store returns or raises; other tasks have their turn before it goes on."""
    runner = _RUNNERS.get(store) or _RUNNERS.setdefault(store, _Runner(near=store.near))
    if not runner.on_the_spot():
        threads = _threads(store.at_once)
        return await asyncio.get_running_loop().run_in_executor(threads, act, *arguments)
    await asyncio.sleep(0)
    start_s = time.perf_counter()
    try:
        return act(*arguments)
    finally:
        runner.took(time.perf_counter() - start_s)


@cache
def _threads(at_once: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(at_once, thread_name_prefix="store")
