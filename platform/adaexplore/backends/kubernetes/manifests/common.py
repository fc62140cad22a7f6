"""What all objects share: names, labels, and the pod that every namespace accepts.

Names of sweeps and models are anybody's; Kubernetes takes 63 characters of few kinds. So a name becomes
a slug with a mark of the original, and the original stands in an annotation. Pods follow the restricted
Pod Security Standard, see no Services in their environment (one called `vllm` breaks the engine: vLLM
issue 15613), and get a service-account token only where they need one.

Source: Kubernetes API concepts (labels, Pod Security Standards), Ray and vLLM images (user ids).
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

Json = dict[str, Any]

PREFIX: Final = "adaexplore.dev/"
"""Of our own labels and annotations."""
SWEEP: Final = PREFIX + "sweep"
MODEL: Final = PREFIX + "model"
ATTEMPT: Final = PREFIX + "attempt"
SPEC_HASH: Final = PREFIX + "spec-hash"
MODEL_ID: Final = PREFIX + "model-id"
SWEEP_ID: Final = PREFIX + "sweep-id"
HEARTBEAT: Final = PREFIX + "heartbeat"
"""Annotation with the name of the Lease whose end means that nobody needs the object any more."""
NAME: Final = "app.kubernetes.io/name"
INSTANCE: Final = "app.kubernetes.io/instance"
COMPONENT: Final = "app.kubernetes.io/component"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
PART_OF: Final = "app.kubernetes.io/part-of"
KUEUE_QUEUE: Final = "kueue.x-k8s.io/queue-name"
KUEUE_PRIORITY: Final = "kueue.x-k8s.io/priority-class"
PROJECT: Final = "adaexplore"
LABEL_LIMIT: Final = 63
RAY_USER: Final = 1000
"""Numeric user and group of our image, as of Ray's own."""
ENGINE_USER: Final = 2000
"""Numeric user of the engine's image, whose group is root's: its folders are the group's to write."""
_UNITS: Final = {
    "": 1, "m": 1e-3, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The object with which another one goes: of the same namespace, and known by its uid."""

    api_version: str
    kind: str
    name: str
    uid: str

    def reference(self) -> Json:
        """Neither controlling nor blocking: that would need a right over the owner's finalizers."""
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
        }


def mark(text: str) -> str:
    """8 hex digits that tell texts apart."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def label_value(text: str) -> str:
    """A text as the value of a label: itself where that is legal, else a slug with its mark."""
    if len(text) <= LABEL_LIMIT and re.fullmatch(
        r"([A-Za-z0-9]([\w.-]*[A-Za-z0-9])?)?", text, re.ASCII
    ):
        return text
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", text)[: LABEL_LIMIT - 9].strip("-._")
    return f"{slug}-{mark(text)}" if slug else mark(text)


def object_name(text: str, *more: str, limit: int = LABEL_LIMIT) -> str:
    """A name for an object of any kind: a slug of the text, and the mark of the text and of `more`.

    Texts that differ give names that differ, and no name is a plain word: a Service called as a
    program would set that program's variables in every pod.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower())[: limit - 9].strip("-")
    if not slug[:1].isalpha():  # a Service's name begins with a letter
        slug = f"m-{slug}"[: limit - 9].strip("-")
    return f"{slug}-{mark('/'.join((text, *more)))}"


def labels(component: str, instance: str, own: Mapping[str, str] | None = None) -> dict[str, str]:
    """The labels of an object; `own` are those with our prefix, whose values are made legal."""
    return {
        NAME: PROJECT,
        INSTANCE: label_value(instance),
        COMPONENT: component,
        PART_OF: PROJECT,
        MANAGED_BY: PROJECT,
        **{key: label_value(value) for key, value in (own or {}).items()},
    }


def selector(component: str, instance: str) -> dict[str, str]:
    """The labels by which pods are found: only those that never change."""
    return {NAME: PROJECT, INSTANCE: label_value(instance), COMPONENT: component}


def metadata(
    name: str,
    namespace: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    owner: Owner | None,
) -> Json:
    """The metadata of an object, with its owner if it has one."""
    made: Json = {"name": name, "namespace": namespace, "labels": dict(labels)}
    if annotations:
        made["annotations"] = dict(annotations)
    if owner is not None:
        made["ownerReferences"] = [owner.reference()]
    return made


def queue_labels(queue: str | None, priority_class: str | None) -> dict[str, str]:
    """What Kueue reads: whose queue admits a workload, and how it stands there. Empty without a queue."""
    if queue is None:
        return {}
    return {KUEUE_QUEUE: queue} | ({KUEUE_PRIORITY: priority_class} if priority_class else {})


def pod_security(user: int, group: int) -> Json:
    """Of a pod: a numeric user that is not root, the runtime's system-call filter."""
    return {
        "runAsNonRoot": True,
        "runAsUser": user,
        "runAsGroup": group,
        "fsGroup": group or user,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security() -> Json:
    """Of a container: no more rights than it starts with, and none of those that Linux divides."""
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def variables(plain: Mapping[str, str]) -> list[Json]:
    """Entries of `env`, in the order of their names, each name once."""
    return [{"name": name, "value": plain[name]} for name in sorted(plain)]


def secret_variables(secrets: list[str]) -> list[Json]:
    """Entries of `envFrom`: every key of each Secret becomes a variable."""
    return [{"secretRef": {"name": name}} for name in secrets]


def references(names: list[str]) -> list[Json]:
    """Entries of `imagePullSecrets`."""
    return [{"name": name} for name in names]


def present(document: Mapping[str, Any]) -> Json:
    """A document without what is None or empty: defaults are the cluster's."""
    return {key: value for key, value in document.items() if value not in (None, "", [], {})}


def number(quantity: str) -> float:
    """A quantity as a number: processors, or bytes."""
    found = re.fullmatch(r"([0-9.]+)(m|[kMGT]|[KMGT]i)?", quantity)
    if found is None:
        raise ValueError(f"expected a quantity such as 500m, 2 or 8Gi, got {quantity!r}")
    return float(found[1]) * _UNITS[found[2] or ""]


def total(*quantities: str) -> str:
    """The sum of sizes in memory, in whole Mi."""
    return f"{-int(-sum(map(number, quantities)) // 2**20)}Mi"


def digest(document: Json) -> str:
    """16 hex digits of a document: equal for equal documents."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
