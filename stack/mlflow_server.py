"""The MLflow server, on PostgreSQL and the S3-compatible store.

Artifacts go through the server, not from its clients straight to S3: a client then needs neither
the key nor the address of the bucket, the stored addresses (`mlflow-artifacts:/...`) stay true when
the endpoint moves, and MLflow's page shows them in a browser. It costs bandwidth of the server,
which for tables and figures is nothing.

Two traps, both measured: without uvloop every kept connection stalls 44 ms a call when there are
several workers, so it is named and a server without it fails; and job execution, on by default,
adds eight processes and 1.9 GB.

Source: `mlflow server --help` of 3.17; libpq's password file keeps the password out of the URI.
"""

import http.client
import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from stack.keys import DATABASE, ROLE, Keys
from stack.layout import HOST, Ports
from stack.processes import Command, Site
from stack.seaweed import MLFLOW_BUCKET

WORKERS: Final = 2
_SEARCH: Final = "/api/2.0/mlflow/experiments/search"


class MlflowServer:
    """The tracking server."""

    key = "mlflow"
    number = signal.SIGTERM
    grace_s = 10.0
    ready_s = 300.0  # the first start makes some forty tables, on a machine that may be busy

    def __init__(self, site: Site, *, ports: Ports, keys: Keys) -> None:
        """Serve on loopback; the folder `site.home` holds nothing that lasts."""
        self.site = site
        self.ports: tuple[int, ...] = (ports.mlflow,)
        self._all = ports
        self._keys = keys

    def prepare(self) -> None:
        """Make its folder."""
        self.site.home.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def command(self) -> Iterator[Command]:
        """The server; it works in a folder of its own, not in the checkout, whose `platform` is ours."""
        options = {
            "host": HOST,
            "port": self.ports[0],
            "workers": WORKERS,
            "uvicorn-opts": "--loop uvloop --no-access-log",
            "allowed-hosts": "127.0.0.1,127.0.0.1:*,localhost,localhost:*",
            "artifacts-destination": f"s3://{MLFLOW_BUCKET}",
        }
        given = [f"--{name}={value}" for name, value in options.items()]
        words = [sys.executable, "-m", "mlflow", "server", *given]
        yield Command(words=words, environment=self._environment(), folder=self.site.home)

    def ask(self) -> None:
        """Search experiments, which asks the database.

        Raises:
            OSError: Not reached, or refused; the status is named.
            http.client.HTTPException: It answers something else than HTTP.
        """
        connection = http.client.HTTPConnection(HOST, self.ports[0], timeout=10)
        try:
            body = json.dumps({"max_results": 1})
            connection.request("POST", _SEARCH, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            if answer.status != http.HTTPStatus.OK:
                raise OSError(
                    f"status {answer.status}: {answer.read(200).decode(errors='replace')}"
                )
        finally:
            connection.close()

    def clear(self) -> None:
        """Nothing is left of it."""

    def _environment(self) -> dict[str, str]:
        uri = f"postgresql+psycopg2://{ROLE}@{HOST}:{self._all.postgres}/{DATABASE}"
        return {
            **self._keys.s3,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
            "AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required",
            "MLFLOW_BACKEND_STORE_URI": uri,
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "MLFLOW_S3_ENDPOINT_URL": f"http://{HOST}:{self._all.s3}",
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
            "PGPASSFILE": str(self._keys.pgpass),
            "TMPDIR": str(self.site.home),
        }
