"""Golden documents: what the operator stand-in makes of a RayJob."""

import json
from pathlib import Path

import pytest
import yaml
from k8s.testbed import ray_pods, rayjobs

GOLDEN = Path(__file__).parent / "golden"
RESOURCES = {"limits": {"cpu": "1500m", "memory": "2Gi", "nvidia.com/gpu": 1}}


def group(**more):
    main = {"name": "ray", "image": "registry.example/ray:2.60", "resources": RESOURCES}
    template = {"metadata": {"labels": {"mine": "kept"}}, "spec": {"containers": [main]}}
    return {"template": template, **more}


JOB = {
    "kind": "RayJob",
    "apiVersion": "ray.io/v1",
    "metadata": {"name": "sweep", "namespace": "lab", "uid": "job-uid", "labels": {"team": "a"}},
    "spec": {
        "entrypoint": " python jobs/run_grid.py /config/frozen.yaml ",
        "runtimeEnvYAML": "env_vars:\n  WORD: it's\n",
        "rayClusterSpec": {
            "authOptions": {"mode": "token"},
            "headGroupSpec": group(rayStartParams={"num-cpus": "0"}),
            "workerGroupSpecs": [group(groupName="cpu", replicas=2)],
        },
    },
    "status": {
        "jobId": "sweep-abc12",
        "rayClusterName": "sweep-xyz34",
        "dashboardURL": "sweep-xyz34-head-svc.lab.svc.cluster.local:8265",
    },
}
CLUSTER = rayjobs.cluster(JOB, "sweep-xyz34")
CLUSTER["metadata"]["uid"] = "cluster-uid"
WORKERS = JOB["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]
MADE = {
    "cluster": CLUSTER,
    "head_service": ray_pods.head_service(CLUSTER),
    "head_pod": ray_pods.head_pod(CLUSTER),
    "worker_pod": ray_pods.worker_pod(CLUSTER, WORKERS),
    "submitter": rayjobs.submitter(JOB),
    "token": ray_pods.token_secret(CLUSTER, "0" * 8),
}


@pytest.mark.parametrize("name", MADE)
def test_documents(name):
    """A changed one is a decision; write it anew by `python tests/k8s/rewrite_golden.py`."""
    expected = yaml.safe_load((GOLDEN / f"{name}.yaml").read_text())
    assert expected == json.loads(json.dumps(MADE[name]))


def test_the_ray_start_lines():
    """Flags in order, from the template's limits where the user says nothing."""
    head = ray_pods.start_command("head", JOB["spec"]["rayClusterSpec"]["headGroupSpec"], "")
    assert head == (
        "ulimit -n 65536; ray start --head  --block  --dashboard-agent-listen-port=52365 "
        " --dashboard-host=0.0.0.0  --memory=2147483648  --metrics-export-port=8080 "
        " --num-cpus=0  --num-gpus=1 "
    )
    worker = ray_pods.start_command("worker", WORKERS, "head:6379")
    assert worker == (
        "ulimit -n 65536; ray start  --address=head:6379  --block "
        " --dashboard-agent-listen-port=52365  --memory=2147483648  --metrics-export-port=8080 "
        " --num-cpus=2  --num-gpus=1 "
    )


def test_what_the_user_wrote_is_not_changed():
    """The documents are built on copies."""
    before = json.dumps(JOB)
    for make in (ray_pods.head_pod, ray_pods.head_service):
        make(CLUSTER)
    rayjobs.submitter(JOB)
    assert before == json.dumps(JOB)
