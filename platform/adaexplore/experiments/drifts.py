"""Drifts: what is no longer as it was when a sweep was frozen, each thing by its name.

A rerun that silently met another dataset, prompt, package or checkpoint would be believed to be the
same. So every digest of the document is made again and compared, all that differ are named at once
with both values, and one is taken only by its name.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from adaexplore.errors import ConfigError
from adaexplore.experiments import frozen, identity
from adaexplore.experiments.frozen import NAMES, Frozen
from adaexplore.experiments.grids import Cell

_EXPLAINED: Final = {
    "dataset": "dataset",
    "prompts": "prompts",
    "protocol_version": "protocol",
    "identity_version": "identity",
    "model.revision": "models",
    "model.weights.chat_template": "models",
}
"""Key of a cell's semantic document -> name of the digest that tells of it, if that differs."""
_SHORT: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that is not what it was when the sweep was frozen, both sides shortened."""

    name: str
    frozen: str
    here: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.name}: frozen {self.frozen}, here {self.here}"


def differences(before: Frozen, cells: Iterable[Cell], here: Mapping[str, Any]) -> list[Difference]:
    """Everything in which a frozen sweep and what is here differ, in the order of `NAMES`.

    Args:
        before: The document.
        cells: What its configuration gives with the code and the dataset that are here.
        here: Their digests.
    """
    found = [
        _difference(name, before.digests[name], here[name])
        for name in NAMES[:-1]
        if not _same(name, before.digests[name], here[name])
    ]
    told = {difference.name for difference in found}
    explained = {key for key, name in _EXPLAINED.items() if name in told}
    return found + _cell_differences(before.cells, frozen.listed(cells), explained)


def _same(name: str, before: Any, now: Any) -> bool:
    if name == "code":
        return _same_code(before, now)
    if name == "models":
        return _same_models(before, now)
    return bool(before == now)


def _same_code(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Equal sources, nothing uncommitted, and the same commit where both sides know theirs."""
    commits = (before.get("commit"), now.get("commit"))
    return (
        before.get("source") == now.get("source")
        and not before.get("dirty")
        and not now.get("dirty")
        and (None in commits or commits[0] == commits[1])
    )


def _same_models(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Equal wherever the document pins something: weights may not have been here when it was made."""
    return all(
        value is None or value == now.get(name, {}).get(key)
        for name, pinned in before.items()
        for key, value in pinned.items()
    )


def _cell_differences(
    before: Mapping[str, Any], now: Mapping[str, Any], explained: Collection[str]
) -> list[Difference]:
    """At most one difference: of the semantic keys that no digest explains already."""
    missing, added = (
        sorted(map(str, k)) for k in (before.keys() - now.keys(), now.keys() - before.keys())
    )
    changed = {
        key
        for label in before.keys() & now.keys()
        for key in identity.differing(before[label]["semantic"], now[label]["semantic"])
        if key not in explained
    }
    if not missing and not added and not changed:
        return []
    told = [f"only there: {', '.join(missing[:3])}"] if missing else []
    told += [f"changed: {', '.join(sorted(changed)[:5])}"] if changed else []
    also = [f"only here: {', '.join(added[:3])}"] if added else []
    return [
        Difference(
            name="cells",
            frozen=f"{len(before)} cells ({'; '.join(told) or 'all here'})",
            here=f"{len(now)} cells" + (f" ({'; '.join(also)})" if also else ""),
        )
    ]


def _difference(name: str, before: Any, now: Any) -> Difference:
    shown = _code if name == "code" else _shown
    return Difference(name=name, frozen=shown(before), here=shown(now))


def _code(code: Mapping[str, Any]) -> str:
    changes = " with uncommitted changes" if code.get("dirty") else ""
    return f"commit {_shown(code.get('commit'))}{changes} (source {_shown(code.get('source'))})"


def _shown(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, dict):
        shown = (f"{key}={_shown(inner)}" for key, inner in value.items())
        return " ".join(shown) or "none"
    text = str(value)
    return text if len(text) <= 2 * _SHORT else f"{text[:_SHORT]}..."


# -- allowing ----------------------------------------------------------------------------------


def require_same(
    found: Iterable[Difference], allowed: Iterable[str], where: str
) -> list[Difference]:
    """The differences that were allowed by name, all there are.

    Raises:
        ConfigError: A difference was not allowed (all such are named), or a name was allowed that
            does not differ.
    """
    differing = {difference.name: difference for difference in found}
    names = list(dict.fromkeys(allowed))
    for name in names:
        if name not in NAMES:
            raise ConfigError(
                f"--allow-drift={name}: expected one of {', '.join(NAMES)}, got '{name}'"
            )
        if name not in differing:
            raise ConfigError(f"--allow-drift={name}: {name} does not differ; leave the option out")
    refused = [difference for name, difference in differing.items() if name not in names]
    if refused:
        listed = "; ".join(map(str, refused))
        options = " ".join(f"--allow-drift={difference.name}" for difference in refused)
        raise ConfigError(
            f"{where}: not what was frozen: {listed}. Restore it, or take it as it is with {options}"
        )
    return list(differing.values())
