"""The Job and the Service of one replica: made or adopted, looked at, removed until they are gone.

Names carry the attempt, so that another attempt's servers are never in the way. A Job that takes
another's place has a new name, since the old one's may be held for long by a pod on a lost node; the
Service, and with it the address, stays.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Final

from adaexplore.backends.kubernetes import starts
from adaexplore.backends.kubernetes.causes import Cause, Fault, Look, Stage, Waiting
from adaexplore.backends.kubernetes.clients import Cluster, ConflictError, Json, RefusedError
from adaexplore.backends.kubernetes.manifests import common, servers
from adaexplore.backends.kubernetes.manifests.servers import ServerSpec
from adaexplore.errors import ClusterError, ServingError

POLL_S: Final = 0.5
CONFIRM_S: Final = 30.0
"""Beyond a pod's grace: how long its end may take before it is reported as left."""


class Objects:
    """What one replica has in the cluster."""

    def __init__(self, cluster: Cluster, spec: ServerSpec, notify: Callable[[str], None]) -> None:
        """Nothing is made yet."""
        self.spec = spec
        self._cluster = cluster
        self._notify = notify
        self._number = 0
        self._uid: str | None = None
        self._service = False

    @property
    def job_name(self) -> str:
        """Of the Job as it is now."""
        return self._job_name(self._number)

    async def look(self) -> Look:
        """Make what is not there yet, and see how far it is.

        Raises:
            ServingError: The name is another owner's.
            ClusterError: The cluster refuses, or does not answer.
        """
        if not self._service:
            await self._make_service()
        if self._uid is None:
            try:
                await self._make_job()
            except RefusedError as error:
                if not error.quota:
                    raise
                return starts.of_quota(error.said)
        return await self._seen()

    async def log(self, pod: str) -> str:
        """The end of what a pod's engine has written; empty where that cannot be had."""
        try:
            return await self._cluster.log(pod, servers.CONTAINER, tailLines=400)
        except ClusterError:
            return ""

    async def renew(self, *, wait: bool) -> None:
        """Remove the Job, so that the next look makes another; `wait` until its pods are gone."""
        self._uid, self._service = None, False  # the Service may be gone with it: looked at anew
        await self._delete("jobs", self.job_name)
        if not wait or await self._gone(self._left, self.spec.grace_s + CONFIRM_S):
            self._number += 1  # the old one keeps its name for as long as it takes

    async def remove(self) -> None:
        """Remove all, and wait until it is gone; tells what does not go.

        Raises:
            ClusterError: The cluster refuses, or does not answer.
        """
        await self._delete("services", self.spec.name)
        for number in range(self._number + 1):
            await self._delete("jobs", self._job_name(number))
        left = await self._gone(self._left, self.spec.grace_s + CONFIRM_S)
        if left:
            self._notify(f"not gone yet: {', '.join(left)}; the cluster is to end them")

    # -- making --------------------------------------------------------------------------------

    async def _make_service(self) -> None:
        document = servers.service(self.spec)
        while not self._service:
            try:
                await self._cluster.create("services", document)
            except ConflictError:
                found = await self._cluster.find("services", self.spec.name)
                if found is None or not await self._settled("services", found):
                    continue
            self._service = True

    async def _make_job(self) -> None:
        document = servers.job(self.spec)
        document["metadata"]["name"] = self.job_name
        while self._uid is None:
            try:
                made = await self._cluster.create("jobs", document)
            except ConflictError:
                found = await self._cluster.find("jobs", self.job_name)
                if found is None or not await self._settled("jobs", found):
                    continue
                if not _same(found, document):
                    await self.renew(wait=True)
                    document["metadata"]["name"] = self.job_name
                    continue
                made = found
                self._notify(f"adopted Job {self.job_name}, which an earlier driver made")
            self._uid = str(made["metadata"]["uid"])

    async def _settled(self, kind: str, found: Json) -> bool:
        """Whether an object that has our name is ours to take; waits for the end of one that ends.

        Raises:
            ServingError: It is another owner's, or does not end.
        """
        name = found["metadata"]["name"]
        if "deletionTimestamp" in found["metadata"]:

            async def left() -> list[str]:
                return [name] if await self._cluster.find(kind, name) else []

            if not await self._gone(left, self.spec.grace_s + CONFIRM_S):
                return False
            raise ServingError(f"{kind[:-1]} {name} is being deleted and does not go")
        if not self._ours(found):
            raise ServingError(
                f"{kind[:-1]} {name} exists already and has another owner; delete it: "
                f"kubectl -n {self.spec.namespace} delete {kind[:-1]} {name}"
            )
        return True

    # -- looking -------------------------------------------------------------------------------

    async def _seen(self) -> Look:
        job = await self._cluster.find("jobs", self.job_name)
        if job is not None and job["metadata"]["uid"] != self._uid:
            return Fault(cause=Cause.GONE, why="its Job was replaced by somebody")
        pods = await self._pods()
        first = starts.look(job, pods, [], time.time())
        if isinstance(first, Waiting) and first.stage in (Stage.STARTING, Stage.READY):
            return first
        events = [] if job is None else await self._events(job, pods)
        return starts.look(job, pods, events, time.time())

    async def _events(self, job: Json, pods: list[Json]) -> list[Json]:
        found = await self._cluster.events(job["metadata"]["uid"])
        for pod in starts.own(job, pods):
            found += await self._cluster.events(pod["metadata"]["uid"])
        return found

    async def _pods(self) -> list[Json]:
        labels = common.selector(servers.COMPONENT, self.spec.name)
        return await self._cluster.items("pods", labels=labels)

    # -- removing ------------------------------------------------------------------------------

    async def _delete(self, kind: str, name: str) -> None:
        """Ask for an object's end, if it is ours; the answer to its making may have been lost."""
        found = await self._cluster.find(kind, name)
        if found is not None and self._ours(found):
            await self._cluster.delete(kind, name, uid=found["metadata"]["uid"])

    def _ours(self, found: Json) -> bool:
        owners = [one["uid"] for one in found["metadata"].get("ownerReferences", [])]
        return self.spec.owner is None or self.spec.owner.uid in owners

    async def _left(self) -> list[str]:
        """Jobs and pods that have not gone, but for the Job that is to stay."""
        names = [self._job_name(number) for number in range(self._number + 1)]
        found = [await self._cluster.find("jobs", name) for name in names]
        jobs = [one["metadata"]["name"] for one in found if one and self._ours(one)]
        pods = [f"pod {pod['metadata']['name']}" for pod in await self._pods()]
        return [f"job {name}" for name in jobs] + pods

    async def _gone(
        self, left: Callable[[], Coroutine[None, None, list[str]]], limit_s: float
    ) -> list[str]:
        """Wait until nothing is left; what is left after the limit."""
        deadline = time.monotonic() + limit_s
        while found := await left():
            if time.monotonic() > deadline:
                return found
            await asyncio.sleep(POLL_S)
        return []

    def _job_name(self, number: int) -> str:
        return self.spec.name if number == 0 else f"{self.spec.name}-{number}"


def _same(found: Json, wanted: Json) -> bool:
    """Whether a Job is what we would make, and still serves."""
    label = common.SPEC_HASH
    finished = [
        one["type"] for one in found.get("status", {}).get("conditions") or []
        if one["type"] in ("Failed", "Complete") and one["status"] == "True"
    ]  # fmt: skip
    mark = found["metadata"].get("labels", {}).get(label)
    return not finished and mark == wanted["metadata"]["labels"][label]
