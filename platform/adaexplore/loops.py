"""The event loop of a launch: uvloop, which costs a client about a sixth less per call than asyncio's own.

Each episode under way has a connection and a journal open. Many systems let a process open 1,024 files
unless it asks for more, so it asks.
"""

import asyncio
import resource
from collections.abc import Coroutine
from contextlib import suppress
from typing import Final, TypeVar

import uvloop

T = TypeVar("T")
OPEN_FILES: Final = 65_536
"""As many as this are asked for, where the system's hard limit allows it."""


def run(main: Coroutine[None, None, T]) -> T:
    """What a coroutine returns; as `asyncio.run`, Ctrl-C included."""
    allow_open_files()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def allow_open_files() -> None:
    """Raise this process's limit of open files as far as is useful and allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # not allowed here: then as before
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
