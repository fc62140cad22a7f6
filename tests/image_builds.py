"""The container image, built and entered without a container engine.

Problem: the Dockerfile must be known to work where there is no docker, and no image of a registry.

Idea: mmdebstrap makes a Debian to build on, buildah builds with chroot isolation, both from Debian
packages. How pip reaches its packages differs between machines, so the machine's own pip fetches what
the locks name into a folder beforehand; the build is given that folder and a pip.conf that knows no
other place. Images and containers are kept in a folder of their own, which goes at the end.
"""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
SUITE: Final = "bookworm"
"""Debian 12, whose Python is 3.11: pip fetches for the Python that runs it, so that must be one too."""
BASE_PACKAGES: Final = "python3,python3-venv,ca-certificates"
WHEELS: Final = "/mnt"
"""A place that every Debian has, so that no empty folder is left behind."""
BASE: Final = "localhost/base"
NAME: Final = "localhost/adaexplore"
"""Of this machine: buildah would look for shorter names in registries."""
SECONDS: Final = 1200
"""Limit of one step."""


class Image:
    """One built image with a container to run commands in; `discard` removes all of it."""

    def __init__(self, folder: Path, *, variables: dict[str, str], revision: str) -> None:
        """Build it below an empty folder, with further variables in the builder's environment."""
        assert sys.version_info[:2] == (3, 11), (
            "test-image needs Python 3.11: make PYTHON=python3.11"
        )
        self.folder = folder
        self.environment = {**os.environ, **variables}
        with ThreadPoolExecutor() as both:
            fetched = both.submit(_fetch, folder / "wheels")
            base = self._base()
            fetched.result()
        pip = folder / "pip.conf"
        pip.write_text(f"[global]\nno-index = true\nfind-links = {WHEELS}\n")
        self.buildah(
            "bud", "--pull-never", "--isolation", "chroot", "--build-arg", f"BASE={base}",
            "--build-arg", f"REVISION={revision}", "--secret", f"id=pip,src={pip}",
            "--volume", f"{folder / 'wheels'}:{WHEELS}:ro", "--tag", NAME, str(ROOT),
        )  # fmt: skip
        self.container = self.buildah("from", "--pull-never", NAME).strip()

    def buildah(self, *words: str) -> str:
        """Standard output of a buildah command that must succeed."""
        places = ["--root", self.folder / "storage", "--runroot", self.folder / "run"]
        done = subprocess.run(
            ["buildah", *places, *words],
            capture_output=True, text=True, check=False, timeout=SECONDS, env=self.environment,
        )  # fmt: skip
        assert 0 == done.returncode, (
            f"buildah {words[0]}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
        )
        return done.stdout

    def run(self, *command: str, user: str | None = None) -> subprocess.CompletedProcess[str]:
        """A command, run in the container as the image's user or another."""
        places = ["--root", self.folder / "storage", "--runroot", self.folder / "run"]
        given = ["--user", user] if user else []
        return subprocess.run(
            ["buildah", *places, "run", "--isolation", "chroot", *given, self.container, "--", *command],
            capture_output=True, text=True, check=False, timeout=SECONDS,
        )  # fmt: skip

    def output(self, *command: str, user: str | None = None) -> str:
        """Standard output of a command that must succeed."""
        done = self.run(*command, user=user)
        assert 0 == done.returncode, f"{command}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
        return done.stdout

    def document(self) -> dict[str, Any]:
        """What the image says of itself: configuration, labels, history."""
        document: dict[str, Any] = json.loads(self.buildah("inspect", "--type", "image", NAME))
        return document

    def files(self) -> Path:
        """The folder at which the container's files are seen from outside."""
        return Path(self.buildah("mount", self.container).strip())

    def _base(self) -> str:
        """The name of an image with a fresh Debian."""
        archive = self.folder / "base.tar"
        _must(
            "mmdebstrap",
            "--quiet",
            "--variant=minbase",
            f"--include={BASE_PACKAGES}",
            SUITE,
            archive,
        )
        container = self.buildah("from", "scratch").strip()
        self.buildah("add", "--quiet", container, str(archive), "/")
        self.buildah("commit", "--quiet", "--rm", container, BASE)
        archive.unlink()
        return BASE


def discard(folder: Path) -> None:
    """Remove the folder of an image, whether or not it could be built, with what is mounted in it."""
    places = ["--root", folder / "storage", "--runroot", folder / "run"]
    for words in (["rm", "--all"], ["rmi", "--all", "--force"]):
        subprocess.run(
            ["buildah", *places, *words], capture_output=True, check=False, timeout=SECONDS
        )
    shutil.rmtree(folder)


def _fetch(folder: Path) -> None:
    """All that the Dockerfile installs, by the machine's own pip, into a folder."""
    locks = (ROOT / f"requirements-{name}.lock" for name in ("build", "image"))
    download = (sys.executable, "-m", "pip", "download", "--quiet", "--dest", folder, "--no-deps")
    for lock in locks:
        _must(*download, "--require-hashes", "-r", lock)


def _must(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert 0 == done.returncode, f"{command[0]}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
