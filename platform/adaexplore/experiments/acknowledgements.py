"""Waiting for a store's acknowledgements, many at once.

A store acknowledges appends from a thread of its own, often dozens together. To wake the event loop
for each would cost more than the append, so the first wakes it and the others come along, one in each
round of the loop: the request that an episode makes next is on its way before the next episode works.
"""

import asyncio
from collections import deque
from concurrent.futures import Future
from weakref import WeakKeyDictionary


class _Bell:
    """Wakes one event loop, and in it one waiter after the other."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._done: deque[asyncio.Future[None]] = deque()
        self._rung = False

    def ring(self, waiter: "asyncio.Future[None]") -> None:
        """Let a waiter go on; called from any thread."""
        self._done.append(waiter)
        if not self._rung:
            self._rung = True
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._rung = False  # first: what is done from now on rings again
        while self._done:
            waiter = self._done.popleft()
            if not waiter.done():
                waiter.set_result(None)
                break
        if self._done and not self._rung:
            self._rung = True
            self._loop.call_soon(self._wake)


_BELLS: "WeakKeyDictionary[asyncio.AbstractEventLoop, _Bell]" = WeakKeyDictionary()


async def of(done: "Future[None]") -> None:
    """Wait until an append is durable; raises what its future holds."""
    if not done.done():
        loop = asyncio.get_running_loop()
        bell = _BELLS.get(loop) or _BELLS.setdefault(loop, _Bell(loop))
        waiter: asyncio.Future[None] = loop.create_future()
        done.add_done_callback(lambda _: bell.ring(waiter))
        await waiter
    done.result()
