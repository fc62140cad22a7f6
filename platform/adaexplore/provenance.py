"""Where a launch came from: versions, commit and digests, recorded with it, never part of any identity.

A commit names code only where there is a checkout without changes. So the sources that run are
digested as well, wherever they are installed: equal digests mean equal code, with git or without.
"""

import hashlib
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from adaexplore.benchmark.game import prompts
from adaexplore.benchmark.game.protocol import PROTOCOL_VERSION
from adaexplore.experiments import identity
from adaexplore.experiments.config import SweepConfig
from adaexplore.models.profiles import VllmProfile

PACKAGE = Path(__file__).parent
CHECKOUT = PACKAGE.parent.parent
IMAGE_VARIABLE = "ADAEXPLORE_IMAGE_DIGEST"
"""Set in a container image that knows its own digest."""


def collect() -> dict[str, Any]:
    """Versions, commit and digests of the code that runs; None for what cannot be known."""
    status = _git("status", "--porcelain")
    return {
        "adaexplore": _version("adaexplore"),
        "python": ".".join(map(str, sys.version_info[:3])),
        "numpy": _version("numpy"),
        "scipy": _version("scipy"),
        "commit": _git("rev-parse", "HEAD"),
        "dirty": None if status is None else bool(status),
        "source_sha256": source_digest(PACKAGE),
        "lock_sha256": _lock_digest(),
        "image": os.environ.get(IMAGE_VARIABLE) or None,
        "identity_version": identity.IDENTITY_VERSION,
        "protocol_version": PROTOCOL_VERSION,
        "prompts_sha256": prompts.DIGEST,
    }


def source_digest(package: Path) -> str:
    """SHA-256 of all Python files of a package folder with their names, in hex."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(package).as_posix()}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


def model_contents(config: SweepConfig) -> dict[str, dict[str, str | None]]:
    """What is known of the contents of served models, by profile name; None for what is not.

    A folder's digest stands in the profile already; a revision of a repository may be a name, such as
    a branch, and the commit that it means on this machine is looked up.
    """
    return {
        name: {
            "weights": _weights(profile),
            "chat_template": profile.weights.chat_template_digest,
        }
        for name, profile in config.models.items()
        if isinstance(profile, VllmProfile)
    }


def _weights(profile: VllmProfile) -> str | None:
    from adaexplore.backends.vllm import fingerprints

    folder = fingerprints.weights_folder(profile)
    if folder is not None and folder.parent.name == "snapshots":
        return folder.name
    return profile.revision


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
    """Of the checkout's lock; where there is none, of the one that the installed package carries."""
    found = [
        path for folder in (CHECKOUT, PACKAGE) if (path := folder / "requirements.lock").is_file()
    ]
    return hashlib.sha256(found[0].read_bytes()).hexdigest() if found else None
