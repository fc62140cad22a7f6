"""Joining a cluster: our own or one that runs, looked at before the first episode.

Ray asks for patience where an address, a version or a token is wrong. So a cluster that runs is first
tried by a process with a deadline, and each of its nodes is asked what it has. Everything that Ray is
told about authentication and usage reports is told explicitly.
"""

import math
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from adaexplore.backends.ray import heads, trials
from adaexplore.experiments.placements import RayConfig

NAMESPACE: Final = "adaexplore"
"""Of all actors; their names are the launch's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What a cluster must fit."""

    folder: Path
    """Where our own Ray's token is kept."""
    guard: Path
    """File of the program under which our own Ray lives."""
    cores: int
    """Processors of this machine that may be used."""
    source: str
    """Digest of the code that runs here."""
    store: Path | None
    """Folder of the store; None if it is no folder."""


@contextmanager
def joined(config: RayConfig, site: Site) -> Iterator[None]:
    """Be the driver of a cluster while the block runs.

    Raises:
        ClusterError: It does not start or answer, does not let us in, or is not what is needed; one
            line with what to do.
    """
    if config.address is None:
        size = _size(config, site.cores)
        with (
            heads.token(site.folder) as token,
            environed(heads.environment(token)),
            heads.running(size, site.guard) as address,
            _driver(address, {}),
        ):
            yield
        return
    with environed(trials.environment(config)):
        trials.require(config)
        from adaexplore.backends.ray import nodes

        with _driver(config.address, config.runtime_env):
            nodes.require(config, source=site.source, store=site.store)
            yield


def _size(config: RayConfig, cores: int) -> heads.Size:
    workers = config.num_workers or max(1, int(cores / config.cpus))
    return heads.Size(
        cpus=math.ceil(workers * config.cpus),
        object_store_mb=config.object_store_mb,
        dashboard=config.dashboard,
    )


@contextmanager
def _driver(address: str, runtime_env: Mapping[str, Any]) -> Iterator[None]:
    import ray

    before = signal.getsignal(signal.SIGTERM)
    ray.init(
        address=address,
        namespace=NAMESPACE,
        runtime_env=dict(runtime_env) or None,
        logging_level="ERROR",
        log_to_driver=False,
    )
    _restore(before)
    try:
        yield
    finally:
        ray.shutdown()


def _restore(handler: Any) -> None:
    """SIGTERM means what it meant before Ray took it."""
    try:
        signal.signal(signal.SIGTERM, handler)
    except ValueError:
        return  # not the main thread: Ray could not take it either


@contextmanager
def environed(variables: Mapping[str, str]) -> Iterator[None]:
    """Variables that are set while the block runs; Ray reads them when it is imported."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
