"""A pod's volumes as folders, and the mounts of its containers.

ConfigMaps, Secrets, projected volumes and tokens are written once, when the pod starts: later changes
do not reach it. Memory volumes are mounted in the node's own mount namespace, so that all containers
of a pod share them and nothing stays mounted.
"""

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from k8s.testbed import environments, quantities
from k8s.testbed.api import Json
from k8s.testbed.environments import MissingError, Place

SHM: Final = "/dev/shm"  # noqa: S108 (a path inside containers)
SHM_SIZE: Final = 64 * 2**20
"""What container engines give where no volume is mounted there."""
MEMORY_SIZE: Final = 256 * 2**20
"""Of memory volumes without a limit; the real default is half of the node."""
Token = Callable[[Json], str]
"""A service-account token for a `serviceAccountToken` source."""


def prepare(folder: Path, place: Place, token: Token) -> dict[str, Path]:
    """The folder of each volume of a pod, filled.

    Raises:
        MissingError: A ConfigMap, Secret or claim is missing: to be tried again.
    """
    made = {}
    for volume in place.pod["spec"].get("volumes", []):
        made[volume["name"]] = _prepare(folder / volume["name"], volume, place, token)
    return made


def mounts(container: Json, made: Mapping[str, Path], scratch: Path, pod: Path) -> list[Json]:
    """What is mounted in a container, for the launcher: `scratch` is its own, `pod` the pod's."""
    found = [
        _mount("/dev", "/dev", whole=True),
        _mount("/sys", "/sys", read_only=False, whole=True),
        _mount(None, "/run", size=16 * 2**20),
        _mount(None, SHM, size=SHM_SIZE),
        _mount(scratch, "/tmp"),  # noqa: S108 (a path inside containers)
        _mount(pod / "hosts", "/etc/hosts"),
        _mount(pod / "resolv.conf", "/etc/resolv.conf"),
    ]
    for mount in container.get("volumeMounts", []):
        source = made[mount["name"]]
        if mount.get("subPath"):
            source /= mount["subPath"]
        target = mount["mountPath"].rstrip("/")
        found = [one for one in found if one["target"] != target]
        found.append(_mount(source, target, read_only=mount.get("readOnly", False)))
    return found


def visible(places: Mapping[str, str]) -> list[Json]:
    """The folders that a container's programs need, read only: by where they are seen, where they are."""
    return [_mount(path, place, read_only=True) for place, path in places.items()]


def discard(made: Mapping[str, Path]) -> None:
    """Unmount the memory volumes."""
    for path in made.values():
        if path.is_mount():
            subprocess.run(["umount", "--lazy", str(path)], check=False, capture_output=True)


def _prepare(path: Path, volume: Json, place: Place, token: Token) -> Path:
    if "hostPath" in volume:
        return Path(volume["hostPath"]["path"])
    if "persistentVolumeClaim" in volume:
        return _claimed(volume["persistentVolumeClaim"]["claimName"], place)
    path.mkdir(parents=True, exist_ok=True)
    if "emptyDir" in volume:
        return _empty(path, volume["emptyDir"] or {})
    for source in volume["projected"]["sources"] if "projected" in volume else [volume]:
        _write(path, source, place, token)
    return path


def _empty(path: Path, options: Json) -> Path:
    path.chmod(0o777)
    if options.get("medium") == "Memory" and not path.is_mount():
        limit = options.get("sizeLimit")
        size = quantities.whole(limit) if limit else MEMORY_SIZE
        words = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=1777", "none", str(path)]
        subprocess.run(words, check=True, capture_output=True)
    return path


def _claimed(name: str, place: Place) -> Path:
    claim = place.read("PersistentVolumeClaim", name) or {}
    bound = claim.get("spec", {}).get("volumeName")
    volume = place.read("PersistentVolume", bound) if bound else None
    if volume is None or "hostPath" not in volume["spec"]:
        raise MissingError(f'persistentvolumeclaim "{name}" is not bound to a hostPath volume')
    return Path(volume["spec"]["hostPath"]["path"])


def _write(path: Path, source: Json, place: Place, token: Token) -> None:
    if "serviceAccountToken" in source:
        asked = source["serviceAccountToken"]
        _file(path / asked["path"], token(asked).encode(), 0o600)
        return
    if "downwardAPI" in source:
        for item in source["downwardAPI"]["items"]:
            text = environments.field(item["fieldRef"], place)
            _file(path / item["path"], text.encode(), item.get("mode", 0o644))
        return
    kind, reference = (
        ("ConfigMap", source["configMap"])
        if "configMap" in source
        else ("Secret", source["secret"])
    )
    mode = reference.get("defaultMode", 0o644)
    entries = environments.data(kind, reference, place)
    for key, target in _chosen(reference, entries or {}):
        _file(path / target, (entries or {})[key], mode)


def _chosen(reference: Json, entries: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """(key, path) of what is written: everything, or the items that are named."""
    items = reference.get("items")
    if items is None:
        return [(key, key) for key in entries]
    missing = [item["key"] for item in items if item["key"] not in entries]
    if missing and not reference.get("optional"):
        raise MissingError(f"references non-existent config key: {missing[0]}")
    return [(item["key"], item["path"]) for item in items if item["key"] in entries]


def _file(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(content)
    path.chmod(mode)


def _mount(
    source: Path | str | None,
    target: str,
    *,
    read_only: bool = False,
    whole: bool = False,
    size: int = 0,
) -> dict[str, Any]:
    return {
        "source": None if source is None else str(source),
        "target": target,
        "read_only": read_only,
        "whole": whole,
        "size": size,
    }
