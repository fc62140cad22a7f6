"""Identity: what makes two cells the same, and nothing else.

`cell_id` is a digest of the semantic configuration in canonical form. It is resume key, store key
and tracking tag alike, so everything that can change a result must be in it, and nothing that
cannot: no address, key, timeout, concurrency, backend, path, time or host.
"""

import hashlib
import json
from dataclasses import asdict
from typing import Any, Final

from adaexplore.benchmark.game import prompts
from adaexplore.benchmark.game.protocol import PROTOCOL_VERSION, Protocol
from adaexplore.benchmark.game.settings import Setting
from adaexplore.models.profiles import Profile

IDENTITY_VERSION: Final = 1
"""Raised when the identity scheme itself changes, so that old and new ids never meet."""


def canonical(document: Any) -> bytes:
    """The one byte form of a JSON document: sorted keys, no spaces, ASCII."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def digest(document: Any) -> str:
    """SHA-256 of the canonical form, in hex."""
    return hashlib.sha256(canonical(document)).hexdigest()


def semantic(
    profile: Profile, setting: Setting, seed: int, *, protocol: Protocol, dataset_digest: str
) -> dict[str, Any]:
    """Everything that decides the results of a cell."""
    return {
        "identity_version": IDENTITY_VERSION,
        "protocol_version": PROTOCOL_VERSION,
        "prompts": prompts.DIGEST,
        "dataset": dataset_digest,
        "model": profile.semantic(),
        "setting": asdict(setting),
        "protocol": _protocol(protocol),
        "seed": seed,
    }


def _protocol(protocol: Protocol) -> dict[str, Any]:
    """Its fields; `batches` came later, so episodes played whole keep the ids that they had."""
    document = asdict(protocol)
    if protocol.batches is None:
        del document["batches"]
    return document


def cell_id(semantic_document: dict[str, Any]) -> str:
    """Id of a cell: 32 hex digits of its semantic digest."""
    return digest(semantic_document)[:32]


def differing(before: dict[str, Any], after: dict[str, Any], where: str = "") -> list[str]:
    """Paths of the keys in which two semantic documents differ."""
    paths = []
    for key in sorted(before.keys() | after.keys()):
        path, old, new = f"{where}{key}", before.get(key), after.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            paths += differing(old, new, f"{path}.")
        elif old != new:
            paths.append(path)
    return paths
