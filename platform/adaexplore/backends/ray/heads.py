"""Our own Ray: started for one launch, on loopback, and gone with it, however the launch ends.

Its processes live under a guard (see `backends.vllm.guard`, which is given here as a path): when the
launch closes the guard's pipe, or dies, everything below the guard is ended. The token that opens this
Ray lies in a file that only the user can read, and is made anew each time.
"""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adaexplore.errors import ClusterError

START_S: Final = 300.0
"""From start to address; a busy machine takes long."""
GRACE_S: Final = 5.0
STOP_S: Final = 30.0
_POLL_S: Final = 0.05
_PROGRAM: Final = Path(__file__).with_name("head_main.py")
_PREFIX: Final = "adaexplore-ray-"
"""Of folders below the system's temporary one: socket names must be short."""
_SHARED: Final = Path("/dev/shm")  # noqa: S108 (where Ray keeps its objects)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a Ray of our own is."""

    cpus: int
    object_store_mb: int
    dashboard: bool


def environment(token: Path) -> dict[str, str]:
    """What our own Ray and its driver have in their environment."""
    return {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
        "RAY_USAGE_STATS_ENABLED": "0",
        # By this variable Ray leaves 127.0.0.1 what it is; else it takes the machine's own address.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    }


@contextmanager
def token(folder: Path) -> Iterator[Path]:
    """A new token in a file of mode 600 below a folder, removed at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder.absolute() / f"token-{os.getpid()}"
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        os.write(handle, secrets.token_hex(32).encode())
        os.close(handle)
        yield path
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def running(size: Size, guard: Path) -> Iterator[str]:
    """HOST:PORT of a Ray that runs while the block does; its environment is this process's.

    Raises:
        ClusterError: It does not start, or there is too little shared memory.
    """
    _require_memory(size)
    _clean()
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    try:
        process = _start(folder, size, guard)
        try:
            yield _address(folder, process)
        finally:
            _stop(process)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _start(folder: Path, size: Size, guard: Path) -> "subprocess.Popen[bytes]":
    guarded = [sys.executable, "-I", "-S", str(guard), str(GRACE_S), str(os.getpid())]
    words = [
        *(sys.executable, "-P", str(_PROGRAM), str(folder), str(size.cpus)),
        *(str(size.object_store_mb * 2**20), "yes" if size.dashboard else "no"),
    ]
    with (folder / "head.log").open("wb") as log:
        return subprocess.Popen(  # noqa: S603 (our own words)
            [*guarded, *words],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            bufsize=0,
            start_new_session=True,
        )


def _address(folder: Path, process: "subprocess.Popen[bytes]") -> str:
    deadline_s = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline_s:
        with suppress(FileNotFoundError):
            return (folder / "address").read_text()
        time.sleep(_POLL_S)
    lines = (folder / "head.log").read_text(errors="replace").split("\n")
    told = next((line.strip() for line in reversed(lines) if line.strip()), "nothing was written")
    raise ClusterError(
        f"expected a Ray of our own to start within {START_S:.0f} s, got: {told[:200]}; see "
        "'df /dev/shm' and 'ulimit -n', or give the address of another with backend.ray.address"
    )


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """End it with everything below, and wait until it has ended."""
    assert process.stdin is not None  # noqa: S101 (it is a pipe)
    process.stdin.close()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        raise ClusterError(
            f"Ray's processes below process {process.pid} do not end although they were told to: "
            "end them by hand before launching again"
        ) from None


def _require_memory(size: Size) -> None:
    if not _SHARED.is_dir():
        return
    free_mb = shutil.disk_usage(_SHARED).free // 2**20
    if free_mb < size.object_store_mb:
        raise ClusterError(
            f"{_SHARED}: expected {size.object_store_mb} MB free for Ray's object store, got "
            f"{free_mb} MB: make room there (in a container: --shm-size=256m)"
        )


def _clean() -> None:
    """Remove the folders of launches that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        pid = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists():
            shutil.rmtree(folder, ignore_errors=True)
