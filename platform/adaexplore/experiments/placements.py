"""The backend part of a configuration: where episodes are played, and how many at once.

Nothing here decides a result, and nothing here is a secret: a sweep may be carried on by another
backend. What a document does not say of Ray is what one machine needs, and of Kubernetes what
`conf/backend/kubernetes.yaml` says.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

STRICT = ConfigDict(extra="forbid")
SECRET = re.compile(r"key|token|secret|password|credential", re.IGNORECASE)
"""Names of variables whose values nobody may write into a configuration."""


def _head(text: str) -> str:
    if text == "auto" or re.fullmatch(r"[^\s/@:]+:\d{1,5}", text):
        return text
    raise ValueError(
        "expected HOST:PORT of a Ray head, or auto, got something else (addresses of the Ray Client, "
        "ray://..., are not served: run jobs/run_grid.py on the cluster with 'ray job submit')"
    )


def _secretless(runtime_env: dict[str, Any]) -> dict[str, Any]:
    if (named := secret_named(runtime_env.get("env_vars") or {})) is not None:
        raise ValueError(
            f"env_vars would write {named} down with the sweep: give it to the workers' own "
            "environment (of the pod, or of 'ray start')"
        )
    return runtime_env


def secret_named(variables: Mapping[str, Any]) -> str | None:
    """The first of these names of variables that says that its value is a secret, if any does."""
    return next((name for name in variables if SECRET.search(name)), None)


def plain(variables: dict[str, str]) -> dict[str, str]:
    """The variables of pods as they are; ValueError if a name says that its value is a secret."""
    if (named := secret_named(variables)) is not None:
        raise ValueError(
            f"env would write {named} down with the sweep: put it into a Secret of the namespace and "
            "name that instead"
        )
    return variables


@dataclass(frozen=True, kw_only=True, config=STRICT)
class RayConfig:
    """Which Ray, and how its workers share the episodes."""

    address: Annotated[str, AfterValidator(_head)] | None = None
    """HOST:PORT of the head of a cluster that this machine belongs to, or auto (the cluster that this
    process finds in its environment); null starts a Ray of our own here, and stops it."""
    num_workers: int | None = Field(default=None, ge=1, le=1000)
    """Worker processes; null means as many as the processors allow."""
    cpus: float = Field(default=1.0, gt=0, le=64)
    """Processors that each worker claims."""
    batch: int = Field(default=4, ge=1, le=1000)
    """Episode runs that are given to a worker at once; it has as many batches as make up the backend's
    concurrency, and gets no more before it has ended one."""
    auth: Literal["token", "none"] = "token"
    """How Ray knows who may use it: by a token (for a cluster of others from RAY_AUTH_TOKEN,
    RAY_AUTH_TOKEN_PATH or ~/.ray/auth_token), or not at all."""
    runtime_env: Annotated[dict[str, Any], AfterValidator(_secretless)] = Field(
        default_factory=dict
    )
    """Ray's runtime environment of the workers of a cluster: working_dir, py_modules, env_vars..."""
    object_store_mb: int = Field(default=80, ge=75, le=100_000)
    """Shared memory of our own Ray, and the least that a cluster's nodes must have; results do not go
    through it."""
    room_s: float = Field(default=0.0, ge=0)
    """How long room for the workers of a cluster is waited for: its nodes may be starting."""
    dashboard: bool = False
    """Whether our own Ray shows its dashboard, on loopback."""


def _written(amount: Any) -> Any:
    """An amount as text: YAML reads 2 as a number."""
    return f"{amount:g}" if isinstance(amount, int | float) else amount


Quantity = Annotated[
    str, BeforeValidator(_written), Field(pattern=r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$")
]
"""An amount as Kubernetes writes it: 500m, 2, 8Gi."""
ObjectName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
"""A name that every kind of Kubernetes object takes."""
Drift = Literal["code", "lock", "python", "packages", "image"]
HARMLESS: Final[tuple[Drift, ...]] = ("lock", "python", "packages", "image")
"""What an image has of its own, and what decides no result of the same sources."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class PodSize:
    """What a pod asks for, and gets no more of."""

    cpu: Quantity
    memory: Quantity
    ephemeral: Quantity
    """Disk of the node: logs, and what Ray spills."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class KubernetesConfig:
    """Which cluster, and the RayJob that plays the sweep there: its driver, on the head, and workers.

    Source of the defaults: practice with KubeRay 1.7; a head of 2 Gi is killed for want of memory.
    """

    context: str | None = Field(default=None, min_length=1)
    """Of the kubeconfig; null means its current one."""
    namespace: ObjectName = "adaexplore"
    image: Annotated[str, Field(pattern=r"^[^\s@]+(@sha256:[0-9a-f]{64})?$")] | None = None
    """Of driver, head and workers: repository@sha256:digest, or repository:tag."""
    ray_version: str = "2.60.0"
    """In the image; the operator wants to know."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    image_pull_secrets: list[ObjectName] = Field(default_factory=list)
    """Names of Secrets of the namespace."""
    service_account: ObjectName = "adaexplore-driver"
    """Of the head, which creates model servers."""
    worker_service_account: ObjectName = "adaexplore-worker"
    """Of the workers, which call no API server."""
    submission_mode: Literal["K8sJobMode", "HTTPMode", "SidecarMode"] = "K8sJobMode"
    backoff_limit: int = Field(default=1, ge=0, le=100)
    """New clusters after a failed one; each goes on where the last one was lost."""
    submitter_backoff_limit: int = Field(default=2, ge=0, le=100)
    """New submitter pods; the Ray job itself is submitted once."""
    pre_running_deadline_s: int = Field(default=3600, ge=1)
    """From the RayJob's start until all its pods are ready; else waiting would have no end."""
    active_deadline_s: int = Field(default=604_800, ge=1)
    """The longest that a RayJob may take, retries included."""
    ttl_after_finished_s: int = Field(default=600, ge=0)
    """From the end until the pods go, in which their logs can be read."""
    head: PodSize = Field(default_factory=lambda: PodSize(cpu="2", memory="8Gi", ephemeral="2Gi"))
    worker: PodSize = Field(default_factory=lambda: PodSize(cpu="1", memory="4Gi", ephemeral="2Gi"))
    workers: int = Field(default=2, ge=1, le=1000)
    """Pods of workers."""
    secrets: list[ObjectName] = Field(default_factory=list)
    """Secrets whose keys become environment variables of head and workers: API keys, AWS_*, MLFLOW_*."""
    auth_secret: ObjectName | None = "adaexplore-ray-token"  # noqa: S105 (the name of one)
    """Secret with the token of Ray in its key auth_token; null leaves Ray open to the whole cluster."""
    env: Annotated[dict[str, str], AfterValidator(plain)] = Field(default_factory=dict)
    """Other variables of head and workers, none of them secret: a proxy, say."""
    queue: ObjectName | None = None
    """LocalQueue of Kueue that admits the RayJob; null means no queue."""
    priority_class: ObjectName | None = None
    node_selector: dict[str, str] = Field(default_factory=dict)
    tolerations: list[dict[str, Any]] = Field(default_factory=list)
    allow_drift: list[Drift] = Field(default_factory=lambda: list(HARMLESS))
    """What may differ between this machine and the image. Without `code` the sources must be equal."""
    follow_s: float = Field(default=2.0, gt=0, le=60)
    """Between two looks at the RayJob."""
    unreachable_s: float = Field(default=300.0, gt=0)
    """How long a launch that follows goes without an answer of the cluster before it gives up; the
    sweep goes on."""

    def __post_init__(self) -> None:
        """Refuse settings that the operator would (ValueError)."""
        if self.pre_running_deadline_s > self.active_deadline_s:
            raise ValueError(
                f"expected pre_running_deadline_s of at most active_deadline_s "
                f"({self.active_deadline_s}), got {self.pre_running_deadline_s}"
            )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class BackendConfig:
    """Where episodes are played."""

    kind: Literal["local", "ray", "kubernetes"]
    concurrency: int = Field(ge=1, le=10_000)
    """Episodes under way at once: of one model in this process, or on one Ray worker."""
    processes: int | None = Field(ge=0, le=256)
    """Worker processes for scripted agents; 0 plays them in this process, null means one a core."""
    ray: RayConfig | None = None
    """How Ray is used, by the backends that have one."""
    kubernetes: KubernetesConfig | None = None
    """What is created in the cluster, by the backend of that name alone."""

    def __post_init__(self) -> None:
        """Refuse settings of one backend that are given to another (ValueError)."""
        if self.kind == "local" and self.ray is not None:
            raise ValueError("backend 'local' takes no ray settings: did you mean backend=ray?")
        if self.kind != "kubernetes" and self.kubernetes is not None:
            raise ValueError(
                f"backend '{self.kind}' takes no kubernetes settings: did you mean backend=kubernetes?"
            )
        if self.kind == "kubernetes" and self.rays.address is not None:
            raise ValueError(
                "backend 'kubernetes' makes a Ray of its own in the cluster: leave ray.address out"
            )
        if self.kind != "local" and self.processes != 0:
            count = "ray.num_workers" if self.kind == "ray" else "kubernetes.workers"
            raise ValueError(
                f"backend '{self.kind}' plays scripted agents in its workers: expected processes of 0, "
                f"got {self.processes}; set backend.{count} instead"
            )

    @property
    def rays(self) -> RayConfig:
        """How Ray is used, with what a document leaves out."""
        return self.ray or RayConfig()

    @property
    def pods(self) -> KubernetesConfig:
        """What is created in the cluster, with what a document leaves out."""
        return self.kubernetes or KubernetesConfig()
