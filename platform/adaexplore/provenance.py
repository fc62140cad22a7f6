"""Where a launch came from: versions and commit, recorded with it, never part of any identity."""

import hashlib
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from adaexplore.benchmark.game import prompts
from adaexplore.benchmark.game.protocol import PROTOCOL_VERSION
from adaexplore.experiments import identity

CHECKOUT = Path(__file__).parent.parent.parent


def collect() -> dict[str, Any]:
    """Versions, commit and digests of the code that runs; None for what cannot be known."""
    status = _git("status", "--porcelain")
    return {
        "adaexplore": _version("adaexplore"),
        "python": ".".join(map(str, sys.version_info[:3])),
        "numpy": _version("numpy"),
        "commit": _git("rev-parse", "HEAD"),
        "dirty": None if status is None else bool(status),
        "lock_sha256": _lock_digest(),
        "identity_version": identity.IDENTITY_VERSION,
        "protocol_version": PROTOCOL_VERSION,
        "prompts_sha256": prompts.DIGEST,
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    """Output of a git command in the checkout; None outside one."""
    if not (CHECKOUT / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "-C", str(CHECKOUT), *arguments],
            capture_output=True, text=True, timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _lock_digest() -> str | None:
    path = CHECKOUT / "requirements.lock"
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
