"""The peers' packages: each peer in a folder of its own, since their pins need not agree with ours.

Versions are those of `requirements-bench.txt`. A peer that cannot be installed is left out of the
table, and the table and the terminal say so.
"""

import re
import subprocess
import sys

from tests.benchmarks.children import ROOT

FOLDER = ROOT / ".bench"
NEEDS = {
    "aiohttp": (),  # among what we depend on ourselves
    "openai": ("openai",),
    "litellm": ("litellm",),
    "inspect": ("inspect-ai", "openai"),  # its provider for our protocol is the openai SDK
}
"""By peer, the packages that it is made of."""


class MissingPeerError(Exception):
    """A peer that is not there and cannot be installed."""


def pins():
    """Requirement by package name, as `requirements-bench.txt` pins them."""
    lines = (ROOT / "requirements-bench.txt").read_text().splitlines()
    wanted = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return {re.split(r"[=<>]", line)[0]: line for line in wanted}


def version(peer):
    """The version that a peer is pinned to, or that we have ourselves."""
    from importlib import metadata

    package = NEEDS[peer][0] if NEEDS[peer] else peer
    return pins()[package].partition("==")[2] if NEEDS[peer] else metadata.version(package)


def paths(peer):
    """Folders in which a peer's modules are found; it is installed if need be (MissingPeerError)."""
    if not NEEDS[peer]:
        return []
    wanted = [pins()[name] for name in NEEDS[peer]]
    folder = FOLDER / peer
    mark = folder / ".installed"
    if not mark.exists() or mark.read_text() != "\n".join(wanted):
        _install(peer, wanted, folder)
        mark.write_text("\n".join(wanted))
    return [folder]


def _install(peer, wanted, folder):
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*command, "--upgrade", "--target", folder, *wanted],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise MissingPeerError(f"{peer} ({', '.join(wanted)}) cannot be installed: {last}")
