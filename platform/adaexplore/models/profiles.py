"""Model profiles: what a file in `conf/model/` says about one model.

A profile has a *semantic* part, which decides what the model answers and so enters a cell's
identity, and a transport part (addresses, keys, prices, limits, timeouts), which does not.

Kinds: `scripted` (reference agents, in process), `openai_compatible` (official APIs and any server
of that protocol) and `vllm` (the same protocol, served by us). Secrets are named, never given: the
name of an environment variable or of a mounted file. What is unknown is null, never invented.
"""

from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

STRICT = ConfigDict(extra="forbid")
CONTENT = "sha256:"
"""How a revision begins that is a digest of the content of a folder or file."""
Positive = Annotated[float, Field(gt=0)]
Price = Annotated[float, Field(ge=0)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ScriptedProfile:
    """A reference agent."""

    kind: Literal["scripted"]
    agent: str
    """Name of the agent in the registry of reference agents."""
    version: int = Field(ge=1)
    """Version of the agent's behaviour; the launch refuses a profile whose agent has moved on."""

    def semantic(self) -> dict[str, Any]:
        """The part that decides what is answered."""
        return {"kind": self.kind, "agent": self.agent, "version": self.version}


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Auth:
    """Where the key comes from and how it is sent."""

    key_env: str | None = None
    """Environment variable that holds the key; null where the endpoint takes none."""
    key_file: str | None = None
    """Mounted file that holds the key, instead of a variable."""
    header: str = "Authorization"
    scheme: str = "Bearer"
    """Word before the key; empty where the header holds the key alone (Azure: header api-key)."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Sampling:
    """What is sent to steer generation. Null is not sent."""

    temperature: float | None = Field(default=0.0, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    send_seed: bool = True
    """Send the cell's seed as sampling seed."""
    reasoning_effort: str | None = None
    max_output_tokens: int = Field(default=8192, ge=16)
    """Limit of one reply, reasoning included."""
    reply_format: Literal["text", "json_object", "json_schema"] = "json_object"
    body: dict[str, Any] = Field(default_factory=dict)
    """Further fields of the request body, as the endpoint names them."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Dialect:
    """How the endpoint differs from the plain protocol."""

    output_limit_field: str = "max_tokens"
    refused: list[str] = Field(default_factory=list)
    """Body fields that the endpoint does not take (temperature, say); they are left out."""
    reasoning_fields: list[str] = Field(default_factory=lambda: ["reasoning_content", "reasoning"])
    """Fields of the answer's message that hold reasoning apart from the reply."""
    think_tags: bool = True
    """Whether `<think>...</think>` at the start of the text is reasoning and is taken off."""
    path: str = "/chat/completions"
    headers: dict[str, str] = Field(default_factory=dict)
    """Further headers. No secrets: those go into `header_env`."""
    header_env: dict[str, str] = Field(default_factory=dict)
    """Further headers whose values are in the named environment variables."""
    query: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Prices:
    """Money per token. Null is unknown, and is shown as unknown."""

    input_usd_per_mtok: Price | None = None
    cached_usd_per_mtok: Price | None = None
    """Null with a known input price: cached tokens cost as much as others."""
    output_usd_per_mtok: Price | None = None
    as_of: str | None = None
    """Date the prices were set, YYYY-MM-DD."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Limits:
    """What the account may do. Null is unknown: then only the endpoint's own answers slow us down."""

    requests_per_minute: Positive | None = None
    tokens_per_minute: Positive | None = None
    concurrency_start: int = Field(default=16, ge=1)
    concurrency_max: int = Field(default=256, ge=1)
    context_tokens: int | None = Field(default=None, ge=1)
    as_of: str | None = None
    """Date the limits were set, YYYY-MM-DD."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Patience:
    """How long a call may take and how often it is tried."""

    call_timeout_s: Positive = 600.0
    connect_timeout_s: Positive = 20.0
    episode_deadline_s: Positive | None = None
    """Working time of one episode, waiting for rate limits apart; null has no deadline."""
    attempts: int = Field(default=8, ge=1, le=100)
    backoff_base_s: Positive = 1.0
    backoff_cap_s: Positive = 60.0
    retry_after_cap_s: Positive = 3600.0
    """A longer `Retry-After` counts as quota, not as rate."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Route:
    """How the endpoint is reached."""

    base_url: str | None = None
    proxy: str | None = None
    ca_file: str | None = None
    verify_tls: bool = True


@dataclass(frozen=True, kw_only=True, config=STRICT)
class EndpointProfile:
    """What every model behind a chat endpoint has, whoever serves it."""

    kind: str
    provider: str
    """Who serves it; with the key's name and the model it names the account that is governed."""
    model: str | None
    """The provider's name of the model; null is refused at launch, with the line to add. Of a model
    that we serve: repository id or folder of the weights."""
    revision: str | None = None
    """Which version of it: a commit; of a folder here the digest of its content, which is found at
    launch where it is null, and then stands for the folder, whose path decides nothing."""
    route: Route = Field(default_factory=Route)
    """How it is reached. A base URL of a model of kind vllm means: it runs already."""
    auth: Auth = Field(default_factory=Auth)
    sampling: Sampling = Field(default_factory=Sampling)
    dialect: Dialect = Field(default_factory=Dialect)
    prices: Prices = Field(default_factory=Prices)
    limits: Limits = Field(default_factory=Limits)
    patience: Patience = Field(default_factory=Patience)

    def semantic(self) -> dict[str, Any]:
        """The part that decides what is answered."""
        sampling = asdict(self.sampling)
        for name in self.dialect.refused:  # what is never sent decides nothing
            if name in sampling:
                sampling[name] = None
        return {
            "kind": self.kind,
            "provider": self.provider,
            "model": self.model,
            "revision": self.revision,
            "sampling": sampling,
            "reasoning": [self.dialect.reasoning_fields, self.dialect.think_tags],
        }


@dataclass(frozen=True, kw_only=True, config=STRICT)
class HttpProfile(EndpointProfile):
    """A model behind an OpenAI-compatible endpoint."""

    kind: Literal["openai_compatible"]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Weights:
    """What a served model is made of; all of it is semantic."""

    dtype: str = "auto"
    quantization: str | None = None
    max_model_len: int | None = Field(default=None, ge=1)
    tokenizer: str | None = None
    chat_template: str | None = None
    """Path of a template file."""
    chat_template_digest: str | None = None
    """Of its content, found at launch where it is null: stands for the path in the identity."""

    def semantic(self) -> dict[str, Any]:
        """The part that decides what is answered."""
        document = asdict(self)
        digest = document.pop("chat_template_digest")
        return document if digest is None else {**document, "chat_template": digest}


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Hosting:
    """How a served model is run; none of it is semantic."""

    tensor_parallel: int = Field(default=1, ge=1)
    """GPUs of one replica."""
    replicas: int = Field(default=1, ge=1)
    arguments: list[str] = Field(default_factory=list)
    """Further words of the server's command line."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Further environment variables of the server. No secrets."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class VllmProfile(EndpointProfile):
    """An open model that we serve ourselves, spoken to like any other endpoint."""

    kind: Literal["vllm"]
    weights: Weights = Field(default_factory=Weights)
    hosting: Hosting = Field(default_factory=Hosting)
    patience: Patience = Field(default_factory=lambda: Patience(attempts=40))
    """More attempts than elsewhere: a large server that is restarted takes many minutes."""

    def semantic(self) -> dict[str, Any]:
        """The part that decides what is answered; a digest of the weights stands for their path."""
        digested = (self.revision or "").startswith(CONTENT)
        named = {"model": None} if digested else {}
        return {**super().semantic(), **named, "weights": self.weights.semantic()}


RemoteProfile = HttpProfile | VllmProfile
Profile = Annotated[ScriptedProfile | HttpProfile | VllmProfile, Field(discriminator="kind")]
"""Every kind of profile."""
