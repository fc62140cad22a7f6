"""The driver's heartbeat: a Lease that it renews for as long as it serves models.

Owner references take servers away with their driver where the cluster's garbage collector works; the
reaper does it by this Lease where it does not.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from adaexplore.backends.kubernetes.clients import Cluster, ConflictError
from adaexplore.backends.kubernetes.manifests import leases
from adaexplore.backends.kubernetes.manifests.leases import LeaseSpec
from adaexplore.errors import ClusterError

RENEWALS: Final = 4
"""Within the time after which the heart is thought to have stopped."""


@asynccontextmanager
async def beating(
    cluster: Cluster, spec: LeaseSpec, notify: Callable[[str], None]
) -> AsyncIterator[None]:
    """A context in which the Lease is renewed; at its end it is given up, and expires at once.

    Raises:
        ClusterError: It cannot be made.
    """
    await renew(cluster, spec)
    beat = asyncio.create_task(_beat(cluster, spec, notify))
    try:
        yield
    finally:
        beat.cancel()
        await asyncio.gather(beat, return_exceptions=True)
        try:
            await renew(cluster, spec, over=True)
        except ClusterError as error:
            notify(f"the heartbeat {spec.name} was not given up: {error}")


async def renew(cluster: Cluster, spec: LeaseSpec, *, over: bool = False) -> None:
    """Make the Lease, or renew it; `over` lets it expire now.

    Raises:
        ClusterError: Neither is possible.
    """
    fresh = leases.lease(spec, time.time())
    if over:
        fresh["spec"] |= {"leaseDurationSeconds": 1, "renewTime": leases.stamp(time.time() - 2)}
    while True:
        found = await cluster.find("leases", spec.name)
        try:
            if found is None:
                await cluster.create("leases", fresh)
            else:
                kept = {"acquireTime": found["spec"].get("acquireTime")}
                await cluster.replace("leases", found | {"spec": fresh["spec"] | kept})
        except ConflictError:
            continue  # it came or changed meanwhile: look again
        return


async def _beat(cluster: Cluster, spec: LeaseSpec, notify: Callable[[str], None]) -> None:
    while True:
        await asyncio.sleep(spec.duration_s / RENEWALS)
        try:
            await renew(cluster, spec)
        except ClusterError as error:
            notify(f"the heartbeat {spec.name} is not renewed: {error}")
