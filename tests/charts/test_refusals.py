"""Values that contradict each other, or that KubeRay and Kueue refuse: refused before anything is made."""

import json
import re

import pytest

from chart_views import CHART, changed, render, values

FULL = values(CHART / "ci" / "full-values.yaml")
KUEUE = values(CHART / "ci" / "kueue-values.yaml")
DIGEST = f"sha256:{'d' * 64}"
SERVER = {"name": "a", "model": "o/m", "tensorParallel": 1, "gpus": 1, "args": []}
RULE = [{"policy": "DeleteCluster", "condition": {"jobStatus": "SUCCEEDED", "ttlSeconds": 60}}]
KEEPS = {"shutdownAfterJobFinishes": False, "ttlSecondsAfterFinished": 0}
ON_ANOTHER = {"clusterSelector": "dev", "backoffLimit": 0}


def rayjob(**change):
    """Values of a RayJob, some changed."""
    return {**FULL, "rayjob": {**FULL["rayjob"], **change}}


REFUSED = {
    "an unknown value": {"rayJob": {}},
    "an unknown value inside": {"ray": {"wokers": 3}},
    "a tag and a digest": {"image": {"tag": "1", "digest": DIGEST}},
    "a tag and a digest of the engine": {"serving": {"image": {"tag": "v1", "digest": DIGEST}}},
    "no image of the engine": {"serving": {"image": {"tag": "", "digest": ""}}},
    "a tag within the repository": {"image": {"repository": "adaexplore:latest"}},
    "a digest that is none": {"image": {"digest": "sha256:abc"}},
    "fewer GPUs than tensor-parallel": {"servers": [{**SERVER, "tensorParallel": 2}]},
    "more GPUs than tensor-parallel": {"servers": [{**SERVER, "gpus": 4}]},
    "a server called as its program": {"servers": [{**SERVER, "name": "vllm"}]},
    "a server above the quota": {
        "servers": [{**SERVER, "tensorParallel": 4, "gpus": 4}],
        "quota": {"enabled": True, "gpus": 2},
    },
    "a server under a quota without GPUs": {
        "servers": [SERVER],
        "quota": {"enabled": True, "gpus": 0},
    },
    "a TTL without shutdown": rayjob(shutdownAfterJobFinishes=False, deletionRules=RULE),
    "deletion rules with shutdown": rayjob(deletionRules=RULE),
    "nothing that takes the cluster away": rayjob(**KEEPS),
    "suspension without shutdown": rayjob(**KEEPS, deletionRules=RULE, suspend=True),
    "deletion rules under Kueue": {
        **rayjob(**KEEPS, deletionRules=RULE),
        "ray": {**FULL["ray"], "queue": "q"},
    },
    "backoff on a cluster that is there": rayjob(clusterSelector="dev"),
    "suspension on a cluster that is there": rayjob(**ON_ANOTHER, suspend=True),
    "a sidecar on a cluster that is there": rayjob(**ON_ANOTHER, submissionMode="SidecarMode"),
    "a queue on a cluster that is there": {
        **rayjob(**ON_ANOTHER),
        "ray": {**FULL["ray"], "queue": "q"},
    },
    "a mode that asks for people": rayjob(submissionMode="InteractiveMode"),
    "a RayJob without a sweep": rayjob(sweep=""),
    "a RayJob without its file": rayjob(frozenUri=""),
    "a RayJob without its digest": rayjob(frozenSha256=""),
    "a name of 48 characters": rayjob(name="x" * 48),
    "words for a shell in the URI": rayjob(frozenUri="s3://b/k; rm -rf /"),
    "a start that may take longer than all": rayjob(activeDeadlineSeconds=60),
    "no deadline": rayjob(activeDeadlineSeconds=0),
    "an open Ray without policies": {
        "ray": {"authSecret": ""},
        "networkPolicies": {"enabled": False},
    },
    "a secret as a plain variable": {"ray": {"env": {"MY_API_KEY": "x"}}},
    "MLflow without a database": {
        "mlflow": {"enabled": True, "artifacts": {"destination": "s3://b"}}
    },
    "MLflow without a bucket": {
        "mlflow": {"enabled": True, "backendStore": {"existingSecret": "db"}}
    },
    "MLflow with files as artifacts": changed(FULL, "mlflow.artifacts.destination", "/data"),
    "downloads without a claim": {
        "models": {"prefetch": [{"repository": "o/m", "revision": "a" * 40}]}
    },
    "a download of a branch": changed(
        FULL, "models.prefetch", [{"repository": "o/m", "revision": "main"}]
    ),
    "two claims": changed(FULL, "models.cache.existingClaim", "theirs"),
    "offline servers without weights": {"serving": {"hfOffline": True}, "servers": [SERVER]},
    "a queue without kinds of nodes": {"kueue": {"enabled": True}},
    "nodes too many for Kueue": changed(
        KUEUE,
        "kueue.flavors",
        [{**KUEUE["kueue"]["flavors"][0], "name": f"f{i}"} for i in range(17)],
    ),
    "a port that root alone may open": {"serving": {"port": 80}},
    "a quantity without meaning": {"ray": {"head": {"memory": "8 GB"}}},
    "too little shared memory for Ray": {"ray": {"objectStoreBytes": 1}},
}


@pytest.mark.parametrize("given", REFUSED.values(), ids=REFUSED)
def test_illegal_values_are_refused(given):
    """By the schema, or by the chart with a word of its own."""
    import helm_python

    with pytest.raises(helm_python.HelmError):
        render(given)


LEGAL = {
    "nothing": {},
    "a digest": {"image": {"digest": DIGEST}},
    "a tag": {"image": {"tag": "1"}},
    "a registry with a port": {"image": {"repository": "localhost:5000/adaexplore"}},
    "as many GPUs": {"servers": [{**SERVER, "tensorParallel": 8, "gpus": 8}]},
    "deletion rules without shutdown": rayjob(**KEEPS, deletionRules=RULE),
    "suspension with shutdown": rayjob(suspend=True),
    "a cluster that is there": rayjob(**ON_ANOTHER),
    "a sidecar": rayjob(submissionMode="SidecarMode"),
    "an open Ray behind policies": {"ray": {"authSecret": ""}},
    "somebody's claim": {
        "models": {
            "cache": {"existingClaim": "theirs"},
            "prefetch": [{"repository": "o/m", "revision": "a" * 40}],
        }
    },
    "a quota as large as the server": {"servers": [SERVER], "quota": {"enabled": True, "gpus": 1}},
}


@pytest.mark.parametrize("given", LEGAL.values(), ids=LEGAL)
def test_their_legal_neighbours_are_not(given):
    """So that a refusal is of the pair, and not of one of its halves."""
    assert render(given)


def test_every_rule_of_the_schema_has_a_refusal():
    """A rule between values that no case above breaks would be a claim without a test."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    validator = _validator(schema)
    broken = set()
    for given in REFUSED.values():
        if not isinstance(merged := _merged(given), dict):
            continue
        for error in validator.iter_errors(merged):
            path = list(error.absolute_schema_path)
            if path[0] == "allOf":
                broken.add(path[1])
    assert set(range(len(schema["allOf"]))) == broken


def test_every_value_is_described_and_bounded():
    """No object of the schema takes what it does not name, but for maps of users."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    text = (CHART / "values.yaml").read_text()

    def walk(node, where):
        if isinstance(node, dict):
            if "properties" in node and node.get("type") == "object":
                assert False is node["additionalProperties"], where
            for key, value in node.items():
                walk(value, f"{where}.{key}")

    walk(schema, "")
    for key in schema["properties"]:
        assert key == "global" or re.search(rf"^{key}:", text, re.MULTILINE), key


def _validator(schema):
    import jsonschema

    return jsonschema.Draft202012Validator(schema)


def _merged(given):
    import helm_python

    with helm_python.Chart.load(CHART) as chart:
        return chart.merge_values(given)
