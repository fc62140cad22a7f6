"""What is served, as far as it can be known: kept with every attempt, never part of an identity.

A name and a revision do not say what ran. The server's own answers (version, models, context), the
words it was started with, the commit that a revision resolved to, the type of the numbers and the
digest of the chat template do.
"""

import asyncio
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from adaexplore.backends.vllm.servers import Server
from adaexplore.models import contents
from adaexplore.models.profiles import VllmProfile


async def collect(server: Server, profile: VllmProfile) -> dict[str, Any]:
    """The fingerprint of a server that is ready: plain data.

    Raises:
        ConfigError: The weights in its folder are not those that the profile's revision says.
    """
    models = await server.engine.models() or []
    dtype = re.search(r"dtype=torch\.(\w+)", server.output())
    return {
        "engine": "vllm",
        "version": await server.engine.version(),
        "models": [
            {key: model.get(key) for key in ("id", "root", "max_model_len")} for model in models
        ],
        "words": list(server.plan.command.words),
        "revision": await asyncio.to_thread(revision, profile, server.plan.name),
        "dtype": profile.weights.dtype if dtype is None else dtype[1],
        "max_model_len": models[0].get("max_model_len") if models else None,
        "chat_template_sha256": template_digest(profile),
    }


def weights_folder(profile: VllmProfile) -> Path | None:
    """Where the weights lie on this machine: a folder, or a snapshot in the hub's cache."""
    model = Path(profile.model or "")
    if model.is_dir():
        return model
    home = Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface"))
    cache = Path(os.environ.get("HF_HUB_CACHE", home / "hub"))
    repository = cache / ("models--" + str(model).replace("/", "--"))
    asked = profile.revision or "main"
    reference = repository / "refs" / asked
    commit = reference.read_text().strip() if reference.is_file() else asked
    snapshot = repository / "snapshots" / commit
    return snapshot if snapshot.is_dir() else None


def revision(profile: VllmProfile, name: str = "NAME") -> str | None:
    """What the weights are: a commit, or the digest of a folder; else what the profile says.

    Raises:
        ConfigError: The folder has another digest than the profile gives.
    """
    folder = weights_folder(profile)
    if folder is None:
        return profile.revision
    if folder.parent.name == "snapshots":
        return folder.name
    return contents.checked(f"{name}.revision", profile.revision, folder)


def template_digest(profile: VllmProfile) -> str | None:
    """SHA-256 of the chat template's text; None if it cannot be found on this machine."""
    template = _template(profile, weights_folder(profile))
    return None if template is None else hashlib.sha256(template.encode()).hexdigest()


def _template(profile: VllmProfile, folder: Path | None) -> str | None:
    if profile.weights.chat_template is not None:
        return Path(profile.weights.chat_template).read_text()
    if folder is None:
        return None
    if (own := folder / "chat_template.jinja").is_file():
        return own.read_text()
    if (tokenizer := folder / "tokenizer_config.json").is_file():
        found = json.loads(tokenizer.read_text()).get("chat_template")
        return found if isinstance(found, str) else None
    return None
