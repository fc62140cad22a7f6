"""The outbox: what is still to be shown, and the threads that show it.

The queue is a convenience and the store is what counts: whatever the queue held when MLflow was away,
wiped or full of faults, and whatever other launchers played, is read from the store at the end. There is
one layer of retries, here: capped exponential backoff with full jitter, for all threads together where a
server asks for time. While the sweep plays that has no end; then it ends when nothing moves any more.
"""

import queue
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from adaexplore.backends.mlflow.claims import Claim
from adaexplore.backends.mlflow.ledger import Ledger
from adaexplore.backends.mlflow.service import ServiceError
from adaexplore.errors import StoreError
from adaexplore.experiments.contents import Content, Place
from adaexplore.experiments.projections import Projection

BASE_S: Final = 0.25
CAP_S: Final = 10.0
ASKED_CAP_S: Final = 60.0
ASIDE: Final = 8
"""So many tries, while others succeed, and a run is left for the end."""
GONE: Final = 3
STOP_S: Final = 5.0

Item = tuple[Place, Callable[[], Content]]


class Outbox:
    """Shows runs in threads of its own, from now on."""

    def __init__(
        self,
        claim: Claim,
        ledger: Callable[[], Ledger],
        stored: Callable[[], Projection],
        *,
        threads: int,
        drain_s: float,
    ) -> None:
        """Begin.

        Args:
            claim: To the sweep's projection; without it nothing is shown.
            ledger: Makes the ledger, once the claim is held.
            stored: The sweep as the store holds it at the end.
            threads: That show at once.
            drain_s: How long nothing may move at the end, in seconds.
        """
        self._claim = claim
        self._make_ledger = ledger
        self._stored = stored
        self._count = threads
        self._drain_s = drain_s
        self._queue: queue.Queue[Item | None] = queue.Queue()
        self._over = threading.Event()
        self._ending = threading.Event()
        self._opening = threading.Lock()
        self._opened = 0
        self._shown = 0
        self._waiting = 0
        self._counting = threading.Lock()
        self._moved = time.monotonic()
        self._not_before = 0.0
        self._fault: str | None = None
        self._missed: str | None = None
        self._main = threading.Thread(target=self._run, name="mlflow", daemon=True)
        self._main.start()

    # -- the sweep's side ----------------------------------------------------------------------

    def put(self, item: Item) -> None:
        """Show a run, soon."""
        with self._counting:
            self._waiting += 1
        self._queue.put(item)

    def finish(self) -> None:
        """There is nothing more to come."""
        self._move()
        self._ending.set()
        for _ in range(self._count):
            self._queue.put(None)

    def stop(self) -> None:
        """Give up, marking as killed what is under way, within seconds."""
        self._over.set()
        self.finish()
        self._main.join(STOP_S)

    def wait(self, seconds: float) -> bool:
        """Whether it is over, after at most so long."""
        self._main.join(seconds)
        return not self._main.is_alive()

    def pending(self) -> int:
        """Runs that wait."""
        return self._waiting

    def trouble(self) -> str | None:
        """Why something is not shown; None if nothing is missing."""
        return self._missed

    # -- the main thread of the outbox ---------------------------------------------------------

    def _run(self) -> None:
        try:
            if not self._claim.taken():
                self._ending.wait()  # somebody else shows the sweep; unless they have gone by then
                if self._over.is_set() or not self._claim.taken():
                    return
            self._project(self._make_ledger())
        except (StoreError, ServiceError) as error:
            self._missed = str(error)
        except Exception as error:  # noqa: BLE001 (the sweep must go on)
            self._missed = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"

    def _project(self, ledger: Ledger) -> None:
        ledger.moved = self._move
        try:
            self._show(ledger)
            if self._over.is_set():
                with suppress(ServiceError):
                    ledger.kill()
        finally:
            ledger.service.close()

    def _show(self, ledger: Ledger) -> None:
        if self._tried(ledger, lambda: self._open(ledger, self._opened)):
            self._round(ledger)
            # What others played, and what was missed: the store knows.
            self._fault = None
            for item in self._stored().runs():
                if not ledger.done(item[0]):
                    self.put(item)
            for _ in range(self._count):
                self._queue.put(None)
            self._round(ledger)
        if ledger.unsure:
            self._tried(ledger, ledger.open)  # where one was made twice, one goes
        if self._fault is not None:
            left = f"; {self._waiting} runs wait" if self._waiting else ""
            self._missed = f"{self._fault}{left}"

    def _round(self, ledger: Ledger) -> None:
        """Show everything up to the mark that ends it, in several threads."""
        threads = [
            threading.Thread(target=self._work, args=(ledger,), name=f"mlflow-{n}", daemon=True)
            for n in range(self._count)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _work(self, ledger: Ledger) -> None:
        while not self._over.is_set() and (item := self._queue.get()) is not None:
            if self._claim.held():
                self._tried(ledger, partial(_shown, ledger, item))
            with self._counting:
                self._waiting -= 1

    # -- trying --------------------------------------------------------------------------------

    def _tried(self, ledger: Ledger, act: Callable[[], None]) -> bool:
        """Whether something was done, after as many tries as it is worth."""
        tries = gone = 0
        before, opened, lost = self._shown, self._opened, False
        while not self._over.is_set():
            try:
                if lost:
                    self._open(ledger, opened)
                    opened, lost = self._opened, False
                act()
            except ServiceError as error:
                self._fault = str(error)
                tries, lost = tries + 1, lost or error.kind == "gone"
                gone += error.kind == "gone"
                aside = tries >= ASIDE and self._shown > before and not self._ending.is_set()
                if error.kind in ("refused", "exists") or gone > GONE or aside:
                    return False
                self._pause(tries, error.retry_after_s)
            except Exception as error:  # noqa: BLE001 (one run that cannot be made is no reason to stop)
                self._fault = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
                return False
            else:
                self._shown += 1
                self._move()
                return True
        return False

    def _move(self) -> None:
        self._moved = time.monotonic()

    def _open(self, ledger: Ledger, opened: int) -> None:
        """Open the ledger, unless another thread has since."""
        with self._opening:
            if self._opened == opened:
                ledger.open()
                ledger.reap()
                self._opened += 1

    def _pause(self, tries: int, asked_s: float | None) -> None:
        now = time.monotonic()
        if asked_s is not None:
            self._not_before = max(self._not_before, now + min(asked_s, ASKED_CAP_S))
        delay = random.uniform(0.0, min(CAP_S, BASE_S * 2**tries))
        until = max(now + delay, self._not_before)
        if self._ending.is_set():
            until = min(until, self._moved + self._drain_s)
        self._over.wait(max(0.0, until - now))
        if self._ending.is_set() and time.monotonic() - self._moved >= self._drain_s:
            self._over.set()


def _shown(ledger: Ledger, item: Item) -> None:
    _, make = item
    ledger.show(make())
