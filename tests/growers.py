"""Stores by recipe, and a process that appends to one until it is killed: light to import in a child."""

import itertools
from pathlib import Path

Recipe = tuple
"""("folder", root) or ("s3", StoreConfig)."""


def opened(recipe: Recipe):
    """A store object of one's own on the same place."""
    kind, place = recipe
    if kind == "folder":
        from adaexplore.backends.folder import FolderStore

        return FolderStore(Path(place))
    from adaexplore.backends.s3.store import S3Store

    return S3Store(place)


def line(number: int) -> bytes:
    """A line of its journal."""
    return b"%d %s\n" % (number, b"x" * (number % 50))


def append_for_ever(recipe: Recipe, key: str, tell) -> None:
    """Tell the writer, and after each acknowledged line how many there are."""
    store = opened(recipe)
    appender = store.create(key, line(0))
    tell.send(store.writer)
    for number in itertools.count(1):
        appender.append(line(number)).result()
        tell.send(number + 1)
        if number % 4 == 0:
            appender.cut()
