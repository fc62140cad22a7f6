"""One object, three makers: what chart and kustomize hold is what the backend makes."""

import pytest
import yaml

from adaexplore.backends.kubernetes.manifests import rayjobs, servers
from adaexplore.backends.kubernetes.manifests.rayjobs import RayJobSpec
from adaexplore.backends.kubernetes.manifests.servers import ServerSpec
from adaexplore.experiments.placements import KubernetesConfig, PodSize
from adaexplore.experiments.serving import KubernetesServing, SecretKey
from chart_views import CHART, CHECKOUT, NAMESPACE, RELEASE, build, name, only, render, values

PACKAGERS = ("app.kubernetes.io/managed-by", "app.kubernetes.io/version", "helm.sh/chart")
"""Labels that say which tool has put an object there."""
MODES = ("K8sJobMode", "HTTPMode", "SidecarMode")


def merged(given):
    """Values with the chart's own below them."""
    import helm_python

    with helm_python.Chart.load(CHART) as chart:
        return chart.merge_values(given)


def bare(document):
    """A document without what only says who has put it there."""
    labels = document["metadata"].get("labels", {})
    kept = {key: value for key, value in labels.items() if key not in PACKAGERS}
    return {**document, "metadata": {**document["metadata"], "labels": kept}}


def image(given, registry):
    where = "/".join(filter(None, (registry, given["repository"])))
    if given["digest"]:
        return f"{where}@{given['digest']}"
    return f"{where}:{given['tag'] or '0.1.0'}"


def ray_job_spec(given):
    """What a launch with the same values would say."""
    ray, job, picture = given["ray"], given["rayjob"], given["image"]
    config = KubernetesConfig(
        namespace=NAMESPACE,
        image=image(picture, picture["registry"]),
        image_pull_policy=picture["pullPolicy"],
        image_pull_secrets=picture["pullSecrets"],
        service_account=given["serviceAccounts"]["driver"],
        worker_service_account=given["serviceAccounts"]["worker"],
        submission_mode=job["submissionMode"],
        backoff_limit=job["backoffLimit"],
        submitter_backoff_limit=job["submitterBackoffLimit"],
        pre_running_deadline_s=job["preRunningDeadlineSeconds"],
        active_deadline_s=job["activeDeadlineSeconds"],
        ttl_after_finished_s=job["ttlSecondsAfterFinished"],
        head=PodSize(**ray["head"]),
        worker=PodSize(**ray["worker"]),
        workers=ray["workers"],
        secrets=ray["secrets"],
        auth_secret=ray["authSecret"] or None,
        queue=ray["queue"] or None,
        priority_class=ray["priorityClass"] or None,
        node_selector=ray["nodeSelector"],
        tolerations=ray["tolerations"],
    )
    return RayJobSpec(
        name=job["name"],
        sweep=job["sweep"],
        attempt=job["attempt"],
        namespace=NAMESPACE,
        config=config,
        frozen_uri=job["frozenUri"],
        digest=job["frozenSha256"],
        ray_version=ray["version"],
        env=ray["env"],
        object_store_bytes=ray["objectStoreBytes"],
    )


def server_spec(given, server):
    serving = given["serving"]
    claim = given["models"]["cache"]
    key = serving["apiKeySecret"]
    config = KubernetesServing(
        image=image(serving["image"], given["image"]["registry"]),
        image_pull_secrets=serving["image"]["pullSecrets"],
        command=serving["command"],
        service_account=given["serviceAccounts"]["server"],
        port=serving["port"],
        gpu_resource=serving["gpuResource"],
        gpu_product=serving["gpuProduct"] or None,
        node_selector=serving["nodeSelector"],
        tolerations=serving["tolerations"],
        runtime_class=serving["runtimeClass"] or None,
        cpu=serving["cpu"],
        memory=serving["memory"],
        ephemeral=serving["ephemeral"],
        shm=serving["shm"],
        cache_claim=claim["existingClaim"] or (claim["name"] if claim["enabled"] else None),
        hf_offline=serving["hfOffline"],
        api_key_secret=SecretKey(**key) if key["name"] else None,
        queue=serving["queue"] or None,
        priority_class=serving["priorityClass"] or None,
        start_limit_s=serving["startLimitSeconds"],
        active_deadline_s=serving["activeDeadlineSeconds"],
        ttl_s=serving["ttlSeconds"],
        env=serving["env"],
    )
    words = ["--model", server["model"], "--tensor-parallel-size", str(server["tensorParallel"])]
    return ServerSpec(
        name=server["name"],
        model_id=server["model"],
        sweep=RELEASE,
        namespace=NAMESPACE,
        owner=None,
        command=(*serving["command"], *words, "--port", str(serving["port"]), *server["args"]),
        serving=config,
        tensor_parallel=server["tensorParallel"],
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("which", ["full", "kueue", "dev-seaweedfs"])
def test_the_charts_rayjob_is_what_a_launch_creates(which, mode):
    """In each mode, for the same values."""
    given = values(CHART / "ci" / f"{which}-values.yaml")
    given["rayjob"]["submissionMode"] = mode

    job = only(render(given), "RayJob")

    assert bare(rayjobs.ray_job(ray_job_spec(merged(given)))) == bare(job)


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("ray", {"authSecret": ""}),
        ("ray", {"workers": 7, "head": {"cpu": "500m", "memory": "5Gi", "ephemeral": "1Gi"}}),
        ("ray", {"env": {"B": "2", "a": "true", "A": "1"}}),
        ("rayjob", {"sweep": "of/" + "x" * 80, "attempt": "-odd-"}),
        ("rayjob", {"backoffLimit": 0, "ttlSecondsAfterFinished": 0}),
        ("image", {"pullPolicy": "Always"}),
    ],
)
def test_and_stays_it_when_values_change(part, change):
    """Each part of it."""
    given = values(CHART / "ci" / "full-values.yaml")
    given[part] |= change
    job = only(render(given), "RayJob")
    assert bare(rayjobs.ray_job(ray_job_spec(merged(given)))) == bare(job)


def test_the_dev_cluster_is_a_rayjobs_cluster_without_a_sweep():
    """But for the two variables that name a frozen sweep."""
    given = values(CHART / "ci" / "dev-raycluster-values.yaml")
    cluster = only(render(given), "RayCluster")
    full = merged(given)
    full["rayjob"] |= {"name": "adaexplore-dev", "sweep": "dev", "attempt": "adaexplore-dev"}
    wanted = rayjobs.ray_cluster(ray_job_spec(full))
    for group in (wanted["headGroupSpec"], *wanted["workerGroupSpecs"]):
        container = group["template"]["spec"]["containers"][0]
        own = ("ADAEXPLORE_FROZEN_SHA256", "ADAEXPLORE_RAYJOB")
        container["env"] = [one for one in container["env"] if one["name"] not in own]
    assert wanted == cluster["spec"]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"startLimitSeconds": 100, "shm": "512Mi", "cpu": "500m"},
        {"tolerations": [{"key": "x", "operator": "Exists"}], "nodeSelector": {"pool": "gpu"}},
        {"runtimeClass": "nvidia", "queue": "gpus", "env": {"HOME": "/elsewhere", "Z": "1"}},
        {"apiKeySecret": {"name": ""}, "gpuResource": "amd.com/gpu", "hfOffline": False},
    ],
)
@pytest.mark.parametrize("which", ["full", "kueue"])
def test_the_charts_servers_are_what_the_driver_creates(which, change):
    """Job and Service, but for the Job's name, which changes with it, and the hash."""
    given = values(CHART / "ci" / f"{which}-values.yaml")
    given["serving"] |= change
    made = render(given)
    for server in given["servers"]:
        spec = server_spec(merged(given), server)
        job = only([d for d in made if d["metadata"]["name"].startswith(server["name"])], "Job")
        job["metadata"]["name"] = server["name"]
        wanted = servers.job(spec)
        del wanted["metadata"]["labels"]["adaexplore.dev/spec-hash"]
        assert bare(wanted) == bare(job)
        assert bare(servers.service(spec)) == bare(only(made, "Service", server["name"]))


OVERLAYS = {
    "base": {},
    "overlays/dev": yaml.safe_load((CHART / "ci" / "dev-raycluster-values.yaml").read_text()),
    "overlays/gpu": {
        "image": {
            "registry": "registry.example.org",
            "digest": f"sha256:{'a' * 64}",
        },
        "models": {"cache": {"enabled": True}},
        "quota": {"enabled": True},
        "priorityClasses": {"create": True},
    },
    "overlays/ci": {
        "reaper": {"schedule": "*/1 * * * *"},
        "networkPolicies": {"internet": {"enabled": False}},
    },
}


@pytest.mark.parametrize("folder", OVERLAYS)
def test_kustomize_makes_what_the_chart_makes(folder):
    """The same objects, but for the namespace, which is kustomize's alone, and tests, which are Helm's."""
    made = {name(d): bare(d) for d in build(CHECKOUT / "k8s" / folder)}
    space = made.pop("Namespace/adaexplore")
    documents = render(OVERLAYS[folder], name="adaexplore", namespace="adaexplore")
    charted = {
        name(d): bare(d)
        for d in documents
        if "helm.sh/hook" not in d["metadata"].get("annotations", {})
    }
    assert charted == made
    assert "restricted" == space["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]


def test_no_overlay_is_forgotten():
    """Each folder is compared."""
    folders = {f"overlays/{path.name}" for path in (CHECKOUT / "k8s" / "overlays").iterdir()}
    assert folders | {"base"} == set(OVERLAYS)
