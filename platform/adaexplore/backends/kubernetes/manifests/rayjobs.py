"""The RayJob that plays a sweep: a driver on the head, workers beside it, gone when it has ended.

The program on the head is always the same, and is told where its frozen sweep is; all else it reads
there. Ray plays on the workers alone, and retries nothing: a new attempt of the whole job goes on from
the store. GCS fault tolerance is off: a driver dies with its head, and begins again.

Source: KubeRay 1.7, `rayjob_types.go` and `validation.go`.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from adaexplore.backends.kubernetes.manifests import common
from adaexplore.backends.kubernetes.manifests.common import Json
from adaexplore.experiments.placements import KubernetesConfig, PodSize

API_VERSION: Final = "ray.io/v1"
NAME_LIMIT: Final = 47
"""KubeRay appends to it what tells attempts and pods apart."""
PROGRAM: Final = "python /opt/adaexplore/jobs/run_grid.py"
OBJECT_STORE_BYTES: Final = 80 * 2**20
"""Least that Ray takes, nearly; results do not go through its object store."""
SUBMITTER: Final = {"cpu": "500m", "memory": "512Mi"}
GRACE_S: Final = 30
"""From the request to end to the kill: the driver closes its journals and deletes its servers."""
DRAIN_S: Final = 10
"""Of it, what Ray spends on waiting for actors to rest, which ours never do; it would take all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RayJobSpec:
    """One attempt at a sweep."""

    name: str
    """At most 47 characters."""
    sweep: str
    attempt: str
    namespace: str
    config: KubernetesConfig
    frozen_uri: str
    """Where the frozen sweep is, as the cluster reads it."""
    digest: str
    """SHA-256 of the frozen file, in hex: the driver plays no other."""
    ray_version: str
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of head and workers that are no secrets: AWS_ENDPOINT_URL..."""
    object_store_bytes: int = OBJECT_STORE_BYTES


def ray_job(spec: RayJobSpec) -> Json:
    """The RayJob, an object of `ray.io/v1`.

    Raises:
        ValueError: The name is too long, or there is no image.
    """
    if len(spec.name) > NAME_LIMIT:
        raise ValueError(f"expected a name of at most {NAME_LIMIT} characters, got {spec.name!r}")
    config = spec.config
    if config.image is None:
        raise ValueError("expected an image, got none: set backend.kubernetes.image")
    queue = common.queue_labels(config.queue, config.priority_class)
    return {
        "apiVersion": API_VERSION,
        "kind": "RayJob",
        "metadata": common.metadata(
            spec.name,
            spec.namespace,
            labels(spec, "driver") | queue,
            {common.SWEEP_ID: spec.sweep},
            None,
        ),
        "spec": {
            "entrypoint": f"{PROGRAM} {shlex.quote(spec.frozen_uri)}",
            "submissionMode": config.submission_mode,
            "backoffLimit": config.backoff_limit,
            "preRunningDeadlineSeconds": config.pre_running_deadline_s,
            "activeDeadlineSeconds": config.active_deadline_s,
            "shutdownAfterJobFinishes": True,
            "ttlSecondsAfterFinished": config.ttl_after_finished_s,
            **_submitter(spec),
            "rayClusterSpec": ray_cluster(spec),
        },
    }


def ray_cluster(spec: RayJobSpec) -> Json:
    """The `spec` of its RayCluster."""
    token = {"mode": "token", "secretName": spec.config.auth_secret}
    return {
        "rayVersion": spec.ray_version,
        **({} if spec.config.auth_secret is None else {"authOptions": token}),
        "headGroupSpec": {
            "rayStartParams": _parameters(spec, {"num-cpus": "0"}),
            "template": _template(spec, "ray-head"),
        },
        "workerGroupSpecs": [
            {
                "groupName": "workers",
                "replicas": spec.config.workers,
                "minReplicas": spec.config.workers,
                "maxReplicas": spec.config.workers,
                "rayStartParams": _parameters(spec, {}),
                "template": _template(spec, "ray-worker"),
            }
        ],
    }


def labels(spec: RayJobSpec, component: str) -> dict[str, str]:
    """The labels of the RayJob and of its pods."""
    own = {common.SWEEP: spec.sweep, common.ATTEMPT: spec.attempt}
    return common.labels(component, spec.name, own)


def _parameters(spec: RayJobSpec, more: dict[str, str]) -> dict[str, str]:
    return {"object-store-memory": str(spec.object_store_bytes), **more}


def _submitter(spec: RayJobSpec) -> Json:
    """Of the pod that submits, where there is one of its own: in the other modes the operator refuses it."""
    if spec.config.submission_mode != "K8sJobMode":
        return {}
    container = {
        "name": "ray-job-submitter",
        "image": spec.config.image,
        "imagePullPolicy": spec.config.image_pull_policy,
        "resources": {"requests": SUBMITTER, "limits": SUBMITTER},
        "securityContext": common.container_security(),
    }
    pod = _pod(spec, container, spec.config.worker_service_account)
    return {
        "submitterConfig": {"backoffLimit": spec.config.submitter_backoff_limit},
        "submitterPodTemplate": {
            "metadata": {"labels": labels(spec, "ray-submitter")},
            "spec": {**pod, "restartPolicy": "Never"},
        },
    }


def _template(spec: RayJobSpec, component: str) -> Json:
    config = spec.config
    head = component == "ray-head"
    account = config.service_account if head else config.worker_service_account
    container = _container(spec, component, config.head if head else config.worker)
    pod = _pod(spec, container, account)
    if config.submission_mode == "SidecarMode" and head:
        pod["restartPolicy"] = "Never"  # what the operator asks for in this mode
    return {"metadata": {"labels": labels(spec, component)}, "spec": pod}


def _pod(spec: RayJobSpec, container: Json, account: str) -> Json:
    """A pod's `spec`: only the head, which makes model servers, has a token of its account."""
    config = spec.config
    return {
        "serviceAccountName": account,
        "automountServiceAccountToken": container["name"] == "ray-head",
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE_S,
        "securityContext": common.pod_security(common.RAY_USER, common.RAY_USER),
        "containers": [container],
        **common.present(
            {
                "imagePullSecrets": common.references(config.image_pull_secrets),
                "nodeSelector": config.node_selector,
                "tolerations": config.tolerations,
            }
        ),
        **({"priorityClassName": config.priority_class} if _plain_priority(config) else {}),
    }


def _plain_priority(config: KubernetesConfig) -> bool:
    """Whether the class is one of pods: with a queue it is one of Kueue's workloads."""
    return config.priority_class is not None and config.queue is None


def _container(spec: RayJobSpec, component: str, size: PodSize) -> Json:
    """Requests equal limits: Ray counts processors by the limit, and memory must be the pod's own."""
    amounts = {"cpu": size.cpu, "memory": size.memory, "ephemeral-storage": size.ephemeral}
    found = {
        "name": component,
        "image": spec.config.image,
        "imagePullPolicy": spec.config.image_pull_policy,
        "resources": {"requests": amounts, "limits": dict(amounts)},
        "securityContext": common.container_security(),
        "env": [*common.variables(_variables(spec)), *_downward()],
    }
    return found | common.present({"envFrom": common.secret_variables(spec.config.secrets)})


def _variables(spec: RayJobSpec) -> dict[str, str]:
    """What tells processes in the cluster where they are; see also those that the operator adds."""
    image = spec.config.image or ""
    digest = {"ADAEXPLORE_IMAGE_DIGEST": image.partition("@")[2]} if "@" in image else {}
    return {
        "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": str(DRAIN_S),
        **spec.config.env,
        **spec.env,
        **digest,
        "ADAEXPLORE_FROZEN_SHA256": spec.digest,
        "ADAEXPLORE_RAYJOB": spec.name,
        "RAY_process_group_cleanup_enabled": "true",  # what an actor has started ends with it
    }


def _downward() -> list[Json]:
    """What a pod knows of itself: the owner of model servers where there is no RayCluster."""
    fields = {"POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace"}
    fields["POD_UID"] = "metadata.uid"
    return [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        for name, path in fields.items()
    ]
