"""The control plane's programs, built once from Debian's source package and kept.

Problem: there is no binary package of the API server in Debian 12, and building takes minutes.

Idea: the source is fetched by package name through apt, with a list of sources of our own beside the
machine's (its own are not touched), built by the package's own Makefile, and kept outside the
checkout in one folder per package version, with a digest for each program. What is damaged, of
another recipe, or does not run is built again; two builders wait for each other.

Recipe 1: the vendored reflect2 is replaced by Debian's. With Go 1.18 and newer the vendored one
crashes the API server as soon as large CRDs are used.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from k8s.testbed.faults import BedError

PROGRAMS: Final = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
RECIPE: Final = 1
"""Raised when the way they are built changes."""
SOURCE: Final = "kubernetes"
PACKAGES: Final = (
    "golang-go",
    "golang-github-modern-go-reflect2-dev",
    "etcd-server",
    "iproute2",
    "jq",
    "openssl",
    "rsync",
)
"""What building and running needs from Debian; `make test-cluster` installs what is missing."""
REFLECT: Final = "github.com/modern-go/reflect2"
GO_PATH: Final = Path("/usr/share/gocode/src")
LIMIT_S: Final = 3300
"""The build itself: five minutes on two idle cores."""
SOURCES: Final = Path("/etc/apt")


def cache() -> Path:
    """Where the programs are kept, outside any checkout."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "adaexplore" / "control-plane"


def ensure(folder: Path | None = None) -> Path:
    """The folder with the programs, built if there is none that can be trusted.

    Raises:
        BedError: It cannot be built here; says what to do.
    """
    home = folder or cache()
    home.mkdir(parents=True, exist_ok=True)
    with _alone(home):
        return kept(home) or _build(home)


def kept(home: Path) -> Path | None:
    """The newest folder whose programs are the ones that were built; damaged ones are removed."""
    manifests = sorted(home.glob("*/manifest.json"), key=lambda path: path.stat().st_mtime)
    for manifest in reversed(manifests):
        if trusted(manifest.parent):
            return manifest.parent
        print(f"control plane: {manifest.parent} is damaged; building it again", file=sys.stderr)
        shutil.rmtree(manifest.parent)
    return None


def trusted(folder: Path) -> bool:
    """Whether every program has the digest of its build and runs."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        same = manifest["recipe"] == RECIPE and set(manifest["digests"]) == set(PROGRAMS)
        return same and all(
            digest == _digest(folder / name) and _runs(folder / name)
            for name, digest in manifest["digests"].items()
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _build(home: Path) -> Path:
    if needed := missing():
        raise BedError(f"the test control plane needs packages: apt-get install {' '.join(needed)}")
    begun, work = time.monotonic(), home / "building"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    try:
        version, archive = _fetch(work)
        print(f"control plane: building {SOURCE} {version} (some minutes, once)", file=sys.stderr)
        made = work / "made"
        made.mkdir()
        _compile(_unpack(archive, work / "tree"), work, made)
        manifest = {
            "recipe": RECIPE,
            "package": f"{SOURCE} {version}",
            "source": _digest(archive),
            "go": _run(["go", "version"], work).strip(),
            "seconds": round(time.monotonic() - begun),
            "digests": {name: _digest(made / name) for name in PROGRAMS},
        }
        (made / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
        target = home / version
        shutil.rmtree(target, ignore_errors=True)
        made.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)  # the tree and the compiler's cache are 2 GB
    if not trusted(target):
        raise BedError(f"{target}: built, but the programs do not run; see {target}/manifest.json")
    return target


def missing() -> list[str]:
    """The Debian packages that building and running needs and this machine has not.

    Raises:
        BedError: This is no Debian machine.
    """
    return [name for name in PACKAGES if not _installed(name)]


def _installed(name: str) -> bool:
    asked = ["dpkg-query", "--show", "--showformat=${Status}", name]
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, check=False)
    except OSError:
        raise BedError(
            "the test control plane needs Debian 12 with apt; there is none here"
        ) from None
    return answer.stdout.endswith(" installed")


def _fetch(work: Path) -> tuple[str, Path]:
    """The package's version and its upstream archive, whose signature chain apt has checked."""
    lists, downloads = work / "lists", work / "downloads"
    for folder in (lists / "partial", downloads):
        folder.mkdir(parents=True)
    (work / "sources.sources").write_text(_source_entries(SOURCES))
    apt = [
        "apt-get",
        f"-oDir::Etc::sourcelist={work / 'sources.sources'}",
        "-oDir::Etc::sourceparts=-",
        f"-oDir::State::lists={lists}",
        "-oAPT::Sandbox::User=root",
        "-qq",
    ]
    _run([*apt, "update"], work)
    _run([*apt, "source", "--download-only", SOURCE], downloads)
    (description,) = downloads.glob("*.dsc")
    (archive,) = downloads.glob("*.orig.tar.gz")
    line = next(
        line for line in description.read_text().splitlines() if line.startswith("Version:")
    )
    return line.removeprefix("Version:").strip(), archive


def _source_entries(folder: Path) -> str:
    """The machine's own Debian mirrors, asked for sources instead of binaries.

    Raises:
        BedError: The machine's lists are in a form that we do not read.
    """
    stanzas: list[str] = []
    for path in sorted((folder / "sources.list.d").glob("*.sources")):
        stanzas += path.read_text().split("\n\n")
    found = [_as_source(stanza) for stanza in stanzas if "debian" in stanza and "URIs:" in stanza]
    lines = []
    if (folder / "sources.list").is_file():
        lines = (folder / "sources.list").read_text().splitlines()
    found += [
        _stanza(line.split()) for line in lines if line.startswith("deb ") and "debian" in line
    ]
    if not found:
        raise BedError(f"{folder}: expected the lists of a Debian mirror; add one and try again")
    return "\n\n".join(found) + "\n"


def _as_source(stanza: str) -> str:
    lines = (line for line in stanza.splitlines() if line and not line.startswith("#"))
    return "\n".join("Types: deb-src" if line.startswith("Types:") else line for line in lines)


def _stanza(words: list[str]) -> str:
    plain = [word for word in words[1:] if not word.startswith(("[", "signed-by", "arch"))]
    return "\n".join(
        [
            "Types: deb-src",
            f"URIs: {plain[0]}",
            f"Suites: {plain[1]}",
            f"Components: {' '.join(plain[2:])}",
            "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg",
        ]
    )


def _unpack(archive: Path, tree: Path) -> Path:
    tree.mkdir()
    _run(["tar", "xzf", str(archive), "--strip-components=1"], tree)
    vendored = tree / "vendor" / REFLECT
    shutil.rmtree(vendored)
    shutil.copytree(GO_PATH / REFLECT, vendored, symlinks=False)
    return tree


def _compile(tree: Path, work: Path, made: Path) -> None:
    root = tree / ".go" / "src" / "k8s.io"
    root.mkdir(parents=True)
    (root / SOURCE).symlink_to(tree)
    more = {
        "GOPATH": str(tree / ".go"),
        "GOCACHE": str(work / "go-cache"),
        "CGO_ENABLED": "0",
        "GOPROXY": "off",  # everything is vendored
    }
    what = " ".join(f"cmd/{name}" for name in PROGRAMS)
    _run(["make", f"WHAT={what}", "GOLDFLAGS=-s -w"], tree, more=more, limit_s=LIMIT_S)
    for name in PROGRAMS:
        (tree / "_output" / "bin" / name).resolve().rename(made / name)


def _run(
    words: list[str], folder: Path, *, more: dict[str, str] | None = None, limit_s: float = 300
) -> str:
    log = folder / "command.log"
    try:
        with log.open("w") as output:
            subprocess.run(
                words,
                cwd=folder,
                env={**os.environ, **(more or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=limit_s,
                check=True,
            )
    except (OSError, subprocess.SubprocessError) as error:
        tail = " | ".join(log.read_text(errors="replace").splitlines()[-5:])
        raise BedError(f"control plane: {words[0]} {words[1]}: {error}; it said: {tail}") from None
    return log.read_text(errors="replace")


def _runs(program: Path) -> bool:
    try:
        words = [str(program), "--version"]
        answer = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return False
    return answer.stdout.startswith("Kubernetes v1.")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _alone(home: Path) -> Iterator[Any]:
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
