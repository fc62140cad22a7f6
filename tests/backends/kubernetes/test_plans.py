"""From a profile to the pods of its replicas: names, words, owners; and where serving is refused."""

import pytest
from pydantic import TypeAdapter, ValidationError

from adaexplore.backends.kubernetes import hosts
from adaexplore.backends.kubernetes.clients import Cluster
from adaexplore.backends.kubernetes.manifests import servers
from adaexplore.backends.kubernetes.manifests.common import Owner
from adaexplore.backends.kubernetes.surroundings import Surroundings
from adaexplore.errors import ConfigError
from adaexplore.experiments.serving import KubernetesServing, ServingConfig
from adaexplore.models.profiles import Hosting, VllmProfile, Weights

IMAGE = "engine@sha256:" + "a" * 64


class Nowhere:
    """A connection that is never used."""

    server = name = "nowhere"

    def close(self):
        """Nothing is open."""


def config(**pods):
    made = KubernetesServing(**{"image": IMAGE, **pods})
    return ServingConfig(kind="kubernetes", stop_grace_s=7.5, kubernetes=made)


def here(attempt="cluster-1"):
    owner = Owner(api_version="ray.io/v1", kind="RayCluster", name=attempt, uid="u")
    cluster = Cluster(Nowhere(), "room")
    return Surroundings(cluster=cluster, sweep="s", owner=owner, attempt=attempt, holder="head")


def profile(**rest):
    return VllmProfile(kind="vllm", provider="p", **{"model": "org/Model", **rest})


def test_each_replica_has_a_name_of_its_own_that_no_other_attempt_has():
    """An address of a lost attempt must not lead to this one's server, nor the other way round."""
    twice = profile(hosting=Hosting(replicas=2))
    made = [hosts.plans(config(), here(a), "m", twice) for a in ("cluster-1", "cluster-2")]
    names = [plan.spec.name for plans in made for plan in plans]
    assert 4 == len(set(names))
    assert all(len(f"{name}-99") <= 63 - len("-abcde") for name in names)
    assert f"http://{names[0]}.room.svc:8000" == made[0][0].address


def test_the_words_are_the_profiles_and_paths_are_the_pods():
    """Nothing is looked up on the driver's disk."""
    weights = Weights(max_model_len=99, chat_template="/models/t.jinja")
    asked = profile(model="tests", weights=weights, hosting=Hosting(tensor_parallel=2))
    everywhere = "0.0.0.0"  # noqa: S104 (of the pod)
    (plan,) = hosts.plans(config(port=9000, command=["serve"]), here(), "m", asked)
    assert (
        "serve", "--host", everywhere, "--port", "9000", "--model", "tests",
        "--served-model-name", "tests", "--dtype", "auto", "--max-model-len", "99",
        "--chat-template", "/models/t.jinja", "--tensor-parallel-size", "2",
        "--enable-prompt-tokens-details",
    ) == plan.spec.command  # fmt: skip
    job = servers.job(plan.spec)
    pod = job["spec"]["template"]["spec"]
    assert "2" == pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]
    assert 8 == pod["terminationGracePeriodSeconds"]
    assert ["u"] == [one["uid"] for one in job["metadata"]["ownerReferences"]]


def test_a_model_without_a_name_is_refused():
    with pytest.raises(ConfigError, match=r"profiles\.NAME\.model"):
        hosts.plans(config(), here(), "m", profile(model=None))


def test_serving_from_outside_of_a_cluster_is_refused(monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ConfigError, match="add backend=kubernetes") as error:
        hosts.of_this_pod(config(), "s", notify=print)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"kind": "kubernetes"}, "serving.kubernetes.image="),
        ({"kind": "none", "kubernetes": {"image": IMAGE}}, "did you mean serving=kubernetes"),
        ({"kind": "kubernetes", "kubernetes": {"image": IMAGE, "env": {"HF_TOKEN": "x"}}}, "HF_TOKEN"),
        ({"kind": "kubernetes", "kubernetes": {"image": "e@sha256:12"}}, "image"),
    ],
)  # fmt: skip
def test_a_configuration_that_cannot_serve_is_refused(document, words):
    with pytest.raises(ValidationError, match=words.replace(".", r"\.")):
        TypeAdapter(ServingConfig).validate_python(document)
