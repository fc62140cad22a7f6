"""Endings: how a command ends when the system, and not the benchmark, stops it.

Batch systems end a job with SIGTERM, disks fill up, and readers of a pipe go away. None of these loses
anything, and none is worth a traceback.
"""

import atexit
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from adaexplore.errors import AdaExploreError


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM counts as Ctrl-C, whatever that means at the moment; only the main thread can say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(*_: object) -> None:
    """Do what Ctrl-C does, also where that is ignored, as in the background of a script."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


def interrupted(code: int) -> int:
    """The exit code, after the last words; a further Ctrl-C or SIGTERM ends at once, and with that code.

    Hasty people and batch systems send a second one, which would otherwise meet Python at its end and
    decide how the process ended.
    """
    here = threading.current_thread() is threading.main_thread()
    for number in (signal.SIGINT, signal.SIGTERM) if here else ():
        signal.signal(number, signal.SIG_IGN)
    print("interrupted: nothing is lost; run the same command again to go on", file=sys.stderr)
    for number in (signal.SIGINT, signal.SIGTERM) if here else ():
        signal.signal(number, lambda *_: os._exit(code))
        atexit.register(signal.signal, number, signal.SIG_IGN)  # handlers do not live as long
    return code


def unwritten(error: OSError | SystemExit) -> int:
    """Exit code after a fault of the file system, standard output included, that nobody explained.

    A closed pipe is quiet (the terminal library ends with SystemExit there); anything else is one
    line on stderr.
    """
    try:
        sys.stdout.flush()
    except OSError:  # what is left in the buffer would be tried again, and told, at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
        where = error.filename or "standard output"
        print(f"error: {where}: {error.strerror or error}; mend it and run again", file=sys.stderr)
    return AdaExploreError.exit_code
