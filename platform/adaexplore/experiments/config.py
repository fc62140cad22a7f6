"""The configuration of a sweep, as frozen records that refuse what they do not know.

Hydra composes; `SweepConfig` is what the composed document becomes at once. Unknown keys, wrong
types and sizes out of range fail here, each with its path in the document.
"""

import re
from dataclasses import asdict, fields
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass
from pydantic_core import ErrorDetails

from adaexplore.benchmark.game.protocol import Protocol
from adaexplore.benchmark.game.settings import Setting
from adaexplore.errors import ConfigError
from adaexplore.experiments.placements import BackendConfig
from adaexplore.experiments.serving import ServingConfig
from adaexplore.models.profiles import Profile

T = TypeVar("T")
STRICT = ConfigDict(extra="forbid")
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**31)]


def _address(text: str) -> str:
    if re.fullmatch(r"https?://[^@\s?#]+", text):
        return text
    # What came is not repeated: an address with a key in it is the likely mistake.
    raise ValueError(
        "expected http(s)://HOST[:PORT] without a user, a key or a query; keys come from the environment"
    )


Address = Annotated[str, AfterValidator(_address)]


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
class StoreConfig:
    """Where journals, records and tables are kept; never part of an identity, and never a secret."""

    kind: Literal["folder", "s3"]
    bucket: str | None = Field(default=None, min_length=1)
    """Name of an S3 bucket that exists already."""
    prefix: Annotated[str, Field(pattern=r"^([A-Za-z0-9._=-]+(/[A-Za-z0-9._=-]+)*/?)?$")] = ""
    """Put before every key; a bucket can hold other things beside ours."""
    endpoint: Address | None = None
    """Address of the service; null means the environment's, or AWS."""
    endpoint_in_cluster: Address | None = None
    """Its address as pods see it; null means the same."""
    region: str | None = Field(default=None, min_length=1)
    """Null means the environment's or the profile's, else us-east-1."""
    addressing: Literal["path", "virtual", "auto"] = "auto"
    """Where the bucket's name stands in an address; auto is virtual on AWS and path elsewhere."""
    checksums: Literal["when_required", "when_supported"] = "when_required"
    """The newer checksum headers break many services that are not AWS."""
    ca_file: str | None = None
    """Certificates to trust instead of the system's."""
    max_attempts: int = Field(default=10, ge=1, le=100)
    """Tries of one request; with the pauses between them ten outlast half a minute without service."""
    connect_timeout_s: float = Field(default=5.0, gt=0)
    read_timeout_s: float = Field(default=30.0, gt=0)
    """Silence that ends a try; not the length of a transfer."""
    lease_s: float = Field(default=20.0, ge=2)
    """A writer on another machine that has not been heard of for so long is taken for dead."""

    def __post_init__(self) -> None:
        """Refuse a bucket store without bucket, and a folder with one (ValueError)."""
        if self.kind == "s3" and self.bucket is None:
            raise ValueError("store 's3' needs the name of a bucket: add store.bucket=NAME")
        if self.kind == "folder" and self.bucket is not None:
            raise ValueError("store 'folder' takes no bucket: did you mean store=s3?")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class TrackingConfig:
    """Where runs can be looked at and compared; never part of an identity, and never a secret."""

    kind: Literal["none", "sqlite", "server"]
    experiment: Name
    """Name of the MLflow experiment."""
    uri: Address | None = None
    """Address of an MLflow server; credentials are read from MLflow's own variables."""
    uri_in_cluster: Address | None = None
    """Its address as pods see it; null means the same."""
    traces: bool = False
    """Whether every episode is kept as a trace as well, so that its conversation can be read."""
    workers: int = Field(default=8, ge=1, le=64)
    """Threads that show runs on a server; an embedded database has one."""
    drain_s: float = Field(default=60.0, ge=0)
    """At the end: how long nothing may move before the rest is left to `adaexplore sync`."""

    def __post_init__(self) -> None:
        """Refuse a server without address, and an address without server (ValueError)."""
        if self.kind == "server" and self.uri is None:
            raise ValueError(
                "tracking 'server' needs an address: add tracking.uri=http://HOST:PORT"
            )
        if self.kind != "server" and self.uri is not None:
            raise ValueError(
                f"tracking '{self.kind}' takes no address: did you mean tracking=server?"
            )


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
    report: bool = True
    """Whether a launch ends with the report; `adaexplore report` makes it at any time."""

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


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Places:
    """Where sweeps are kept and shown: all that is asked of whoever reads one back."""

    store: StoreConfig
    tracking: TrackingConfig
    runs_dir: str = Field(min_length=1)


_SWEEP = TypeAdapter(SweepConfig)
_PLACES = TypeAdapter(Places)
_PROFILE: TypeAdapter[Profile] = TypeAdapter(Profile)


def from_document(document: dict[str, Any]) -> SweepConfig:
    """The configuration of a composed document; ConfigError naming the first fault."""
    return _checked(_SWEEP, document)


def places(document: dict[str, Any]) -> Places:
    """Store, tracking and folder of a composed document; ConfigError naming the first fault."""
    return _checked(_PLACES, {field.name: document[field.name] for field in fields(Places)})


def _checked(adapter: TypeAdapter[T], document: dict[str, Any]) -> T:
    try:
        return adapter.validate_python(document)
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
