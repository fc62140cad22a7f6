"""Dispatch: a launch that a cluster plays is sent there, watched, and told of.

Everything that can be refused is refused before anything is created. The frozen file goes into the
store under its digest, then one RayJob is made, or, where one of this sweep is under way, that one is
watched instead. Whoever watches may go away at any time: the sweep is in the store and in the cluster.
"""

import asyncio
import hashlib
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.console import Console

from adaexplore import assemble, checkup, display, publish
from adaexplore.experiments import attempts, relocations, statuses, submissions
from adaexplore.experiments.config import Places, SweepConfig
from adaexplore.experiments.stores import Store
from adaexplore.experiments.submissions import Submission
from adaexplore.experiments.sweeps import Plan, Selection

if TYPE_CHECKING:
    from adaexplore.backends.kubernetes.clients import Cluster
    from adaexplore.backends.kubernetes.manifests.rayjobs import RayJobSpec
    from adaexplore.backends.kubernetes.observations import Seen

DONE: Final = 0
CONFIG: Final = 2
PARTIAL: Final = 3
INFRASTRUCTURE: Final = 4
REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
"""Where a region comes from when the configuration names none."""
REDO: Final = "ADAEXPLORE_REDO"
"""Variable with the statuses whose results the driver plays again, separated by commas."""
NAMED: Final = 10
"""Unfinished runs that are named at the end."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be played."""

    config: SweepConfig
    store: Store
    plan: Plan
    selection: Selection
    redo: frozenset[str] = frozenset()
    """Statuses of results that are played again."""


def play(order: Order, output: Console) -> "Seen | None":
    """How the RayJob of a sweep has ended; None if the user stopped watching.

    Raises:
        ConfigError: Something cannot be played there; nothing was created.
        ClusterError: The cluster cannot be reached, or refuses something.
    """
    watched: list[str] = []
    try:
        return asyncio.run(_play(order, _speaker(output), watched))
    except KeyboardInterrupt:
        if not watched:
            raise
    sweep, words = order.plan.sweep, " ".join(publish.store_words(order.config))
    display.show_lines(
        output,
        [
            f"not watching any more: sweep {sweep} goes on in the cluster as RayJob {watched[0]}",
            f"  adaexplore status {sweep} {words}",
            f"  adaexplore logs {sweep} --follow {words}",
            f"  adaexplore cancel {sweep} {words}",
            "  the same launch again watches on",
        ],
    )
    return None


async def _play(order: Order, say: Say, watched: list[str]) -> "Seen":
    """Submit or join, then follow; `watched` gets the RayJob's name once there is one."""
    from adaexplore.backends.kubernetes import connections, doctor, follow, submit
    from adaexplore.backends.kubernetes.clients import Cluster

    pods, sweep = order.config.backend.pods, order.plan.sweep
    await doctor.require(checkup.needs(order.config))
    connection = connections.connect(pods.context)
    async with Cluster(connection, pods.namespace) as cluster:
        running = await submit.under_way(cluster, sweep)
        if running is None:
            running = await _submitted(order, cluster, connection.name, say)
        else:
            say(f"RayJob {running} plays this sweep already: watching it")
        watched.append(running)
        say("Ctrl-C stops watching, not the sweep")
        watch = follow.Watch(
            every_s=pods.follow_s,
            patience_s=pods.unreachable_s,
            say=say,
            progress=lambda: _progress(order),
        )
        return await follow.follow(cluster, running, watch)


def _speaker(output: Console) -> Say:
    return lambda line: output.print(f"  {display.plain(line)}", markup=False, soft_wrap=True)


def _progress(order: Order) -> str:
    """How many episode runs are finished."""
    ids = {world.episode.episode_id for world in order.plan.worlds}
    cells = {cell.cell_id for cell in order.plan.cells}
    done = sum(len(ids & attempts.finished(order.store, cell_id).keys()) for cell_id in cells)
    return f"{done} of {len(ids) * len(cells)} episode runs are finished"


# -- submitting --------------------------------------------------------------------------------


async def _submitted(order: Order, cluster: "Cluster", context: str, say: Say) -> str:
    """Name of the RayJob that plays the sweep now: ours, or that of a launch at the same moment."""
    from adaexplore.backends.kubernetes import submit

    sweep, pods = order.plan.sweep, order.config.backend.pods
    key, digest = await asyncio.to_thread(_frozen, order)
    known = await asyncio.to_thread(submissions.read, order.store, sweep)

    def spec(number: int) -> "RayJobSpec":
        return _spec(order, number, key, digest)

    number, ours = await submit.submit(cluster, sweep, len(known) + 1, spec)
    name = submit.name(sweep, number)
    if not ours:
        say(f"RayJob {name} was made by another launch at the same moment: watching it")
        return name
    note = Submission(
        number=number, rayjob=name, namespace=pods.namespace, context=context, frozen=key,
        submitted=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), host=socket.gethostname(),
    )  # fmt: skip
    await asyncio.to_thread(submissions.note, order.store, sweep, note)
    say(f"RayJob {name} made in namespace {pods.namespace} of {context}")
    return name


def _frozen(order: Order) -> tuple[str, str]:
    """(store key, SHA-256) of the frozen sweep, written; the sweep is enlisted."""
    data = publish.enlist(order.store, order.config, order.plan, order.selection)
    digest = hashlib.sha256(data).hexdigest()
    key = submissions.frozen_key(order.plan.sweep, digest)
    order.store.put(key, data)
    return key, digest


def _spec(order: Order, number: int, key: str, digest: str) -> "RayJobSpec":
    from adaexplore.backends.kubernetes import submit
    from adaexplore.backends.kubernetes.manifests.rayjobs import RayJobSpec

    pods = order.config.backend.pods
    return RayJobSpec(
        name=submit.name(order.plan.sweep, number),
        sweep=order.plan.sweep,
        attempt=str(number),
        namespace=pods.namespace,
        config=pods,
        frozen_uri=order.store.locate(key),
        digest=digest,
        ray_version=pods.ray_version,
        env=_variables(order),
    )


def _variables(order: Order) -> dict[str, str]:
    """What the driver has to know before it has read its file: the way to the bucket."""
    store = order.config.store
    region = store.region or next(filter(None, map(os.environ.get, REGIONS)), None)
    found = {
        "AWS_ENDPOINT_URL_S3": relocations.endpoint(order.config, os.environ),
        "AWS_DEFAULT_REGION": region,
        "AWS_CA_BUNDLE": store.ca_file,
        REDO: ",".join(sorted(order.redo)),
    }
    return {name: value for name, value in found.items() if value}


# -- the end -----------------------------------------------------------------------------------


def concluded(
    ending: "Seen", config: SweepConfig, store: Store, plan: Plan, output: Console
) -> int:
    """Exit code of a sweep whose RayJob is over: the store says what is done, the job why it ended.

    `plan` is what the store holds now. What is unfinished is named, and an embedded tracker is shown
    the runs.
    """
    lines = _unfinished(store, plan)
    code = DONE
    if plan.jobs:
        code = PARTIAL if ending.succeeded else ending.exit_code or INFRASTRUCTURE
        code = code if code in (CONFIG, PARTIAL) else INFRASTRUCTURE
        lines.append(
            f"{len(plan.jobs)} episode runs are not finished; launch again to go on with them"
        )
    elif not ending.succeeded:
        code = INFRASTRUCTURE
        lines.append(
            "every episode is finished; launch again to have the tables made from the store"
        )
    if not ending.succeeded:
        lines.append(f"RayJob {ending.name} ended as {ending.deployment}: {ending.why}")
    if config.tracking.kind == "sqlite":
        places = Places(store=config.store, tracking=config.tracking, runs_dir=config.runs_dir)
        lines += assemble.synchronise(places, store, plan.sweep)
    display.show_lines(output, [display.plain(line) for line in lines])
    return code


def _unfinished(store: Store, plan: Plan) -> list[str]:
    """The first of the runs without a result, and why."""
    lines = []
    for job in plan.jobs[:NAMED]:
        found = attempts.listed(store, job.key.prefix).get(job.key.episode_id, ())
        status = statuses.of_run(store, found)
        lines.append(f"not finished: {job.cell.label} {job.key.episode_id} {status}")
    return lines
