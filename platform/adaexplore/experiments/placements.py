"""The backend part of a configuration: where episodes are played, and how many at once.

Nothing here decides a result, and nothing here is a secret: a sweep may be carried on by another
backend. What a document does not say of Ray is what one machine needs.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field
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
    variables = runtime_env.get("env_vars") or {}
    named = [name for name in variables if SECRET.search(name)] if variables else []
    if named:
        raise ValueError(
            f"env_vars would write {named[0]} down with the sweep: give it to the workers' own "
            "environment (of the pod, or of 'ray start')"
        )
    return runtime_env


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
    dashboard: bool = False
    """Whether our own Ray shows its dashboard, on loopback."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class BackendConfig:
    """Where episodes are played."""

    kind: Literal["local", "ray"]
    concurrency: int = Field(ge=1, le=10_000)
    """Episodes under way at once: of one model in this process, or on one Ray worker."""
    processes: int | None = Field(ge=0, le=256)
    """Worker processes for scripted agents; 0 plays them in this process, null means one a core."""
    ray: RayConfig | None = None
    """How Ray is used, by the backend of that name alone."""

    def __post_init__(self) -> None:
        """Refuse settings of one backend that are given to the other (ValueError)."""
        if self.kind == "local" and self.ray is not None:
            raise ValueError("backend 'local' takes no ray settings: did you mean backend=ray?")
        if self.kind == "ray" and self.processes != 0:
            raise ValueError(
                "backend 'ray' plays scripted agents in its workers: expected processes of 0, got "
                f"{self.processes}; set backend.ray.num_workers instead"
            )

    @property
    def rays(self) -> RayConfig:
        """How Ray is used, with what a document leaves out."""
        return self.ray or RayConfig()
