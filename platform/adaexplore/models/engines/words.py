"""The words of a server's command line that follow from a model's profile.

Where the weights lie, and where the server listens, is for whoever runs it to say.
"""

from collections.abc import Callable
from typing import Final

from adaexplore.errors import ConfigError
from adaexplore.models import contents
from adaexplore.models.profiles import VllmProfile

DISCREET: Final = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "PYTHONUNBUFFERED": "1",
}
"""Variables: no reports of use to anybody, and no word of the log held back."""


def words(
    profile: VllmProfile,
    *,
    host: str,
    port: int,
    folder: Callable[[str], str] = str,
    file: Callable[[str], str] = str,
) -> list[str]:
    """The server's own arguments; `folder` and `file` turn paths of the profile into the server's.

    Raises:
        ConfigError: The profile has no model.
    """
    model = served_name(profile)
    weights = profile.weights
    template = weights.chat_template
    options = {
        "--host": host,
        "--port": port,
        "--model": folder(model),
        "--served-model-name": model,
        # A digest of a content is ours alone; the engine knows only commits.
        "--revision": profile.revision if contents.named(profile.revision) else None,
        "--dtype": weights.dtype,
        "--quantization": weights.quantization,
        "--max-model-len": weights.max_model_len,
        "--tokenizer": None if weights.tokenizer is None else folder(weights.tokenizer),
        "--chat-template": None if template is None else file(template),
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
