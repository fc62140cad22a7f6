"""The logs of a sweep in a cluster: the driver's, and those of its model servers.

What the driver says is followed by the pod that submitted it, or by a container beside the head's, and
can be read there for as long as the pods are kept. Followed logs are read again and again from where
they were, since a stream can fall silent when a pod is lost.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Final

from adaexplore.backends.kubernetes import submit
from adaexplore.backends.kubernetes.clients import Cluster
from adaexplore.backends.kubernetes.manifests import common, servers
from adaexplore.backends.kubernetes.manifests.common import Json

TAIL: Final = 1000
"""Lines of each container that are shown of what was said before."""
PAUSE_S: Final = 1.0
SUBMITTER: Final = "ray-job-submitter"
"""Container whose log is the driver's."""


async def lines(cluster: Cluster, sweep: str, *, follow: bool) -> AsyncIterator[str]:
    """Lines of all logs, each with its pod; with `follow` until no RayJob of the sweep goes on.

    A pod's lines come in order; pods are read one after another.
    """
    said: dict[str, int] = {}
    while True:
        running = await submit.under_way(cluster, sweep) is not None
        for pod, container in await _sources(cluster, sweep):
            known = (await cluster.log(pod, container)).splitlines()
            for line in known[said.get(pod, max(0, len(known) - TAIL)) :]:
                yield f"{pod}: {line}"
            said[pod] = len(known)
        if not follow or not running:
            return
        await asyncio.sleep(PAUSE_S)


async def _sources(cluster: Cluster, sweep: str) -> list[tuple[str, str]]:
    """(pod, container) of every log of a sweep."""
    found = await cluster.items("pods", labels={common.SWEEP: common.label_value(sweep)})
    return sorted(source for pod in found for source in _of_pod(pod))


def _of_pod(pod: Json) -> Iterator[tuple[str, str]]:
    component = (pod["metadata"].get("labels") or {}).get(common.COMPONENT)
    name = pod["metadata"]["name"]
    for container in pod["spec"]["containers"]:
        served = component == servers.COMPONENT and container["name"] == servers.CONTAINER
        if container["name"] == SUBMITTER or served:
            yield name, container["name"]
