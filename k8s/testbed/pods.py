"""A pod on its node: one thread from its binding to its end.

Volumes, network and name; the containers that come first, one after another; then the others. What
changes is reported at once. Deleted, the pod gets its grace period, is reported ended, and then
removed for good, as a kubelet does. When all of it has ended by itself, nothing of it stays here but
its logs.
"""

import threading
import time
from collections.abc import Iterable
from typing import Final

import urllib3

from k8s.testbed import statuses
from k8s.testbed.api import Json, path
from k8s.testbed.containers import Container, Setting
from k8s.testbed.environments import MissingError
from k8s.testbed.faults import ApiError, BedError
from k8s.testbed.grounds import Ground, Host

TURN_S: Final = 0.1
RETRY_S: Final = 1.0
EVICT: Final = "testbed.adaexplore.dev/evict"
"""An annotation that asks the node to evict a pod, as it would for want of memory; the message."""


def _another(error: ApiError) -> bool:
    """Whether the pod is gone, or the name another pod's; a conflict can also be of two writers."""
    return error.status == 404 or (error.status == 409 and "UID" in str(error))


class OverError(Exception):
    """The pod was deleted before it ran."""


class PodThread(threading.Thread):
    """See the module."""

    def __init__(self, host: Host, pod: Json) -> None:
        """Of a pod that the scheduler bound to this node."""
        self.uid: str = pod["metadata"]["uid"]
        self.namespace: str = pod["metadata"]["namespace"]
        super().__init__(daemon=True, name=f"pod {self.namespace}/{pod['metadata']['name']}")
        self._host, self._pod = host, pod
        self._path = path("Pod", self.namespace, pod["metadata"]["name"])
        self._wake, self._hurry = threading.Event(), threading.Event()
        self._gone = False
        self._sent: Json = {}
        self._ground: Ground | None = None
        self._inits: list[Container] = []
        self._mains: list[Container] = []

    def update(self, pod: Json) -> None:
        """The pod's newest document."""
        self._pod = pod
        if pod["metadata"].get("deletionGracePeriodSeconds") == 0:
            self._hurry.set()
        self._wake.set()

    def vanish(self) -> None:
        """The pod was removed by force: end it at once."""
        self._gone = True
        self._hurry.set()
        self._wake.set()

    def write_hosts(self) -> None:
        """Names have changed."""
        if self._ground is not None:
            self._ground.write_hosts()

    def run(self) -> None:
        """Live, and leave nothing."""
        try:
            self._live()
        except OverError:
            self._terminate()
        finally:
            self._leave()
        if self._deleting():
            self._remove()

    def _live(self) -> None:
        gpus = self._claim_gpus()
        if gpus is None:
            return
        self._prepare(gpus)
        self._make_containers()
        for first in self._inits:
            while not first.view.finished:
                self._turn([first])
            if first.view.code != 0:
                break
        while statuses.phase(*self._views()) in (statuses.PENDING, statuses.RUNNING):
            self._turn(self._mains)
            if fault := self._evicted():
                self._fail(*fault)
                return
        self._put_last(self._status())

    def _turn(self, containers: Iterable[Container]) -> None:
        if self._deleting():
            raise OverError
        for container in containers:
            container.turn()
        self._report()
        self._wake.wait(TURN_S)
        self._wake.clear()

    def _claim_gpus(self) -> str | None:
        """The pod's GPUs; None, reported, where the node has too few."""
        asked = [
            one.get("resources", {}).get("limits", {}).get("nvidia.com/gpu", 0)
            for one in self._pod["spec"]["containers"]
        ]
        count = sum(int(number) for number in asked)
        gpus = self._host.take_gpus(self.uid, count)
        if gpus is None:
            message = f"Allocate failed: requested {count} nvidia.com/gpu, which are not free"
            reason = "UnexpectedAdmissionError"
            self._put_last({"phase": "Failed", "reason": reason, "message": message})
        return gpus

    def _prepare(self, gpus: str) -> None:
        """Network, names and volumes; waits for ConfigMaps and Secrets that are not there yet."""
        self._ground = Ground(self._host, self._pod, gpus)
        while True:
            try:
                self._ground.fill()
            except (MissingError, BedError) as error:
                self._host.tell(self._pod, "FailedMount", str(error))
            else:
                return
            if self._deleting():
                raise OverError
            self._wake.wait(RETRY_S)
            self._wake.clear()

    def _make_containers(self) -> None:
        spec, old = self._pod["spec"], self._pod.get("status", {})
        policy = spec.get("restartPolicy", "Always")
        lists = (
            (
                "initContainers",
                "initContainerStatuses",
                "OnFailure" if policy == "Always" else policy,
            ),
            ("containers", "containerStatuses", policy),
        )
        made = []
        for which, states, rule in lists:
            known = {state["name"]: state for state in old.get(states, [])}
            made.append(
                [
                    Container(one, self._setting(one, rule), known.get(one["name"]))
                    for one in spec.get(which, [])
                ]
            )
        self._inits, self._mains = made

    def _setting(self, container: Json, policy: str) -> Setting:
        assert self._ground is not None  # noqa: S101 (it is prepared)
        host, pod = self._host, self._pod
        links = host.links(self.namespace) if pod["spec"].get("enableServiceLinks", True) else {}
        gpus = container.get("resources", {}).get("limits", {}).get("nvidia.com/gpu")
        logs = host.logs / f"{self.namespace}_{pod['metadata']['name']}_{self.uid}"
        logs.mkdir(parents=True, exist_ok=True)
        server = host.api.access.server.rpartition("/")[2].partition(":")
        return Setting(
            place=self._ground.place(),
            policy=policy,
            sandbox=self._ground.sandbox.pid,
            table=host.table,
            volumes=self._ground.volumes,
            folder=self._ground.folder,
            log=logs / f"{container['name']}.log",
            given={
                **links,
                "KUBERNETES_SERVICE_HOST": server[0],
                "KUBERNETES_SERVICE_PORT": server[2],
                **({"NVIDIA_VISIBLE_DEVICES": self._ground.gpus} if gpus else {}),
            },
            changed=self._wake.set,
            tell=lambda reason, message: host.tell(pod, reason, message),
        )

    def _terminate(self) -> None:
        """Grace, then the end; reported."""
        grace = self._pod["metadata"].get("deletionGracePeriodSeconds", 30)
        self._stop_all(0 if self._gone else grace)
        self._put_last(self._status())

    def _stop_all(self, grace_s: float) -> None:
        threads = [
            threading.Thread(target=one.stop, args=(grace_s, self._hurry), daemon=True)
            for one in (*self._inits, *self._mains)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for container in (*self._inits, *self._mains):
            container.turn()
            container.abandon("ContainerStatusUnknown")

    def _evicted(self) -> tuple[str, str] | None:
        """(reason, message) when the node has to end the pod."""
        spec = self._pod["spec"]
        if message := self._pod["metadata"].get("annotations", {}).get(EVICT):
            return "Evicted", message
        limit, begun = spec.get("activeDeadlineSeconds"), self._sent.get("startTime")
        if limit and begun and time.time() - statuses.seconds(begun) > limit:
            return (
                "DeadlineExceeded",
                "Pod was active on the node longer than the specified deadline",
            )
        return None

    def _fail(self, reason: str, message: str) -> None:
        self._host.tell(self._pod, reason, message)
        self._stop_all(0 if reason == "Evicted" else 1)
        last = self._status() | {"phase": "Failed", "reason": reason, "message": message}
        self._put_last(last)

    def _report(self) -> None:
        now = self._status()
        if now != self._sent:
            self._put(now)

    def _status(self) -> Json:
        pod = {**self._pod, "status": {**self._pod.get("status", {}), **self._sent}}
        address = self._ground.address if self._ground else ""
        inits, mains = self._views()
        return statuses.status(pod, inits, mains, address=address, host=self._host.bridge.address)

    def _put(self, status: Json) -> bool:
        """Report a status; False where it has to be said again, since the API server is away or busy."""
        if self._gone:
            return True
        change = {"metadata": {"uid": self.uid}, "status": status}
        try:
            self._host.api.patch(f"{self._path}/status", change)
        except ApiError as error:
            if not _another(error):
                return False
            self.vanish()
        except (BedError, urllib3.exceptions.HTTPError):
            return False
        self._sent = status
        return True

    def _put_last(self, status: Json) -> None:
        """Report the end until it is known: after it there is nobody to say it again."""
        while not self._put(status):
            time.sleep(RETRY_S)

    def _remove(self) -> None:
        """The pod's object, now that nothing of it runs; asked for until it is gone."""
        only = {"uid": self.uid}
        while not self._gone:
            try:
                self._host.api.delete(self._path, gracePeriodSeconds=0, preconditions=only)
            except ApiError as error:
                if _another(error):
                    return
            except (BedError, urllib3.exceptions.HTTPError):
                pass
            else:
                return
            time.sleep(RETRY_S)

    def _leave(self) -> None:
        """Network, volumes and folder; the logs stay."""
        for container in (*self._inits, *self._mains):
            if container.run is not None:
                container.run.kill()
        if self._ground is not None:
            self._ground.close()
        self._host.give_back(self.uid)

    def _views(self) -> tuple[list[statuses.View], list[statuses.View]]:
        return [one.view for one in self._inits], [one.view for one in self._mains]

    def _deleting(self) -> bool:
        return self._gone or "deletionTimestamp" in self._pod["metadata"]
