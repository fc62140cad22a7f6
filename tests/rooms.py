"""A namespace of a test bed, and short ways to fill it and to look at it."""

import time
from dataclasses import dataclass

from k8s.testbed.api import Json, holds, path
from k8s.testbed.beds import Bed

PATIENT_S = 180.0
"""Where no deadline is the subject: far more than a busy machine needs."""
TOLERANT = {"tolerations": [{"key": "only-asked", "operator": "Exists"}]}
"""Lets a pod onto the nodes that tests switch off."""


@dataclass(frozen=True)
class Room:
    """A namespace, and short ways to fill it and to look at it."""

    bed: Bed
    name: str

    @property
    def admin(self):
        return self.bed.admin

    def path(self, kind, name=None):
        return path(kind, self.name, name)

    def make(self, kind: str, name: str, api: str = "v1", **rest) -> Json:
        metadata = {"name": name, "namespace": self.name, **rest.pop("metadata", {})}
        return self.admin.create({"kind": kind, "apiVersion": api, "metadata": metadata, **rest})

    def pod(self, name: str, *containers: Json, metadata=None, **spec) -> Json:
        spec.setdefault("terminationGracePeriodSeconds", 2)
        spec = {"containers": list(containers), **spec}
        return self.make("Pod", name, spec=spec, metadata=metadata or {})

    def wait(self, kind, name, done, seconds=PATIENT_S, what=""):
        return self.admin.wait(self.path(kind, name), done, seconds, what)

    def phase(self, name, phase, seconds=PATIENT_S):
        return self.wait(
            "Pod", name, lambda pod: pod and pod["status"]["phase"] == phase, seconds, phase
        )

    def ready(self, name, seconds=PATIENT_S):
        return self.wait("Pod", name, is_ready, seconds, "the pod to be ready")

    def version(self, kind):
        """Where the history of a kind stands: what happens from here on can be read later."""
        return self.admin.get(self.path(kind))["metadata"]["resourceVersion"]

    def history(self, kind, version, seconds=PATIENT_S):
        """(type, document) of every change since a version, however late they are read."""
        for change in self.admin.watch(self.path(kind), version, seconds):
            yield change["type"], change["object"]

    def deleted(self, name):
        """Delete a pod; every document that it had from then on to its removal."""
        version, seen = self.version("Pod"), []
        self.admin.delete(self.path("Pod", name))
        for kind, document in self.history("Pod", version):
            if document["metadata"]["name"] == name and "deletionTimestamp" in document["metadata"]:
                seen.append(document)
                if kind == "DELETED":
                    return seen
        raise AssertionError(f"pod {name} is not removed; last seen: {seen[-1:]}")

    def pods(self, **labels):
        query = {"labelSelector": ",".join(f"{key}={value}" for key, value in labels.items())}
        return self.admin.items(self.path("Pod"), **query)

    def log(self, pod, container="main"):
        return self.bed.log(self.name, pod, container)

    def events(self, pod):
        found = self.admin.items(self.path("Event"))
        return [one["reason"] for one in found if one["involvedObject"]["name"] == pod]


def container(code: str | None = None, name: str = "main", image: str = "python:3", **rest) -> Json:
    """A container that runs a piece of Python."""
    words = {"command": ["python", "-c", code]} if code is not None else {}
    return {"name": name, "image": image, **words, **rest}


def eventually(true, seconds=PATIENT_S):
    """Wait for something that no watch tells."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not true within {seconds:.0f} s"
        time.sleep(0.05)


def is_ready(pod: Json | None) -> bool:
    """Whether a pod is ready."""
    return holds(pod, "Ready")


def state(pod: Json, which: int = 0) -> Json:
    """The state of one of its containers."""
    return pod["status"]["containerStatuses"][which]["state"]


def ended(pod: Json | None) -> bool:
    """Whether a pod has run to its end."""
    return pod is not None and pod["status"]["phase"] in ("Succeeded", "Failed")
