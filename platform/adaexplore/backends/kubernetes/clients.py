"""The objects of one namespace, as plain documents.

Nothing is watched: lists are asked for again and again, which cannot hang in silence as watches of the
Python client do (python issues 801, 2223), and a list that has grown too old between two pages (410) is
begun anew. Kinds go by the plural that roles use.

Source: Kubernetes API concepts ("Retrieving large results sets in chunks", "Dry-run").
"""

import json
from collections.abc import Mapping
from typing import Final, Self
from urllib.parse import urlencode

from adaexplore.backends.kubernetes import connections
from adaexplore.backends.kubernetes.calls import (
    CONFLICT,
    GONE,
    MISSING,
    PATIENCE_S,
    PLAIN,
    Caller,
    ConflictError,
    Json,
    RefusedError,
    UnreachableError,
)
from adaexplore.backends.kubernetes.connections import Connection

__all__ = ["Cluster", "ConflictError", "Json", "RefusedError", "UnreachableError", "connect"]

GROUPS: Final = {
    "namespaces": "/api/v1",
    "nodes": "/api/v1",
    "pods": "/api/v1",
    "services": "/api/v1",
    "events": "/api/v1",
    "secrets": "/api/v1",
    "serviceaccounts": "/api/v1",
    "resourcequotas": "/api/v1",
    "persistentvolumeclaims": "/api/v1",
    "jobs": "/apis/batch/v1",
    "leases": "/apis/coordination.k8s.io/v1",
    "rayjobs": "/apis/ray.io/v1",
    "rayclusters": "/apis/ray.io/v1",
    "localqueues": "/apis/kueue.x-k8s.io/v1beta1",
    "customresourcedefinitions": "/apis/apiextensions.k8s.io/v1",
    "selfsubjectaccessreviews": "/apis/authorization.k8s.io/v1",
}
"""Where the objects of a kind are."""
PAGE: Final = 500
RELISTS: Final = 5
MERGE: Final = "application/merge-patch+json"


def connect(
    namespace: str, context: str | None = None, *, patience_s: float = PATIENCE_S
) -> "Cluster":
    """A namespace of the cluster of this pod or, with a context or outside, of the kubeconfig's.

    Raises:
        ConfigError: The library is not installed; there is no such context.
        ClusterError: There is no kubeconfig, or it cannot be used.
    """
    return Cluster(connections.connect(context), namespace, patience_s=patience_s)


class Cluster:
    """One namespace of a cluster, for one event loop."""

    def __init__(
        self, connection: Connection, namespace: str, *, patience_s: float = PATIENCE_S
    ) -> None:
        """Prepare; nothing is called yet."""
        self.namespace = namespace
        self._caller = Caller(connection, patience_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let threads and connections go."""
        self._caller.close()

    @property
    def server(self) -> str:
        """Address of the API server."""
        return self._caller.connection.server

    def path(self, kind: str, name: str | None = None, *, everywhere: bool = False) -> str:
        """The path of a collection or an object of our namespace or, `everywhere`, of none."""
        room = [] if everywhere else ["namespaces", self.namespace]
        return "/".join([GROUPS[kind], *room, kind, *([name] if name else [])])

    async def find(self, kind: str, name: str) -> Json | None:
        """An object; None if there is none of that name.

        Raises:
            RefusedError: It may not be read.
            UnreachableError: No answer.
        """
        try:
            return await self.call("GET", self.path(kind, name))
        except RefusedError as error:
            if error.status != MISSING:
                raise
            return None

    async def items(
        self, kind: str, *, labels: Mapping[str, str] | None = None, fields: str = ""
    ) -> list[Json]:
        """All objects of a kind with these labels and this field selector (`a.b=c,...`)."""
        selector = ",".join(f"{key}={value}" for key, value in (labels or {}).items())
        query = {"labelSelector": selector, "fieldSelector": fields, "limit": str(PAGE)}
        query = {key: value for key, value in query.items() if value}
        for _ in range(RELISTS):
            try:
                return await self._pages(self.path(kind), query)
            except RefusedError as error:
                if error.status != GONE:
                    raise
        raise UnreachableError(f"{self._caller.name()}: {kind} change faster than they are read")

    async def create(self, kind: str, document: Json, *, dry_run: bool = False) -> Json:
        """A new object, as the server made it; with `dry_run` it is only looked at.

        Raises:
            ConflictError: The name is taken: perhaps by our own earlier try, whose answer was lost.
            RefusedError: We may not; `quota` says that one is used up.
        """
        where = self.path(kind) + ("?dryRun=All" if dry_run else "")
        return await self.call("POST", where, document)

    async def replace(self, kind: str, document: Json) -> Json:
        """An object with a new content; ConflictError if it has changed since it was read."""
        return await self.call("PUT", self.path(kind, document["metadata"]["name"]), document)

    async def patch(self, kind: str, name: str, change: Json) -> Json:
        """An object after a merge patch."""
        return await self.call("PATCH", self.path(kind, name), change, content=MERGE)

    async def delete(self, kind: str, name: str, *, uid: str | None = None) -> bool:
        """Ask for an object's end, after that of all it owns; False if there is none.

        With a uid only that very object is meant, and not one that has its name by now.
        """
        body: Json = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": "Foreground",
            **({} if uid is None else {"preconditions": {"uid": uid}}),
        }
        try:
            await self.call("DELETE", self.path(kind, name), body)
        except RefusedError as error:
            if error.status not in (MISSING, CONFLICT):
                raise
            return False
        return True

    async def events(self, uid: str) -> list[Json]:
        """What was told of an object, the oldest first."""
        found = await self.items("events", fields=f"involvedObject.uid={uid}")
        return sorted(found, key=lambda one: one.get("lastTimestamp") or one.get("eventTime") or "")

    async def log(self, pod: str, container: str, **options: str | int) -> str:
        """What a container has written; empty if there is nothing.

        `options` are those of the API: tailLines, sinceTime, limitBytes, previous, timestamps.
        """
        query = urlencode({"container": container, **options})
        try:
            answer = await self._caller.ask("GET", f"{self.path('pods', pod)}/log?{query}")
        except RefusedError as error:
            if error.status in (MISSING, 400):  # 400: the container has not begun
                return ""
            raise
        return answer.data.decode(errors="replace")

    async def allowed(self, verb: str, group: str, resource: str, subresource: str = "") -> bool:
        """Whether this user may do something in this namespace; `group` is empty for the core's."""
        asked = {"namespace": self.namespace, "verb": verb, "group": group, "resource": resource}
        body: Json = {
            "kind": "SelfSubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "spec": {"resourceAttributes": {**asked, "subresource": subresource}},
        }
        where = self.path("selfsubjectaccessreviews", everywhere=True)
        answer = await self.call("POST", where, body)
        return bool(answer["status"].get("allowed"))

    async def call(
        self, method: str, path: str, body: Json | None = None, *, content: str = PLAIN
    ) -> Json:
        """The answer to any call, as a document.

        Raises:
            RefusedError: It is not a success, and another try would not make it one.
            UnreachableError: There was none, or nothing that an API server says.
        """
        answer = await self._caller.ask(method, path, body, content)
        try:
            document = json.loads(answer.data)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise UnreachableError(
                f"{self._caller.name()}: expected a document from {path}, got something else; is this "
                "the API server of a cluster?"
            )
        return document

    async def _pages(self, path: str, query: dict[str, str]) -> list[Json]:
        found: list[Json] = []
        following = ""
        while True:
            more = {"continue": following} if following else {}
            page = await self.call("GET", f"{path}?{urlencode(query | more)}")
            found += page.get("items") or []
            following = page.get("metadata", {}).get("continue") or ""
            if not following:
                return found
