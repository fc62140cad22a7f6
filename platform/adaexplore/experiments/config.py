"""The configuration of a sweep, as frozen records that refuse what they do not know.

Hydra composes; `SweepConfig` is what the composed document becomes at once. Unknown keys, wrong
types and sizes out of range fail here, each with its path in the document.
"""

from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass
from pydantic_core import ErrorDetails

from adaexplore.benchmark.game.protocol import Protocol
from adaexplore.benchmark.game.settings import Setting
from adaexplore.errors import ConfigError
from adaexplore.models.profiles import Profile

STRICT = ConfigDict(extra="forbid")
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**31)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class DatasetConfig:
    """Which episodes are played."""

    name: str
    """A packaged dataset, or the path of a dataset folder (with a slash)."""
    split: str = Field(default="test", min_length=1)
    """Which split of it. A selection, like the limit: an episode is the same in every split."""
    limit: int | None = Field(default=None, ge=1)
    """Only the first so many episodes of the split; null plays all."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class BackendConfig:
    """Where episodes are played."""

    kind: Literal["local"]
    concurrency: int = Field(ge=1, le=10_000)
    """Episodes under way at once."""
    processes: int | None = Field(ge=0, le=256)
    """Worker processes for scripted agents; 0 plays them in this process, null means one a core."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class StoreConfig:
    """Where journals, records and tables are kept."""

    kind: Literal["folder"]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class TrackingConfig:
    """Where runs can be looked at and compared."""

    kind: Literal["none", "sqlite"]
    experiment: Name
    """Name of the MLflow experiment."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class BudgetConfig:
    """What a sweep may spend, over all its launches."""

    cap_usd: float | None = Field(ge=0)
    """Money cap; null has none. Needs a price for every model that is not in process."""
    cap_tokens: int | None = Field(ge=0)
    """Token cap, input and output together; null has none."""
    confirm_over_usd: float = Field(ge=0)
    """A forecast above this is asked about before the launch."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ServingConfig:
    """How open models are served on this machine; never part of an identity."""

    kind: Literal["none", "vllm_process"]
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


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SweepConfig:
    """One launch of a grid, resolved."""

    grid: Name
    name: Name | None
    """Name of the sweep; null means the grid's name with a digest of what is played."""
    models: dict[str, Profile] = Field(min_length=1)
    """Profiles by name, in the order of the tables."""
    settings: list[Setting] = Field(min_length=1)
    seeds: list[Seed] = Field(min_length=1)
    """Replicates: each seeds scripted agents and is sent as sampling seed; cases never change."""
    dataset: DatasetConfig
    protocol: Protocol
    backend: BackendConfig
    store: StoreConfig
    tracking: TrackingConfig
    serving: ServingConfig
    budget: BudgetConfig
    runs_dir: str = Field(min_length=1)
    """Folder of everything that is written; relative to where the command runs."""

    def __post_init__(self) -> None:
        """Refuse a setting that no call could satisfy (ValueError)."""
        most = self.protocol.max_probes
        for setting in self.settings:
            if setting.min_probes > most:
                raise ValueError(
                    f"setting '{setting.name}': expected min_probes of at most {most} "
                    f"(protocol.max_probes), got {setting.min_probes}"
                )

    def document(self) -> dict[str, Any]:
        """The resolved configuration as plain data; secrets are never in it."""
        return asdict(self)


_SWEEP = TypeAdapter(SweepConfig)
_PROFILE: TypeAdapter[Profile] = TypeAdapter(Profile)


def from_document(document: dict[str, Any]) -> SweepConfig:
    """The configuration of a composed document; ConfigError naming the first fault."""
    try:
        return _SWEEP.validate_python(document)
    except ValidationError as error:
        # A misspelt key is a missing one too, and is the fault to name.
        first, *others = sorted(
            error.errors(include_url=False),
            key=lambda fault: fault["type"] != "unexpected_keyword_argument",
        )
        path = _path(document, first["loc"])
        more = f" (and {len(others)} more faults)" if others else ""
        raise ConfigError(f"configuration key '{path}': {_what(first)}{more}") from None


def _path(document: dict[str, Any], location: tuple[int | str, ...]) -> str:
    """Dotted path of a fault, in the names that a user gave."""
    parts = list(location) or ["settings"]
    if parts[0] == "models" and len(parts) > 3:
        del parts[2]  # the kind that pydantic puts after a model's name
    if parts[0] == "settings" and len(parts) > 1 and isinstance(parts[1], int):
        parts[1] = document["settings"][parts[1]]["name"]
    return ".".join(map(str, parts))


def profile(name: str, document: Any) -> Profile:
    """The profile of a composed document; ConfigError naming the first fault."""
    try:
        return _PROFILE.validate_python(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"model '{name}': key '{path}': {_what(first)}") from None


def _what(fault: ErrorDetails) -> str:
    if fault["type"] == "value_error":  # our own check: it says what came
        return fault["msg"].removeprefix("Value error, ")
    shown = repr(fault["input"])[:80]
    if fault["type"] == "unexpected_keyword_argument":
        return f"there is no such key; its value was {shown}"
    if fault["type"] == "missing":
        return "expected a value, got none"
    return f"{fault['msg']}, got {shown}"
