"""What KubeRay makes of a RayJob, as documents. Pure.

Names, labels and command lines are those of KubeRay 1.7 for the fields that we use; golden tests hold
them. What it would refuse is refused, and so is what this stand-in does not know.
"""

import json
import shlex
from typing import Final

import yaml

from k8s.testbed.api import Json
from k8s.testbed.ray_pods import owner, token_variables, variable

FINALIZER: Final = "ray.io/rayjob-finalizer"
NAME_LIMIT: Final = 47


def fault(job: Json) -> str:
    """Why the real operator, or this stand-in, refuses a RayJob; nothing if it does not."""
    spec, name = job["spec"], job["metadata"]["name"]
    shutdown, ttl = (
        spec.get("shutdownAfterJobFinishes", False),
        spec.get("ttlSecondsAfterFinished", 0),
    )
    mode, limit = spec.get("submissionMode", "K8sJobMode"), spec.get("activeDeadlineSeconds")
    faults = {
        f"the name has over {NAME_LIMIT} characters": len(name) > NAME_LIMIT,
        "suspend needs shutdownAfterJobFinishes": spec.get("suspend", False) and not shutdown,
        "ttlSecondsAfterFinished needs shutdownAfterJobFinishes": ttl > 0 and not shutdown,
        "ttlSecondsAfterFinished is negative": ttl < 0,
        "backoffLimit is negative": spec.get("backoffLimit", 0) < 0,
        "activeDeadlineSeconds is not positive": limit is not None and limit <= 0,
        "preRunningDeadlineSeconds is not positive": spec.get("preRunningDeadlineSeconds", 1) <= 0,
        "rayClusterSpec is missing": "rayClusterSpec" not in spec,
        "deletionStrategy excludes shutdownAfterJobFinishes": "deletionStrategy" in spec
        and shutdown,
        "the stand-in knows no deletionStrategy": "deletionStrategy" in spec and not shutdown,
        "the stand-in knows no clusterSelector": "clusterSelector" in spec,
        f"the stand-in knows K8sJobMode, not {mode}": mode != "K8sJobMode",
        "the stand-in knows no autoscaling": bool(
            spec.get("rayClusterSpec", {}).get("enableInTreeAutoscaling")
        ),
    }
    return "; ".join(line for line, holds in faults.items() if holds)


def cluster(job: Json, name: str) -> Json:
    """The RayCluster of an attempt."""
    metadata = job["metadata"]
    return {
        "kind": "RayCluster",
        "apiVersion": "ray.io/v1",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": {
                **metadata.get("labels", {}),
                "ray.io/originated-from-cr-name": metadata["name"],
                "ray.io/originated-from-crd": "RayJob",
                "ray.io/job-submission-mode": "K8sJobMode",
            },
            "ownerReferences": [owner(job)],
        },
        "spec": job["spec"]["rayClusterSpec"],
    }


def submitter(job: Json) -> Json:
    """The `batch/v1` Job whose pod submits the Ray job and follows its log."""
    spec, metadata = job["spec"], job["metadata"]
    labels = {
        "ray.io/originated-from-cr-name": metadata["name"],
        "ray.io/originated-from-crd": "RayJob",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }
    tries = (spec.get("submitterConfig") or {}).get("backoffLimit", 2)
    return {
        "kind": "Job",
        "apiVersion": "batch/v1",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [owner(job)],
        },
        "spec": {"backoffLimit": tries, "template": _submitter_template(job, labels)},
    }


def _submitter_template(job: Json, labels: dict[str, str]) -> Json:
    """The user's pod or the usual one, with the command and what it needs to know."""
    spec, status = job["spec"], job["status"]
    head = spec["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    usual = {"spec": {"containers": [_submitter_container(head)]}}
    template: Json = json.loads(json.dumps(spec.get("submitterPodTemplate") or usual))
    metadata = template.setdefault("metadata", {})
    metadata["labels"] = {**metadata.get("labels", {}), **labels}
    template["spec"].setdefault("restartPolicy", "Never")
    main = template["spec"]["containers"][0]
    if not main.get("command"):
        main["command"], main["args"] = ["/bin/bash", "-ce", "--"], [submit_command(job)]
    attempt = {"metadata": {"name": status["rayClusterName"]}, "spec": spec["rayClusterSpec"]}
    main["env"] = [
        *main.get("env", []),
        variable("PYTHONUNBUFFERED", "1"),
        variable("RAY_DASHBOARD_ADDRESS", status["dashboardURL"]),
        variable("RAY_JOB_SUBMISSION_ID", status["jobId"]),
        *token_variables(attempt),
    ]
    return template


def submit_command(job: Json) -> str:
    """The submitter's shell line: wait, submit unless that was done before, follow."""
    spec, status = job["spec"], job["status"]
    address = f"http://{status['dashboardURL']}"
    job_id = status["jobId"]
    health = (
        'python3 -c "import urllib.request; '
        f"urllib.request.urlopen('{address}/api/gcs_healthz', timeout=5)\""
    )
    submit = f"ray job submit --address {address} --no-wait"
    if spec.get("runtimeEnvYAML"):
        environment = json.dumps(yaml.safe_load(spec["runtimeEnvYAML"]), separators=(",", ":"))
        submit += f" --runtime-env-json {shlex.quote(environment)}"
    if spec.get("metadata"):
        submit += f" --metadata-json {shlex.quote(json.dumps(spec['metadata']))}"
    submit += f" --submission-id {job_id}"
    if spec.get("entrypointNumCpus"):
        submit += f" --entrypoint-num-cpus {spec['entrypointNumCpus']:f}"
    return (
        f"until {health} >/dev/null 2>&1 ; do echo waiting for the dashboard at {address} ; sleep 2 ; done ; "
        f"if ! ray job status --address {address} {job_id} >/dev/null 2>&1 ; then "
        f"{submit} -- {spec.get('entrypoint', '').strip()} ; fi ; "
        f"ray job logs --address {address} --follow {job_id}"
    )


def _submitter_container(head: Json) -> Json:
    return {
        "name": "ray-job-submitter",
        "image": head["containers"][0]["image"],
        "resources": {
            "limits": {"cpu": "1", "memory": "1Gi"},
            "requests": {"cpu": "500m", "memory": "200Mi"},
        },
    }
