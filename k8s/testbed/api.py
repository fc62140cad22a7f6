"""A small client of the API server: plain documents in and out, and watches that end.

Every call has a deadline, and a watch is bounded by the server (`timeoutSeconds`) and by a read
time-out here, so that a silent connection is noticed. `Mirror` keeps a copy of a collection: it lists,
watches from there, and lists again when the server no longer has what it asks for (410).

Source: Kubernetes API concepts, "Efficient detection of changes".
"""

import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

import urllib3

from k8s.testbed.faults import ApiError, BedError

Json = dict[str, Any]
Query = Mapping[str, str]

KINDS: Final = {
    "Node": ("/api/v1", "nodes"),
    "Namespace": ("/api/v1", "namespaces"),
    "Pod": ("/api/v1", "pods"),
    "Service": ("/api/v1", "services"),
    "Endpoints": ("/api/v1", "endpoints"),
    "ConfigMap": ("/api/v1", "configmaps"),
    "Secret": ("/api/v1", "secrets"),
    "Event": ("/api/v1", "events"),
    "ServiceAccount": ("/api/v1", "serviceaccounts"),
    "ResourceQuota": ("/api/v1", "resourcequotas"),
    "PersistentVolume": ("/api/v1", "persistentvolumes"),
    "PersistentVolumeClaim": ("/api/v1", "persistentvolumeclaims"),
    "Job": ("/apis/batch/v1", "jobs"),
    "CronJob": ("/apis/batch/v1beta1", "cronjobs"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "Lease": ("/apis/coordination.k8s.io/v1", "leases"),
    "Role": ("/apis/rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    "ClusterRole": ("/apis/rbac.authorization.k8s.io/v1", "clusterroles"),
    "ClusterRoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings"),
    "PodDisruptionBudget": ("/apis/policy/v1beta1", "poddisruptionbudgets"),
    "CustomResourceDefinition": ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
    "RayJob": ("/apis/ray.io/v1", "rayjobs"),
    "RayCluster": ("/apis/ray.io/v1", "rayclusters"),
}
"""Where the objects of a kind are: group path and plural."""
WATCH_S: Final = 60
"""Seconds after which the server ends a watch, to be asked again."""
CALL_S: Final = 30.0
"""Seconds for one call."""
MERGE: Final = "application/merge-patch+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Where the API server is and who asks."""

    server: str
    ca_file: str
    token: str = field(repr=False)


def path(kind: str, namespace: str | None = None, name: str | None = None) -> str:
    """The path of a collection or, with a name, of an object."""
    group, plural = KINDS[kind]
    room = f"/namespaces/{namespace}" if namespace is not None else ""
    return f"{group}{room}/{plural}" + (f"/{name}" if name is not None else "")


def path_of(document: Json) -> str:
    """The path of an object."""
    metadata = document["metadata"]
    return path(document["kind"], metadata.get("namespace"), metadata["name"])


def holds(document: Json | None, kind: str) -> bool:
    """Whether a condition of an object's status is true."""
    conditions = (document or {}).get("status", {}).get("conditions") or []
    return any(one["type"] == kind and one["status"] == "True" for one in conditions)


class Api:
    """Calls as one user. Safe from many threads."""

    def __init__(self, access: Access) -> None:
        """Prepare; nothing is called yet."""
        self.access = access
        context = ssl.create_default_context(cafile=access.ca_file)
        self._pool = urllib3.PoolManager(maxsize=64, ssl_context=context, retries=False)

    def call(
        self,
        method: str,
        where: str,
        body: Json | None = None,
        *,
        content: str = "application/json",
    ) -> Json:
        """The server's answer as a document.

        Raises:
            ApiError: The answer is not a success.
            BedError: There is no answer.
        """
        try:
            answer = self._pool.request(
                method,
                self.access.server + where,
                body=None if body is None else json.dumps(body).encode(),
                headers=self._headers(content),
                timeout=CALL_S,
            )
        except urllib3.exceptions.HTTPError as error:
            raise BedError(f"{method} {where}: no answer from the API server: {error}") from None
        return _document(answer.status, answer.data, f"{method} {where}")

    def get(self, where: str) -> Json:
        """An object."""
        return self.call("GET", where)

    def find(self, where: str) -> Json | None:
        """An object, or None where there is none."""
        try:
            return self.call("GET", where)
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    def text(self, where: str) -> str:
        """An answer that is no document, such as a log."""
        answer = self._pool.request(
            "GET", self.access.server + where, headers=self._headers("*/*"), timeout=CALL_S
        )
        if answer.status >= 300:
            raise ApiError(answer.status, answer.data.decode(), f"GET {where}")
        return str(answer.data.decode())

    def items(self, where: str, **query: str) -> list[Json]:
        """The objects of a collection."""
        found = self.get(f"{where}?{urlencode(query)}")
        return list(found["items"])

    def create(self, document: Json) -> Json:
        """A new object, as the server made it."""
        namespace = document["metadata"].get("namespace")
        return self.call("POST", path(document["kind"], namespace), document)

    def patch(self, where: str, change: Json) -> Json:
        """An object after a merge patch."""
        return self.call("PATCH", where, change, content=MERGE)

    def delete(self, where: str, **options: Any) -> None:
        """Ask for an object's end; one that is gone already is fine."""
        try:
            self.call("DELETE", where, {"kind": "DeleteOptions", "apiVersion": "v1", **options})
        except ApiError as error:
            if error.status != 404:
                raise

    def evict(self, namespace: str, pod: str) -> None:
        """Evict a pod through the API, as a drain does.

        Raises:
            ApiError: Refused: 429 where a disruption budget does not allow it now.
        """
        body = {
            "apiVersion": "policy/v1beta1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
        }
        self.call("POST", path("Pod", namespace, pod) + "/eviction", body)

    def watch(
        self, where: str, version: str, seconds: float = WATCH_S, query: Query | None = None
    ) -> Iterator[Json]:
        """Changes after a version of the collection, until the server ends the watch.

        Raises:
            ApiError: The server refuses, with status 410 where the version is too old.
        """
        asked = {"watch": "1", "resourceVersion": version, "timeoutSeconds": str(int(seconds) or 1)}
        answer = self._pool.request(
            "GET",
            f"{self.access.server}{where}?{urlencode(asked | dict(query or {}))}",
            headers=self._headers("application/json"),
            timeout=urllib3.Timeout(connect=CALL_S, read=seconds + CALL_S),
            preload_content=False,
        )
        try:
            if answer.status != 200:
                _document(answer.status, answer.read(), f"watch {where}")
            for change in _lines(answer):
                if change["type"] == "ERROR":
                    raise ApiError(change["object"].get("code", 0), change["object"], where)
                yield change
        finally:
            answer.close()

    def wait(
        self, where: str, done: Callable[[Json | None], bool], seconds: float, what: str = ""
    ) -> Json | None:
        """An object as soon as something is true of it; None stands for "there is none".

        Raises:
            BedError: It did not come true in time; shows the last status seen.
        """
        collection, _, name = where.rpartition("/")
        deadline = time.monotonic() + seconds
        last: Json | None = None
        while (left := deadline - time.monotonic()) > 0:
            listed = self.get(
                f"{collection}?{urlencode({'fieldSelector': f'metadata.name={name}'})}"
            )
            last = next(iter(listed["items"]), None)
            if done(last):
                return last
            version, only = (
                listed["metadata"]["resourceVersion"],
                {"fieldSelector": f"metadata.name={name}"},
            )
            for change in self.watch(collection, version, min(left, WATCH_S), only):
                last = None if change["type"] == "DELETED" else change["object"]
                if done(last):
                    return last
        shown = json.dumps((last or {}).get("status"))[:600]
        raise BedError(f"{where}: waited {seconds:.0f} s for {what or 'a change'}; status {shown}")

    def _headers(self, content: str) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.access.token}",
            "Content-Type": content,
            "Accept": "application/json, */*",
        }


def _document(status: int, data: bytes, where: str) -> Json:
    try:
        body = json.loads(data)
    except ValueError:
        body = data.decode(errors="replace").strip()
    if status >= 300 or not isinstance(body, dict):
        raise ApiError(status, body, where)
    return body


def _lines(answer: urllib3.BaseHTTPResponse) -> Iterator[Json]:
    rest = b""
    for part in answer.stream(65_536):
        *whole, rest = (rest + part).split(b"\n")
        yield from (json.loads(line) for line in whole if line.strip())
