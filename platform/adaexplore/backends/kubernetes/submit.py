"""Submitting a sweep: one RayJob at a time, whoever launches and however often.

A RayJob's name says its sweep and its number. Two launches at the same moment choose the same name, so
the API server lets one of them create it, and the other one finds it.
"""

from collections.abc import Callable
from typing import Final

from adaexplore.backends.kubernetes import observations
from adaexplore.backends.kubernetes.clients import Cluster, ConflictError
from adaexplore.backends.kubernetes.manifests import common, rayjobs
from adaexplore.backends.kubernetes.manifests.rayjobs import RayJobSpec
from adaexplore.errors import ClusterError

TRIES: Final = 10
_ROOM: Final = len("-9999")


def name(sweep: str, number: int) -> str:
    """The name of the n-th RayJob of a sweep."""
    return f"{common.object_name(sweep, limit=rayjobs.NAME_LIMIT - _ROOM)}-{number}"


async def under_way(cluster: Cluster, sweep: str) -> str | None:
    """Name of the RayJob of a sweep that is not over, if there is one."""
    for document in await of_sweep(cluster, sweep):
        metadata = document["metadata"]
        if "deletionTimestamp" not in metadata and not observations.seen(document).over:
            return str(metadata["name"])
    return None


async def of_sweep(cluster: Cluster, sweep: str) -> list[observations.Json]:
    """All RayJobs of a sweep in the namespace."""
    found = await cluster.items("rayjobs", labels={common.SWEEP: common.label_value(sweep)})
    own = [
        one for one in found if one["metadata"].get("annotations", {}).get(common.SWEEP_ID) == sweep
    ]
    return sorted(own, key=lambda one: int(one["metadata"]["labels"][common.ATTEMPT]))


async def submit(
    cluster: Cluster, sweep: str, first: int, spec: Callable[[int], RayJobSpec]
) -> tuple[int, bool]:
    """(number of the sweep's RayJob that is under way now, whether it is ours).

    Args:
        cluster: Where.
        sweep: Its name.
        first: The lowest number that may be free.
        spec: What a RayJob of a number is.

    Raises:
        ClusterError: The cluster refuses it.
    """
    known = [int(d["metadata"]["labels"][common.ATTEMPT]) for d in await of_sweep(cluster, sweep)]
    number = max([first - 1, *known]) + 1
    for _ in range(TRIES):
        try:
            await cluster.create("rayjobs", rayjobs.ray_job(spec(number)))
        except ConflictError:
            if await under_way(cluster, sweep) == name(sweep, number):
                return number, False
            number += 1
        else:
            return number, True
    raise ClusterError(
        f"RayJob {name(sweep, number)}: expected a free name, got {TRIES} that are taken: "
        f"'adaexplore cancel {sweep}' removes what is left"
    )
