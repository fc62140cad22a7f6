"""What will never fit is refused; what may fit later is not."""

import pytest

from adaexplore.backends.kubernetes import capacities
from adaexplore.backends.kubernetes.capacities import Needs
from adaexplore.errors import ConfigError
from adaexplore.experiments.placements import KubernetesConfig, PodSize
from adaexplore.experiments.serving import KubernetesServing

SMALL = PodSize(cpu="1", memory="1Gi", ephemeral="1Gi")


def needs(gpus=0, *, tolerations=(), **serving):
    pods = KubernetesConfig(head=SMALL, worker=SMALL, tolerations=list(tolerations))
    sizes = {"cpu": "1", "memory": "1Gi", "ephemeral": "1Gi"}
    served = KubernetesServing(image="e:1", **{**sizes, **serving}) if gpus else None
    return Needs(pods=pods, serving=served, gpus={"m": gpus} if gpus else {})


def node(*, gpus=0, taints=(), labels=None, **spec):
    amounts = {"cpu": "3920m", "memory": "16374104Ki", "ephemeral-storage": "128974848"}
    amounts |= {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {
        "metadata": {"labels": labels or {}},
        "spec": {"taints": list(taints), **spec},
        "status": {"allocatable": {**amounts, "ephemeral-storage": "10Gi"}},
    }


GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
OWN_TAINT = {"key": "team", "value": "a", "effect": "NoExecute"}


def test_a_gpu_node_takes_servers_and_an_ordinary_one_the_rest():
    assert "2 nodes" in capacities.on_nodes([node(gpus=4, taints=[GPU_TAINT]), node()], needs(4))


@pytest.mark.parametrize(
    ("nodes", "wanted", "told"),
    [
        (
            [node(gpus=2)],
            needs(4),
            "needs 4 of nvidia.com/gpu on one node, and the largest node has 2",
        ),
        ([node()], needs(1), "the largest node has 0"),
        ([node(gpus=8, taints=[OWN_TAINT]), node()], needs(1), "the largest node has 0"),
        ([node(taints=[OWN_TAINT])], needs(), "no taint that is not tolerated"),
        ([node(unschedulable=True)], needs(), "none of the cluster's 1 nodes"),
        (
            [node(gpus=1, labels={capacities.PRODUCT: "A"})],
            needs(1, gpu_product="B"),
            "the GPUs of its nodes are A",
        ),
        ([], needs(), "0 nodes"),
    ],
)
def test_a_pod_that_fits_on_no_node_is_refused(nodes, wanted, told):
    with pytest.raises(ConfigError, match=r"add|choose") as caught:
        capacities.on_nodes(nodes, wanted)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": "team", "operator": "Equal", "value": "a"},
        {"key": "team", "operator": "Exists", "effect": "NoExecute"},
        {"operator": "Exists"},
    ],
)
def test_a_taint_that_is_tolerated_repels_nobody(toleration):
    tolerant = needs(tolerations=[toleration])
    assert capacities.on_nodes([node(taints=[OWN_TAINT])], tolerant)


def quota(**hard):
    return {"metadata": {"name": "q"}, "spec": {"hard": hard}}


def test_a_quota_is_refused_only_below_one_pod():
    wide = quota(
        **{"requests.nvidia.com/gpu": "4", "limits.memory": "1Gi", "pods": "1", "cpu": "1500m"}
    )
    assert "1 quotas" in capacities.within_quotas([wide], needs(4, memory="512Mi", shm="512Mi"))
    for key, amount in (
        ("requests.nvidia.com/gpu", "3"),
        ("memory", "900Mi"),
        ("limits.cpu", "0.5"),
    ):
        with pytest.raises(ConfigError, match=f"allows {key}={amount}"):
            capacities.within_quotas([quota(**{key: amount})], needs(4, memory="512Mi"))


def test_an_amount_in_a_way_that_is_not_known_refuses_nothing():
    assert capacities.within_quotas([quota(memory="1Ei")], needs())
