"""Following a RayJob: what changes is said in a line, until it is over or nobody answers any more.

Looks are lists and gets with deadlines, no watches: a watch can fall silent without an error. A cluster
that does not answer is waited for, and for so long nothing is known; the sweep does not need us.

Source: kubernetes-client/python issues 801 and 2223 (silent watches).
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from adaexplore.backends.kubernetes import observations
from adaexplore.backends.kubernetes.clients import Cluster
from adaexplore.backends.kubernetes.manifests import common
from adaexplore.backends.kubernetes.observations import Json, Seen
from adaexplore.errors import ClusterError, StoreError

PROGRESS_S: Final = 10.0
"""Between two looks into the store, which cost a request a cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """How a RayJob is watched."""

    every_s: float
    patience_s: float
    """How long the cluster may be silent."""
    say: Callable[[str], None]
    progress: Callable[[], str]
    """How far the sweep is, told by the store; StoreError if it cannot be read."""


@dataclass(slots=True)
class _Told:
    """What was said last, so that nothing is said twice."""

    watch: Watch
    line: str = ""
    progress: str = ""
    due_s: float = field(default_factory=time.monotonic)

    def say(self, line: str) -> None:
        if line != self.line:
            self.line = line
            self.watch.say(line)

    async def advance(self) -> None:
        """Say how far the sweep is, now and then."""
        if time.monotonic() < self.due_s:
            return
        try:
            now = await asyncio.to_thread(self.watch.progress)
        except StoreError as error:
            now = f"the store does not answer: {error}"
        if now != self.progress:
            self.progress = now
            self.watch.say(now)
        self.due_s = time.monotonic() + PROGRESS_S


async def follow(cluster: Cluster, name: str, watch: Watch) -> Seen:
    """The last look at a RayJob, once it is over or deleted.

    Raises:
        ClusterError: The cluster was silent for too long; the sweep goes on there.
    """
    told, silent_since = _Told(watch), None
    while True:
        try:
            one, pods, events = await _look(cluster, name)
        except ClusterError as error:
            now_s = time.monotonic()
            silent_since = silent_since or now_s
            if now_s - silent_since > watch.patience_s:
                raise ClusterError(
                    f"RayJob {name}: no answer of the cluster for {watch.patience_s:.0f} s ({error}); the "
                    "sweep goes on there: launch again to watch it"
                ) from None
            told.say(f"the cluster does not answer ({error}); the sweep goes on there")
        else:
            silent_since = None
            told.say(observations.line(one, pods, events))
            if one.over:
                return one
            if one.job == "RUNNING":
                await told.advance()
        await asyncio.sleep(watch.every_s)


async def _look(cluster: Cluster, name: str) -> tuple[Seen, list[Json], list[Json]]:
    """(RayJob, its pods, events about what should have become pods)."""
    document = await cluster.find("rayjobs", name)
    if document is None:
        return observations.gone(name), [], []
    one = observations.seen(document)
    if one.over:
        return one, [], []
    attempt = document["metadata"]["labels"][common.INSTANCE]
    pods = await cluster.items("pods", labels={common.INSTANCE: attempt})
    if one.job == "RUNNING":
        return one, pods, []
    events = await cluster.items("events")
    return one, pods, [event for event in events if _about(event).startswith(name)]


def _about(event: Json) -> str:
    return str((event.get("involvedObject") or {}).get("name", ""))
