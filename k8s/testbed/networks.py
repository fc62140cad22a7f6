"""The network of a test bed: a bridge on this machine, and a pair of cables for each pod.

The addresses are of 198.18.0.0/15, which is set aside for tests of network devices and is on no real
network (RFC 2544). Pods reach each other and this machine, and have no way further. A pod's hardware
address follows from its address, so that an address that is used again finds no stale neighbour.

A bridge is the one thing that outlives a killed process: it carries its maker's name, and the next
bed removes those whose maker is gone.
"""

import fcntl
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from adaexplore.backends.vllm import procfs
from k8s.testbed.faults import BedError

DEVICES: Final = "/sys/class/net"
"""Where the kernel lists this machine's networks; locked while one is made."""
PREFIX: Final = "aeb"
BEDS: Final = 64
"""How many beds can be on one machine at a time."""
NODES: Final = 6
PODS: Final = 40
"""Addresses of each node, used in turn."""
FIRST: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Bridge:
    """One bed's network."""

    number: int

    @property
    def name(self) -> str:
        """The bridge's name."""
        return f"{PREFIX}{self.number}"

    @property
    def address(self) -> str:
        """This machine's address on it."""
        return f"198.18.{self.number}.1"

    def pod_address(self, node: int, pod: int) -> str:
        """The address of the n-th pod that a node starts."""
        return f"198.18.{self.number}.{FIRST + node * PODS + pod % PODS}"

    def remove(self) -> None:
        """Take the bridge away, if it is there."""
        _ip("link", "delete", self.name, check=False)


def build() -> Bridge:
    """A new bridge, after those of ended processes were removed.

    Raises:
        BedError: This process may not make one.
    """
    with _alone():
        return _build([Bridge(number=number) for number in range(BEDS)])


def _build(bridges: list[Bridge]) -> Bridge:
    for bridge in bridges:
        if _abandoned(bridge):
            bridge.remove()
    for bridge in bridges:
        hardware = ("address", _hardware(bridge.address))  # else it changes with the pods' cables
        if _ip("link", "add", bridge.name, *hardware, "type", "bridge", check=False):
            continue
        _ip("link", "set", bridge.name, "alias", _maker())
        _ip("address", "add", f"{bridge.address}/24", "dev", bridge.name)
        _ip("link", "set", bridge.name, "up")
        return bridge
    raise BedError("cannot make a network bridge; the test bed needs root and Debian's iproute2")


def attach(bridge: Bridge, sandbox: int, address: str, cable: str) -> None:
    """Give a pod's network namespace, named by a process in it, its address.

    Raises:
        BedError: The system refuses; says what it said.
    """
    hardware = _hardware(address)
    _ip("link", "delete", cable, check=False)
    peer = ("peer", "name", "eth0", "address", hardware, "netns", str(sandbox))
    _ip("link", "add", cable, "type", "veth", *peer)
    _ip("link", "set", cable, "master", bridge.name, "up")
    inside = ["nsenter", f"--net=/proc/{sandbox}/ns/net", "ip"]
    _run([*inside, "address", "add", f"{address}/24", "dev", "eth0"])
    _run([*inside, "link", "set", "eth0", "up"])
    _run([*inside, "link", "set", "lo", "up"])


def detach(cable: str) -> None:
    """Take a pod's cable away; it also goes with its namespace."""
    _ip("link", "delete", cable, check=False)


@contextmanager
def _alone() -> Iterator[None]:
    """One builder at a time: what looks abandoned to two of them may be the first one's new bridge."""
    folder = os.open(DEVICES, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _hardware(address: str) -> str:
    """The hardware address that follows from an address."""
    return "02:ae:" + ":".join(f"{int(part):02x}" for part in address.split("."))


def _abandoned(bridge: Bridge) -> bool:
    try:
        with open(f"{DEVICES}/{bridge.name}/ifalias") as file:  # noqa: PTH123 (not a file)
            pid, _, started = file.read().strip().partition(":")
    except OSError:
        return False
    if not pid.isdigit():
        return False  # being made this moment
    process = procfs.read(int(pid))
    return process is None or str(process.started) != started


def _maker() -> str:
    me = procfs.read(os.getpid())
    return f"{os.getpid()}:{me.started if me else 0}"


def _ip(*words: str, check: bool = True) -> int:
    return _run(["ip", *words], check=check)


def _run(words: list[str], *, check: bool = True) -> int:
    answer = subprocess.run(words, capture_output=True, text=True, check=False)
    if check and answer.returncode:
        raise BedError(f"{' '.join(words)}: {answer.stderr.strip()}")
    return answer.returncode
