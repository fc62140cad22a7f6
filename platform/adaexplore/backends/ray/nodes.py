"""Whether the nodes of a cluster are what a sweep needs, and how many workers they hold."""

import time
from pathlib import Path
from typing import Any, Final

import ray
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from adaexplore.backends.ray import inspection
from adaexplore.errors import ClusterError
from adaexplore.experiments.placements import RayConfig

PAUSE_S: Final = 1.0
ANSWER_S: Final = 120.0
"""How long a node may take: it may have to make a runtime environment first."""


def workers(config: RayConfig) -> int:
    """How many workers of the configuration the cluster holds, at most as many as it asks for."""
    room = sum(int(_cpus(node) / config.cpus) for node in _alive())
    return min(room, config.num_workers or room)


def require(config: RayConfig, *, source: str, store: Path | None) -> None:
    """Refuse nodes without room, with other code, or that do not see the store (ClusterError)."""
    wanted, deadline = config.num_workers or 1, time.monotonic() + config.room_s
    while (room := workers(config)) < wanted and time.monotonic() < deadline:
        time.sleep(PAUSE_S)
    if room < wanted:
        raise ClusterError(
            f"expected room for {wanted} workers of {config.cpus:g} processors on the cluster, got "
            f"room for {room}: lower backend.ray.num_workers or backend.ray.cpus, or add nodes"
        )
    fit = [node for node in _alive() if _cpus(node) >= config.cpus]
    for node in fit:
        _require_memory(config, node)
    marker = None if store is None else _marked(store)
    try:
        for found in _inspected(fit, None if marker is None else str(marker)):
            _require_same(found, source, store)
    finally:
        if marker is not None:
            marker.unlink(missing_ok=True)


def _marked(store: Path) -> Path:
    marker = store.absolute() / f".seen-{ray.get_runtime_context().get_job_id()}"
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.write_bytes(b"")
    return marker


def _inspected(nodes: list[dict[str, Any]], marker: str | None) -> list[dict[str, Any]]:
    """What each node says of itself."""
    ray.cloudpickle.register_pickle_by_value(inspection)  # our package may be missing there
    try:
        task = ray.remote(inspection.inspect)
        asked = [
            task.options(
                num_cpus=0,
                max_retries=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
            ).remote(marker)
            for node in nodes
        ]
        found: list[dict[str, Any]] = ray.get(asked, timeout=ANSWER_S)
    except GetTimeoutError:
        raise ClusterError(
            f"expected every node to answer within {ANSWER_S:.0f} s, got silence: see 'ray status', and "
            "whether backend.ray.runtime_env can be made there"
        ) from None
    except RayError as error:
        told = next((line for line in str(error).splitlines() if line.strip()), "no reason")
        raise ClusterError(
            f"expected every node to run a task, got {type(error).__name__}: {told.strip()[:200]}; "
            "see the cluster's logs, and backend.ray.runtime_env"
        ) from None
    finally:
        ray.cloudpickle.unregister_pickle_by_value(inspection)
    return found


def _require_same(found: dict[str, Any], source: str, store: Path | None) -> None:
    host = found["host"]
    if found["missing"] is not None:
        raise ClusterError(
            f"node {host}: expected the package adaexplore, got no module {found['missing']}: install "
            "it in the workers' environment (one image for all), or send it with backend.ray.runtime_env"
        )
    if found["source"] != source:
        raise ClusterError(
            f"node {host}: expected adaexplore with source digest {source[:12]} as here, got "
            f"{found['source'][:12]}: install the same version there, or send it with "
            "backend.ray.runtime_env"
        )
    if not found["sees"]:
        raise ClusterError(
            f"node {host}: expected the store's folder {store}, which this machine writes, got another "
            "or none: use a folder that all machines mount, or store=s3"
        )


def _require_memory(config: RayConfig, node: dict[str, Any]) -> None:
    size_mb = int(node["Resources"].get("object_store_memory", 0.0)) // 2**20
    if size_mb < config.object_store_mb:
        raise ClusterError(
            f"node {node['NodeManagerHostname']}: expected an object store of {config.object_store_mb} "
            f"MB, got {size_mb} MB: give it more ('ray start --object-store-memory', /dev/shm of the "
            "container), or lower backend.ray.object_store_mb"
        )


def _alive() -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]


def _cpus(node: dict[str, Any]) -> float:
    return float(node["Resources"].get("CPU", 0.0))
