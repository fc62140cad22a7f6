"""Reading ahead: many objects of a store, a few of them asked for before they are needed.

A bucket answers within milliseconds and a sweep has tens of thousands of objects: one after another they
take minutes, by several threads seconds. A disk has them at once, and there threads would only be in each
other's way; so the first object tells which of the two it is. No more is in memory than what is under way.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")
READERS: Final = 16
NEAR_S: Final = 0.003
"""A store that answers faster than this is asked for one object after another."""


def ahead(read: Callable[[T], R], wanted: Sequence[T], *, near_s: float = NEAR_S) -> Iterator[R]:
    """What `read` gives for each, in their order.

    Args:
        read: May be called in threads; what it raises is raised here, at its turn.
        wanted: What is to be read.
        near_s: Seconds; if the first takes less, no threads are used.
    """
    if not wanted:
        return
    start = time.perf_counter()
    first = read(wanted[0])
    near = time.perf_counter() - start < near_s
    yield first
    yield from map(read, wanted[1:]) if near else _by_threads(read, wanted[1:])


def _by_threads(read: Callable[[T], R], wanted: Sequence[T]) -> Iterator[R]:
    with ThreadPoolExecutor(READERS, thread_name_prefix="reading") as pool:
        waiting = deque(pool.submit(read, one) for one in wanted[: 2 * READERS])
        for one in wanted[2 * READERS :]:
            yield waiting.popleft().result()
            waiting.append(pool.submit(read, one))
        while waiting:
            yield waiting.popleft().result()
