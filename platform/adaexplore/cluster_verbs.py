"""`cancel` and `logs`: stop a sweep wherever it runs, and read what it says there."""

import asyncio
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console

from adaexplore import arguments, display
from adaexplore.arguments import Arguments
from adaexplore.backends.vllm import procfs
from adaexplore.errors import ClusterError, ConfigError
from adaexplore.experiments import launches, stored, submissions
from adaexplore.experiments.stores import Store
from adaexplore.experiments.submissions import Submission
from adaexplore.opening import opened

if TYPE_CHECKING:
    from adaexplore.backends.kubernetes.clients import Cluster

DONE: Final = 0
PARTIAL: Final = 3
STOP_S: Final = 120.0
"""How long a launch that was asked to end may take: it closes journals and stops its servers."""
TAIL: Final = 200
"""Lines of a file that are shown."""

CANCEL_HELP: Final = """\
usage: adaexplore cancel SWEEP [--context NAME] [runs_dir=FOLDER] [store=KIND store.KEY=VALUE ...]

Stops a sweep wherever it runs, and is over when nothing of it runs any more: its RayJobs with all pods,
Jobs, Services and Leases in the cluster, or its launches on this machine. What is finished stays in the
store, and what was begun goes on with the next launch.

  --context NAME   of the kubeconfig, where the cluster has another name here than for whoever launched

exit codes: 0 nothing of it runs, 3 something runs elsewhere (the line says where), 4 it does not stop"""

LOGS_HELP: Final = """\
usage: adaexplore logs SWEEP [--follow] [--context NAME] [runs_dir=FOLDER] [store=KIND ...]

What a sweep says where it runs: in a cluster the driver and the model servers, on this machine the
model servers.

  --follow         go on until the sweep is over
  --context NAME   of the kubeconfig, where the cluster has another name here than for whoever launched"""


def cancel(words: Sequence[str]) -> int:
    """Exit code of `cancel`."""
    if {"--help", "-h"} & set(words) or not words:
        print(CANCEL_HELP)
        return DONE if words else 2
    given = arguments.read("cancel", words, options=["context"])
    (name,) = given.expect("SWEEP")
    output = display.console()
    with opened(given) as (_, store):
        stored.read(store, name)
        places = _places(given, submissions.read(store, name))
        removed = sum(asyncio.run(_cancelled(output, name, *place)) for place in places)
        elsewhere = _stopped(output, store, name)
    told = f"sweep {name}: nothing of it runs any more" if not elsewhere else ""
    many = f" ({removed} RayJobs removed)" if removed else ""
    display.show_lines(output, [*elsewhere, *([told + many] if told else [])])
    return PARTIAL if elsewhere else DONE


def _places(given: Arguments, sent: Sequence[Submission]) -> list[tuple[str, str]]:
    """(context, namespace) of every cluster that a sweep was sent to."""
    own = given.one("context")
    return list(dict.fromkeys((own or one.context, one.namespace) for one in sent))


async def _cancelled(output: Console, sweep: str, context: str, namespace: str) -> int:
    from adaexplore.backends.kubernetes import cancel as cancelling

    async with _cluster(context, namespace) as cluster:
        return await cancelling.cancel(
            cluster, sweep, lambda line: display.show_lines(output, [f"  {line}"])
        )


def _cluster(context: str, namespace: str) -> "Cluster":
    from adaexplore.backends.kubernetes import clients

    return clients.connect(namespace, context)


# -- launches on this machine ------------------------------------------------------------------


def _stopped(output: Console, store: Store, sweep: str) -> list[str]:
    """Stop the launches of this machine; a line for each that is elsewhere.

    Raises:
        ClusterError: One does not stop.
    """
    elsewhere = []
    for launch in launches.running(store, sweep):
        note = launches.read(store, sweep, launch)
        if note.get("kubernetes"):
            continue  # its pods are gone; its lease in the store runs out
        process = _process(note)
        if process is None:
            host = note.get("host", "another machine")
            elsewhere.append(
                f"launch {launch} runs on {host}: stop it there (Ctrl-C, or cancel there)"
            )
            continue
        os.kill(process.pid, signal.SIGTERM)
        display.show_lines(output, [f"  launch {launch} (process {process.pid}): asked to end"])
        _await_end(process)
    return elsewhere


def _process(note: dict[str, Any]) -> procfs.Process | None:
    """The process of a launch, if it is on this machine."""
    noted = note.get("process")
    if note.get("host") != socket.gethostname() or not isinstance(noted, dict):
        return None
    found = procfs.read(int(noted.get("pid", -1)))
    return found if found is not None and found.started == noted.get("started") else None


def _await_end(process: procfs.Process) -> None:
    deadline = time.monotonic() + STOP_S
    while procfs.remaining([process]):
        if time.monotonic() > deadline:
            raise ClusterError(
                f"process {process.pid}: expected it to end within {STOP_S:.0f} s of SIGTERM, it runs still: "
                f"kill -9 {process.pid} ends it, and loses nothing that the store has"
            )
        time.sleep(0.05)


# -- logs --------------------------------------------------------------------------------------


def logs(words: Sequence[str]) -> int:
    """Exit code of `logs`."""
    if {"--help", "-h"} & set(words) or not words:
        print(LOGS_HELP)
        return DONE if words else 2
    given = arguments.read("logs", words, flags=["follow"], options=["context"])
    (name,) = given.expect("SWEEP")
    output = display.console()
    with opened(given) as (where, store):
        stored.read(store, name)
        places = _places(given, submissions.read(store, name))
        folder = Path(where.runs_dir) / "serving"
    if places:
        return asyncio.run(_read(output, name, places[-1], follow="follow" in given.flags))
    files = sorted(folder.glob("*.log"))
    if not files:
        raise ConfigError(
            f"sweep '{name}' has no logs: it was sent to no cluster, and no model server of this machine "
            f"has written below {folder}"
        )
    for file in files:
        text = file.read_text(errors="replace").splitlines()[-TAIL:]
        display.show_lines(output, [display.plain(f"{file.stem}: {line}") for line in text])
    return DONE


async def _read(output: Console, sweep: str, place: tuple[str, str], *, follow: bool) -> int:
    from adaexplore.backends.kubernetes import logs as reading

    async with _cluster(*place) as cluster:
        shown = 0
        said: AsyncIterator[str] = reading.lines(cluster, sweep, follow=follow)
        async for line in said:
            display.show_lines(output, [display.plain(line)])
            shown += 1
    if not shown:
        raise ConfigError(
            f"sweep '{sweep}' has no pods that say anything in namespace {place[1]} of {place[0]}: they go "
            "backend.kubernetes.ttl_after_finished_s after the end"
        )
    return DONE
