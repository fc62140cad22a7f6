"""A copy of a collection that follows the API server's.

It lists, watches from there, and lists again when the server no longer has what it asks for (410), or
was away. Source: Kubernetes API concepts, "Efficient detection of changes".
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from urllib.parse import urlencode

import urllib3

from k8s.testbed.api import Api, Json
from k8s.testbed.faults import BedError

AGAIN_S: Final = 0.2
"""Before the server is asked again."""


class Mirror(threading.Thread):
    """A copy of a collection that follows it; `changed` is called for each change, in order."""

    def __init__(
        self, api: Api, where: str, changed: Callable[[str, Json], None], **query: str
    ) -> None:
        """Follow `where`, narrowed by `query`; start with `start()`."""
        super().__init__(daemon=True, name=f"mirror {where}")
        self.objects: dict[str, Json] = {}
        """By uid."""
        self.ready = threading.Event()
        self._api, self._where, self._changed, self._query = api, where, changed, query
        self._over = threading.Event()

    def run(self) -> None:
        """List, watch, and again, until `stop`; a server that is away is asked again."""
        while not self._over.is_set():
            with suppress(BedError, urllib3.exceptions.HTTPError):
                version = self._list()
                self.ready.set()
                self._follow(version)
            self._over.wait(AGAIN_S)

    def stop(self) -> None:
        """Follow no longer, from the next change or time-out on."""
        self._over.set()

    def _list(self) -> str:
        found = self._api.get(f"{self._where}?{urlencode(self._query)}")
        kind = found["kind"].removesuffix("List")
        now = {item["metadata"]["uid"]: {"kind": kind, **item} for item in found["items"]}
        for uid in set(self.objects) - set(now):
            self._take("DELETED", self.objects[uid])
        for item in now.values():
            self._take("MODIFIED", item)
        return str(found["metadata"]["resourceVersion"])

    def _follow(self, version: str) -> None:
        while not self._over.is_set():
            for change in self._api.watch(self._where, version, query=self._query):
                self._take(change["type"], change["object"])
                version = change["object"]["metadata"]["resourceVersion"]
                if self._over.is_set():
                    return

    def _take(self, kind: str, document: Json) -> None:
        uid = document["metadata"]["uid"]
        if kind == "DELETED":
            self.objects.pop(uid, None)
        else:
            self.objects = {**self.objects, uid: document}  # readers hold the old one
        self._changed(kind, document)
