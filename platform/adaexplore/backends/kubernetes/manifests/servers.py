"""A model server as a Job and a Service: queued by its GPUs, of bounded life, at one address.

A Job rather than a Deployment: it ends by itself, Kueue admits it as a whole, and no new pod waits for
the GPU of the old one. The Service has the Job's name, so a pod that takes another's place has its
address. GPUs are as many as the engine's tensor-parallel size. The start has a long budget, since
weights are loaded in it, and liveness a long fuse, since a busy engine answers late. An engine that asks
for a key guards `/v1/models` with it: then `/health` is asked instead.

Source: pods of vLLM's production stack, llm-d and KServe; vLLM issues 15613 (service links), 44548 (user
without a name), 36960 (`/health` of a dead engine: the driver watches progress as well).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from adaexplore.backends.kubernetes.manifests import common
from adaexplore.backends.kubernetes.manifests.common import Json, Owner
from adaexplore.experiments.serving import KubernetesServing

COMPONENT: Final = "model-server"
CONTAINER: Final = "server"
WEIGHTS: Final = "/models"
"""Where the claim with downloaded weights is mounted, read only."""
SCRATCH: Final = "/scratch"
"""A folder of the pod's own, for all that engines write."""
GRACE_S: Final = 75
"""From the request to end to the kill: 45 s in which the engine ends its requests, and its teardown."""
LOOKS: Final = 180
"""Looks within the time allowed for a start; not more often than every second, nor less than every ten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """One replica of a model's server."""

    name: str
    """Of the Job and the Service; `common.object_name` makes one."""
    model_id: str
    sweep: str
    namespace: str
    owner: Owner | None
    command: tuple[str, ...]
    """All words, the program first."""
    serving: KubernetesServing
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables beside those that every server gets; no secrets."""
    tensor_parallel: int = 1
    """GPUs."""
    replica: int = 0
    attempt: str = ""
    """Name of the RayCluster that plays."""
    heartbeat: str = ""
    """Name of the Lease that its driver renews."""
    grace_s: int = GRACE_S


def job(spec: ServerSpec) -> Json:
    """The Job, an object of `batch/v1`; the label `spec-hash` tells whether another one is the same."""
    document = _job(spec)
    document["metadata"]["labels"][common.SPEC_HASH] = common.digest(document["spec"])
    return document


def service(spec: ServerSpec) -> Json:
    """The Service at whose address the replica answers."""
    port = {"name": "http", "port": spec.serving.port, "targetPort": "http", "protocol": "TCP"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(spec),
        "spec": {
            "type": "ClusterIP",
            "selector": common.selector(COMPONENT, spec.name),
            "ports": [port],
        },
    }


def spec_hash(spec: ServerSpec) -> str:
    """16 hex digits of all that the Job asks for; who owns it is not part of that."""
    return common.digest(_job(spec)["spec"])


def address(spec: ServerSpec) -> str:
    """Where the replica answers, without `/v1`."""
    return f"http://{spec.name}.{spec.namespace}.svc:{spec.serving.port}"


def _job(spec: ServerSpec) -> Json:
    serving = spec.serving
    metadata = _metadata(spec)
    metadata["labels"] |= common.queue_labels(serving.queue, serving.priority_class)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": 1,
            "activeDeadlineSeconds": serving.active_deadline_s,
            "ttlSecondsAfterFinished": serving.ttl_s,
            "podReplacementPolicy": "Failed",  # no second pod while the first still holds its GPUs
            # Preemption and drains are nobody's fault, and burn no try.
            "podFailurePolicy": {
                "rules": [
                    {
                        "action": "Ignore",
                        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
                    }
                ]
            },
            "template": {"metadata": {"labels": _labels(spec)}, "spec": _pod(spec)},
        },
    }


def _labels(spec: ServerSpec) -> dict[str, str]:
    own = {common.SWEEP: spec.sweep, common.MODEL: spec.model_id}
    if spec.attempt:
        own[common.ATTEMPT] = spec.attempt
    return common.labels(COMPONENT, spec.name, own)


def _metadata(spec: ServerSpec) -> Json:
    annotations = {
        common.MODEL_ID: spec.model_id,
        common.SWEEP_ID: spec.sweep,
        common.PREFIX + "replica": str(spec.replica),
    }
    if spec.heartbeat:
        annotations[common.HEARTBEAT] = spec.heartbeat
    return common.metadata(spec.name, spec.namespace, _labels(spec), annotations, spec.owner)


def _pod(spec: ServerSpec) -> Json:
    serving = spec.serving
    optional = {
        "imagePullSecrets": common.references(serving.image_pull_secrets),
        "nodeSelector": _node_labels(serving),
        "runtimeClassName": serving.runtime_class,
        "priorityClassName": None if serving.queue else serving.priority_class,
    }
    return {
        "restartPolicy": "Never",
        "serviceAccountName": serving.service_account,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": spec.grace_s,
        "securityContext": common.pod_security(common.ENGINE_USER, 0),
        "tolerations": [*serving.tolerations, _tolerates(serving.gpu_resource)],
        "containers": [_container(spec)],
        "volumes": _volumes(serving),
        **common.present(optional),
    }


def _node_labels(serving: KubernetesServing) -> dict[str, str]:
    if serving.gpu_product is None:
        return dict(serving.node_selector)
    return {**serving.node_selector, "nvidia.com/gpu.product": serving.gpu_product}


def _tolerates(resource: str) -> Json:
    """GPU nodes keep other pods off by a taint that is called as the resource."""
    return {"key": resource, "operator": "Exists", "effect": "NoSchedule"}


def _container(spec: ServerSpec) -> Json:
    serving = spec.serving
    return {
        "name": CONTAINER,
        "image": serving.image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(spec.command),
        "env": [*common.variables(_variables(spec)), *_key(serving)],
        "ports": [{"name": "http", "containerPort": serving.port, "protocol": "TCP"}],
        "resources": _resources(spec),
        "securityContext": common.container_security(),
        "volumeMounts": _mounts(serving),
        **_probes(serving),
    }


def _variables(spec: ServerSpec) -> dict[str, str]:
    """Folders that can be written, no reports of use to anybody, and as long a start as we wait for."""
    serving = spec.serving
    cache = {} if serving.cache_claim is None else {"HF_HUB_CACHE": f"{WEIGHTS}/hub"}
    return {
        "HOME": SCRATCH,
        "USER": "adaexplore",
        "HF_HOME": f"{SCRATCH}/huggingface",
        "VLLM_CACHE_ROOT": f"{SCRATCH}/vllm",
        "TORCHINDUCTOR_CACHE_DIR": f"{SCRATCH}/torchinductor",
        "VLLM_ENGINE_READY_TIMEOUT_S": str(math.ceil(serving.start_limit_s)),
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "PYTHONUNBUFFERED": "1",
        **cache,
        **({"HF_HUB_OFFLINE": "1"} if serving.hf_offline else {}),
        **serving.env,
        **spec.env,
    }


def _key(serving: KubernetesServing) -> list[Json]:
    if serving.api_key_secret is None:
        return []
    reference = {"name": serving.api_key_secret.name, "key": serving.api_key_secret.key}
    return [{"name": "VLLM_API_KEY", "valueFrom": {"secretKeyRef": reference}}]


def _resources(spec: ServerSpec) -> Json:
    """Shared memory is charged to the pod: it comes on top. GPUs are limits, and requests follow them."""
    serving = spec.serving
    memory = common.total(serving.memory, serving.shm)
    return {
        "requests": {
            "cpu": serving.cpu,
            "memory": memory,
            "ephemeral-storage": serving.ephemeral,
        },
        "limits": {"memory": memory, serving.gpu_resource: str(spec.tensor_parallel)},
    }


def _probes(serving: KubernetesServing) -> Json:
    """Start, readiness and liveness."""
    answers = "/health" if serving.api_key_secret is not None else "/v1/models"
    period_s = min(10, max(1, math.ceil(serving.start_limit_s / LOOKS)))
    tries = math.ceil(serving.start_limit_s / period_s)
    return {
        "startupProbe": _probe(answers, period_s, 5, tries),
        "readinessProbe": _probe(answers, 5, 5, 3),
        "livenessProbe": _probe("/health", 15, 10, 8),
    }


def _probe(path: str, period_s: int, timeout_s: int, tries: int) -> Json:
    return {
        "httpGet": {"path": path, "port": "http"},
        "periodSeconds": period_s,
        "timeoutSeconds": timeout_s,
        "failureThreshold": tries,
    }


def _volumes(serving: KubernetesServing) -> list[Json]:
    made: list[Json] = [
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": serving.shm}},
        {"name": "scratch", "emptyDir": {"sizeLimit": serving.ephemeral}},
    ]
    if serving.cache_claim is not None:
        claim = {"claimName": serving.cache_claim, "readOnly": True}
        made.append({"name": "models", "persistentVolumeClaim": claim})
    return made


def _mounts(serving: KubernetesServing) -> list[Json]:
    made: list[Json] = [
        {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 (inside the pod)
        {"name": "scratch", "mountPath": SCRATCH},
    ]
    if serving.cache_claim is not None:
        made.append({"name": "models", "mountPath": WEIGHTS, "readOnly": True})
    return made
