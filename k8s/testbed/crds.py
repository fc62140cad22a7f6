"""Definitions of the custom resources, made acceptable for the API server that we have.

The real ones are data beside the checkout (`../shared/crds`, or `$ADAEXPLORE_CRDS`) and are not copied
into it. Where they are missing, RayJob and RayCluster are defined without a schema, so that everything
runs but nothing is checked; `real()` tells which.

Kubernetes 1.20 cannot hold `default: ""`, `x-kubernetes-validations`, nor lists that are maps by key:
these are dropped in memory.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from k8s.testbed.api import Json

FOLDER: Final = "ADAEXPLORE_CRDS"
"""Environment variable that names another folder."""
BESIDE: Final = Path(__file__).parents[3] / "shared" / "crds"
FILES: Final = ("ray.io_rayclusters.yaml", "ray.io_rayjobs.yaml")
DROPPED: Final = ("x-kubernetes-validations",)


def folder() -> Path:
    """Where the real definitions are looked for."""
    return Path(os.environ.get(FOLDER, BESIDE))


def real() -> bool:
    """Whether they are there."""
    return all((folder() / name).is_file() for name in FILES)


def documents() -> list[Json]:
    """The definitions that a bed installs."""
    return list(_read() if real() else _open())


def acceptable(value: Any) -> Any:
    """A definition without what Kubernetes 1.20 cannot hold."""
    if isinstance(value, list):
        return [acceptable(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {name: acceptable(one) for name, one in value.items() if name not in DROPPED}
    if kept.get("default") == "":
        del kept["default"]
    if kept.get("x-kubernetes-list-type") == "map":
        del kept["x-kubernetes-list-type"]
        kept.pop("x-kubernetes-list-map-keys", None)
    return kept


def _read() -> Iterator[Json]:
    for name in FILES:
        text = (folder() / name).read_text()
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # seconds faster
        document = acceptable(yaml.load(text, Loader=loader))  # noqa: S506 (both are safe)
        document.pop("status", None)
        yield document


def _open() -> Iterator[Json]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    for kind in ("RayCluster", "RayJob"):
        version = {
            "name": "v1",
            "served": True,
            "storage": True,
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": schema},
        }
        names = {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower()}
        yield {
            "kind": "CustomResourceDefinition",
            "apiVersion": "apiextensions.k8s.io/v1",
            "metadata": {"name": f"{kind.lower()}s.ray.io"},
            "spec": {
                "group": "ray.io",
                "scope": "Namespaced",
                "names": names,
                "versions": [version],
            },
        }
