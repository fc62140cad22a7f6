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
from adaexplore.experiments.serving import ServingConfig
from adaexplore.models.engines import words as engine_words
from adaexplore.models.profiles import VllmProfile

KEY: Final = "VLLM_API_KEY"
NOT_PASSED_ON: Final = ("PYTHONPATH", "PYTHONHOME", "PYTHONWARNINGS", "VIRTUAL_ENV", KEY)
DISCREET: Final = {**engine_words.DISCREET, "VLLM_HOST_IP": ports.HOST}


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
    """The server's own arguments, on this machine."""
    return engine_words.words(profile, host=ports.HOST, port=port, folder=_local, file=_absolute)


def _interpreter(config: ServingConfig) -> Path | str:
    """A name, or an absolute path; never resolved: a virtual environment's python is a link."""
    return Path(config.python).absolute() if "/" in config.python else config.python


def _absolute(path: str) -> str:
    return str(Path(path).absolute())


def _local(model: str) -> str:
    return _absolute(model) if Path(model).exists() else model


def _environment(profile: VllmProfile, gpus: tuple[str, ...]) -> dict[str, str]:
    inherited = {key: value for key, value in os.environ.items() if key not in NOT_PASSED_ON}
    return {
        **inherited,
        **DISCREET,
        "CUDA_VISIBLE_DEVICES": ",".join(gpus),
        **profile.hosting.environment,
    }
