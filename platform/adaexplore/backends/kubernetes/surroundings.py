"""Where a driver runs: its namespace, and the object whose end is to be the end of all it makes.

That object is the attempt's RayCluster, not the RayJob: a RayJob stays after its end, and each of its
attempts has a RayCluster of its own, with which the servers of a lost attempt go. A driver that is in
no RayCluster owns by its own pod.

Source: KubeRay (environment of the head), Kubernetes garbage collection.
"""

import os
from dataclasses import dataclass

from adaexplore.backends.kubernetes import clients, connections
from adaexplore.backends.kubernetes.clients import Cluster
from adaexplore.backends.kubernetes.manifests.common import Owner
from adaexplore.errors import ClusterError, ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a driver makes its objects with."""

    cluster: Cluster
    sweep: str
    owner: Owner
    attempt: str
    """Name of the owner: no two attempts at a sweep have the same."""
    holder: str
    """Name of the driver's pod."""


def check() -> None:
    """Refuse to serve from outside of a cluster (ConfigError)."""
    if not connections.in_cluster():
        raise ConfigError(
            "serving=kubernetes: expected a driver in a cluster, this process is in none; add "
            "backend=kubernetes, or take serving=vllm_process"
        )


async def here(sweep: str) -> Surroundings:
    """The surroundings of this process, which is in a pod.

    Raises:
        ClusterError: It is in none, or its owner cannot be read.
    """
    cluster = clients.connect(connections.own_namespace())
    try:
        return await of(cluster, sweep)
    except BaseException:
        cluster.close()
        raise


async def of(cluster: Cluster, sweep: str) -> Surroundings:
    """The surroundings that the environment tells of."""
    holder = os.environ.get("POD_NAME") or os.environ.get("HOSTNAME", "")
    ray = os.environ.get("RAY_CLUSTER_NAME")
    room = os.environ.get("RAY_CLUSTER_NAMESPACE", cluster.namespace)
    if ray and room == cluster.namespace:
        owner = await _owner(cluster, "rayclusters", ray)
    else:
        owner = await _owner(cluster, "pods", holder)
    return Surroundings(
        cluster=cluster, sweep=sweep, owner=owner, attempt=owner.name, holder=holder or owner.name
    )


async def _owner(cluster: Cluster, kind: str, name: str) -> Owner:
    version, singular = {"rayclusters": ("ray.io/v1", "RayCluster"), "pods": ("v1", "Pod")}[kind]
    found = await cluster.find(kind, name) if name else None
    if found is None:
        raise ClusterError(
            f"expected {singular} '{name}' in namespace {cluster.namespace}, to own the model "
            "servers; found none: was it deleted?"
        )
    return Owner(api_version=version, kind=singular, name=name, uid=found["metadata"]["uid"])
