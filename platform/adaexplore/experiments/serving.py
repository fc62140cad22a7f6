"""The serving part of a configuration: where open models get their engines, and how long that may take.

None of it is part of an identity: what was served is kept as a fingerprint with every attempt.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from adaexplore.experiments.placements import ObjectName, Quantity, plain

STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SecretKey:
    """One key of a Secret of the namespace."""

    name: ObjectName
    key: str = Field(min_length=1)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class KubernetesServing:
    """The pod of one engine, and its limits.

    Source of the defaults: practice with vLLM's images (shared memory, ports, time that weights take).
    """

    image: Annotated[str, Field(pattern=r"^[^\s@]+(@sha256:[0-9a-f]{64})?$")] | None = None
    """The engine's: repository@sha256:digest, or repository:tag."""
    image_pull_secrets: list[ObjectName] = Field(default_factory=list)
    command: list[str] = Field(
        default_factory=lambda: ["python3", "-m", "vllm.entrypoints.openai.api_server"]
    )
    """The program; the server's own arguments follow."""
    service_account: ObjectName = "adaexplore-server"
    port: int = Field(default=8000, ge=1024, le=65535)
    gpu_resource: str = "nvidia.com/gpu"
    """What a node calls its GPUs; as many are asked for as the profile's tensor_parallel."""
    gpu_product: str | None = None
    """Value of the node label nvidia.com/gpu.product; null takes any."""
    node_selector: dict[str, str] = Field(default_factory=dict)
    tolerations: list[dict[str, Any]] = Field(default_factory=list)
    """Beside the one of GPU nodes."""
    runtime_class: ObjectName | None = None
    cpu: Quantity = "4"
    memory: Quantity = "32Gi"
    """Shared memory comes on top."""
    ephemeral: Quantity = "20Gi"
    """Disk of the node: the engine's caches."""
    shm: Quantity = "2Gi"
    """Size of /dev/shm; 8Gi or more for several GPUs."""
    cache_claim: ObjectName | None = None
    """PersistentVolumeClaim with downloaded weights, mounted read only at /models."""
    hf_offline: bool = False
    """Whether the engine asks no hub: for weights that are all in the claim."""
    api_key_secret: SecretKey | None = None
    """Where the key that servers ask for is; null asks for none."""
    queue: ObjectName | None = None
    """LocalQueue of Kueue that admits servers; null means no queue."""
    priority_class: ObjectName | None = None
    start_limit_s: float = Field(default=1800.0, gt=0)
    """From a running container to an engine that answers."""
    unschedulable_limit_s: float = Field(default=900.0, gt=0)
    """How long no node may be found."""
    image_pull_limit_s: float = Field(default=300.0, gt=0)
    """How long pulling the image may fail."""
    active_deadline_s: int = Field(default=86_400, ge=1)
    """The longest that one server may live."""
    ttl_s: int = Field(default=300, ge=0)
    """From a server's end until its Job goes."""
    lease_s: int = Field(default=120, ge=1)
    """How long a driver may be silent before the reaper takes its servers."""
    env: Annotated[dict[str, str], AfterValidator(plain)] = Field(default_factory=dict)
    """Further variables of servers; no secrets."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ServingConfig:
    """How open models are served."""

    kind: Literal["none", "vllm_process", "kubernetes"]
    python: str = "python3"
    """Interpreter of the engine's own environment; a path is relative to where the command runs."""
    command: list[str] = Field(default_factory=lambda: ["-m", "vllm.entrypoints.openai.api_server"])
    """Words after the interpreter; the server's own arguments follow."""
    ready_timeout_s: float = Field(default=1800.0, gt=0)
    """From start to first completion: the weights may have to be downloaded."""
    progress_timeout_s: float = Field(default=300.0, gt=0)
    """How long the engine's counters may stand still; longer than the longest prompt takes to read."""
    stop_grace_s: float = Field(default=30.0, ge=0)
    """From the request to end to the kill."""
    port_start: int = Field(default=8100, ge=1024, le=65535)
    """First port that is tried; each server takes the next free one, on loopback."""
    gpus: list[str] | None = None
    """Ids of the GPUs to use; null asks the driver, none at all is the CPU build."""
    max_restarts: int = Field(default=3, ge=0)
    """Of one server while its model is played."""
    kubernetes: KubernetesServing | None = None
    """The pods of engines, where a cluster runs them."""

    def __post_init__(self) -> None:
        """Refuse pods without image, and settings of pods that are given to others (ValueError)."""
        if self.kind == "kubernetes" and self.pods.image is None:
            raise ValueError(
                "serving 'kubernetes' needs the engine's image: add "
                "serving.kubernetes.image=REPOSITORY@sha256:DIGEST"
            )
        if self.kind != "kubernetes" and self.kubernetes is not None:
            raise ValueError(
                f"serving '{self.kind}' takes no kubernetes settings: did you mean serving=kubernetes?"
            )

    @property
    def pods(self) -> KubernetesServing:
        """The pods of engines, with what a document leaves out."""
        return self.kubernetes or KubernetesServing()
