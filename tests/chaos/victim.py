"""The process that is killed: one launch of a small grid in a folder, perhaps with a fuse."""

import os
import sys

from tests.chaos.dying import DyingStore, Fuse

from adaexplore import assemble, launch

GRID = [
    "+grid=main", "models=[random,constant]", "settings=[default,stationary]", "dataset=first",
    "dataset.limit=2", "tracking=none", "report=false", "backend.processes=0",
]  # fmt: skip


def play(folder, fuse):
    """Launch, in a child process, and exit with its code."""
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    whole = assemble.store
    if fuse is not None:
        assemble.store = lambda config: DyingStore(whole(config), Fuse(*fuse))
    sys.exit(launch.guarded(lambda: launch.launch(GRID)))
