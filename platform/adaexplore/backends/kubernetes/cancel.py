"""Cancelling a sweep in a cluster: its RayJobs go, and all that was made for it, before we say so.

Owner references take away what the RayJob made; what the driver made (Jobs, Services, Leases of model
servers) has the sweep's label and is asked to go as well. Deleting is asked for; it is over only when
nothing with the sweep's marks is listed any more, pods included.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final

from adaexplore.backends.kubernetes import submit
from adaexplore.backends.kubernetes.calls import FORBIDDEN
from adaexplore.backends.kubernetes.clients import Cluster, RefusedError
from adaexplore.backends.kubernetes.manifests import common
from adaexplore.errors import ClusterError

LIMIT_S: Final = 180.0
"""Longer than any grace period of ours."""
PAUSE_S: Final = 0.5
KINDS: Final = ("jobs", "services", "leases")
"""What the driver makes itself."""
OWNED: Final = ("rayclusters", "pods")
"""What goes with others."""
ORIGIN: Final = "ray.io/originated-from-cr-name"


async def cancel(
    cluster: Cluster, sweep: str, say: Callable[[str], None], limit_s: float = LIMIT_S
) -> int:
    """How many RayJobs were taken away, with everything of them.

    Raises:
        ClusterError: Something is still there after the time limit; names it.
    """
    jobs = [one["metadata"]["name"] for one in await submit.of_sweep(cluster, sweep)]
    for name in jobs:
        await cluster.delete("rayjobs", name)
        say(f"RayJob {name}: asked to go")
    deadline = time.monotonic() + limit_s
    while left := await _left(cluster, sweep, jobs):
        await _ask(cluster, left)
        if time.monotonic() > deadline:
            names = ", ".join(f"{kind}/{name}" for kind, name in left[:8])
            raise ClusterError(
                f"sweep {sweep}: expected everything to be gone within {limit_s:.0f} s, {names} is still "
                f"there: kubectl describe it in namespace {cluster.namespace}, then cancel again"
            )
        await asyncio.sleep(PAUSE_S)
    return len(jobs)


async def _left(cluster: Cluster, sweep: str, jobs: Iterable[str]) -> list[tuple[str, str]]:
    """(kind, name) of everything of the sweep that is still listed."""
    found = [("rayjobs", one["metadata"]["name"]) for one in await submit.of_sweep(cluster, sweep)]
    marks = [{common.SWEEP: common.label_value(sweep)}, *({ORIGIN: name} for name in jobs)]
    for kind in (*KINDS, *OWNED):
        for labels in marks:
            found += [(kind, name) for name in await _names(cluster, kind, labels)]
    return list(dict.fromkeys(found))


async def _names(cluster: Cluster, kind: str, labels: dict[str, str]) -> list[str]:
    try:
        return [one["metadata"]["name"] for one in await cluster.items(kind, labels=labels)]
    except RefusedError as error:
        if error.status == FORBIDDEN:  # goes with its owner all the same
            return []
        raise


async def _ask(cluster: Cluster, left: Iterable[tuple[str, str]]) -> None:
    for kind, name in left:
        if kind in KINDS:
            await cluster.delete(kind, name)
