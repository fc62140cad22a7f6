"""What cannot be played in a cluster is refused before anything is created, with what mends it."""

import json

import pytest
from k8s.testbed.api import holds, path

import clustered
from adaexplore import doctor_verbs, launch
from adaexplore.errors import AdaExploreError, ClusterError, ConfigError
from chart_views import only, render, values
from model_pods import DEFAULT
from rooms import PATIENT_S, eventually

pytestmark = pytest.mark.cluster

GRID = ["+grid=smoke", "name=refused"]
ALICE = {"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}
SERVED = [
    "models=[llama_3_1_8b]", "serving=kubernetes", f"serving.kubernetes.image={clustered.IMAGE}",
]  # fmt: skip
ENGINE = "serving.kubernetes."
PODS = "backend.kubernetes."

STATIC = {
    "no image": ([f"{PODS}image=null"], "expected the address of this project's image"),
    "a folder": (["store=folder"], "add store=s3"),
    "a loopback store": (["store.endpoint=http://127.0.0.1:1"], "add store.endpoint_in_cluster"),
    "a loopback tracker": (
        ["tracking=server", "tracking.uri=http://localhost:5000"],
        "add tracking.uri_in_cluster",
    ),
    "a local engine": (["models=[llama_3_1_8b]", "serving=vllm_process"], "add serving=kubernetes"),
    "no engine": (["models=[llama_3_1_8b]"], "nothing in the cluster serves it (serving=none)"),
    "a loopback endpoint": (
        ["models=[openai_compatible]", "+profiles.openai_compatible.model=m",
         "+profiles.openai_compatible.route.base_url=http://127.0.0.1:9/v1"],
        "means the pod itself",
    ),
    "too small a head": ([f"{PODS}head.memory=900Gi"], "the largest node has 16.0Gi"),
    "no namespace": ([f"{PODS}namespace=nowhere"], "kubectl create namespace nowhere"),
    "no context": ([f"{PODS}context=elsewhere"], "it has testbed"),
    "no secret": ([f"{PODS}secrets=[missing]"], "kubectl create secret generic missing"),
    "no account": ([f"{PODS}service_account=nobody"], "no service account nobody"),
    "no GPU of that kind": ([*SERVED, f"{ENGINE}gpu_product=H1000"], "the GPUs of its nodes are TEST-GPU"),
    "too many GPUs": (
        [*SERVED, "+profiles.llama_3_1_8b.hosting.tensor_parallel=8"],
        "needs 8 of nvidia.com/gpu on one node, and the largest node has 2",
    ),
}  # fmt: skip


@pytest.fixture
def words(site, monkeypatch):
    """Words that play in the cluster, in the environment of somebody at a laptop."""
    for name, value in site.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(site.folder)
    small = [f"{ENGINE}cpu=1", f"{ENGINE}memory=1Gi", f"{ENGINE}ephemeral=1Gi"]

    def made(*more):
        sizes = small if "serving=kubernetes" in more else []
        kept = [word for word in site.words if not _replaced(word, more)]
        return [*GRID, *kept, *sizes, *more]

    return made


def _replaced(word, more):
    """Whether another group is chosen, whose keys would not fit."""
    key = word.partition("=")[0]
    if "store=folder" in more:
        return key.startswith("store")
    return key == "tracking" and "tracking=server" in more


@pytest.mark.parametrize("name", STATIC)
def test_it_is_refused_and_nothing_is_created(site, words, name):
    """Neither in the cluster nor in the store."""
    more, told = STATIC[name]
    with pytest.raises(AdaExploreError) as caught:
        launch.launch(words(*more))
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ConfigError | ClusterError) or "store" in name
    assert [] == site.left(finished=False)
    assert 0 == site.objects()


def test_a_quota_below_one_model_is_refused(site, words):
    """And one below the head."""
    room = site.room
    room.make("ResourceQuota", "gpus", spec={"hard": {"requests.nvidia.com/gpu": "0"}})
    with pytest.raises(
        ConfigError, match=r"allows requests.nvidia.com/gpu=0, and model llama_3_1_8b"
    ):
        launch.launch(words(*SERVED))
    room.admin.delete(room.path("ResourceQuota", "gpus"))
    room.make("ResourceQuota", "memory", spec={"hard": {"limits.memory": "1Gi"}})
    with pytest.raises(ConfigError, match=r"allows limits.memory=1Gi, and the head needs 3.0Gi"):
        launch.launch(words())
    assert [] == site.left(finished=False)


def test_somebody_without_rights_is_told_which(site, words, monkeypatch):
    """Alice may log in, and nothing else."""
    monkeypatch.setenv("KUBECONFIG", str(site.bed.kubeconfig("alice")))
    with pytest.raises(ConfigError, match=r"you may not create rayjobs.ray.io in namespace"):
        launch.launch(words())
    assert [] == site.left(finished=False)


def test_the_charts_launcher_has_every_right_that_a_launch_needs(site, words, monkeypatch, capsys):
    """What it may not see (nodes, Secrets) is unknown, and stops nobody."""
    chart = values(DEFAULT) | {"rbac": {"create": True, "launchers": [ALICE]}}
    documents = render(chart, name="bench", namespace=site.room.name)
    for kind in ("Role", "RoleBinding"):
        site.room.admin.create(only(documents, kind, "-launcher"))
    monkeypatch.setenv("KUBECONFIG", str(site.bed.kubeconfig("alice")))
    assert 0 == doctor_verbs.doctor([*words(), "--json"])
    found = json.loads(capsys.readouterr().out)
    unknown = {one["name"] for one in found if one["state"] == "unknown"}
    secrets = {"secret adaexplore-s3", "secret adaexplore-ray-token"}
    assert {"namespace", "nodes", *secrets} == unknown


def test_no_cluster_at_all(site, words, monkeypatch):
    """Neither a kubeconfig nor, with one, an API server."""
    monkeypatch.setenv("KUBECONFIG", str(site.folder / "none"))
    with pytest.raises(ClusterError, match="set KUBECONFIG"):
        launch.launch(words())
    file = site.folder / "dead.kubeconfig"
    document = json.loads(site.kubeconfig.read_text())
    document["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    file.write_text(json.dumps(document))
    monkeypatch.setenv("KUBECONFIG", str(file))
    with pytest.raises(ClusterError, match="did not serve within 10 s"):
        launch.launch(words())


def test_doctor_tells_all_of_it_at_once(words, capsys):
    """What is right, what is wrong, and what may not be seen; as data too."""
    assert 0 == doctor_verbs.doctor(words())
    told = capsys.readouterr().out
    assert "nothing is wrong" in told
    assert "ok       secret adaexplore-s3: is there" in told

    code = doctor_verbs.doctor(
        [*words(f"{PODS}secrets=[missing]", f"{PODS}worker.cpu='99'"), "--json"]
    )
    found = json.loads(capsys.readouterr().out)
    wrong = {one["name"] for one in found if one["state"] == "WRONG"}
    assert (4, {"secret missing", "nodes"}) == (code, wrong)


def test_a_cluster_without_kuberay_is_told_how_to_get_it(bed, words):
    """The definition is taken away for a moment; nobody else has a RayJob now."""
    where = path("CustomResourceDefinition", name="rayjobs.ray.io")
    kept = bed.admin.get(where)
    bed.admin.delete(where)
    bed.admin.wait(where, lambda found: found is None, PATIENT_S, "the definition's end")
    try:
        with pytest.raises(ConfigError, match="helm install kuberay-operator"):
            launch.launch(words())
    finally:
        bed.admin.create({**kept, "metadata": {"name": kept["metadata"]["name"]}, "status": None})
        bed.admin.wait(where, lambda found: holds(found, "Established"), PATIENT_S)
        served = lambda: bed.admin.find("/apis/ray.io/v1/rayjobs") is not None  # noqa: E731
        eventually(served)
