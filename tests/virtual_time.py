"""An event loop whose clock jumps: waiting costs nothing, order is exact, and a hang is an error."""

import asyncio
import selectors


class _Jumping(selectors.SelectSelector):
    """Instead of waiting for a timer, sets the clock to it."""

    now_s = 0.0

    def select(self, timeout=None):
        if timeout is None:
            raise RuntimeError("a hang: every task waits, and no timer is set")
        self.now_s += max(timeout, 0.0)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop that begins at 0 s and knows no other time than its timers'."""

    def __init__(self):
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self):
        return self._jumping.now_s


def run(main):
    """Run a coroutine in virtual time; what it returns."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def clock():
    """Seconds of the running loop."""
    return asyncio.get_running_loop().time()
