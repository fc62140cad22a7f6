"""The chart and the kustomize folders: well formed, tidy, and valid for the API."""

import functools

import pytest
import yaml
from k8s.testbed import crds

from chart_views import (
    CHART,
    CUSTOM,
    NAMESPACE,
    OVERLAYS,
    PROFILES,
    build,
    closed,
    only,
    render,
    values,
)

FULL = CHART / "ci" / "full-values.yaml"
INFO = 1
STYLE = (
    "{extends: default, rules: {line-length: {max: 120}, braces: {max-spaces-inside: 0}, "
    "comments: {min-spaces-from-content: 1}}}"
)


@functools.cache
def definition(kind):
    """The closed schema of a custom resource."""
    plural = f"{kind.lower()}s"
    group = "ray.io" if kind.startswith("Ray") else "kueue.x-k8s.io"
    path = crds.folder() / f"{group}_{plural}.yaml"
    if not path.is_file():
        pytest.skip(f"no definition of {kind} at {path}: set {crds.FOLDER}")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # seconds faster
    text = yaml.load(path.read_text(), Loader=loader)  # noqa: S506 (both are safe)
    versions = {one["name"]: one["schema"]["openAPIV3Schema"] for one in text["spec"]["versions"]}
    return {version: closed(schema) for version, schema in versions.items()}


def require_valid(documents):
    """Every document is what the API knows, and says nothing that it does not."""
    import jsonschema
    import kubernetes_validate

    for document in documents:
        kind = document["kind"]
        if kind == "PodMonitor":
            continue  # its definition is not here
        if kind in CUSTOM:
            schema = definition(kind)[document["apiVersion"].partition("/")[2]]
            schema["properties"]["metadata"] = {"type": "object"}
            jsonschema.Draft202012Validator(schema).validate(document)
        else:
            kubernetes_validate.validate(document, "1.37", strict=True)


def test_lint_finds_nothing(profile):
    """Strict; lint also finds the broken YAML that rendering lets pass."""
    import helm_python

    report = helm_python.lint(CHART, values(profile), strict=True, namespace=NAMESPACE)
    loud = [m for m in report["messages"] if m["severity"] > INFO]
    assert ([], []) == (report["errors"], loud)


def test_every_profile_is_valid(documents):
    """Built-in kinds strictly, custom ones by their definitions, closed."""
    require_valid(documents)


@pytest.mark.parametrize("folder", OVERLAYS, ids=lambda path: path.name)
def test_every_overlay_is_valid(folder):
    """The same for kustomize."""
    require_valid(build(folder))


def test_a_mistyped_field_would_be_found():
    """The check of custom resources is no formality."""
    import jsonschema

    job = only(render(values(FULL)), "RayJob")
    job["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["replica"] = 1
    with pytest.raises(jsonschema.ValidationError, match="replica"):
        require_valid([job])


def test_the_profiles_are_those_that_are_promised():
    """One for each way of use."""
    assert {
        "default-values.yaml",
        "minimal-values.yaml",
        "full-values.yaml",
        "kueue-values.yaml",
        "dev-raycluster-values.yaml",
        "dev-seaweedfs-values.yaml",
    } == {path.name for path in PROFILES}


def test_all_kinds_are_rendered_by_some_profile():
    """Nothing is in the chart that these tests do not see."""
    made = {d["kind"] for profile in PROFILES for d in render(values(profile))}
    templated = {
        line.split()[1]
        for path in CHART.glob("templates/**/*.yaml")
        for line in path.read_text().splitlines()
        if line.startswith("kind: ")
    }
    assert templated | {"ConfigMap"} == made


@pytest.mark.parametrize(
    "path",
    [*CHART.glob("*.yaml"), *PROFILES, *(p for o in OVERLAYS for p in o.glob("*.yaml"))],
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_yaml_is_tidy(path):
    """What people edit."""
    from yamllint import linter
    from yamllint.config import YamlLintConfig

    found = linter.run(path.read_text(), YamlLintConfig(STYLE))
    assert [] == [f"{one.line}: {one.desc}" for one in found]
