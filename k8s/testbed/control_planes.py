"""etcd, API server, controller manager and scheduler as processes of this machine.

They listen on loopback and on the bridge of the pods (`networks`), nowhere else. The API server
speaks TLS with a certificate that it makes for itself, authorises by Node and RBAC, and knows its
users from a token file: an administrator, the nodes, the operator, and any plain users that a test
names, who may do nothing until a RoleBinding says so. All of it is in one folder and dies with the
process that started it.

Source: the programs' `--help`; control-plane notes of the project.
"""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from k8s.testbed import networks
from k8s.testbed.api import Access, Api
from k8s.testbed.faults import BedError

ADMIN: Final = "admin"
OPERATOR: Final = "ray-operator"
NODE_PREFIX: Final = "system:node:"
SERVICES: Final = "198.19.0.0/24"
"""Virtual addresses of Services. Nothing routes them: a name leads to ready pods (`hosts`)."""
GATES: Final = "TTLAfterFinished=true,BoundServiceAccountTokenVolume=true"
LISTENERS: Final = ("etcd", "peers", "api")
FIRST_PORT: Final = 16_000
PORTS: Final = 20
"""Of each bridge, of which three are taken."""
LOST_S: Final = 16
"""A node that is silent for so long is lost; more than a restart of the API server, which silences all."""
EVICTED_S: Final = 6
"""Seconds that pods of a lost node are given, unless they say otherwise: one that was only slow is back."""
READY_S: Final = 300.0
LAUNCHER: Final = Path(__file__).with_name("launcher.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a control plane lives."""

    folder: Path
    programs: Path
    """`kube-apiserver` and the others."""
    bridge: networks.Bridge
    ports: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        """Choose ports."""
        object.__setattr__(self, "ports", ports(self.bridge))

    @property
    def server(self) -> str:
        """The API server's address, the same from here and from pods."""
        return f"https://{self.bridge.address}:{self.ports['api']}"

    @property
    def ca_file(self) -> Path:
        """What its certificate is checked with."""
        return self.folder / "certificates" / "apiserver.crt"


class ControlPlane:
    """Started in two steps: the API server, then (when the CRDs are there) what acts on it."""

    def __init__(self, site: Site, users: Iterable[str] = ()) -> None:
        """Prepare; `users` are plain users beside the administrator and the operator."""
        self.site = site
        self.tokens = {name: secrets.token_hex(16) for name in (ADMIN, OPERATOR, *users)}
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def add_node(self, name: str) -> str:
        """The user of a node; before `start_api`."""
        user = f"{NODE_PREFIX}{name}"
        self.tokens[user] = secrets.token_hex(16)
        return user

    def access(self, user: str) -> Access:
        """How a user calls the API server."""
        site = self.site
        return Access(server=site.server, ca_file=str(site.ca_file), token=self.tokens[user])

    def kubeconfig(self, user: str) -> Path:
        """A file for clients that take one; readable by its owner only."""
        path = self.site.folder / f"{user.replace(':', '-')}.kubeconfig"
        return write_kubeconfig(path, self.access(user))

    def start_api(self) -> None:
        """Etcd and the API server, until it answers.

        Raises:
            BedError: It does not, or ends; shows the end of its log.
        """
        self._files()
        self._start("etcd", _etcd(self.site))
        self._start("kube-apiserver", _api_server(self.site))
        self._await()

    def stop_api(self) -> None:
        """The API server is away, as while it is upgraded; what it knows is kept."""
        child = self._children.pop("kube-apiserver")
        child.kill()
        child.wait()

    def resume_api(self) -> None:
        """It is back, and answers."""
        self._start("kube-apiserver", _api_server(self.site))
        self._await()

    def start_controllers(self) -> None:
        """The controller manager and the scheduler."""
        config = str(self.kubeconfig(ADMIN))
        self._start("kube-controller-manager", _controllers(self.site, config))
        self._start("kube-scheduler", _scheduler(self.site, config))

    def stop(self) -> None:
        """End all of it. Nothing of it is kept, so nobody is asked to end in order."""
        for child in self._children.values():
            child.kill()
        for child in self._children.values():
            child.wait()
        self._children.clear()

    def _start(self, name: str, words: list[str]) -> None:
        with (self.site.folder / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-I", "-S", str(LAUNCHER), "tied", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.site.folder,
                env={"PATH": os.environ["PATH"], "HOME": str(self.site.folder), "GOGC": "50"},
                start_new_session=True,
            )
        self._children[name] = child

    def _files(self) -> None:
        folder = self.site.folder
        (folder / "certificates").mkdir(parents=True)
        key = str(folder / "accounts.key")
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        rows = [_row(user, token) for user, token in self.tokens.items()]
        _private(folder / "tokens.csv", "\n".join(rows) + "\n")

    def _await(self) -> None:
        deadline = time.monotonic() + READY_S
        while True:
            for name in ("etcd", "kube-apiserver"):
                if self._children[name].poll() is not None:
                    raise BedError(f"{name} ended: {self._tail(name)}")
            if self._answers():
                return
            if time.monotonic() > deadline:
                raise BedError(f"no API server in {READY_S:.0f} s: {self._tail('kube-apiserver')}")
            time.sleep(0.1)

    def _answers(self) -> bool:
        if not self.site.ca_file.is_file():
            return False
        try:
            return Api(self.access(ADMIN)).text("/readyz") == "ok"
        except (BedError, OSError, ValueError):
            return False
        except Exception as error:
            if type(error).__module__.startswith("urllib3"):
                return False  # it does not listen yet
            raise

    def _tail(self, name: str) -> str:
        lines = (self.site.folder / f"{name}.log").read_text(errors="replace").splitlines()
        return " | ".join(lines[-5:])


def write_kubeconfig(path: Path, access: Access) -> Path:
    """A kubeconfig (YAML, in its JSON form) for one user."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "testbed",
                "cluster": {"server": access.server, "certificate-authority": access.ca_file},
            }
        ],
        "users": [{"name": "user", "user": {"token": access.token}}],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": "user"}}],
        "current-context": "testbed",
    }
    return _private(path, json.dumps(document, indent=1) + "\n")


def ports(bridge: networks.Bridge) -> dict[str, int]:
    """Ports by what listens on them: of no other bed, and none that the system gives to others.

    A port that was free a moment ago may be given away before it is listened on, and while the API
    server is away whoever calls it may be given the very port that it calls. So they are below the
    range of ports that are given, and each bridge has some of its own.
    """
    own = range(FIRST_PORT + PORTS * bridge.number, FIRST_PORT + PORTS * (bridge.number + 1))
    free = [port for port in own if _free("127.0.0.1", port) and _free(bridge.address, port)]
    if len(free) < len(LISTENERS):
        raise BedError(f"expected {len(LISTENERS)} free ports in {own}, found {len(free)}")
    return dict(zip(LISTENERS, free, strict=False))


def _free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def _row(user: str, token: str) -> str:
    groups = {ADMIN: "system:masters"}.get(user, "")
    if user.startswith(NODE_PREFIX):
        groups = "system:nodes"
    return f'{token},{user},{user},"{groups}"' if groups else f"{token},{user},{user}"


def _private(path: Path, text: str) -> Path:
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def _etcd(site: Site) -> list[str]:
    client, peer = (f"http://127.0.0.1:{site.ports[name]}" for name in ("etcd", "peers"))
    return [
        "etcd",
        f"--data-dir={site.folder / 'etcd'}",
        "--unsafe-no-fsync",  # a lost machine loses the cluster, which is a test's
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
    ]


def _api_server(site: Site) -> list[str]:
    key = site.folder / "accounts.key"
    return [
        str(site.programs / "kube-apiserver"),
        f"--etcd-servers=http://127.0.0.1:{site.ports['etcd']}",
        f"--bind-address={site.bridge.address}",
        f"--advertise-address={site.bridge.address}",
        f"--secure-port={site.ports['api']}",
        f"--cert-dir={site.ca_file.parent}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        f"--token-auth-file={site.folder / 'tokens.csv'}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--service-cluster-ip-range={SERVICES}",
        f"--default-not-ready-toleration-seconds={EVICTED_S}",
        f"--default-unreachable-toleration-seconds={EVICTED_S}",
        f"--feature-gates={GATES}",
        "--allow-privileged=true",
        "--profiling=false",
    ]


def _controllers(site: Site, config: str) -> list[str]:
    return [
        str(site.programs / "kube-controller-manager"),
        f"--kubeconfig={config}",
        "--leader-elect=false",
        "--port=0",
        "--secure-port=0",
        f"--service-account-private-key-file={site.folder / 'accounts.key'}",
        f"--root-ca-file={site.ca_file}",
        "--node-monitor-period=1s",
        f"--node-monitor-grace-period={LOST_S}s",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        f"--feature-gates={GATES}",
        "--profiling=false",
    ]


def _scheduler(site: Site, config: str) -> list[str]:
    return [
        str(site.programs / "kube-scheduler"),
        f"--kubeconfig={config}",
        "--leader-elect=false",
        "--port=0",
        "--secure-port=0",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        "--profiling=false",
    ]
