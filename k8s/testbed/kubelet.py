"""A node: registers itself, stays alive by its Lease, and runs the pods that are bound to it.

One process a node, in process and mount namespaces of its own, so that killing it is losing power:
all its pods end with it, unreported. Stopping it (SIGSTOP) is losing the network: heartbeats end, pods
go on. Started again, it finds the pods that it had, and starts them again or reports them lost.

    python -m k8s.testbed.kubelet SETTINGS.json
"""

import json
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import urllib3

from k8s.testbed import environments, images, networks
from k8s.testbed.api import Access, Api, Json, holds, path
from k8s.testbed.faults import ApiError, BedError
from k8s.testbed.log_server import LogServer
from k8s.testbed.mirrors import Mirror
from k8s.testbed.pods import PodThread
from k8s.testbed.statuses import stamp

HEARTBEAT_S: Final = 1.0
LEASES: Final = "kube-node-lease"
VERSION: Final = "v1.20.2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What a node has."""

    name: str
    gpus: int = 0
    cpus: int = 8
    """As scheduled by; not enforced."""
    memory: str = "16Gi"
    disk: str = "100Gi"
    """Ephemeral storage; as scheduled by, and not enforced either."""
    labels: Mapping[str, str] | None = None
    taints: tuple[Mapping[str, str], ...] = ()


class Kubelet:
    """See the module."""

    def __init__(self, settings: Json) -> None:
        """Of a node that may have run before."""
        self.api = Api(Access(**settings["access"]))
        self.table: Mapping[str, images.Image] = images.load(Path(settings["images"]))
        self.bridge = networks.Bridge(number=settings["bridge"])
        self.folder, self.logs = Path(settings["folder"]), Path(settings["logs"])
        self._node, self._index = Node(**settings["node"]), settings["index"]
        self._addresses = int(time.monotonic() * 7)  # a node that comes back begins elsewhere
        self._lock = threading.Lock()
        self._held: dict[str, list[int]] = {}
        self._pods: dict[str, PodThread] = {}
        self._services = Mirror(self.api, path("Service"), self._renamed)
        self._endpoints = Mirror(self.api, path("Endpoints"), self._renamed)
        only = f"spec.nodeName={self._node.name}"
        self._bound = Mirror(self.api, path("Pod"), self._take, fieldSelector=only)
        self._log_server = LogServer(self.logs, self.bridge.address, Path(settings["certificate"]))

    def work(self) -> None:
        """Register, follow the pods, and send heartbeats for ever."""
        self._log_server.start()
        self._register()
        for mirror in (self._services, self._endpoints):
            mirror.start()
            mirror.ready.wait(10)
        self._bound.start()
        while True:
            with suppress(BedError, urllib3.exceptions.HTTPError):
                self._beat()
            time.sleep(HEARTBEAT_S)

    def take_address(self) -> str:
        """The next address of this node."""
        with self._lock:
            self._addresses += 1
            return self.bridge.pod_address(self._index, self._addresses)

    def take_gpus(self, pod: str, count: int) -> str | None:
        """Ids of free GPUs, None if there are too few."""
        with self._lock:
            used = {gpu for held in self._held.values() for gpu in held}
            free = [gpu for gpu in range(self._node.gpus) if gpu not in used]
            if count > len(free):
                return None
            self._held[pod] = free[:count]
            return ",".join(str(gpu) for gpu in free[:count])

    def give_back(self, pod: str) -> None:
        """The pod's GPUs are free, and the pod is no longer ours."""
        with self._lock:
            self._held.pop(pod, None)

    def names(self, namespace: str) -> str:
        """Lines for /etc/hosts: the ready addresses of every service; its virtual one if there is none.

        Nothing routes a virtual address, so connecting fails at once, as it should.
        """
        ready: dict[tuple[str, str], list[str]] = {}
        for one in self._endpoints.objects.values():
            key = (one["metadata"]["namespace"], one["metadata"]["name"])
            parts = one.get("subsets") or []
            ready[key] = [entry["ip"] for part in parts for entry in part.get("addresses", [])]
        lines = []
        for service in self._services.objects.values():
            room, name = service["metadata"]["namespace"], service["metadata"]["name"]
            virtual = service["spec"].get("clusterIP", "None")
            found = ready.get((room, name)) or ([] if virtual == "None" else [virtual])
            known = [f"{name}.{room}.svc.cluster.local", f"{name}.{room}.svc", f"{name}.{room}"]
            if room == namespace:
                known.append(name)
            lines += [f"{address} {' '.join(known)}\n" for address in found]
        return "".join(sorted(lines))

    def links(self, namespace: str) -> dict[str, str]:
        """Variables for the services of a namespace."""
        services = self._services.objects.values()
        here = [one for one in services if one["metadata"]["namespace"] == namespace]
        return environments.service_links(here)

    def tell(self, pod: Json, reason: str, message: str) -> None:
        """Record an event of a pod."""
        metadata, now = pod["metadata"], stamp(time.time())
        event: Json = {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {
                "namespace": metadata["namespace"],
                "generateName": f"{metadata['name'][:40]}.",
            },
            "involvedObject": {
                "kind": "Pod",
                "apiVersion": "v1",
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
            },
            "reason": reason,
            "message": message[:1000],
            "type": "Warning" if reason != "Killing" else "Normal",
            "source": {"component": "kubelet", "host": self._node.name},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        with suppress(BedError, urllib3.exceptions.HTTPError):
            self.api.create(event)

    def _take(self, change: str, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        thread = self._pods.get(uid)
        if change == "DELETED":
            if thread is not None:
                thread.vanish()
                self._pods.pop(uid, None)
        elif thread is not None and thread.is_alive():
            thread.update(pod)
        elif thread is None and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            self._pods[uid] = PodThread(self, pod)
            self._pods[uid].start()
        else:
            self._forget(pod)

    def _forget(self, pod: Json) -> None:
        """A pod that has ended is removed as soon as somebody deletes it."""
        metadata = pod["metadata"]
        if "deletionTimestamp" in metadata:
            where = path("Pod", metadata["namespace"], metadata["name"])
            with suppress(BedError):
                self.api.delete(where, gracePeriodSeconds=0, preconditions={"uid": metadata["uid"]})

    def _renamed(self, _change: str, _document: Json) -> None:
        for thread in list(self._pods.values()):
            thread.write_hosts()

    def _register(self) -> None:
        node = self._node
        labels = {
            "kubernetes.io/hostname": node.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            **(node.labels or {}),
        }
        document: Json = {
            "kind": "Node",
            "apiVersion": "v1",
            "metadata": {"name": node.name, "labels": labels},
            "spec": {"taints": [dict(taint) for taint in node.taints]},
        }
        try:
            self.api.create(document)
        except ApiError as error:
            if error.status != 409:
                raise
        self._say_ready()

    def _say_ready(self) -> None:
        node, now = self._node, stamp(time.time())
        capacity = {
            "cpu": str(node.cpus),
            "memory": node.memory,
            "ephemeral-storage": node.disk,
            "pods": str(networks.PODS),
        }
        if node.gpus:
            capacity["nvidia.com/gpu"] = str(node.gpus)
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        status: Json = {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [ready],
            "addresses": [{"type": "InternalIP", "address": self.bridge.address}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._log_server.port}},
            "nodeInfo": _node_info(),
        }
        self.api.patch(path("Node", name=node.name) + "/status", {"status": status})

    def _beat(self) -> None:
        name = self._node.name
        lease = {
            "kind": "Lease",
            "apiVersion": "coordination.k8s.io/v1",
            "metadata": {"name": name, "namespace": LEASES},
            "spec": {
                "holderIdentity": name,
                "leaseDurationSeconds": 10,
                "renewTime": time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime()),
            },
        }
        where = path("Lease", LEASES, name)
        try:
            self.api.patch(where, lease)
        except ApiError as error:
            if error.status != 404:
                raise
            self.api.create(lease)
        found = self.api.find(path("Node", name=name))
        if found is None:
            self._register()
        elif not holds(found, "Ready"):
            self._say_ready()  # it was thought lost


def _node_info() -> dict[str, Any]:
    names = ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "kubeProxyVersion")
    return {
        **dict.fromkeys(names, "testbed"),
        "kubeletVersion": VERSION,
        "containerRuntimeVersion": "process://1",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }


def main(arguments: list[str]) -> None:
    """Be a node until killed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    Kubelet(json.loads(Path(arguments[0]).read_text())).work()


if __name__ == "__main__":
    main(sys.argv[1:])
