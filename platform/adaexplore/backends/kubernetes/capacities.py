"""Whether quotas and nodes are wide enough for each single pod of a sweep. Pure.

Room that is taken now may be free in a minute, so only what will never fit is refused: a quota below one
pod, and a pod that is larger than every node on which it may be placed.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from adaexplore.backends.kubernetes.manifests import common
from adaexplore.backends.kubernetes.manifests.common import Json
from adaexplore.errors import ConfigError
from adaexplore.experiments.placements import KubernetesConfig, PodSize
from adaexplore.experiments.serving import KubernetesServing

PRODUCT: Final = "nvidia.com/gpu.product"
BYTES: Final = ("memory", "ephemeral-storage")
REPELLING: Final = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a configuration needs of a cluster."""

    pods: KubernetesConfig
    serving: KubernetesServing | None
    """Of the models that are served in it; None where there are none."""
    gpus: Mapping[str, int]
    """GPUs of one replica by model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """One kind of pod."""

    what: str
    amounts: Mapping[str, float]
    labels: Mapping[str, str]
    """Of the nodes on which it may be placed."""
    tolerations: Sequence[Mapping[str, Any]] = field(default_factory=tuple)


def within_quotas(quotas: Sequence[Json], needs: Needs) -> str:
    """What the quotas of a namespace allow, in a line; ConfigError if one is below a single pod."""
    for quota in quotas:
        hard = (quota.get("spec") or {}).get("hard") or {}
        for wanted in _wanted(needs):
            for resource, amount in wanted.amounts.items():
                for key in (f"requests.{resource}", f"limits.{resource}", resource):
                    if key in hard and _number(str(hard[key])) < amount:
                        raise ConfigError(
                            f"quota {quota['metadata']['name']} of namespace {needs.pods.namespace} allows "
                            f"{key}={hard[key]}, and {wanted.what} needs {_shown(resource, amount)}: have it "
                            "raised, or ask for less"
                        )
    return f"{len(quotas)} quotas, each wide enough for every single pod"


def on_nodes(nodes: Sequence[Json], needs: Needs) -> str:
    """What the nodes hold, in a line; ConfigError if a pod is larger than all that may take it."""
    for wanted in _wanted(needs):
        fit = [node for node in nodes if _may(node, wanted)]
        if not fit:
            raise ConfigError(_none(nodes, wanted))
        for resource, amount in wanted.amounts.items():
            largest = max(_allocatable(node, resource) for node in fit)
            if amount > largest:
                mend = "lower hosting.tensor_parallel" if "gpu" in resource else "ask for less"
                raise ConfigError(
                    f"{wanted.what} needs {_shown(resource, amount)} of {resource} on one node, and the "
                    f"largest node has {_shown(resource, largest)}: add a node, or {mend}"
                )
    return f"{len(nodes)} nodes, with room for every kind of pod"


def _wanted(needs: Needs) -> Iterator[_Wanted]:
    pods, serving = needs.pods, needs.serving
    for what, size in (("the head", pods.head), ("a worker", pods.worker)):
        yield _Wanted(
            what=what, amounts=_amounts(size), labels=pods.node_selector,
            tolerations=pods.tolerations,
        )  # fmt: skip
    if serving is None:
        return
    product = {} if serving.gpu_product is None else {PRODUCT: serving.gpu_product}
    gpu = {"key": serving.gpu_resource, "operator": "Exists"}
    memory = common.number(serving.memory) + common.number(serving.shm)
    for model, gpus in needs.gpus.items():
        yield _Wanted(
            what=f"model {model}",
            amounts={
                serving.gpu_resource: float(gpus),
                "cpu": common.number(serving.cpu),
                "memory": memory,
                "ephemeral-storage": common.number(serving.ephemeral),
            },
            labels={**serving.node_selector, **product},
            tolerations=[*serving.tolerations, gpu],
        )


def _amounts(size: PodSize) -> dict[str, float]:
    return {
        "cpu": common.number(size.cpu),
        "memory": common.number(size.memory),
        "ephemeral-storage": common.number(size.ephemeral),
    }


def _may(node: Json, wanted: _Wanted) -> bool:
    """Whether a pod may be placed on a node, room apart."""
    labels, spec = node["metadata"].get("labels") or {}, node.get("spec") or {}
    taints = [one for one in spec.get("taints") or () if one.get("effect") in REPELLING]
    return (
        not spec.get("unschedulable")
        and all(labels.get(key) == value for key, value in wanted.labels.items())
        and all(any(_tolerates(t, taint) for t in wanted.tolerations) for taint in taints)
    )


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    exists = toleration.get("operator") == "Exists"
    key, effect = toleration.get("key"), toleration.get("effect")
    same = key == taint.get("key") or (exists and not key)
    valued = exists or toleration.get("value", "") == taint.get("value", "")
    return same and valued and effect in (None, "", taint.get("effect"))


def _none(nodes: Sequence[Json], wanted: _Wanted) -> str:
    found = (node["metadata"].get("labels") or {} for node in nodes)
    known = sorted({labels[PRODUCT] for labels in found if PRODUCT in labels})
    asked = ", ".join(f"{key}={value}" for key, value in wanted.labels.items()) or "no label"
    gpus = (
        f"; the GPUs of its nodes are {', '.join(known) or 'without a name'}"
        if PRODUCT in asked
        else ""
    )
    return (
        f"{wanted.what}: none of the cluster's {len(nodes)} nodes has {asked} and no taint that is not "
        f"tolerated{gpus}: choose others (gpu_product, node_selector, tolerations), or add such a node"
    )


def _allocatable(node: Json, resource: str) -> float:
    found = ((node.get("status") or {}).get("allocatable") or {}).get(resource, "0")
    return _number(str(found))


def _number(quantity: str) -> float:
    """An amount; what is written in a way that we do not know is no reason to refuse anything."""
    try:
        return common.number(quantity)
    except ValueError:
        return math.inf


def _shown(resource: str, amount: float) -> str:
    return f"{amount / 2**30:.1f}Gi" if resource in BYTES else f"{amount:g}"
