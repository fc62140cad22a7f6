"""A whole test bed: control plane, nodes, operator, and the ways to disturb them.

    with Bed(folder, images=..., nodes=[Node(name="gpu-0", gpus=1)]) as bed:
        bed.admin.create({...})

Everything is in the folder and dies with this process. Start it from a thread that lives as long as
the bed: the kernel ties the processes to the thread that started them.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from adaexplore.backends.vllm import procfs
from k8s.testbed import builds, first_objects, images, log_server, networks
from k8s.testbed.api import Access, Api, Json, path
from k8s.testbed.control_planes import (
    ADMIN,
    LAUNCHER,
    OPERATOR,
    ControlPlane,
    Site,
    write_kubeconfig,
)
from k8s.testbed.faults import BedError
from k8s.testbed.kubelet import Node

CHECKOUT: Final = Path(__file__).parents[2]
NODE_S: Final = 180.0
ACCOUNT_S: Final = 180.0


class Bed:
    """See the module."""

    def __init__(
        self,
        folder: Path,
        *,
        nodes: Iterable[Node],
        table: Mapping[str, images.Image],
        users: Iterable[str] = (),
        programs: Path | None = None,
    ) -> None:
        """Prepare; `start` starts. `users` may do nothing until a RoleBinding lets them."""
        self.folder = folder.absolute()
        self.logs = self.folder / "logs"
        self.nodes = {node.name: node for node in nodes}
        self._table, self._users = table, tuple(users)
        self._programs = programs
        self._kubelets: dict[str, subprocess.Popen[bytes]] = {}
        self._operator: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """From nothing to nodes that are ready.

        Raises:
            BedError: Something does not start; says what, and shows the end of its log.
        """
        self.logs.mkdir(parents=True, exist_ok=True)
        programs = self._programs or builds.ensure()
        self.bridge = networks.build()
        try:
            site = Site(folder=self.folder, programs=programs, bridge=self.bridge)
            self.plane = ControlPlane(site, self._users)
            for name in self.nodes:
                self.plane.add_node(name)
            self.plane.start_api()
            self.admin = Api(self.plane.access(ADMIN))
            first_objects.create(self.admin)
            self.plane.start_controllers()
            images.save(self.folder / "images.json", self._table)
            for name in self.nodes:
                self.start_node(name)
            for name in self.nodes:
                self._await_node(name)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End all of it, pods first."""
        self._kill_nodes(list(self._kubelets))
        self.kill_operator()
        if hasattr(self, "plane"):
            self.plane.stop()
        self.bridge.remove()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # -- users -----------------------------------------------------------------------------------

    def as_user(self, user: str) -> Api:
        """Calls of one user."""
        return Api(self.plane.access(user))

    def kubeconfig(self, user: str = ADMIN) -> Path:
        """A file for clients that take one."""
        return self.plane.kubeconfig(user)

    def as_account(self, namespace: str, account: str) -> Access:
        """How a service account calls the API server, with a token of its own for an hour."""
        body: Json = {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "spec": {"audiences": [], "expirationSeconds": 3600},
        }
        where = path("ServiceAccount", namespace, account) + "/token"
        token = self.admin.call("POST", where, body)["status"]["token"]
        site = self.plane.site
        return Access(server=site.server, ca_file=str(site.ca_file), token=token)

    def account_kubeconfig(self, namespace: str, account: str) -> Path:
        """The same as a file."""
        file = self.folder / f"account-{namespace}-{account}.kubeconfig"
        return write_kubeconfig(file, self.as_account(namespace, account))

    def namespace(self, name: str) -> str:
        """A new namespace in which pods can be made; its name."""
        self.admin.create({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}})
        for kind, needed in (("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")):
            self.admin.wait(path(kind, name, needed), lambda found: found is not None, ACCOUNT_S)
        return name

    # -- nodes -----------------------------------------------------------------------------------

    def start_node(self, name: str) -> None:
        """Switch a node on, for the first time or again."""
        settings = self._node_settings(name)
        file = self.folder / f"{name}.settings.json"
        file.touch(mode=0o600)
        file.write_text(json.dumps(settings))
        words = ["node", sys.executable, "-m", "k8s.testbed.kubelet", str(file)]
        self._kubelets[name] = self._launch(words, f"kubelet-{name}")

    def kill_node(self, name: str) -> None:
        """Power loss: the node and all its pods are gone, and nobody is told."""
        self._kill_nodes([name])

    def freeze_node(self, name: str) -> None:
        """A lost network: no heartbeat and no word from the node, while its pods go on."""
        self._signal(name, signal.SIGSTOP)

    def thaw_node(self, name: str) -> None:
        """The network is back."""
        self._signal(name, signal.SIGCONT)

    def drain(self, namespace: str, pod: str) -> None:
        """Evict a pod through the API."""
        self.admin.evict(namespace, pod)

    def log(self, namespace: str, pod: str, container: str) -> str:
        """What a container has said, also after its end."""
        file = log_server.newest(self.logs, namespace, pod, container)
        return file.read_text(errors="replace") if file else ""

    # -- the operator ----------------------------------------------------------------------------

    def start_operator(self) -> None:
        """Begin to act on RayJobs; needs their CRD."""
        file = self.folder / "operator.json"
        file.touch(mode=0o600)
        file.write_text(json.dumps(asdict(self.plane.access(OPERATOR))))
        words = ["tied", sys.executable, "-m", "k8s.testbed.ray_operator", str(file)]
        self._operator = self._launch(words, "ray-operator")

    def kill_operator(self) -> None:
        """As when its pod is lost."""
        if self._operator is not None:
            self._operator.kill()
            self._operator.wait()
            self._operator = None

    def _node_settings(self, name: str) -> Json:
        folder = self.folder / "nodes" / name
        folder.mkdir(parents=True, exist_ok=True)
        return {
            "access": asdict(self.plane.access(f"system:node:{name}")),
            "images": str(self.folder / "images.json"),
            "bridge": self.bridge.number,
            "folder": str(folder),
            "logs": str(self.logs),
            "index": list(self.nodes).index(name),
            "node": asdict(self.nodes[name]),
            "certificate": str(self.plane.site.ca_file.with_suffix("")),
        }

    def _launch(self, words: list[str], log: str) -> subprocess.Popen[bytes]:
        places = [str(CHECKOUT), str(CHECKOUT / "platform")]
        with (self.folder / f"{log}.log").open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", str(LAUNCHER), *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(places)},
                start_new_session=True,
            )

    def _await_node(self, name: str) -> None:
        def ready(node: Json | None) -> bool:
            if self._kubelets[name].poll() is not None:
                lines = (self.folder / f"kubelet-{name}.log").read_text().splitlines()
                raise BedError(f"node {name} ended: {' | '.join(lines[-5:])}")
            return first_objects.is_ready(node)

        self.admin.wait(path("Node", name=name), ready, NODE_S, "the node to be ready")

    def _kill_nodes(self, names: Iterable[str]) -> None:
        """Kill them together, since the kernel takes its time to take namespaces down."""
        killed = []
        for child in [self._kubelets.pop(name) for name in names]:
            killed.append(self._kubelet_pid(child))
            child.kill()
            child.wait()
        for pid in killed:
            if pid is not None:
                _await_end(pid)

    def _signal(self, name: str, number: signal.Signals) -> None:
        pid = self._kubelet_pid(self._kubelets[name])
        if pid is None:
            raise BedError(f"node {name} does not run")
        os.kill(pid, number)

    @staticmethod
    def _kubelet_pid(launcher: subprocess.Popen[bytes]) -> int | None:
        below = [one.pid for one in procfs.tree(launcher.pid) if one.parent == launcher.pid]
        return below[0] if below else None


def _await_end(pid: int) -> None:
    """Until the kernel has ended everything of a node."""
    deadline = time.monotonic() + NODE_S
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() > deadline:
            raise BedError(f"process {pid} was killed and does not end")
        time.sleep(0.02)
