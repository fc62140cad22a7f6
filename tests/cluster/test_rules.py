"""What the real control plane enforces, through our pods: quota, scheduling, ownership, rights."""

import json

import pytest
from k8s.testbed.api import Api
from k8s.testbed.control_planes import write_kubeconfig
from k8s.testbed.faults import ApiError

from rooms import container, ended, eventually

pytestmark = pytest.mark.cluster

SLEEP = "import time; time.sleep(600)"
GROUP = "rbac.authorization.k8s.io"
GPU = {"resources": {"limits": {"nvidia.com/gpu": 1}}}


def test_a_quota_is_held(room):
    """The API server refuses what would go over it, and admits again when there is room."""
    room.make("ResourceQuota", "gpus", spec={"hard": {"requests.nvidia.com/gpu": "1"}})
    counted = lambda one: one and "used" in one.get("status", {})  # noqa: E731
    room.wait("ResourceQuota", "gpus", counted)
    room.pod("first", container(SLEEP, **GPU))
    with pytest.raises(ApiError, match="exceeded quota") as refused:
        room.pod("second", container(SLEEP, **GPU))
    assert 403 == refused.value.status
    room.admin.delete(room.path("Pod", "first"), gracePeriodSeconds=0)
    free = lambda one: one["status"]["used"]["requests.nvidia.com/gpu"] == "0"  # noqa: E731
    room.wait("ResourceQuota", "gpus", free)
    eventually(lambda: admitted(room, "second"))  # what admits learns of it with a delay


def admitted(room, name):
    """Whether a GPU pod is made; False where the quota does not let it."""
    try:
        room.pod(name, container(SLEEP, **GPU))
    except ApiError as error:
        if error.status != 403:
            raise
        return False
    return True


def test_a_pod_that_fits_nowhere_stays_pending_and_says_why(room):
    """Only GPU nodes take GPU pods, and only as many as they have."""
    room.pod("large", container(SLEEP, resources={"limits": {"nvidia.com/gpu": 5}}))
    said = lambda pod: "Insufficient nvidia.com/gpu" in json.dumps(pod["status"])  # noqa: E731
    assert "Pending" == room.wait("Pod", "large", said)["status"]["phase"]


def test_gpus_are_given_to_one_pod_at_a_time(room):
    """Two pods on one node hold different ones; a third waits for the first to be gone."""
    show = (
        "import os, time; print(os.environ['NVIDIA_VISIBLE_DEVICES'], flush=True); time.sleep(600)"
    )
    for name in ("a", "b", "c"):
        room.pod(name, container(show, **GPU), terminationGracePeriodSeconds=1)
        if name != "c":
            room.ready(name)
    eventually(lambda: {"0\n", "1\n"} == {room.log(name) for name in ("a", "b")})
    freed = room.log("a")
    room.admin.delete(room.path("Pod", "a"))
    room.ready("c")
    eventually(lambda: freed == room.log("c"))


def test_what_has_an_owner_goes_with_it(room):
    """The real garbage collector, also for a Job whose owner is a custom resource."""
    template = {
        "metadata": {},
        "spec": {"containers": [container(SLEEP)], "restartPolicy": "Never"},
    }
    spec = {"headGroupSpec": {"rayStartParams": {}, "template": template}}
    owner = room.make("RayCluster", "owner", "ray.io/v1", spec=spec)
    reference = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "name": "owner",
        "uid": owner["metadata"]["uid"],
    }
    owned = {"ownerReferences": [reference]}
    room.make("Job", "owned", "batch/v1", metadata=owned, spec={"template": template})
    room.make("Service", "owned", metadata=owned, spec={"ports": [{"port": 8000}]})
    running = lambda one: one["status"].get("active") == 1  # noqa: E731
    room.wait("Job", "owned", running)
    room.admin.delete(room.path("RayCluster", "owner"), propagationPolicy="Background")
    for kind in ("Job", "Service"):
        room.wait(kind, "owned", lambda one: one is None, what="its end")
    for pod in room.pods(**{"job-name": "owned"}):
        room.wait("Pod", pod["metadata"]["name"], lambda one: one is None, what="its end")


def test_a_job_tries_again_gives_up_and_is_cleared_away(room):
    """backoffLimit, activeDeadlineSeconds and ttlSecondsAfterFinished are the real controller's."""

    def job(name, code, **spec):
        pod = {"containers": [container(code)], "restartPolicy": "Never"}
        grace = {"terminationGracePeriodSeconds": 1}
        room.make("Job", name, "batch/v1", spec={**spec, "template": {"spec": {**pod, **grace}}})

    job("failing", "raise SystemExit(1)", backoffLimit=0)
    job("slow", SLEEP, activeDeadlineSeconds=2)
    job("brief", "print(1)", ttlSecondsAfterFinished=1)
    for name, reason in (("failing", "BackoffLimitExceeded"), ("slow", "DeadlineExceeded")):
        found = room.wait("Job", name, lambda one: bool(one["status"].get("conditions")))
        assert reason == found["status"]["conditions"][0]["reason"]
    room.wait("Job", "brief", lambda one: one is None, what="its end")


def test_a_user_may_what_a_role_says_and_nothing_else(room):
    """Nobody is anything before a RoleBinding."""
    alice = room.bed.as_user("alice")
    with pytest.raises(ApiError, match="forbidden"):
        alice.items(room.path("Pod"))
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    bind(room, "User", "alice", rules)
    eventually(lambda: may(alice, room.path("Pod")))  # the authoriser follows with a delay
    for kind in ("Secret", "Job"):
        with pytest.raises(ApiError, match="forbidden"):
            alice.items(room.path(kind))


def may(api, where):
    try:
        return api.items(where) == []
    except ApiError as error:
        if error.status != 403:
            raise
        return False


def bind(room, kind, name, rules):
    namespace = {} if kind == "User" else {"namespace": room.name}
    room.make("Role", f"may-{name}", f"{GROUP}/v1", rules=rules)
    reference = {"apiGroup": GROUP, "kind": "Role", "name": f"may-{name}"}
    who = {"kind": kind, "name": name, **namespace}
    room.make("RoleBinding", f"may-{name}", f"{GROUP}/v1", roleRef=reference, subjects=[who])


def test_a_pod_speaks_for_its_service_account(room):
    """By the token at its usual place; without one, where the pod wants none."""
    code = (
        "import os, ssl, urllib.request as u, urllib.error\n"
        "home = '/var/run/secrets/kubernetes.io/serviceaccount'\n"
        "if not os.path.exists(home): print('no token'); raise SystemExit\n"
        "read = lambda name: open(f'{home}/{name}').read()\n"
        "e = os.environ\n"
        "base = f\"https://{e['KUBERNETES_SERVICE_HOST']}:{e['KUBERNETES_SERVICE_PORT']}\"\n"
        "context = ssl.create_default_context(cafile=f'{home}/ca.crt')\n"
        "for what in ('pods', 'secrets'):\n"
        "    url = f\"{base}/api/v1/namespaces/{read('namespace')}/{what}\"\n"
        "    asked = u.Request(url, headers={'Authorization': 'Bearer ' + read('token')})\n"
        "    try: print(what, u.urlopen(asked, context=context, timeout=10).status)\n"
        "    except urllib.error.HTTPError as error: print(what, error.code)\n"
    )
    room.make("ServiceAccount", "driver")
    bind(
        room,
        "ServiceAccount",
        "driver",
        [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}],
    )
    eventually(lambda: may(Api(room.bed.as_account(room.name, "driver")), room.path("Pod")))
    rest = {"restartPolicy": "Never", "serviceAccountName": "driver"}
    room.pod("with", container(code), **rest)
    room.pod("without", container(code), automountServiceAccountToken=False, **rest)
    for name, said in (("with", "pods 200\nsecrets 403\n"), ("without", "no token\n")):
        room.wait("Pod", name, ended)
        assert said == room.log(name)


def test_kubeconfigs_work_with_the_usual_client(room):
    """For a user and for a service account."""
    kubernetes = pytest.importorskip("kubernetes")
    room.make("ServiceAccount", "driver")
    bind(
        room,
        "ServiceAccount",
        "driver",
        [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}],
    )
    account = room.bed.account_kubeconfig(room.name, "driver")
    eventually(lambda: may(Api(room.bed.as_account(room.name, "driver")), room.path("Pod")))
    for file in (room.bed.kubeconfig(), account):
        with kubernetes.config.new_client_from_config(str(file)) as client:
            assert [] == kubernetes.client.CoreV1Api(client).list_namespaced_pod(room.name).items
        assert "600" == oct(file.stat().st_mode)[-3:]


def test_a_wrong_token_is_refused(room, tmp_path):
    """TLS is checked and a token is needed."""
    access = room.bed.plane.access("alice")
    file = write_kubeconfig(tmp_path / "x", access)
    assert access.token in file.read_text()
    assert access.token not in repr(access)
    from dataclasses import replace

    with pytest.raises(ApiError, match="Unauthorized"):
        Api(replace(access, token="wrong")).items(room.path("Pod"))  # noqa: S106


def test_a_disruption_budget_holds_an_eviction_back(room):
    """429, until there is one to spare."""
    labels = {"labels": {"app": "kept"}}
    room.pod("kept", container(SLEEP), metadata=labels)
    room.ready("kept")
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}
    room.make("PodDisruptionBudget", "kept", "policy/v1beta1", spec=spec)
    room.wait("PodDisruptionBudget", "kept", lambda one: one["status"].get("currentHealthy") == 1)
    with pytest.raises(ApiError) as refused:
        room.bed.drain(room.name, "kept")
    assert 429 == refused.value.status
    room.admin.delete(room.path("PodDisruptionBudget", "kept"))
    room.bed.drain(room.name, "kept")
    room.wait("Pod", "kept", lambda one: one is None)


def test_a_faulty_rayjob_is_refused_with_the_path_of_the_fault(room):
    """By the real schema, where the definitions are at hand."""
    from k8s.testbed import crds

    if not crds.real():
        pytest.skip("the definitions of ../shared/crds are missing")
    with pytest.raises(ApiError, match=r"spec\.ttlSecondsAfterFinished"):
        room.make("RayJob", "faulty", "ray.io/v1", spec={"ttlSecondsAfterFinished": "soon"})
