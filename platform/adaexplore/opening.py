"""Opening a store to read a sweep back: where the words of a verb say, and only if it is there."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from adaexplore import assemble, configure
from adaexplore.arguments import Arguments
from adaexplore.errors import ConfigError, StoreError
from adaexplore.experiments import config, launches, stores
from adaexplore.experiments.config import Places, StoreConfig, TrackingConfig
from adaexplore.experiments.stores import Store
from adaexplore.models.profiles import Prices


@contextmanager
def opened(given: Arguments) -> Iterator[tuple[Places, Store]]:
    """(places, store) of a verb's KEY=VALUE words, closed at the end.

    Raises:
        ConfigError: A word is wrong, or the folder is not there: it is not made for reading.
        StoreError: The store cannot be used, or is of a newer version.
    """
    places = configure.places(given.keys)
    if places.store.kind == "folder" and not Path(places.runs_dir).is_dir():
        raise ConfigError(
            f"runs_dir={places.runs_dir}: expected the folder of a store, got none; "
            "launch a sweep, or say where with runs_dir=FOLDER"
        )
    with closing(assemble.store(places)) as store:
        stores.check(store)
        yield places, store


def fetched(uri: str) -> bytes:
    """What lies at a path, file://PATH or s3://BUCKET/KEY; ConfigError or StoreError if nothing does.

    An address other than AWS's, and the keys, come from the environment, as for the AWS tools.
    """
    scheme, found, rest = uri.partition("://")
    if found and scheme == "s3":
        bucket, _, key = rest.partition("/")
        with closing(assemble.store(_bucket(bucket))) as store:
            data = store.get(key)
        if data is None:
            raise ConfigError(f"{uri}: expected a frozen sweep, got no such object")
        return data
    if found and scheme != "file":
        raise ConfigError(f"{uri}: expected a path, file://PATH or s3://BUCKET/KEY")
    path = Path(unquote(rest) if found else uri)
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{path}: expected a frozen sweep, got {error.strerror}; make one with 'adaexplore freeze'"
        ) from None


def _bucket(name: str) -> Places:
    return Places(
        store=StoreConfig(kind="s3", bucket=name),
        tracking=TrackingConfig(kind="none", experiment="none"),
        runs_dir="runs",
    )


def tracked(given: Arguments, places: Places, store: Store, sweep: str) -> Places:
    """The places with the tracker that shows a sweep: the one that was given, else the last launch's."""
    if any(word.startswith("tracking") for word in given.keys):
        return places
    noted = _noted(store, sweep).get("tracking")
    if not isinstance(noted, dict):
        return places
    document = {"store": places.store, "runs_dir": places.runs_dir, "tracking": noted}
    return replace(places, tracking=config.places(document).tracking)


def prices(store: Store, sweep: str) -> dict[str, Prices]:
    """Prices by model, as the sweep's launches noted them; models that were never priced are left out."""
    found: dict[str, Prices] = {}
    for name in launches.names(store, sweep):
        for model, profile in _config(store, sweep, name).get("models", {}).items():
            if isinstance(profile, dict) and isinstance(profile.get("prices"), dict):
                found[model] = Prices(**profile["prices"])
    return found


def _noted(store: Store, sweep: str) -> dict[str, Any]:
    """The configuration of a sweep's last launch; empty if no note of it can be read."""
    names = launches.names(store, sweep)
    return _config(store, sweep, names[-1]) if names else {}


def _config(store: Store, sweep: str, launch: str) -> dict[str, Any]:
    try:
        found = launches.read(store, sweep, launch).get("config")
    except StoreError:
        return {}
    return found if isinstance(found, dict) else {}
