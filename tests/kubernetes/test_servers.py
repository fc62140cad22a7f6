"""Model servers in pods: how they start, fail, are brought back, and go; with the chart's rights."""

import time
import urllib.request

import pytest
from k8s.testbed.api import Api, path
from k8s.testbed.faults import ApiError

import model_pods
from model_pods import PATIENT_S, Driver, case, grant, left, servers
from rooms import TOLERANT, container, eventually

pytestmark = pytest.mark.cluster


@pytest.fixture
def granted(room):
    """A room with the driver's rights."""
    grant(room)
    return room


def test_models_are_served_played_and_gone(granted):
    """Two replicas on two GPUs; the fingerprint names what ran; nothing is left, the Lease is given up."""
    cases = [case("twin", hosting={"replicas": 2}, answers=2)]
    version = granted.version("Job")
    driver = Driver(granted, cases)
    driver.answered(2)
    assert {} == driver.errors()
    assert [] == left(granted)
    (lease,) = granted.admin.items(granted.path("Lease"))
    history = granted.history("Job", version, seconds=2)
    jobs = [job for change, job in history if "ADDED" == change]
    assert 2 == len(jobs)
    for job in jobs:
        assert "driver" == job["metadata"]["ownerReferences"][0]["name"]
        annotations = job["metadata"]["annotations"]
        assert lease["metadata"]["name"] == annotations["adaexplore.dev/heartbeat"]
    (fingerprint,) = driver.said("fingerprint")
    assert ("0.0.1", f"testbed://{model_pods.ENGINE}") == (
        fingerprint["version"],
        fingerprint["image_id"],
    )
    assert 2 == len(driver.said("served")[0])
    assert 1 == lease["spec"]["leaseDurationSeconds"]


FAILURES = {
    "no image": ({"pods": {"image": "registry.example/none:1", "image_pull_limit_s": 2}}, "", "image: "),
    "no secret": ({"pods": {"api_key_secret": {"name": "none", "key": "k"}}}, "", 'secret "none" not found'),
    "no account": ({"pods": {"service_account": "none"}}, "", 'serviceaccount "none" not found'),
    "no program": ({"pods": {"command": ["/none"]}}, "", "ended with code"),
    "no model": ({}, "no-model", "the model was not found"),
    "too little memory": ({"pods": {"memory": "64Mi"}}, "hungry", "OOMKilled"),
    "held": ({}, "held", "Free memory on device"),
    "misnamed": ({}, "misnamed", "it lists another"),
    "no template": ({}, "refusing", "no chat template"),
    "never ready": ({"pods": {"start_limit_s": 2}}, "never", "start_limit_s"),
}  # fmt: skip


def test_each_failure_of_a_start_is_told_apart_and_cleaned_up(granted):
    """The line says what it is; what may pass is tried once more; nothing is left."""
    cases = [case(name, faults, **changes) for name, (changes, faults, _) in FAILURES.items()]
    for one in cases:  # GPUs for all of them at once
        one["config"]["kubernetes"]["tolerations"] = TOLERANT["tolerations"]
    driver = Driver(granted, cases)
    errors = driver.errors()
    for name, (_, _, words) in FAILURES.items():
        assert words in errors.get(name, "none"), (
            name,
            errors.get(name),
            driver.said("note", name),
        )
        assert "\n" not in errors[name]
    again = {
        name for name in FAILURES if any("brought back" in n for n in driver.said("note", name))
    }
    assert {"too little memory", "held"} == again
    assert [] == left(granted)


def test_a_server_without_a_place_waits_with_a_reason_and_then_gives_up(granted):
    """No node: the scheduler's own words. A quota below one server: at once. Nothing is left."""
    quota = {"hard": {"requests.nvidia.com/gpu": "1"}}
    granted.make("ResourceQuota", "gpus", spec=quota)
    nowhere = {"node_selector": {"none": "none"}, "unschedulable_limit_s": 2}
    cases = [
        case("nowhere", pods=nowhere),
        case("too large", hosting={"tensor_parallel": 2}),
    ]
    errors = Driver(granted, cases).errors()
    assert "no node for it" in errors["nowhere"]
    assert "unschedulable_limit_s" in errors["nowhere"]
    assert "quota gpus is below one server" in errors["too large"]
    assert [] == left(granted)


def test_models_of_a_sweep_take_turns_where_the_quota_is_for_one(granted):
    """The second waits, says why, and plays after the first."""
    granted.make("ResourceQuota", "gpus", spec={"hard": {"requests.nvidia.com/gpu": "1"}})
    cases = [case("one"), case("two")]
    driver = Driver(granted, cases, SHARED="1")
    assert {} == driver.errors()
    assert 2 == len(driver.said("over"))
    assert any("waits for quota gpus" in note for note in driver.said("note"))


def test_an_evicted_server_and_a_drained_one_come_back_at_their_address(granted):
    """Three pods answer at one address, and whoever asks has only to ask again."""
    # The old Job makes a pod too before it goes, which is not to answer: addresses are kept past its end.
    driver = Driver(granted, [case("moved", answers=3)], KEPT="1")
    (first,) = driver.answered(1)
    change = {"metadata": {"annotations": {"testbed.adaexplore.dev/evict": "low on memory"}}}
    granted.admin.patch(granted.path("Pod", first), change)
    second = driver.answered(2)[1]
    driver.until(lambda: 1 == back(driver))  # it is looked after, and not only there
    granted.bed.drain(granted.name, second)
    driver.answered(3)
    assert {} == driver.errors()
    assert 1 == len({line["url"] for line in driver.lines if "url" in line})
    notes = "\n".join(driver.said("note"))
    assert "low on memory; it is brought back, restart 1 of 2" in notes
    assert "its pod was taken from gpu-0" in notes
    assert [] == left(granted)


def test_a_deleted_job_a_crash_and_a_wedged_engine_are_brought_back_so_often_and_no_oftener(
    granted,
):
    """Two restarts; the third end is one too many."""
    driver = Driver(granted, [case("weak", answers=9, progress_timeout_s=8)])
    driver.answered(1)
    (job,) = servers(granted, "Job")
    where = path("Job", granted.name, job["metadata"]["name"])
    granted.admin.delete(where, propagationPolicy="Background")
    for times in (1, 2):
        driver.until(lambda times=times: back(driver) == times)
        wedge(granted, driver.answered(times + 1)[times])
    error = driver.errors()["weak"]
    assert "2 restarts (serving.max_restarts) did not help" in error
    notes = " ".join(driver.said("note"))
    assert "deleted by somebody" in notes
    assert "nothing moved for 8 s" in notes
    assert [] == left(granted)


def back(driver):
    """How often it was told that the server is back."""
    return sum("ready again" in note for note in driver.said("note"))


def wedge(room, pod):
    """Have an engine hang while it looks healthy."""
    address = room.admin.get(room.path("Pod", pod))["status"]["podIP"]
    request = urllib.request.Request(f"http://{address}:8000/wedge", data=b"{}", method="POST")
    urllib.request.urlopen(request, timeout=60).close()  # noqa: S310 (a pod of the bed)


def test_a_server_on_a_lost_node_is_made_again_elsewhere(granted):
    """Its node loses power: another pod answers at the same address; the old one goes with its node."""
    bed = granted.bed
    where = {"nodeSelector": {"kubernetes.io/hostname": "gpu-0"}}
    gpus = {"limits": {"nvidia.com/gpu": 2}}
    full = container("import time; time.sleep(600)", image=model_pods.ENGINE, resources=gpus)
    granted.pod("full", full, **where)
    granted.ready("full")
    soon = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    kinds = ("unreachable", "not-ready")
    gone = [{"key": f"node.kubernetes.io/{kind}", **soon} for kind in kinds]
    pods = {"tolerations": [*TOLERANT["tolerations"], *gone]}
    driver = Driver(granted, [case("lost", answers=2, pods=pods)])
    (first,) = driver.answered(1)
    assert "doomed-0" == granted.admin.get(granted.path("Pod", first))["spec"]["nodeName"]
    granted.admin.delete(granted.path("Pod", "full"), gracePeriodSeconds=0)
    bed.kill_node("doomed-0")
    try:
        driver.answered(2)
    finally:
        bed.start_node("doomed-0")
    assert {} == driver.errors()
    eventually(lambda: not left(granted), PATIENT_S)


def test_the_api_server_may_be_away_while_models_are_played(granted):
    """A server that answers goes on; one that is drained meanwhile is brought back afterwards."""
    driver = Driver(granted, [case("steady", answers=2)])
    (first,) = driver.answered(1)
    plane = granted.bed.plane
    plane.stop_api()
    time.sleep(2)  # how long it is away
    plane.resume_api()
    granted.bed.drain(granted.name, first)
    driver.answered(2)
    assert {} == driver.errors()
    assert [] == left(granted)


def test_nothing_is_left_of_a_driver_that_is_killed(granted):
    """The cluster's collector ends its servers with it."""
    driver = Driver(granted, [case("orphan", answers=2)])
    driver.answered(1)
    granted.admin.delete(granted.path("Pod", "driver"), gracePeriodSeconds=0)
    eventually(lambda: not left(granted), PATIENT_S)
    eventually(lambda: not granted.admin.items(granted.path("Lease")), PATIENT_S)


def test_the_reaper_takes_what_is_forsaken_and_nothing_else(granted):
    """By labels and an expired heartbeat: not what another driver serves, nor another's Job."""
    reaper = grant(granted, "reaper")
    granted.make("ServiceAccount", reaper)
    living = Driver(granted, [case("living", answers=2)])
    living.answered(1)
    (kept,) = servers(granted, "Job")
    forsaken = copy(kept, "forsaken", "no-such-lease")
    stranger = copy(kept, "stranger", "no-such-lease")
    stranger["metadata"]["labels"] = {}
    for document in (forsaken, stranger):
        granted.admin.create(document)
    code = (
        "import asyncio, os\n"
        "from adaexplore.backends.kubernetes import clients, reaper\n"
        "cluster = clients.connect(os.environ['ROOM'])\n"
        "for line in asyncio.run(reaper.reap(cluster, young_s=-60)): print(line)\n"
    )
    env = [{"name": "ROOM", "value": granted.name}]
    main = container(code, image=model_pods.ENGINE, env=[*env, model_pods.PYTHONPATH])
    granted.pod("reaper", main, serviceAccountName=reaper, restartPolicy="Never")
    granted.phase("reaper", "Succeeded", PATIENT_S)
    assert 1 == granted.log("reaper").count("deleted")
    assert "deleted job forsaken: its Lease no-such-lease is not there" in granted.log("reaper")
    names = {job["metadata"]["name"] for job in granted.admin.items(granted.path("Job"))}
    assert {"stranger", kept["metadata"]["name"]} <= names


def copy(job, name, heartbeat):
    """Another Job like it, of nobody."""
    spec = {**job["spec"]}
    spec.pop("selector")
    template = {"metadata": {"labels": {"of": name}}, "spec": spec["template"]["spec"]}
    metadata = {
        "name": name, "namespace": job["metadata"]["namespace"],
        "labels": job["metadata"]["labels"], "annotations": {"adaexplore.dev/heartbeat": heartbeat},
    }  # fmt: skip
    return {
        "kind": "Job", "apiVersion": "batch/v1", "metadata": metadata,
        "spec": {"template": template, "suspend": True, "parallelism": 0},
    }  # fmt: skip


def test_a_driver_may_do_what_it_needs_and_nothing_beyond(granted, bed):
    """The chart's Role is in force: neither secrets, nor pods of its own, nor exec, nor elsewhere."""
    api = Api(bed.as_account(granted.name, "adaexplore-driver"))
    other = bed.namespace(f"{granted.name}-other")
    refused = [
        ("GET", path("Secret", granted.name), None),
        ("GET", path("Secret", granted.name, "adaexplore-s3"), None),
        ("POST", path("Pod", granted.name), {"kind": "Pod", "apiVersion": "v1"}),
        ("POST", path("Pod", granted.name, "driver") + "/exec?command=id", None),
        ("DELETE", path("Pod", granted.name, "driver"), None),
        ("GET", path("Job", other), None),
        ("GET", path("Pod"), None),
        ("GET", path("Node"), None),
        ("POST", path("RoleBinding", granted.name), {"kind": "RoleBinding"}),
        ("DELETE", path("Lease", granted.name, "any"), None),
    ]
    for method, where, body in refused:
        with pytest.raises(ApiError) as error:
            api.call(method, where, body)
        assert 403 == error.value.status, (method, where)
    assert [] == api.items(path("Job", granted.name))


def test_two_drivers_of_one_attempt_have_one_server_and_another_attempt_its_own(granted):
    """The second adopts what the first has made; its end ends what it adopted, and that comes back."""
    keeper = granted.pod(
        "keeper", container("import time; time.sleep(600)", image=model_pods.ENGINE)
    )
    first = Driver(granted, [case("shared", answers=2)], "first", HOSTNAME="keeper")
    (pod,) = first.answered(1)
    (job,) = servers(granted, "Job")
    owners = [one["uid"] for one in job["metadata"]["ownerReferences"]]
    assert [keeper["metadata"]["uid"]] == owners
    second = Driver(granted, [case("shared")], "second", HOSTNAME="keeper")
    other = Driver(granted, [case("shared")], "other")
    assert [pod] == second.answered(1)
    assert [pod] != other.answered(1)
    assert any("adopted Job" in note for note in second.said("note"))
    for driver in (second, other, first):
        assert {} == driver.errors()
    assert [] == left(granted)
