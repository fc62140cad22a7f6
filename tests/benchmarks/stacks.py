"""The services of `make stack`, in a folder of their own, for the groups that need them.

They need PostgreSQL (`make postgresql`). Where they do not start, the rows that need them are skipped,
loudly, with the reason.
"""

import tempfile
from contextlib import contextmanager
from pathlib import Path

from stack.services import Stack

from stack import layout


class NoStackError(Exception):
    """The services do not start."""


@contextmanager
def started(bench):
    """The stack while the block runs (NoStackError)."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        stack = Stack(Path(folder) / "stack", layout.free_ports())
        try:
            bench.say("starting PostgreSQL, SeaweedFS and MLflow")
            try:
                stack.up(say=bench.say)
            except Exception as error:
                raise NoStackError(f"the services of make stack do not start: {error}") from error
            yield stack
        finally:
            bench.say("stopping them")
            stack.down(say=bench.say)


def store_words(stack):
    """Words of configuration that keep everything in the stack's bucket."""
    return [word for word in stack.overrides if word.startswith("store")]
