"""Domain files: one readable YAML file a domain, read strictly.

A file is read whole and judged whole: every fault is listed at once, with the path inside the file,
the reason and what would be right, because an author who mends one fault at a time gives up.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import TypeAdapter, ValidationError

from adaexplore.authoring import validators
from adaexplore.benchmark.world.domains import Domain
from adaexplore.errors import DatasetError

PACKAGED: Final = Path(__file__).parent.parent / "data" / "domains"
_DOMAIN: Final = TypeAdapter(Domain)
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The same loader in C, ten times as fast, where PyYAML was built with it."""


def path_of(domain_id: str) -> Path:
    """Path of a packaged domain file; DatasetError naming the known ones if there is none."""
    path = PACKAGED / f"{domain_id}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in PACKAGED.glob("*.yaml")))
        raise DatasetError(f"unknown domain '{domain_id}': expected one of {known}")
    return path


def read(path: Path) -> Domain:
    """The domain of a file; DatasetError that lists every fault in it."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), _LOADER)  # noqa: S506 (both are safe)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise DatasetError(f"{path}: not a readable YAML file: {_one_line(error)}") from None
    domain, faults = parse(document)
    if domain is None or faults:
        listed = "\n".join(f"  {fault}" for fault in faults)
        raise DatasetError(f"{path}: {len(faults)} faults\n{listed}")
    return domain


def parse(document: Any) -> tuple[Domain | None, list[str]]:
    """(domain, faults) of a document; the domain is None when its shape is wrong."""
    try:
        domain = _DOMAIN.validate_python(document, extra="forbid")
    except ValidationError as error:
        return None, list(_shape_faults(error))
    return domain, validators.faults(domain)


def _shape_faults(error: ValidationError) -> Iterable[str]:
    for fault in error.errors(include_url=False):
        path = ".".join(str(part) for part in fault["loc"]) or "(the whole file)"
        shown = repr(fault["input"])
        got = shown if len(shown) <= 60 else f"{shown[:57]}..."
        yield f"{path}: {fault['msg']} (got {got})"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
