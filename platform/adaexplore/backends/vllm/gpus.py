"""Which server may use which GPUs: sets are leased, and who does not fit waits.

A model needs its GPUs together (tensor parallel x replicas), so a lease is all or nothing: two models
that each hold half of what they need would wait for each other for ever. Waiting models are served
in the order they came, except that one which fits goes ahead of one which does not: GPUs do not
idle, and since a sweep serves each model once, nobody is passed over without end.
"""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from adaexplore.errors import ServingError

CPU: Final = "cpu"
"""What a machine without GPUs leases: itself, to one model at a time."""
QUERY: Final = ("--query-gpu=index", "--format=csv,noheader")
QUERY_TIMEOUT_S: Final = 30.0


class Leases:
    """The GPUs of one machine, for one event loop."""

    def __init__(self, ids: Sequence[str]) -> None:
        """Lease these; with none, the machine itself."""
        self.ids = tuple(ids) or (CPU,)
        self._free = list(self.ids)
        self._queue: list[tuple[int, asyncio.Future[tuple[str, ...]]]] = []

    @property
    def cpu(self) -> bool:
        """Whether there are no GPUs."""
        return self.ids == (CPU,)

    @asynccontextmanager
    async def lease(self, size: int) -> AsyncIterator[tuple[str, ...]]:
        """So many ids, given back at the end; waits until they are free together.

        Raises:
            ServingError: There will never be so many.
        """
        if size > len(self.ids):
            have = "none" if self.cpu else f"{len(self.ids)} ({', '.join(self.ids)})"
            raise ServingError(
                f"expected {size} GPUs (hosting.tensor_parallel x hosting.replicas), this machine "
                f"offers {have}; lower them, or name more in serving.gpus"
            )
        granted = await self._ask(size)
        try:
            yield granted
        finally:
            self._give_back(granted)

    async def _ask(self, size: int) -> tuple[str, ...]:
        future: asyncio.Future[tuple[str, ...]] = asyncio.get_running_loop().create_future()
        self._queue.append((size, future))
        self._grant()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():  # granted, and cancelled before we woke
                self._give_back(future.result())
            self._queue = [entry for entry in self._queue if entry[1] is not future]
            raise

    def _give_back(self, granted: tuple[str, ...]) -> None:
        self._free = [name for name in self.ids if name in self._free or name in granted]
        self._grant()

    def _grant(self) -> None:
        waiting, self._queue = self._queue, []
        for size, future in waiting:
            if future.done():
                continue
            if size > len(self._free):
                self._queue.append((size, future))
                continue
            future.set_result(tuple(self._free[:size]))
            self._free = self._free[size:]


def installed() -> list[str]:
    """The GPUs that this process may use: those that `CUDA_VISIBLE_DEVICES` leaves, or all.

    Raises:
        ServingError: The driver's tool is there and fails.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name.strip() for name in visible.split(",") if name.strip() not in {"", "-1"}]
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    try:
        done = subprocess.run(  # noqa: S603 (a fixed command)
            [tool, *QUERY], capture_output=True, text=True, check=True, timeout=QUERY_TIMEOUT_S
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ServingError(
            f"{tool} failed ({type(error).__name__}); mend the driver, or set serving.gpus to a list "
            "of GPU ids ([] for the CPU build)"
        ) from None
    return done.stdout.split()
