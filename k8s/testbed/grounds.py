"""What a pod stands on while it runs: a process that holds its network and name, an address, volumes.

It is made before the first container and taken away after the last; nothing of it stays.
"""

import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from k8s.testbed import images, networks, volumes
from k8s.testbed.api import Api, Json, path
from k8s.testbed.environments import Place
from k8s.testbed.faults import ApiError
from k8s.testbed.processes import Sandbox


class Host(Protocol):
    """What a pod asks of its node."""

    api: Api
    table: Mapping[str, images.Image]
    folder: Path
    logs: Path
    bridge: networks.Bridge

    def take_address(self) -> str:
        """An address for a new pod."""

    def take_gpus(self, pod: str, count: int) -> str | None:
        """Ids of free GPUs, None if there are too few."""

    def give_back(self, pod: str) -> None:
        """The pod's GPUs are free."""

    def names(self, namespace: str) -> str:
        """Lines for /etc/hosts."""

    def links(self, namespace: str) -> dict[str, str]:
        """Variables for the services of a namespace."""

    def tell(self, pod: Json, reason: str, message: str) -> None:
        """Record an event."""


class Ground:
    """See the module."""

    def __init__(self, host: Host, pod: Json, gpus: str) -> None:
        """Network and name, at once; the volumes come with `fill`."""
        self.gpus = gpus
        self.volumes: Mapping[str, Path] = {}
        self._host, self._pod = host, pod
        uid = pod["metadata"]["uid"]
        self._namespace: str = pod["metadata"]["namespace"]
        self.folder = host.folder / "pods" / uid
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in ("hosts", "resolv.conf"):
            (self.folder / name).touch()
        self._hostname = str(pod["spec"].get("hostname") or pod["metadata"]["name"])[:63]
        self.address, self._cable = host.take_address(), f"aev{uid.replace('-', '')[:11]}"
        self.sandbox = Sandbox(self._hostname)
        networks.attach(host.bridge, self.sandbox.pid, self.address, self._cable)
        self.write_hosts()

    def fill(self) -> None:
        """Make the volumes.

        Raises:
            MissingError: A ConfigMap, Secret or claim is not there: to be tried again.
        """
        self.volumes = volumes.prepare(self.folder / "volumes", self.place(), self._token)

    def place(self) -> Place:
        """What the pod is told of where it is."""
        return Place(
            pod=self._pod,
            address=self.address,
            host=self._host.bridge.address,
            read=self._read,
        )

    def write_hosts(self) -> None:
        """The pod's /etc/hosts, in place, since it is mounted."""
        own = f"127.0.0.1 localhost\n{self.address} {self._hostname}\n"
        for alias in self._pod["spec"].get("hostAliases", []):
            own += f"{alias['ip']} {' '.join(alias['hostnames'])}\n"
        text = (own + self._host.names(self._namespace)).encode()
        with contextlib.suppress(OSError), (self.folder / "hosts").open("r+b") as file:
            file.write(text)
            file.truncate()

    def close(self) -> None:
        """Take it all away."""
        networks.detach(self._cable)
        self.sandbox.close()
        volumes.discard(self.volumes)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _read(self, kind: str, name: str) -> Json | None:
        namespace = None if kind == "PersistentVolume" else self._namespace
        try:
            return self._host.api.find(path(kind, namespace, name))
        except ApiError as error:
            if error.status == 403:
                return None  # a node may read only what its pods name, and sees it with a delay
            raise

    def _token(self, source: Json) -> str:
        """A token of the pod's service account, bound to the pod."""
        metadata = self._pod["metadata"]
        account = self._pod["spec"].get("serviceAccountName", "default")
        reference = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"]}
        asked: Json = {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "spec": {
                "audiences": [source["audience"]] if "audience" in source else [],
                "expirationSeconds": source.get("expirationSeconds", 3600),
                "boundObjectRef": {**reference, "uid": metadata["uid"]},
            },
        }
        where = path("ServiceAccount", self._namespace, account) + "/token"
        return str(self._host.api.call("POST", where, asked)["status"]["token"])
