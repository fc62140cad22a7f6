"""Secrets: read where they are named, at the last moment, and kept in memory only."""

import os
from pathlib import Path

from adaexplore.errors import ConfigError
from adaexplore.models.profiles import RemoteProfile


def headers(name: str, profile: RemoteProfile) -> tuple[dict[str, str], list[str]]:
    """(request headers, the secret values in them) of a profile.

    Raises:
        ConfigError: A named variable or file does not hold a value; names it, never a value.
    """
    found = {"Content-Type": "application/json", **profile.dialect.headers}
    secrets = []
    own = key(name, profile)
    if own is not None:
        found[profile.auth.header] = f"{profile.auth.scheme} {own}".strip()
        secrets.append(own)
    for header, variable in profile.dialect.header_env.items():
        value = _variable(name, variable)
        found[header] = value
        secrets.append(value)
    return found, secrets


def key(name: str, profile: RemoteProfile) -> str | None:
    """The key of a profile, None where it takes none; ConfigError as `headers`."""
    auth = profile.auth
    if auth.key_file is not None:
        try:
            own = Path(auth.key_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            own = ""
        if not own:
            raise ConfigError(
                f"model '{name}': the key file {auth.key_file} cannot be read or is empty"
            )
        return _single_line(name, f"the key file {auth.key_file}", own)
    return None if auth.key_env is None else _variable(name, auth.key_env)


def _variable(name: str, variable: str) -> str:
    value = os.environ.get(variable, "").strip()
    if not value:
        raise ConfigError(
            f"model '{name}': the environment variable {variable} is not set; "
            f"set it (export {variable}=...) and launch again"
        )
    return _single_line(name, f"the environment variable {variable}", value)


def _single_line(name: str, source: str, value: str) -> str:
    """A value that can stand in a header."""
    if not value.isprintable() or not value.isascii():
        raise ConfigError(f"model '{name}': {source} holds characters that no header can carry")
    return value
