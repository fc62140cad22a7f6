"""The operator's RayClusters: made for an attempt, kept complete, asked, and taken away."""

import json
import secrets
from typing import Final

import urllib3

from k8s.testbed import ray_pods, rayjobs
from k8s.testbed.api import Api, Json, holds, path

HEAD_S: Final = 3.0
"""For one question to the head."""


class Clusters:
    """See the module."""

    def __init__(self, api: Api) -> None:
        """Acts as the user of `api`."""
        self._api = api
        self._pool = urllib3.PoolManager(retries=False)

    def complete(self, job: Json) -> tuple[Json, bool]:
        """The attempt's RayCluster with all its pods made, and whether all of them are ready."""
        namespace, name = job["metadata"]["namespace"], job["status"]["rayClusterName"]
        cluster = self.ensure("RayCluster", rayjobs.cluster(job, name))
        cluster |= {"kind": "RayCluster", "apiVersion": "ray.io/v1"}
        if "deletionTimestamp" in cluster["metadata"]:
            return cluster, False
        if ray_pods.wants_token(cluster):
            self.ensure("Secret", ray_pods.token_secret(cluster, secrets.token_hex(32)))
        self.ensure("Service", ray_pods.head_service(cluster))
        pods = self._pods(namespace, name)
        for pod in _missing(cluster, pods):
            self._api.create(pod)
        status = _cluster_status(cluster, pods)
        old = cluster.get("status", {})
        if any(old.get(name) != value for name, value in status.items()):
            cluster = self._api.patch(
                path("RayCluster", namespace, name) + "/status", {"status": status}
            )
            cluster |= {"kind": "RayCluster", "apiVersion": "ray.io/v1"}
        return cluster, status.get("state") == "ready"

    def _pods(self, namespace: str, cluster: str) -> list[Json]:
        """The cluster's pods that count: those that have ended are deleted, to be made again."""
        found = self._api.items(path("Pod", namespace), labelSelector=f"ray.io/cluster={cluster}")
        ended = [pod for pod in found if pod["status"].get("phase") in ("Failed", "Succeeded")]
        for pod in ended:
            self._api.delete(path("Pod", namespace, pod["metadata"]["name"]))
        return [
            pod for pod in found if pod not in ended and "deletionTimestamp" not in pod["metadata"]
        ]

    def cleared(self, job: Json) -> bool:
        """Whether the attempt's cluster and submitter are gone; asks for it."""
        namespace = job["metadata"]["namespace"]
        places = [path("Job", namespace, job["metadata"]["name"])]
        if name := job["status"].get("rayClusterName"):
            places.append(path("RayCluster", namespace, name))
        left = [where for where in places if self._api.find(where) is not None]
        for where in left:
            self._api.delete(where, propagationPolicy="Background")
        pods = self._pods(namespace, name) if name else []
        return not left and not pods

    def ask(self, job: Json, cluster: Json) -> Json | None:
        """What the head says of the Ray job; None where it does not answer or does not know it."""
        return self.call("GET", f"/api/jobs/{job['status']['jobId']}", cluster)

    def call(self, method: str, where: str, cluster: Json) -> Json | None:
        """The head's answer to a request; None where there is none."""
        address = cluster.get("status", {}).get("head", {}).get("podIP")
        if not address:
            return None
        headers = {}
        if ray_pods.wants_token(cluster):
            metadata = cluster["metadata"]
            secret = self._api.get(
                path("Secret", metadata["namespace"], ray_pods.token_name(cluster))
            )
            headers["Authorization"] = f"Bearer {ray_pods.token_of(secret)}"
        url = f"http://{address}:{ray_pods.DASHBOARD}{where}"
        try:
            answer = self._pool.request(method, url, headers=headers, timeout=HEAD_S)
            return dict(json.loads(answer.data)) if answer.status == 200 else None
        except (urllib3.exceptions.HTTPError, ValueError):
            return None

    def ensure(self, kind: str, document: Json) -> Json:
        """An object, made if it is not there."""
        metadata = document["metadata"]
        found = self._api.find(path(kind, metadata["namespace"], metadata["name"]))
        return found if found is not None else self._api.create(document)


def _missing(cluster: Json, pods: list[Json]) -> list[Json]:
    """The pods that the cluster should have and has not."""
    kinds = [pod["metadata"]["labels"] for pod in pods]
    made = []
    if not any(labels["ray.io/node-type"] == "head" for labels in kinds):
        made.append(ray_pods.head_pod(cluster))
    for group in cluster["spec"].get("workerGroupSpecs", []):
        have = sum(labels["ray.io/group"] == group["groupName"] for labels in kinds)
        wanted = group.get("replicas", group.get("minReplicas", 0))
        made += [ray_pods.worker_pod(cluster, group) for _ in range(wanted - have)]
    return made


def _cluster_status(cluster: Json, pods: list[Json]) -> Json:
    groups = cluster["spec"].get("workerGroupSpecs", [])
    wanted = sum(group.get("replicas", group.get("minReplicas", 0)) for group in groups)
    ready = [pod for pod in pods if holds(pod, "Ready")]
    heads = [pod for pod in pods if pod["metadata"]["labels"]["ray.io/node-type"] == "head"]
    workers = [pod for pod in ready if pod not in heads]
    status: Json = {"desiredWorkerReplicas": wanted, "readyWorkerReplicas": len(workers)}
    if heads:
        head = {
            "podName": heads[0]["metadata"]["name"],
            "podIP": heads[0]["status"].get("podIP", ""),
            "serviceName": f"{cluster['metadata']['name']}-head-svc",
        }
        status["head"] = {key: value for key, value in head.items() if value}
    if len(ready) == wanted + 1:
        status["state"] = "ready"
    return status
