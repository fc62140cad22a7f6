"""The last net: takes away model servers whose driver is silent.

    python -m adaexplore.backends.kubernetes.reaper

An object is taken if it has our labels, names a heartbeat, and that Lease has expired or is not there
(then once the object is old enough not to be ahead of its Lease). Never by its name, and never in
another namespace than the pod's own. Clocks differ a little, so an expiry counts after a slack.
"""

import asyncio
import os
import sys
import time
from typing import Final

from adaexplore.backends.kubernetes import clients, connections
from adaexplore.backends.kubernetes.clients import Cluster, Json
from adaexplore.backends.kubernetes.manifests import common, leases, servers
from adaexplore.errors import AdaExploreError

SLACK_S: Final = 30.0
YOUNG_S: Final = 120.0
"""Younger objects without a Lease are left alone."""
KINDS: Final = ("jobs", "services")
LABELS: Final = {common.MANAGED_BY: common.PROJECT, common.COMPONENT: servers.COMPONENT}


async def reap(
    cluster: Cluster, *, slack_s: float = SLACK_S, young_s: float = YOUNG_S
) -> list[str]:
    """Delete what no driver needs any more, with all it owns; a line for each object.

    Raises:
        ClusterError: The cluster refuses, or does not answer.
    """
    now = time.time()
    beats = {one["metadata"]["name"]: one for one in await cluster.items("leases")}
    lines = []
    for kind in KINDS:
        for one in await cluster.items(kind, labels=LABELS):
            why = forsaken(one, beats, now, slack_s=slack_s, young_s=young_s)
            metadata = one["metadata"]
            if why and await cluster.delete(kind, metadata["name"], uid=metadata["uid"]):
                lines.append(f"deleted {kind[:-1]} {metadata['name']}: {why}")
    return lines


def forsaken(
    document: Json, beats: dict[str, Json], now_s: float, *, slack_s: float, young_s: float
) -> str | None:
    """Why nobody needs an object any more; None if somebody does, or it is going already."""
    metadata = document["metadata"]
    name = metadata.get("annotations", {}).get(common.HEARTBEAT)
    if name is None or "deletionTimestamp" in metadata:
        return None
    beat = beats.get(name)
    if beat is None:
        age_s = now_s - leases.seconds(metadata["creationTimestamp"])
        return f"its Lease {name} is not there" if age_s > young_s else None
    if leases.expired(beat, now_s, slack_s=slack_s):
        return f"its Lease {name} was last renewed at {beat['spec'].get('renewTime')}"
    return None


async def _run() -> None:
    namespace = os.environ.get("POD_NAMESPACE") or connections.own_namespace()
    async with clients.connect(namespace) as cluster:
        for line in await reap(cluster):
            print(line, flush=True)


def main() -> int:
    """Reap once; the exit code."""
    try:
        asyncio.run(_run())
    except AdaExploreError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
