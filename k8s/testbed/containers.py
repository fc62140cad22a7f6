"""A container of a pod through all its runs: pulled, started, probed, stopped, started again.

`turn` is called some times a second by the pod's thread and never waits; `stop` waits for the grace
period and is called in a thread of its own. Delays grow as the real ones do, a tenth as long.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from k8s.testbed import environments, images, probes, quantities, statuses, volumes
from k8s.testbed.api import Json
from k8s.testbed.environments import MissingError, Place
from k8s.testbed.faults import BedError
from k8s.testbed.log_server import OVER
from k8s.testbed.processes import Plan, Run

DELAYS_S: Final = (0.0, 1.0, 2.0, 4.0, 8.0, 15.0)
"""Before the n-th restart or pull."""
MEMORY_S: Final = 1.0
"""How often memory is looked at."""
LOG_TAIL: Final = 2048
"""Bytes of the log that become the message of a failure, where a container asks for that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a container needs of its pod and node."""

    place: Place
    policy: str
    """restartPolicy."""
    sandbox: int
    table: Mapping[str, images.Image]
    volumes: Mapping[str, Path]
    folder: Path
    """The pod's."""
    log: Path
    """The container's."""
    given: Mapping[str, str]
    """Variables that every container of the pod gets."""
    changed: Callable[[], None]
    tell: Callable[[str, str], None]
    """(reason, message) of an event."""


class Container:
    """See the module."""

    def __init__(self, spec: Json, setting: Setting, before: Json | None = None) -> None:
        """Not started. `before`: the status that an earlier kubelet left, whose run is lost."""
        self.spec = spec
        self.view = statuses.View(name=spec["name"], image=spec["image"])
        self.run: Run | None = None
        self.health: probes.Health | None = None
        self._setting = setting
        self._due = time.monotonic()
        self._pulls = 0
        self._pulled = False
        self._looked = 0.0
        self._reason = ""  # why we killed it
        self._stopping = False
        if before is not None:
            self._carry_on(before)

    def turn(self) -> None:
        """Do what is due now."""
        now = time.monotonic()
        if self.view.finished:
            return
        if self.run is None:
            if now >= self._due and not self._stopping:
                self._begin()
            return
        code = self.run.poll()
        if code is not None:
            self._ended(code)
            return
        self._look(now)

    def stop(self, grace_s: float, hurry: threading.Event) -> None:
        """End the run: hook, SIGTERM, grace, SIGKILL; returns when it has ended."""
        self._stopping = True
        run = self.run
        if run is None:
            return
        deadline = time.monotonic() + grace_s
        hook = self.spec.get("lifecycle", {}).get("preStop")
        if hook and grace_s > 0:
            fault = probes.act(hook, self._setting.place.address, run, {}, grace_s)
            if fault:
                self._setting.tell("FailedPreStopHook", fault)
        if grace_s > 0:
            run.terminate()
        while run.poll() is None and time.monotonic() < deadline and not hurry.is_set():
            hurry.wait(0.05)
        run.kill()
        while run.poll() is None:
            hurry.wait(0.02)
            time.sleep(0.01)

    def abandon(self, reason: str) -> None:
        """It never ran, and never will: the pod is over."""
        if not self.view.finished and self.run is None:
            self.view.state = statuses.terminated(137, reason, time.time())
            self._finish()

    def _carry_on(self, before: Json) -> None:
        view = self.view
        view.restarts = before.get("restartCount", 0)
        view.state = before["state"]
        if "running" in view.state:  # its process ended with the earlier kubelet
            view.state = statuses.terminated(137, "ContainerStatusUnknown", time.time())
        if "terminated" in view.state:
            self._settle(view.state["terminated"]["exitCode"])

    def _begin(self) -> None:
        setting, view = self._setting, self.view
        image = images.find(setting.table, self.spec["image"])
        if image is None:
            self._cannot_pull()
            return
        if image.pull_s and not self._pulled:
            self._pulled, self._due = True, time.monotonic() + image.pull_s
            return
        try:
            plan = self._plan(image)
        except (MissingError, BedError) as error:
            self._wait("CreateContainerConfigError", str(error), 1.0)
            return
        if not plan.words:
            self._wait("CreateContainerError", "no command specified", 5.0)
            return
        self.run = Run(plan)
        self._reason = ""
        view.state = statuses.running(self.run.started)
        changed = self._changed
        self.health = probes.watch(self.spec, setting.place.address, self.run, changed)
        self._changed()

    def _plan(self, image: images.Image) -> Plan:
        setting = self._setting
        given = (
            image.variables
            | {"HOSTNAME": setting.place.pod["metadata"]["name"]}
            | dict(setting.given)
        )
        known = environments.variables(self.spec, setting.place, given)
        home = setting.folder / "containers" / self.spec["name"]
        scratch = home / f"tmp-{self.view.restarts}"  # what a restart finds in /tmp is new
        scratch.mkdir(parents=True, exist_ok=True)
        scratch.chmod(0o1777)
        mounts = volumes.mounts(self.spec, setting.volumes, scratch, setting.folder)
        return Plan(
            words=environments.command(self.spec, image.entrypoint, known),
            environment=known,
            folder=self.spec.get("workingDir") or "/tmp",  # noqa: S108 (inside the container)
            mounts=mounts + volumes.visible({p: p for p in image.needs} | dict(image.places)),
            sandbox=setting.sandbox,
            home=home,
            log=setting.log,
        )

    def _cannot_pull(self) -> None:
        message = f'no image "{self.spec["image"]}" in the table of this node'
        reason = "ErrImagePull" if self._pulls == 0 else "ImagePullBackOff"
        self._pulls += 1
        self._wait(reason, message, DELAYS_S[min(self._pulls, len(DELAYS_S) - 1)])

    def _wait(self, reason: str, message: str, delay_s: float) -> None:
        state = statuses.waiting(reason, message)
        self._due = time.monotonic() + delay_s
        if state != self.view.state:
            self.view.state = state
            self._setting.tell("Failed", f"{reason}: {message}")
            self._setting.changed()

    def _look(self, now: float) -> None:
        """At the health and the memory of the run."""
        health, run = self.health, self.run
        assert health is not None  # noqa: S101 (they come together)
        assert run is not None  # noqa: S101
        if health.failed and not self._stopping:
            self._setting.tell("Unhealthy", health.failed)
            self._setting.tell("Killing", f"container {self.view.name}: {health.failed}")
            self._stopping = True
            grace = self._setting.place.pod["spec"].get("terminationGracePeriodSeconds", 30)
            never = threading.Event()
            threading.Thread(target=self.stop, args=(grace, never), daemon=True).start()
        limit = self.spec.get("resources", {}).get("limits", {}).get("memory")
        if limit and now - self._looked > MEMORY_S:
            self._looked = now
            if run.memory() > quantities.whole(limit):
                self._reason = "OOMKilled"
                run.kill()

    def _ended(self, code: int) -> None:
        assert self.run is not None  # noqa: S101 (it has just ended)
        assert self.health is not None  # noqa: S101
        failed = bool(self.health.failed)
        self.health.over.set()
        reason = self._reason or ("Completed" if code == 0 else "Error")
        message = self._last_words() if code else ""
        self.view.state = statuses.terminated(code, reason, self.run.started, message)
        self.run = None
        if failed:
            self._stopping = False  # it was stopped to be started again
        self._settle(code)
        self._changed()

    def _settle(self, code: int) -> None:
        """After a run: whether and when there is another."""
        view, policy = self.view, self._setting.policy
        again = policy == "Always" or (policy == "OnFailure" and code != 0)
        if not again or self._stopping:
            self._finish()
            return
        delay = DELAYS_S[min(view.restarts, len(DELAYS_S) - 1)]
        view.last, view.restarts = view.state, view.restarts + 1
        self._due = time.monotonic() + delay
        if delay:
            view.state = statuses.waiting("CrashLoopBackOff", f"back-off {delay:.0f}s")

    def _finish(self) -> None:
        self.view.finished = True
        self._setting.log.with_suffix(OVER).touch()

    def _last_words(self) -> str:
        if self.spec.get("terminationMessagePolicy") != "FallbackToLogsOnError":
            return ""
        with suppress(OSError):
            return self._setting.log.read_bytes()[-LOG_TAIL:].decode(errors="replace")
        return ""

    def _changed(self) -> None:
        health, view = self.health, self.view
        runs = self.run is not None and health is not None
        view.started = bool(runs and health and health.started)
        view.ready = bool(runs and health and health.started and health.ready)
        self._setting.changed()
