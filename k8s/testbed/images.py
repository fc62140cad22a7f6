"""What an image name stands for on a machine without a container engine.

An image is a set of folders on PATH, variables, and the program that is run where a container names
none. Names are matched by their longest known beginning, so a tag or digest need not be known. What
is not in the table cannot be pulled, exactly as an image that does not exist.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

HOME: Final = "/opt/adaexplore"
"""Where the project's image has its files."""
SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """One row."""

    folders: tuple[str, ...] = ()
    """Searched for programs before the system's."""
    needs: tuple[str, ...] = ()
    """Folders that have to be visible (read only) where they are here."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Folders that are seen (read only) at another place: by that place, where they are here."""
    entrypoint: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    pull_s: float = 0.0
    """How long pulling it seems to take: a slow start."""

    @property
    def variables(self) -> dict[str, str]:
        """The environment that every container of it begins with."""
        path = ":".join((*self.folders, SYSTEM_PATH))
        return {"PATH": path, "HOME": "/tmp", "LANG": "C.UTF-8", **self.environment}  # noqa: S108


def of_python(interpreter: Path, checkout: Path, **more: str) -> Image:
    """The image of a virtual environment and a checkout, with `python` and its scripts on PATH."""
    folder = interpreter.absolute().parent
    base = interpreter.resolve().parent.parent
    return Image(
        folders=(str(folder),),
        needs=tuple({str(folder.parent), str(base), str(checkout)}),
        environment={
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": str(checkout),
            **more,
        },
    )


def this_python(checkout: Path) -> Image:
    """The image of the environment that runs this."""
    return of_python(Path(sys.executable), checkout)


def of_project(interpreter: Path, source: Path, **more: str) -> Image:
    """The project's own image: an environment, and a checkout or a copy of one at /opt/adaexplore."""
    folder = interpreter.absolute().parent
    base = interpreter.resolve().parent.parent
    return Image(
        folders=(str(folder),),
        needs=tuple({str(folder.parent), str(base)}),
        places={HOME: str(source)},
        environment={
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": f"{HOME}/platform",
            **more,
        },
    )


def find(table: Mapping[str, Image], name: str) -> Image | None:
    """The row whose name is the longest beginning of an image's name; None if there is none."""
    known = [row for row in table if name == row or name.startswith((f"{row}:", f"{row}@"))]
    return table[max(known, key=len)] if known else None


def save(path: Path, table: Mapping[str, Image]) -> None:
    """Write a table for a kubelet."""
    path.write_text(json.dumps({name: asdict(row) for name, row in table.items()}, indent=1))


def load(path: Path) -> dict[str, Image]:
    """Read what `save` wrote."""
    rows = json.loads(path.read_text())
    return {
        name: Image(
            folders=tuple(row["folders"]),
            needs=tuple(row["needs"]),
            places=row["places"],
            entrypoint=tuple(row["entrypoint"]),
            environment=row["environment"],
            pull_s=row["pull_s"],
        )
        for name, row in rows.items()
    }
