"""From a profile to the words, the environment and the folder of its server.

The server gets a folder of its own to run in: from a checkout `-m` would put the checkout first on
the path. What this environment's Python needs is not passed on to the engine's. Engines that report
their use to their makers are told not to, and what their processes say to each other stays on
loopback. A key that the server is to ask for goes into its environment: command lines are for all to
read.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adaexplore.backends.vllm import ports
from adaexplore.backends.vllm.processes import Command
from adaexplore.errors import ConfigError
from adaexplore.experiments.config import ServingConfig
from adaexplore.models import contents
from adaexplore.models.profiles import VllmProfile

KEY: Final = "VLLM_API_KEY"
NOT_PASSED_ON: Final = ("PYTHONPATH", "PYTHONHOME", "PYTHONWARNINGS", "VIRTUAL_ENV", KEY)
DISCREET: Final = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "PYTHONUNBUFFERED": "1",
    "VLLM_HOST_IP": ports.HOST,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one replica runs."""

    port: int
    gpus: tuple[str, ...]
    """Ids of its GPUs; empty for the CPU build."""
    folder: Path


def command(
    config: ServingConfig, profile: VllmProfile, place: Place, *, key: str | None = None
) -> Command:
    """What starts a replica, which will ask its callers for the key if there is one.

    Raises:
        ConfigError: The profile has no model.
    """
    return Command(
        words=(str(_interpreter(config)), *config.command, *words(profile, place.port)),
        environment=_environment(profile, place.gpus) | ({} if key is None else {KEY: key}),
        folder=place.folder,
    )


def words(profile: VllmProfile, port: int) -> list[str]:
    """The server's own arguments."""
    model = served_name(profile)
    weights = profile.weights
    template = weights.chat_template
    options = {
        "--host": ports.HOST,
        "--port": port,
        "--model": _local(model),
        "--served-model-name": model,
        # A digest of a content is ours alone; the engine knows only commits.
        "--revision": profile.revision if contents.named(profile.revision) else None,
        "--dtype": weights.dtype,
        "--quantization": weights.quantization,
        "--max-model-len": weights.max_model_len,
        "--tokenizer": None if weights.tokenizer is None else _local(weights.tokenizer),
        "--chat-template": None if template is None else str(Path(template).absolute()),
        "--tensor-parallel-size": profile.hosting.tensor_parallel,
    }
    given = [word for key, value in options.items() if value is not None for word in (key, value)]
    # Without the flag, usage does not say how much of a prompt came from the cache.
    return [*map(str, given), "--enable-prompt-tokens-details", *profile.hosting.arguments]


def served_name(profile: VllmProfile) -> str:
    """The name that calls carry: the profile's model, as it is written there.

    Raises:
        ConfigError: There is none.
    """
    if profile.model is None:
        raise ConfigError(
            "a model of kind vllm: expected a repository id or a folder, got none; add "
            "+profiles.NAME.model=..."
        )
    return profile.model


def _interpreter(config: ServingConfig) -> Path | str:
    """A name, or an absolute path; never resolved: a virtual environment's python is a link."""
    return Path(config.python).absolute() if "/" in config.python else config.python


def _local(model: str) -> str:
    return str(Path(model).absolute()) if Path(model).exists() else model


def _environment(profile: VllmProfile, gpus: tuple[str, ...]) -> dict[str, str]:
    inherited = {key: value for key, value in os.environ.items() if key not in NOT_PASSED_ON}
    return {
        **inherited,
        **DISCREET,
        "CUDA_VISIBLE_DEVICES": ",".join(gpus),
        **profile.hosting.environment,
    }
