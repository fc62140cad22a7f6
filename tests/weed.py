"""A real S3 service for tests: SeaweedFS in one process, on loopback, with keys, data in a folder.

It listens on free ports, is killed with the process that started it, and can be killed and started
again on the same ports and data.
"""

import ctypes
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from loopback import free_ports

BINARY = Path(sys.executable).parent / "weed"
PORTS = ("s3", "master", "filer", "volume", "admin")
LOOPBACK = "127.0.0.1"
READY_S = 180
_DEATH_SIGNAL = 1


class Weed:
    """One service; `endpoint` is its address."""

    def __init__(self, folder: Path, keys: dict[str, str], host: str = LOOPBACK) -> None:
        """Start it with access keys and their secrets, all of them allowed everything."""
        self.host = host
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "keys.json").write_text(json.dumps(_identities(keys)))
        (folder / "keys.json").chmod(0o600)
        self.ports = free_ports(2 * len(PORTS))
        self.endpoint = f"http://{host}:{self.ports[0]}"
        self.process = self.start()

    def start(self) -> subprocess.Popen:
        """Start it, again or for the first time, and wait until it answers and takes what is written.

        It dies with the thread that calls this, so that must be one that lasts.
        """
        with (self.folder / "weed.log").open("ab") as log:
            self.process = subprocess.Popen(
                self._command(),
                env=os.environ | {"GOMEMLIMIT": "350MiB", "TMPDIR": str(self.folder)},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 (it calls nothing that takes a lock)
            )
        self._wait()
        return self.process

    def kill(self) -> None:
        """End it without a warning."""
        self.process.kill()
        self.process.wait()
        for port in self.ports:  # a fixed place, whatever TMPDIR says
            for left in Path("/tmp").glob(f"seaweedfs-*-grpc-{port}.sock"):  # noqa: S108
                left.unlink(missing_ok=True)

    def _command(self) -> list[str]:
        pairs = zip(PORTS, self.ports[::2], self.ports[1::2], strict=True)
        ports = [
            word
            for name, port, grpc in pairs
            for word in (f"-{name}.port={port}", f"-{name}.port.grpc={grpc}")
        ]
        return [
            str(BINARY), "mini", f"-dir={self.folder}", f"-ip={self.host}", f"-ip.bind={self.host}",
            "-master.telemetry=false", "-webdav=false", "-admin.ui=false", "-s3.port.iceberg=0",
            "-s3.port.lance=0", "-s3.autoCreateBucket=false", "-s3.config=keys.json",
            "-s3.localSocket=s3.sock", "-filer.localSocket=filer.sock", *ports,
        ]  # fmt: skip

    def _ready(self) -> bool:
        """Whether all parts answer, and the master knows a volume for what is written."""
        s3, master, filer = (self.ports[2 * PORTS.index(n)] for n in ("s3", "master", "filer"))
        status, assigned = _asked(self.host, master, "/dir/assign")
        return (
            status == 200
            and b'"fid"' in assigned
            and all(_asked(self.host, port, "/")[0] < 500 for port in (filer, s3))
        )

    def _wait(self) -> None:
        give_up = time.monotonic() + READY_S
        while not self._ready():
            if self.process.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError((self.folder / "weed.log").read_text()[-2000:])
            time.sleep(0.05)


def _asked(host: str, port: int, path: str) -> tuple[int, bytes]:
    """(status, body) of an answer; 503 where nobody answers."""
    connection = http.client.HTTPConnection(host, port, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return 503, b""
    finally:
        connection.close()


def _identities(keys: dict[str, str]) -> dict:
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    return {
        "identities": [
            {
                "name": name,
                "credentials": [{"accessKey": name, "secretKey": secret}],
                "actions": actions,
            }
            for name, secret in keys.items()
        ]
    }


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
