"""The pods, the service and the secret that KubeRay makes of a RayCluster. Pure.

Names, labels, command lines, variables and ports are those of KubeRay 1.7 for the fields that we use;
golden tests hold them. Different on purpose: health is asked by HTTP instead of a program a probe,
since programs are what a small machine has least of.
"""

import base64
import json
from typing import Any, Final

from k8s.testbed import quantities
from k8s.testbed.api import Json

GCS, DASHBOARD, CLIENT, METRICS, AGENT = 6379, 8265, 10001, 8080, 52365
ORIGIN: Final = {
    "app.kubernetes.io/created-by": "kuberay-operator",
    "app.kubernetes.io/name": "kuberay",
}


def owner(document: Json) -> Json:
    """A controlling owner reference."""
    return {
        "apiVersion": document["apiVersion"],
        "kind": document["kind"],
        "name": document["metadata"]["name"],
        "uid": document["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def head_service(cluster: Json) -> Json:
    """Headless, as KubeRay's is by default, and known before the head is ready."""
    name, namespace = cluster["metadata"]["name"], cluster["metadata"]["namespace"]
    labels = _labels(cluster, "head", "headgroup")
    ports = {"gcs-server": GCS, "dashboard": DASHBOARD, "client": CLIENT, "metrics": METRICS}
    chosen = ("ray.io/cluster", "ray.io/node-type", "ray.io/identifier")
    return {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {
            "name": f"{name}-head-svc",
            "namespace": namespace,
            "labels": labels,
            "ownerReferences": [owner(cluster)],
        },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {**ORIGIN, **{key: labels[key] for key in chosen}},
            "ports": [
                {"name": key, "port": port, "targetPort": port} for key, port in ports.items()
            ],
        },
    }


def host_name(cluster: Json) -> str:
    """The head's name in the cluster's network."""
    metadata = cluster["metadata"]
    return f"{metadata['name']}-head-svc.{metadata['namespace']}.svc.cluster.local"


def token_secret(cluster: Json, token: str) -> Json:
    """The token by which Ray's processes know each other."""
    return {
        "kind": "Secret",
        "apiVersion": "v1",
        "metadata": {
            "name": token_name(cluster),
            "namespace": cluster["metadata"]["namespace"],
            "ownerReferences": [owner(cluster)],
        },
        "stringData": {"auth_token": token},
    }


def token_name(cluster: Json) -> str:
    """The Secret with the token: the user's, or one that is named as the cluster."""
    options = cluster["spec"].get("authOptions", {})
    return str(options.get("secretName") or cluster["metadata"]["name"])


def token_of(secret: Json) -> str:
    """The token in its Secret."""
    return base64.b64decode(secret["data"]["auth_token"]).decode()


def wants_token(cluster: Json) -> bool:
    """Whether Ray's token authentication is on."""
    return bool(cluster["spec"].get("authOptions", {}).get("mode") == "token")


def head_pod(cluster: Json) -> Json:
    """The head."""
    group = cluster["spec"]["headGroupSpec"]
    address = f"127.0.0.1:{GCS}"
    pod = _pod(cluster, group, "head", "headgroup", address)
    pod["metadata"]["generateName"] = f"{cluster['metadata']['name']}-head-"
    return pod


def worker_pod(cluster: Json, group: Json) -> Json:
    """A worker, which begins by waiting for the head."""
    address = f"{host_name(cluster)}:{GCS}"
    pod = _pod(cluster, group, "worker", group["groupName"], address)
    pod["metadata"]["generateName"] = f"{cluster['metadata']['name']}-{group['groupName']}-worker-"
    main = pod["spec"]["containers"][0]
    wait = {
        "name": "wait-gcs-ready",
        "image": main["image"],
        "command": ["/bin/bash", "-c", "--"],
        "args": [
            (
                f"until ray health-check --address {address} > /dev/null 2>&1; "
                f"do echo waiting for the GCS at {address}; sleep 1; done"
            )
        ],
        "env": main["env"],
        "resources": {
            "limits": {"cpu": "200m", "memory": "256Mi"},
            "requests": {"cpu": "200m", "memory": "256Mi"},
        },
    }
    pod["spec"]["initContainers"] = [*pod["spec"].get("initContainers", []), wait]
    return pod


def start_command(kind: str, group: Json, address: str) -> str:
    """The `ray start` line of a group."""
    main = group["template"]["spec"]["containers"][0]
    limits = main.get("resources", {}).get("limits", {})
    flags = dict(group.get("rayStartParams") or {})
    flags.setdefault("metrics-export-port", str(METRICS))
    flags.setdefault("dashboard-agent-listen-port", str(AGENT))
    flags.setdefault("block", "true")
    if kind == "head":
        flags.setdefault("dashboard-host", "0.0.0.0")  # noqa: S104 (inside the pod)
    else:
        flags.setdefault("address", address)
    for flag, resource in (
        ("num-cpus", "cpu"),
        ("memory", "memory"),
        ("num-gpus", "nvidia.com/gpu"),
    ):
        if resource in limits:
            flags.setdefault(flag, str(quantities.whole(limits[resource])))
    words = [
        f" --{key} " if value.lower() == "true" else f" --{key}={value} "
        for key, value in sorted(flags.items())
    ]
    head = " --head" if kind == "head" else ""
    return f"ulimit -n 65536; ray start{head} {''.join(words)}"


def _pod(cluster: Json, group: Json, kind: str, group_name: str, address: str) -> Json:
    """A pod of a group's template, with what KubeRay adds."""
    template = json.loads(json.dumps(group["template"]))
    metadata, spec = template.get("metadata", {}), template["spec"]
    main = spec["containers"][0]
    start = start_command(kind, group, address)
    if "ray.io/overwrite-container-cmd" not in cluster["metadata"].get("annotations", {}):
        main["command"], main["args"] = ["/bin/bash", "-c", "--"], [start]
    main["env"] = [*main.get("env", []), *_variables(cluster, kind, address, start)]
    main["ports"] = [*main.get("ports", []), *_ports(kind, main.get("ports", []))]
    _add_shared_memory(spec, main)
    health = {"httpGet": {"port": AGENT, "path": "/api/local_raylet_healthz"}, "timeoutSeconds": 5}
    main.setdefault("readinessProbe", {**health, "periodSeconds": 2, "failureThreshold": 10})
    main.setdefault(
        "livenessProbe",
        {**health, "initialDelaySeconds": 30, "periodSeconds": 5, "failureThreshold": 120},
    )
    labels = {**metadata.get("labels", {}), **_labels(cluster, kind, group_name)}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "namespace": cluster["metadata"]["namespace"],
            "labels": labels,
            "annotations": metadata.get("annotations", {}),
            "ownerReferences": [owner(cluster)],
        },
        "spec": spec,
    }


def _labels(cluster: Json, kind: str, group: str) -> dict[str, str]:
    name = cluster["metadata"]["name"]
    return {
        **ORIGIN,
        "ray.io/cluster": name,
        "ray.io/node-type": kind,
        "ray.io/group": group,
        "ray.io/is-ray-node": "yes",
        "ray.io/identifier": f"{name}-{kind}",
    }


def _variables(cluster: Json, kind: str, address: str, start: str) -> list[Json]:
    found = [
        _field("RAY_CLUSTER_NAME", "metadata.labels['ray.io/cluster']"),
        _field("RAY_CLUSTER_NAMESPACE", "metadata.namespace"),
        _field("RAY_CLOUD_INSTANCE_ID", "metadata.name"),
        _field("RAY_NODE_TYPE_NAME", "metadata.labels['ray.io/group']"),
        variable("KUBERAY_GEN_RAY_START_CMD", start),
        variable("RAY_PORT", str(GCS)),
        variable("RAY_ADDRESS", address),
        variable("RAY_USAGE_STATS_KUBERAY_IN_USE", "1"),
        variable("RAY_USAGE_STATS_ENABLED", "0"),
    ]
    if kind == "worker":
        host = host_name(cluster)
        found += [variable("FQ_RAY_IP", host), variable("RAY_IP", host.partition(".")[0])]
    return found + token_variables(cluster)


def token_variables(cluster: Json) -> list[Json]:
    """What processes need to know the token; nothing where there is none."""
    if not wants_token(cluster):
        return []
    reference = {"name": token_name(cluster), "key": "auth_token"}
    token = {"name": "RAY_AUTH_TOKEN", "valueFrom": {"secretKeyRef": reference}}
    return [variable("RAY_AUTH_MODE", "token"), token]


def _ports(kind: str, named: list[Json]) -> list[Json]:
    wanted = {"metrics": METRICS}
    if kind == "head":
        wanted |= {"gcs-server": GCS, "dashboard": DASHBOARD, "client": CLIENT}
    have = {port.get("name") for port in named} | {port["containerPort"] for port in named}
    return [
        {"name": name, "containerPort": port, "protocol": "TCP"}
        for name, port in wanted.items()
        if name not in have and port not in have
    ]


def _add_shared_memory(spec: Json, main: Json) -> None:
    mounts: list[Json] = main.setdefault("volumeMounts", [])
    if any(mount["mountPath"] == "/dev/shm" for mount in mounts):  # noqa: S108 (inside the pod)
        return
    resources = main.get("resources", {})
    memory = resources.get("requests", {}).get("memory") or resources.get("limits", {}).get(
        "memory"
    )
    options: dict[str, Any] = {"medium": "Memory"} | ({"sizeLimit": memory} if memory else {})
    spec.setdefault("volumes", []).append({"name": "shared-mem", "emptyDir": options})
    mounts.append({"name": "shared-mem", "mountPath": "/dev/shm"})  # noqa: S108


def variable(name: str, value: str) -> Json:
    """An entry of `env`."""
    return {"name": name, "value": value}


def _field(name: str, where: str) -> Json:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": where}}}
