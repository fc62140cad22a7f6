"""What is created in a cluster, judged as documents: names, labels, rights, budgets, and what hashes see."""

import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.backends.kubernetes.manifests import common, leases, rayjobs, servers
from adaexplore.backends.kubernetes.manifests.common import Owner
from adaexplore.backends.kubernetes.manifests.leases import LeaseSpec
from adaexplore.backends.kubernetes.manifests.rayjobs import RayJobSpec
from adaexplore.backends.kubernetes.manifests.servers import ServerSpec
from adaexplore.experiments.placements import KubernetesConfig
from adaexplore.experiments.serving import KubernetesServing, SecretKey

LABEL = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?")
OBJECT = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
OWNER = Owner(api_version="ray.io/v1", kind="RayCluster", name="s-abcde", uid="u-1")
SERVING = KubernetesServing(image="vllm/vllm-openai:v0.33.0")
SERVER = ServerSpec(
    name="qwen-12345678",
    model_id="Qwen/Qwen3-8B",
    sweep="Diagnostics.v1",
    namespace="team-a",
    owner=OWNER,
    command=("python3", "-m", "engine"),
    serving=SERVING,
    tensor_parallel=2,
    attempt="s-abcde",
    heartbeat="diagnostics-lease",
)
RAYJOB = RayJobSpec(
    name="diagnostics-1",
    sweep="Diagnostics.v1",
    attempt="1",
    namespace="team-a",
    config=KubernetesConfig(image="registry/adaexplore@sha256:" + "a" * 64, secrets=["store"]),
    frozen_uri="s3://bucket/a b/frozen.yaml",
    digest="d" * 64,
    ray_version="2.60.0",
    env={"AWS_ENDPOINT_URL": "http://store:8333"},
)


def serving(**change):
    return dataclasses.replace(SERVER, serving=dataclasses.replace(SERVING, **change))


def pod(spec):
    return servers.job(spec)["spec"]["template"]["spec"]


def variables(container):
    return {one["name"]: one.get("value") for one in container["env"]}


# -- names -------------------------------------------------------------------------------------


@given(st.text())
def test_any_text_becomes_a_legal_label(text):
    """Itself where it is legal already."""
    value = common.label_value(text)
    assert len(value) <= 63
    assert LABEL.fullmatch(value)
    if len(text) <= 63 and LABEL.fullmatch(text):
        assert text == value


@given(st.text(), st.integers(min_value=12, max_value=63))
def test_any_text_becomes_a_legal_name(text, limit):
    """Of a Service too, which begins with a letter; and it is never a plain word."""
    name = common.object_name(text, limit=limit)
    assert len(name) <= limit
    assert OBJECT.fullmatch(name)
    assert re.search(r"-[0-9a-f]{8}$", name)


@given(st.lists(st.text(max_size=8), min_size=2, max_size=2, unique=True))
def test_other_texts_have_other_names(texts):
    """However alike their slugs are."""
    assert common.object_name(texts[0]) != common.object_name(texts[1])
    assert common.label_value("/" + texts[0]) != common.label_value("/" + texts[1])


def test_the_same_model_has_a_name_in_each_sweep():
    """What is given beside the text counts."""
    names = {common.object_name("vllm", *more) for more in ((), ("a",), ("b",), ("a", "0"))}
    assert 4 == len(names)
    assert "vllm" not in names


# -- quantities --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("quantities", "total"),
    [
        (["32Gi", "2Gi"], "34816Mi"),
        (["1.5Gi"], "1536Mi"),
        (["1G"], "954Mi"),
        (["1", "1Ki"], "1Mi"),
        (["512Mi", "512Mi", "1Gi"], "2048Mi"),
    ],
)
def test_sizes_add_up(quantities, total):
    """Rounded up to whole Mi."""
    assert total == common.total(*quantities)


def test_processors_are_numbers_too():
    """And what is no quantity is refused."""
    assert 0.25 == common.number("250m")
    with pytest.raises(ValueError, match="8 GB"):
        common.number("8 GB")


# -- servers -----------------------------------------------------------------------------------


def test_a_server_asks_for_as_many_gpus_as_it_uses():
    """As a limit alone; shared memory on top of the memory."""
    resources = pod(SERVER)["containers"][0]["resources"]
    assert {"memory": "34816Mi", "nvidia.com/gpu": "2"} == resources["limits"]
    assert {"cpu", "memory", "ephemeral-storage"} == resources["requests"].keys()


def test_a_server_goes_with_its_owner():
    """Job and Service; neither controlled nor held by it, which would need a right on its finalizers."""
    reference = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "s-abcde", "uid": "u-1"}
    for document in (servers.job(SERVER), servers.service(SERVER)):
        assert [reference] == document["metadata"]["ownerReferences"]
        assert "diagnostics-lease" == document["metadata"]["annotations"][common.HEARTBEAT]
        assert "Qwen/Qwen3-8B" == document["metadata"]["annotations"][common.MODEL_ID]
        assert "Diagnostics.v1" == document["metadata"]["labels"][common.SWEEP]


def test_a_service_finds_the_pods_of_its_job_and_no_others():
    """By labels that another replica has not."""
    other = dataclasses.replace(SERVER, name="qwen-87654321", replica=1)
    chosen = servers.service(SERVER)["spec"]["selector"]
    labels = [servers.job(s)["spec"]["template"]["metadata"]["labels"] for s in (SERVER, other)]
    assert [True, False] == [chosen.items() <= one.items() for one in labels]
    assert "http://qwen-12345678.team-a.svc:8000" == servers.address(SERVER)


def test_the_hash_sees_what_runs_and_not_whose_it_is():
    """Another owner's is the same Job, adopted or not by its uid; another word is another Job."""
    base = servers.job(SERVER)["metadata"]["labels"][common.SPEC_HASH]
    assert (
        base
        == servers.spec_hash(SERVER)
        == servers.spec_hash(dataclasses.replace(SERVER, owner=None))
    )
    others = [
        dataclasses.replace(SERVER, command=("python3",)),
        dataclasses.replace(SERVER, env={"A": "1"}),
        dataclasses.replace(SERVER, tensor_parallel=1),
        serving(image="vllm/vllm-openai:v0.34.0"),
        serving(start_limit_s=60.0),
        serving(cache_claim="models"),
    ]
    assert len({base, *map(servers.spec_hash, others)}) == 1 + len(others)
    assert LABEL.fullmatch(base)


@given(st.floats(min_value=0.01, max_value=1e5))
def test_the_start_has_its_limit_and_less_than_a_period_more(limit_s):
    """Looked at every second to every ten."""
    container = pod(serving(start_limit_s=limit_s))["containers"][0]
    probe = container["startupProbe"]
    lasts = probe["periodSeconds"] * probe["failureThreshold"]
    assert limit_s <= lasts < limit_s + probe["periodSeconds"]
    assert 1 <= probe["periodSeconds"] <= 10
    assert limit_s <= float(variables(container)["VLLM_ENGINE_READY_TIMEOUT_S"])


def test_a_guarded_server_is_asked_what_it_does_not_guard():
    """Probes carry no key."""
    guarded = pod(serving(api_key_secret=SecretKey(name="engine", key="KEY")))["containers"][0]
    probes = ("startupProbe", "readinessProbe", "livenessProbe")
    paths = lambda container: [container[one]["httpGet"]["path"] for one in probes]  # noqa: E731
    assert ["/v1/models", "/v1/models", "/health"] == paths(pod(SERVER)["containers"][0])
    assert ["/health"] * 3 == paths(guarded)
    key = next(one for one in guarded["env"] if one["name"] == "VLLM_API_KEY")
    assert {"secretKeyRef": {"name": "engine", "key": "KEY"}} == key["valueFrom"]


def test_all_that_engines_write_has_a_place():
    """A user without a name in the image; weights are read only."""
    server = pod(serving(cache_claim="models", hf_offline=True))
    container = server["containers"][0]
    mounts = {one["mountPath"]: one.get("readOnly", False) for one in container["volumeMounts"]}
    assert {"/dev/shm": False, "/scratch": False, "/models": True} == mounts  # noqa: S108
    found = variables(container)
    assert "/models/hub" == found["HF_HUB_CACHE"]
    assert "1" == found["HF_HUB_OFFLINE"]
    for name in ("HOME", "HF_HOME", "VLLM_CACHE_ROOT", "TORCHINDUCTOR_CACHE_DIR"):
        assert found[name].startswith("/scratch")


def test_what_a_profile_says_of_the_environment_counts_most():
    """The last word is the model's."""
    spec = dataclasses.replace(serving(env={"HOME": "/a", "B": "b"}), env={"HOME": "/c"})
    found = variables(pod(spec)["containers"][0])
    assert ("/c", "b") == (found["HOME"], found["B"])


def test_a_queue_takes_the_priority_with_it():
    """Kueue's class is no class of pods."""
    queued, plain = serving(queue="gpus", priority_class="low"), serving(priority_class="low")
    labels = servers.job(queued)["metadata"]["labels"]
    assert ("gpus", "low") == (labels[common.KUEUE_QUEUE], labels[common.KUEUE_PRIORITY])
    assert "priorityClassName" not in pod(queued)
    assert "low" == pod(plain)["priorityClassName"]
    assert common.KUEUE_QUEUE not in servers.job(plain)["metadata"]["labels"]


def test_no_second_pod_waits_for_the_gpus_of_the_first():
    """And evictions burn no try."""
    spec = servers.job(SERVER)["spec"]
    assert "Failed" == spec["podReplacementPolicy"]
    rule = spec["podFailurePolicy"]["rules"][0]
    assert ("Ignore", "DisruptionTarget") == (rule["action"], rule["onPodConditions"][0]["type"])
    assert "Never" == spec["template"]["spec"]["restartPolicy"]


# -- RayJobs -----------------------------------------------------------------------------------


def test_the_entrypoint_is_one_program_and_a_quoted_address():
    """Pasted into a shell by the operator."""
    entry = rayjobs.ray_job(RAYJOB)["spec"]["entrypoint"]
    assert "python /opt/adaexplore/jobs/run_grid.py 's3://bucket/a b/frozen.yaml'" == entry


def test_head_and_workers_know_where_they_are():
    """Secrets by name; the digest of the image, where it is known."""
    cluster = rayjobs.ray_job(RAYJOB)["spec"]["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        container = group["template"]["spec"]["containers"][0]
        found = variables(container)
        assert "d" * 64 == found["ADAEXPLORE_FROZEN_SHA256"]
        assert "sha256:" + "a" * 64 == found["ADAEXPLORE_IMAGE_DIGEST"]
        assert "http://store:8333" == found["AWS_ENDPOINT_URL"]
        assert [{"secretRef": {"name": "store"}}] == container["envFrom"]
        assert container["resources"]["requests"] == container["resources"]["limits"]


def test_only_the_head_has_a_token_and_no_task():
    """Workers call no API server; the head plays nothing."""
    cluster = rayjobs.ray_job(RAYJOB)["spec"]["rayClusterSpec"]
    pods = [
        group["template"]["spec"]
        for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])
    ]
    assert [True, False] == [one["automountServiceAccountToken"] for one in pods]
    assert "0" == cluster["headGroupSpec"]["rayStartParams"]["num-cpus"]


@pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode", "SidecarMode"])
def test_each_mode_has_what_the_operator_takes(mode):
    """A submitter's template in one mode alone; a head that is not restarted beside a sidecar."""
    config = dataclasses.replace(RAYJOB.config, submission_mode=mode)
    spec = rayjobs.ray_job(dataclasses.replace(RAYJOB, config=config))["spec"]
    head = spec["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    assert (mode == "K8sJobMode") == ("submitterPodTemplate" in spec) == ("submitterConfig" in spec)
    assert (mode == "SidecarMode") == ("Never" == head.get("restartPolicy"))
    assert "ttlSecondsAfterFinished" in spec
    assert True is spec["shutdownAfterJobFinishes"]


def test_ray_is_never_open_unless_that_is_said():
    """A token from a Secret by default."""
    closed = rayjobs.ray_cluster(RAYJOB)
    assert {"mode": "token", "secretName": "adaexplore-ray-token"} == closed["authOptions"]
    config = dataclasses.replace(RAYJOB.config, auth_secret=None)
    assert "authOptions" not in rayjobs.ray_cluster(dataclasses.replace(RAYJOB, config=config))


def test_what_cannot_be_created_is_refused():
    """A name that leaves the operator no room; no image."""
    with pytest.raises(ValueError, match="47"):
        rayjobs.ray_job(dataclasses.replace(RAYJOB, name="x" * 48))
    config = dataclasses.replace(RAYJOB.config, image=None)
    with pytest.raises(ValueError, match=r"backend\.kubernetes\.image"):
        rayjobs.ray_job(dataclasses.replace(RAYJOB, config=config))


# -- heartbeats --------------------------------------------------------------------------------


@given(st.integers(min_value=0, max_value=4 * 10**15))
def test_a_time_survives_its_writing(micros):
    """To the microsecond, as far as floats go."""
    assert micros / 1e6 == pytest.approx(leases.seconds(leases.stamp(micros / 1e6)), abs=1e-5)


def test_times_are_written_as_the_api_writes_them():
    """Read without a fraction too; other forms are refused."""
    assert "2026-11-30T06:35:00.250000Z" == leases.stamp(1796020500.25)
    assert 1796020500.0 == leases.seconds("2026-11-30T06:35:00Z")
    with pytest.raises(ValueError, match="yesterday"):
        leases.seconds("yesterday")


@given(st.integers(0, 10**9), st.integers(1, 10**4), st.integers(0, 2 * 10**4), st.integers(0, 100))
def test_a_heartbeat_expires_after_its_duration_and_the_slack(start, duration, later, slack):
    """Not before; a Lease without a time at once."""
    spec = LeaseSpec(
        name=leases.name("s", "1"),
        sweep="s",
        namespace="n",
        owner=OWNER,
        holder="pod",
        duration_s=duration,
    )
    beat = leases.lease(spec, start)
    assert (later > duration + slack) == leases.expired(beat, start + later, slack_s=slack)
    assert leases.expired({"spec": {}}, start)
    assert OBJECT.fullmatch(spec.name)
