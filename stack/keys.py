"""The stack's secrets: made once, at random, each in the form in which it is read.

- `env`: the S3 key, for the shell (`. runs/stack/env`); boto3's usual chain finds it there.
- `pgpass`: PostgreSQL's password, for libpq (PGPASSFILE).
- `compose.env`: the same for `docker compose --env-file`.

The files are the truth: a service takes what they say at each start, so deleting them and starting
again changes the keys. Source: PostgreSQL 15 documentation, section 34.16 (the password file).
"""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from stack.layout import HOST, StackError

REGION: Final = "us-east-1"
"""SeaweedFS has none; signatures need a name."""
DATABASE: Final = "mlflow"
ROLE: Final = "mlflow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Secrets in memory; their values are never shown."""

    files: Path
    s3: dict[str, str]
    """Environment of an S3 client."""
    password: str
    """Of PostgreSQL's role."""

    def __repr__(self) -> str:
        return f"Keys(files={str(self.files)!r})"

    @property
    def pgpass(self) -> Path:
        """The password file of libpq."""
        return self.files / "pgpass"


def ensure(folder: Path) -> Keys:
    """The secrets of a stack, made where they are missing.

    Raises:
        StackError: A file that is not in the form in which it was written.
    """
    fresh = f"{HOST}:*:{DATABASE}:{ROLE}:{secrets.token_urlsafe(24)}\n"
    password = _whole(folder / "pgpass", fresh).rpartition(":")[2].strip()
    lines = _whole(folder / "env", _exports()).splitlines()
    s3 = dict(line.removeprefix("export ").split("=", 1) for line in lines if "=" in line)
    if not {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} <= set(s3) or not password:
        raise StackError(
            f"expected the keys of the first start in {folder}/env and {folder}/pgpass, found something "
            "else; delete both and start again, which makes new ones"
        )
    found = Keys(files=folder, s3=s3, password=password)
    names = {**s3, "POSTGRES_PASSWORD": password}
    _write(folder / "compose.env", "".join(f"{name}={value}\n" for name, value in names.items()))
    return found


def _exports() -> str:
    names = {
        "AWS_ACCESS_KEY_ID": secrets.token_hex(10).upper(),
        "AWS_SECRET_ACCESS_KEY": secrets.token_urlsafe(30),
        "AWS_DEFAULT_REGION": REGION,
    }
    return "".join(f"export {name}={value}\n" for name, value in names.items())


def _whole(path: Path, fresh: str) -> str:
    if not path.exists():
        _write(path, fresh)
    return path.read_text()


def _write(path: Path, text: str) -> None:
    """Whole or not at all, and never readable by others, not even for a moment."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
