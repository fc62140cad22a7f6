"""Who reaches whom: the chart's NetworkPolicies, judged by the API's rules written down a second time."""

import pytest

from chart_views import CHART, allowed, only, render, values

FULL = CHART / "ci" / "full-values.yaml"
OPERATOR, PROMETHEUS, STRANGER = (
    {"namespace": "kuberay"},
    {"namespace": "monitoring"},
    {"namespace": "elsewhere"},
)
DNS = {"namespace": "kube-system"}
OUTSIDE, INSIDE = "203.0.113.7", "10.1.2.3"
POD = {"app.kubernetes.io/part-of": "adaexplore"}


def pod(component):
    return {**POD, "app.kubernetes.io/component": component}


HEAD, WORKER, SUBMITTER = pod("ray-head"), pod("ray-worker"), pod("ray-submitter")
SERVER, MLFLOW, REAPER, PREFETCH = (
    pod("model-server"),
    pod("mlflow"),
    pod("reaper"),
    pod("model-prefetch"),
)
FOREIGN = {"app": "somebody-else"}

OPEN = [
    (HEAD, DNS, 53),
    (SERVER, DNS, 53),
    (HEAD, INSIDE, 6443),
    (REAPER, INSIDE, 443),
    (HEAD, WORKER, 6379),
    (WORKER, HEAD, 6379),
    (WORKER, WORKER, 30001),
    (SUBMITTER, HEAD, 8265),
    (OPERATOR, HEAD, 8265),
    (HEAD, SERVER, 8000),
    (WORKER, SERVER, 8000),
    (HEAD, MLFLOW, 5000),
    (HEAD, OUTSIDE, 443),
    (WORKER, OUTSIDE, 443),
    (MLFLOW, INSIDE, 5432),
    (MLFLOW, OUTSIDE, 443),
    (PREFETCH, OUTSIDE, 443),
    (PROMETHEUS, HEAD, 8080),
    (PROMETHEUS, SERVER, 8000),
]
SHUT = [
    (SERVER, OUTSIDE, 443),
    (SERVER, INSIDE, 443),
    (SERVER, INSIDE, 6443),
    (SERVER, HEAD, 8265),
    (SERVER, MLFLOW, 5000),
    (STRANGER, HEAD, 8265),
    (STRANGER, HEAD, 10001),
    (STRANGER, SERVER, 8000),
    (STRANGER, MLFLOW, 5000),
    (OPERATOR, HEAD, 10001),
    (PROMETHEUS, HEAD, 8265),
    (PROMETHEUS, MLFLOW, 5000),
    (FOREIGN, HEAD, 6379),
    (FOREIGN, SERVER, 8000),
    (FOREIGN, OUTSIDE, 443),
    (WORKER, INSIDE, 6443),
    (HEAD, OUTSIDE, 80),
    (HEAD, OUTSIDE, 22),
    (PREFETCH, INSIDE, 5432),
    (REAPER, HEAD, 8265),
    (MLFLOW, HEAD, 8265),
]


def passes(policies, source, target, port):
    """Whether both ends let it pass; what is not a pod of the namespace has no policies here."""
    protocol = "UDP" if port == 53 else "TCP"
    ours = lambda one: isinstance(one, dict) and "namespace" not in one  # noqa: E731
    out = not ours(source) or allowed(policies, "Egress", source, target, port, protocol)
    into = not ours(target) or allowed(policies, "Ingress", target, source, port, protocol)
    return out and into


def said(case):
    source, target, port = case
    label = lambda one: one if isinstance(one, str) else list(one.values())[-1]  # noqa: E731
    return f"{label(source)}-{label(target)}-{port}"


@pytest.fixture(scope="module")
def policies():
    return [d for d in render(values(FULL)) if d["kind"] == "NetworkPolicy"]


@pytest.mark.parametrize("case", OPEN, ids=said)
def test_what_must_pass_passes(policies, case):
    """Each way that a sweep needs."""
    assert passes(policies, *case)


@pytest.mark.parametrize("case", SHUT, ids=said)
def test_nothing_else_does(policies, case):
    """What hostile output in an engine, or a neighbour, could try."""
    assert not passes(policies, *case)


def test_a_shared_namespace_keeps_its_others():
    """wholeNamespace=false: pods of others are not cut off."""
    given = {"networkPolicies": {"wholeNamespace": False}}
    policies = [d for d in render(given) if d["kind"] == "NetworkPolicy"]
    assert passes(policies, FOREIGN, OUTSIDE, 443)
    assert not passes(policies, SERVER, OUTSIDE, 443)


def test_addresses_can_be_narrowed():
    """The store's, the API server's."""
    narrow = {"s3": {"cidrs": ["10.9.0.0/16"], "ports": [8333]}, "internet": {"enabled": False}}
    policies = [d for d in render({"networkPolicies": narrow}) if d["kind"] == "NetworkPolicy"]
    assert passes(policies, WORKER, "10.9.0.1", 8333)
    assert not passes(policies, WORKER, "10.8.0.1", 8333)
    assert not passes(policies, WORKER, OUTSIDE, 443)


def test_the_pods_have_the_labels_that_policies_choose():
    """Every component that a policy names is the label of pods, and the other way round."""
    documents = render(values(FULL))
    job = only(documents, "RayJob")["spec"]
    cluster = job["rayClusterSpec"]
    templates = [
        job["submitterPodTemplate"],
        cluster["headGroupSpec"]["template"],
        cluster["workerGroupSpecs"][0]["template"],
        *(d["spec"]["template"] for d in documents if d["kind"] in ("Job", "Deployment")),
        only(documents, "CronJob")["spec"]["jobTemplate"]["spec"]["template"],
        *(d for d in documents if d["kind"] == "Pod"),
    ]
    labels = [template["metadata"]["labels"] for template in templates]
    assert all("adaexplore" == one["app.kubernetes.io/part-of"] for one in labels)
    chosen = {
        value
        for policy in documents
        if policy["kind"] == "NetworkPolicy"
        for one in policy["spec"]["podSelector"].get("matchExpressions", [])
        for value in one["values"]
    }
    assert chosen | {"test-image"} == {one["app.kubernetes.io/component"] for one in labels}


def test_budgets_and_monitors_choose_components_that_there_are():
    """A selector that finds nothing would say nothing."""
    documents = render(values(FULL))
    known = set(map(component, (HEAD, WORKER, SERVER, MLFLOW)))
    for document in documents:
        if document["kind"] in ("PodDisruptionBudget", "PodMonitor"):
            selector = document["spec"]["selector"]
            chosen = [component(selector["matchLabels"])]
            chosen += [v for one in selector.get("matchExpressions", []) for v in one["values"]]
            assert known >= set(filter(None, chosen)) > set(), document["metadata"]["name"]


def component(labels):
    return labels.get("app.kubernetes.io/component")
