"""An MLflow server, over its REST interface.

One call is one request, with no retry behind it: the outbox decides. Files and traces go through
MLflow's own library in a process of its own, which knows every kind of artifact store.
Source: MLflow's documentation of its REST interface, version 2.0, unchanged through MLflow 3.
"""

import os
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import orjson
import urllib3

from adaexplore.backends.mlflow.child import Child
from adaexplore.backends.mlflow.library import deleted
from adaexplore.backends.mlflow.service import Conversation, Entry, Kind, Run, ServiceError, Status

API: Final = "/api/2.0/mlflow/"
PAGE: Final = 1000
HISTORY_PAGE: Final = 5000
CONNECT_S: Final = 5.0
READ_S: Final = 20.0
THREADS: Final = 8
_LATER: Final = frozenset((408, 425, 429, 500, 502, 503, 504))


class Rest:
    """A `Service` that is a server."""

    def __init__(self, uri: str, *, read_s: float = READ_S) -> None:
        """Use a server's address; nothing is asked yet."""
        self._uri = uri.rstrip("/")
        self._headers = {"Content-Type": "application/json", **_authorization()}
        self._pool = _pool(self._uri, read_s)
        self._child = Child(self._uri)

    def version(self) -> str:
        """The server's version, as it says."""
        return self._text("GET", "/version").strip()

    def experiments(self) -> None:
        """Ask for the first experiment: whether the interface is there, and open to us."""
        self._call("POST", "experiments/search", {"max_results": 1})

    def experiment(self, name: str, *, make: bool = True) -> str:
        """Id of an experiment, made if wanted; two that make it at once get the same."""
        try:
            found = self._call("GET", "experiments/get-by-name", {"experiment_name": name})
        except ServiceError as error:
            if error.kind != "gone" or not make:
                raise
        else:
            if found["experiment"].get("lifecycle_stage", "active") != "active":
                raise deleted(name)
            return str(found["experiment"]["experiment_id"])
        try:
            return str(self._call("POST", "experiments/create", {"name": name})["experiment_id"])
        except ServiceError as made:
            if made.kind != "exists":
                raise
            return self.experiment(name, make=False)

    def search(self, experiment_id: str, condition: str) -> Iterator[Run]:
        """All runs that meet a condition and are not deleted."""
        asked = {"experiment_ids": [experiment_id], "filter": condition, "max_results": PAGE}
        for page in self._pages("POST", "runs/search", asked):
            yield from map(_run, page.get("runs", ()))

    def create(self, experiment_id: str, name: str, start_ms: int, tags: Mapping[str, str]) -> str:
        """Id of a new run."""
        asked = {
            "experiment_id": experiment_id, "run_name": name, "start_time": start_ms, "tags": _listed(tags),
        }  # fmt: skip
        return str(self._call("POST", "runs/create", asked)["run"]["info"]["run_id"])

    def log(self, run_id: str, entry: Entry) -> None:
        """Log points, params and tags."""
        points = [
            {"key": name, "value": value, "timestamp": entry.time_ms, "step": step}
            for name, value, step in entry.points
        ]
        asked = {
            "run_id": run_id, "metrics": points,
            "params": _listed(entry.params or {}), "tags": _listed(entry.tags or {}),
        }  # fmt: skip
        self._call("POST", "runs/log-batch", asked)

    def end(self, run_id: str, status: Status, end_ms: int) -> None:
        """End a run, or begin it again."""
        asked = {"run_id": run_id, "status": status, "end_time": end_ms}
        self._call("POST", "runs/update", asked)

    def delete(self, run_id: str) -> None:
        """Delete a run."""
        self._call("POST", "runs/delete", {"run_id": run_id})

    def history(self, run_id: str, metric: str) -> list[tuple[int, float]]:
        """(step, value) of every point of a metric, sorted."""
        asked = {"run_id": run_id, "metric_key": metric, "max_results": HISTORY_PAGE}
        pages = self._pages("GET", "metrics/get-history", asked)
        found = [point for page in pages for point in page.get("metrics", ())]
        return sorted((int(point.get("step", 0)), float(point["value"])) for point in found)

    def upload(self, run_id: str, files: Mapping[str, bytes]) -> None:
        """Keep files of a run, by path."""
        self._child.upload(run_id, files)

    def trace(self, experiment_id: str, conversation: Conversation) -> None:
        """Keep a trace; the same one again changes nothing."""
        self._child.trace(experiment_id, conversation)

    def close(self) -> None:
        """Close connections and the library's process."""
        self._pool.clear()
        self._child.close()

    # -- requests ------------------------------------------------------------------------------

    def _pages(self, method: str, path: str, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
        token = ""
        while True:
            page = self._call(method, path, {**asked, "page_token": token} if token else asked)
            yield page
            token = page.get("next_page_token", "")
            if not token:
                return

    def _call(self, method: str, path: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        text = self._text(method, API + path, asked)
        try:
            found: dict[str, Any] = orjson.loads(text)
        except ValueError:
            raise self._foreign(path, 200, text) from None
        return found

    def _text(self, method: str, path: str, asked: Mapping[str, Any] | None = None) -> str:
        form: dict[str, Any] = (
            {"body": orjson.dumps(asked)} if method == "POST" else {"fields": asked}
        )
        try:
            answer = self._pool.request(
                method,
                self._uri + path,
                headers=self._headers,
                retries=False,
                redirect=False,
                **form,
            )
        except urllib3.exceptions.HTTPError as error:
            what = f"{self._uri}: {type(error).__name__}: {error}"
            raise ServiceError("again", what) from None
        text = answer.data.decode(errors="replace")
        if answer.status != 200:
            raise self._fault(path, answer.status, answer.headers.get("Retry-After"), text)
        return text

    def _fault(self, path: str, status: int, later: str | None, text: str) -> ServiceError:
        try:
            body = orjson.loads(text)
            code, message = str(body["error_code"]), str(body.get("message", ""))
        except (ValueError, KeyError, TypeError, AttributeError):
            code, message = "", ""
        if status in _LATER:
            seconds = float(later) if later and later.isdigit() else None
            what = f"{self._uri}{path}: HTTP {status} {message}"
            return ServiceError("again", what, seconds)
        if status in (401, 403):
            return ServiceError(
                "refused",
                f"{self._uri}: HTTP {status}, access refused: set MLFLOW_TRACKING_USERNAME and "
                "MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN, to what the server takes",
            )
        if not code:
            return self._foreign(path, status, text)
        return ServiceError(_kind(code, message), f"{self._uri}{path}: {code}: {message}")

    def _foreign(self, path: str, status: int, text: str) -> ServiceError:
        return ServiceError(
            "refused",
            f"{self._uri}{path}: expected MLflow's REST interface, got HTTP {status} with "
            f"{text[:60]!r}: correct tracking.uri=...",
        )


def _kind(code: str, message: str) -> Kind:
    if code == "RESOURCE_DOES_NOT_EXIST" or "must be in the 'active' state" in message:
        return "gone"
    return "exists" if code == "RESOURCE_ALREADY_EXISTS" else "refused"


def _run(found: dict[str, Any]) -> Run:
    info, data = found["info"], found.get("data", {})
    return Run(
        run_id=info["run_id"],
        name=info.get("run_name", ""),
        status=info["status"],
        start_ms=int(info.get("start_time", 0)),
        tags={tag["key"]: tag["value"] for tag in data.get("tags", ())},
        params={param["key"]: param["value"] for param in data.get("params", ())},
        metrics={metric["key"]: float(metric["value"]) for metric in data.get("metrics", ())},
    )


def _listed(pairs: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in pairs.items()]


def _authorization() -> dict[str, str]:
    """What MLflow's own variables say; never shown."""
    name, password = (
        os.environ.get(f"MLFLOW_TRACKING_{part}") for part in ("USERNAME", "PASSWORD")
    )
    if name and password:
        return {"Authorization": "Basic " + b64encode(f"{name}:{password}".encode()).decode()}
    token = os.environ.get("MLFLOW_TRACKING_TOKEN")
    return {"Authorization": f"Bearer {token}"} if token else {}


def _pool(uri: str, read_s: float) -> urllib3.PoolManager:
    """Connections, through a proxy and with the certificates that the environment names."""
    parts = urlsplit(uri)
    authority = os.environ.get("MLFLOW_TRACKING_SERVER_CERT_PATH") or os.environ.get(
        "REQUESTS_CA_BUNDLE"
    )
    options: dict[str, Any] = {
        "timeout": urllib3.Timeout(connect=CONNECT_S, read=read_s),
        "maxsize": THREADS,
        "ca_certs": authority,
    }
    if os.environ.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() == "true":
        options["cert_reqs"] = "CERT_NONE"
    proxy = getproxies().get(parts.scheme)
    if proxy and not proxy_bypass(parts.hostname or ""):
        return urllib3.ProxyManager(proxy, **options)
    return urllib3.PoolManager(**options)
