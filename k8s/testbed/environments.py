"""A container's variables, and the words of its command.

Source: Kubernetes documentation, "Define environment variables" and "Accessing the Service"; a `$(NAME)`
that is not known stays as it is, `$$(NAME)` is written for a plain one.
"""

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from k8s.testbed import quantities
from k8s.testbed.api import Json

REFERENCE: Final = re.compile(r"\$\$|\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)")
LABEL: Final = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


class MissingError(Exception):
    """A ConfigMap, Secret or key that a container refers to is not there."""


Reader = Callable[[str, str], Json | None]
"""(kind, name) to the object in the pod's namespace, None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a pod is told of where it is."""

    pod: Json
    address: str
    host: str
    read: Reader


def variables(container: Json, place: Place, given: Mapping[str, str]) -> dict[str, str]:
    """All variables of a container, on top of those of its image and of the services.

    Raises:
        MissingError: Something that is referred to is missing and not optional.
    """
    found = dict(given)
    for source in container.get("envFrom", []):
        found |= _from_object(source, place)
    for entry in container.get("env", []):
        value = _value(entry, container, place)
        if value is not None:
            found[entry["name"]] = expanded(value, found)
    return found


def command(container: Json, entrypoint: Iterable[str], known: Mapping[str, str]) -> list[str]:
    """The words to run; empty if neither the container nor its image names a program."""
    first = container.get("command") or list(entrypoint)
    return [expanded(word, known) for word in [*first, *container.get("args", [])]]


def expanded(text: str, known: Mapping[str, str]) -> str:
    """A text with its references replaced."""

    def replaced(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return known.get(match[1], match[0])

    return REFERENCE.sub(replaced, text)


def service_links(services: Iterable[Json]) -> dict[str, str]:
    """The variables by which old programs find the services of a namespace."""
    found: dict[str, str] = {}
    for service in services:
        address = service["spec"].get("clusterIP", "None")
        if address in ("None", ""):
            continue
        name = service["metadata"]["name"].upper().replace("-", "_")
        port = service["spec"]["ports"][0]["port"]
        found[f"{name}_SERVICE_HOST"] = address
        found[f"{name}_SERVICE_PORT"] = str(port)
        found[f"{name}_PORT"] = f"tcp://{address}:{port}"
    return found


def field(reference: Json, place: Place) -> str:
    """A field of the pod, as the downward API gives it."""
    pod, path = place.pod, reference["fieldPath"]
    if match := LABEL.fullmatch(path):
        return str(pod["metadata"].get(match[1], {}).get(match[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        entries = pod["metadata"].get(path.partition(".")[2], {})
        return "\n".join(f'{name}="{value}"' for name, value in sorted(entries.items()))
    simple = {
        "metadata.name": pod["metadata"]["name"],
        "metadata.namespace": pod["metadata"]["namespace"],
        "metadata.uid": pod["metadata"]["uid"],
        "spec.nodeName": pod["spec"].get("nodeName", ""),
        "spec.serviceAccountName": pod["spec"].get("serviceAccountName", ""),
        "status.podIP": place.address,
        "status.hostIP": place.host,
    }
    return str(simple[path])


def resource(reference: Json, container: Json) -> str:
    """A container's own limit or request, in whole units of the divisor."""
    which, _, name = reference["resource"].partition(".")
    amount = container.get("resources", {}).get(which, {}).get(name, "0")
    divisor = quantities.number(reference.get("divisor") or "1") or 1
    return str(quantities.whole(str(quantities.number(amount) / divisor)))


def data(kind: str, reference: Json, place: Place) -> dict[str, bytes] | None:
    """The entries of a ConfigMap or Secret; None if it is missing and optional.

    Raises:
        MissingError: It is missing.
    """
    name = reference.get("name") or reference["secretName"]
    found = place.read(kind, name)
    if found is None:
        if reference.get("optional"):
            return None
        raise MissingError(f'{kind.lower()} "{name}" not found')
    plain, coded = found.get("data") or {}, found.get("binaryData") or {}
    if kind == "Secret":
        plain, coded = {}, plain
    return {key: value.encode() for key, value in plain.items()} | {
        key: base64.b64decode(value) for key, value in coded.items()
    }


def _from_object(source: Json, place: Place) -> dict[str, str]:
    kind, reference = (
        ("ConfigMap", source["configMapRef"])
        if "configMapRef" in source
        else ("Secret", source["secretRef"])
    )
    entries = data(kind, reference, place) or {}
    return {source.get("prefix", "") + key: value.decode() for key, value in entries.items()}


def _value(entry: Json, container: Json, place: Place) -> str | None:
    source: Any = entry.get("valueFrom")
    if source is None:
        return str(entry.get("value", ""))
    if "fieldRef" in source:
        return field(source["fieldRef"], place)
    if "resourceFieldRef" in source:
        return resource(source["resourceFieldRef"], container)
    kind, reference = (
        ("ConfigMap", source["configMapKeyRef"])
        if "configMapKeyRef" in source
        else ("Secret", source["secretKeyRef"])
    )
    entries = data(kind, reference, place)
    if entries is None or reference["key"] not in entries:
        if reference.get("optional"):
            return None
        raise MissingError(f"couldn't find key {reference['key']} in {kind} {reference['name']}")
    return entries[reference["key"]].decode()
