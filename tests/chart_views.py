"""The chart and the kustomize folders as documents, and what tests ask of them."""

import copy
import functools
import re
import subprocess
import sys
from pathlib import Path

import yaml

CHECKOUT = Path(__file__).parents[1]
CHART = CHECKOUT / "charts" / "adaexplore"
PROFILES = sorted(CHART.glob("ci/*-values.yaml"))
OVERLAYS = [CHECKOUT / "k8s" / "base", *sorted((CHECKOUT / "k8s" / "overlays").iterdir())]
RELEASE, NAMESPACE = "bench", "team-a"
OF_THE_CLUSTER = {"PriorityClass", "Namespace", "ResourceFlavor", "ClusterQueue"}
CUSTOM = {"RayJob", "RayCluster", "ResourceFlavor", "ClusterQueue", "LocalQueue", "PodMonitor"}


def values(profile):
    return yaml.safe_load(profile.read_text())


@functools.cache
def chart():
    import helm_python

    return helm_python.Chart.load(CHART)


def render(given, name=RELEASE, namespace=NAMESPACE):
    """All documents that the chart makes of some values."""
    texts = chart().render(given, name=name, namespace=namespace)
    found = (
        yaml.safe_load_all(text) for where, text in sorted(texts.items()) if where.endswith(".yaml")
    )
    return [document for documents in found for document in documents if document]


def build(folder):
    """All documents that kustomize makes of a folder."""
    kubectl = Path(sys.executable).parent / "kubectl"
    done = subprocess.run(
        [kubectl, "kustomize", folder], check=True, capture_output=True, text=True
    )
    return list(yaml.safe_load_all(done.stdout))


def name(document):
    return f"{document['kind']}/{document['metadata']['name']}"


def only(documents, kind, ending=""):
    found = [d for d in documents if d["kind"] == kind and d["metadata"]["name"].endswith(ending)]
    assert 1 == len(found), [name(d) for d in documents if d["kind"] == kind]
    return found[0]


def templates(document):
    """(where, template) of each pod that a document makes, whatever its kind."""

    def walk(value, where):
        if isinstance(value, dict):
            if isinstance(value.get("containers"), list):
                yield where, value
            for key, inner in value.items():
                yield from walk(inner, f"{where}.{key}")
        elif isinstance(value, list):
            for number, inner in enumerate(value):
                yield from walk(inner, f"{where}[{number}]")

    return list(walk(document, name(document)))


def containers(document):
    """(where, container) of all containers."""
    return [
        (f"{where}/{one['name']}", one)
        for where, pod in templates(document)
        for one in [*pod.get("initContainers", []), *pod["containers"]]
    ]


def changed(document, path, value):
    """A copy of values with one of them set: `a.b` is a path, None removes."""
    made = copy.deepcopy(document)
    at = made
    *before, last = path.split(".")
    for step in before:
        at = at.setdefault(step, {})
    at[last] = value
    return made


def closed(schema):
    """A CRD's schema as JSON Schema, in which what it does not name is refused."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items() if not key.startswith("x-")}
    if schema.get("x-kubernetes-int-or-string"):
        made.pop("type", None)
        made.setdefault("anyOf", [{"type": "integer"}, {"type": "string"}])
    free = schema.get("x-kubernetes-preserve-unknown-fields")
    if isinstance(made.get("properties"), dict) and made.get("type") == "object" and not free:
        made.setdefault("additionalProperties", False)
    return made


def allowed(policies, end, pod, other, port, protocol="TCP"):
    """Whether policies let a pod's traffic pass at its own end ("Ingress" or "Egress").

    `pod` is a dict of labels; `other` is one as well, or {"namespace": name}, or an address as text.
    An implementation of the API's rules from their documentation, apart from the chart.
    """
    chosen = [
        policy["spec"]
        for policy in policies
        if end in policy["spec"]["policyTypes"] and _selects(policy["spec"]["podSelector"], pod)
    ]
    rules = [rule for spec in chosen for rule in spec.get(end.lower(), [])]
    side = "from" if end == "Ingress" else "to"
    return not chosen or any(
        (side not in rule or any(_peer(peer, other) for peer in rule[side]))
        and any((one.get("protocol"), one["port"]) == (protocol, port) for one in rule["ports"])
        if "ports" in rule
        else any(_peer(peer, other) for peer in rule[side])
        for rule in rules
    )


def _selects(selector, labels):
    return all(
        labels.get(key) == value for key, value in selector.get("matchLabels", {}).items()
    ) and all(
        one["operator"] == "In" and labels.get(one["key"]) in one["values"]
        for one in selector.get("matchExpressions", [])
    )


def _peer(peer, other):
    import ipaddress

    if isinstance(other, str):
        block = peer.get("ipBlock")
        address = ipaddress.ip_address(other)
        return block is not None and (
            address in ipaddress.ip_network(block["cidr"])
            and not any(address in ipaddress.ip_network(one) for one in block.get("except", []))
        )
    if "namespace" in other:
        wanted = peer.get("namespaceSelector", {}).get("matchLabels", {})
        return wanted == {"kubernetes.io/metadata.name": other["namespace"]}
    return "podSelector" in peer and _selects(peer["podSelector"], other)


def mebibytes(quantity):
    number, unit = re.fullmatch(r"(\d+)(Mi|Gi)", quantity).groups()
    return int(number) * (1024 if unit == "Gi" else 1)
