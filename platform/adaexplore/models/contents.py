"""What lies in a folder of this machine is told by its content, not by its path.

Weights in a folder have no commit that names them, and a path says nothing: two checkpoints of one
training run lie at the same path one after the other, with files of the same names and sizes. So
every byte is read, at launch and when they are served, which takes about as long as loading them. The
digest becomes the profile's revision; from there it enters the identity and the frozen configuration.
"""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from adaexplore.errors import ConfigError
from adaexplore.models.profiles import CONTENT, Profile, VllmProfile


def identified(name: str, profile: Profile) -> Profile:
    """The profile with the digests of what it names on this machine: weights and chat template.

    What is not here, or has a revision that is no digest (which is believed), stays as it is.

    Raises:
        ConfigError: The profile gives a digest, and the content has another, or cannot be read.
    """
    if not isinstance(profile, VllmProfile):
        return profile
    weights, template = profile.weights, profile.weights.chat_template
    revision, template_digest = profile.revision, weights.chat_template_digest
    try:
        if profile.model is not None and Path(profile.model).is_dir() and not named(revision):
            revision = checked(f"{name}.revision", revision, Path(profile.model))
        if template is not None and Path(template).is_file():
            where = f"{name}.weights.chat_template_digest"
            template_digest = checked(where, template_digest, Path(template))
    except OSError as error:
        raise ConfigError(
            f"model '{name}': {error.filename} cannot be read ({error.strerror}); mend the folder "
            f"of +profiles.{name}.model"
        ) from None
    weights = replace(weights, chat_template_digest=template_digest)
    return replace(profile, revision=revision, weights=weights)


def named(revision: str | None) -> bool:
    """Whether a revision is a name, no digest of a content."""
    return revision is not None and not revision.startswith(CONTENT)


def checked(key: str, given: str | None, path: Path) -> str:
    """The digest of what lies at a path; ConfigError naming the profile's key if it gives another."""
    found = digest(path)
    if given is not None and not named(given) and given != found:
        raise ConfigError(
            f"+profiles.{key}: expected {given}, the content of {path} has {found}; restore it, or "
            "leave the key out to play what is there"
        )
    return found


def digest(path: Path) -> str:
    """`sha256:` and the digest of a file, or of a folder's files by name; hidden ones are left out.

    Hidden files are what tools keep beside weights: locks, caches, times of download.

    Raises:
        OSError: Something cannot be read.
    """
    if path.is_file():
        return CONTENT + _file_digest(path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    shown = [(file.relative_to(path), file) for file in files]
    shown = [(name, file) for name, file in shown if not any(p[0] == "." for p in name.parts)]
    with ThreadPoolExecutor() as pool:
        digests = pool.map(_file_digest, [file for _, file in shown])
        lines = [
            f"{name.as_posix()}\0{own}\n" for (name, _), own in zip(shown, digests, strict=True)
        ]
    return CONTENT + hashlib.sha256("".join(lines).encode()).hexdigest()


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
