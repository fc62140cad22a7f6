"""Launches: the notes that every launch of a sweep leaves, named by number and writer.

Several launchers may run one sweep at once: they share its episodes. Only where a cap is set there
is one at a time, since each would spend all that is left of it.
"""

import json
from typing import Any

from adaexplore.errors import StoreError
from adaexplore.experiments.stores import Store


def note(store: Store, sweep: str, document: dict[str, Any], *, capped: bool) -> None:
    """Note that this store object's launch has begun.

    Raises:
        StoreError: Another launch of the sweep is under way, and one of the two has a cap.
    """
    before = names(store, sweep)
    key = f"{_prefix(sweep)}{len(before) + 1:04d}-{store.writer}.json"
    text = json.dumps({"writer": store.writer, "capped": capped, **document}, indent=2)
    if (appender := store.create(key, text.encode())) is not None:
        appender.close()
    for other in running(store, sweep):
        if capped or read(store, sweep, other)["capped"]:
            raise StoreError(
                f"{store.locate(key)}: expected to be the only launch of a sweep with a cap, got "
                f"launch {other} under way: wait for it or stop it, then launch again"
            )


def name(store: Store, sweep: str) -> str:
    """Name of this store object's own launch of a sweep: number and writer."""
    return next(n for n in reversed(names(store, sweep)) if n.endswith(store.writer))


def names(store: Store, sweep: str) -> list[str]:
    """Names of all launches of a sweep, in their order."""
    prefix = _prefix(sweep)
    return [key.removeprefix(prefix).removesuffix(".json") for key in store.keys(prefix)]


def running(store: Store, sweep: str) -> list[str]:
    """Names of the launches by others that are under way."""
    writers = [(name, name.rpartition("-")[2]) for name in names(store, sweep)]
    return [n for n, writer in writers if writer != store.writer and store.alive(writer)]


def read(store: Store, sweep: str, name: str) -> dict[str, Any]:
    """The note of a launch; StoreError if it is damaged."""
    key = f"{_prefix(sweep)}{name}.json"
    try:
        document: dict[str, Any] = json.loads(store.get(key) or b"")
    except ValueError:
        raise StoreError(f"{store.locate(key)}: not the note of a launch; remove it") from None
    return {"capped": False, **document}


def _prefix(sweep: str) -> str:
    return f"sweeps/{sweep}/launches/"
