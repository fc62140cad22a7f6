"""What holds for the objects of every profile, and for those of some."""

import math

import pytest

from adaexplore.experiments.placements import SECRET
from chart_views import (
    CHART,
    NAMESPACE,
    OF_THE_CLUSTER,
    RELEASE,
    chart,
    containers,
    mebibytes,
    name,
    only,
    render,
    templates,
    values,
)

FULL = CHART / "ci" / "full-values.yaml"
TOKENS = ("Pod/bench-adaexplore-test-api", "CronJob/bench-adaexplore-reaper")
"""Whose pods may have a token; heads as well."""


def test_objects_are_the_releases_and_nobody_elses(documents):
    """In its namespace, with its labels; names of two do not meet."""
    names = [(d["kind"], d["metadata"]["name"]) for d in documents]
    assert len(set(names)) == len(names)
    for document in documents:
        metadata = document["metadata"]
        if document["kind"] == "ConfigMap":
            continue  # an extra object
        assert (document["kind"] in OF_THE_CLUSTER) == ("namespace" not in metadata), name(document)
        assert metadata.get("namespace", NAMESPACE) == NAMESPACE
        assert "adaexplore" == metadata["labels"]["app.kubernetes.io/part-of"], name(document)
        assert all(len(value) <= 63 for value in metadata["labels"].values())
        assert len(metadata["name"]) <= 63


def test_a_long_release_name_gives_legal_names(profile):
    """Suffixes are added to it."""
    for document in render(values(profile), name="a" * 53):
        assert len(document["metadata"]["name"]) <= 63, name(document)


def test_pods_are_restricted(documents):
    """Pod Security Standard `restricted`, for all containers; numeric users."""
    for document in documents:
        for where, pod in templates(document):
            security = pod["securityContext"]
            assert True is security["runAsNonRoot"], where
            assert 0 < security["runAsUser"], where
            assert {"type": "RuntimeDefault"} == security["seccompProfile"], where
            assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys(), where
            kinds = {key for volume in pod.get("volumes", []) for key in volume} - {"name"}
            assert kinds <= {"emptyDir", "persistentVolumeClaim"}, where
        for where, container in containers(document):
            security = container["securityContext"]
            assert False is security["allowPrivilegeEscalation"], where
            assert {"drop": ["ALL"]} == security["capabilities"], where
            assert not {"privileged", "runAsUser", "procMount"} & security.keys(), where


def test_every_container_has_requests(documents):
    """A quota refuses others; memory is a limit as well."""
    for document in documents:
        for where, container in containers(document):
            resources = container["resources"]
            assert {"cpu", "memory"} <= resources["requests"].keys(), where
            assert resources["requests"]["memory"] == resources["limits"]["memory"], where


def test_no_service_links_and_tokens_only_where_needed(documents):
    """Driver, reaper, and the test of the driver's rights."""
    for document in documents:
        if document["kind"] == "ServiceAccount":
            assert False is document["automountServiceAccountToken"], name(document)
        for where, pod in templates(document):
            assert False is pod["enableServiceLinks"], where
            head = "headGroupSpec" in where
            assert pod["automountServiceAccountToken"] == (head or where.startswith(TOKENS)), where
            assert "default" != pod["serviceAccountName"], where


def test_images_are_pinned_where_a_digest_is_given():
    """By every container; else by the tag, never by latest."""
    for document in render(values(FULL)):
        for where, container in containers(document):
            assert "@sha256:" in container["image"], where
    for document in render({}):
        for where, container in containers(document):
            assert container["image"].endswith(":0.1.0"), where


def test_no_secret_value_is_rendered(documents):
    """Secrets are neither made nor copied: variables called like one refer to one."""
    for document in documents:
        assert "Secret" != document["kind"]
        for where, container in containers(document):
            for variable in container.get("env", []):
                if SECRET.search(variable["name"]):
                    assert "value" not in variable, (where, variable["name"])


def test_variables_are_named_once(documents):
    """Server-side apply refuses a name that stands twice."""
    for document in documents:
        for where, container in containers(document):
            names = [variable["name"] for variable in container.get("env", [])]
            assert sorted(set(names)) == sorted(names), where


def test_selectors_never_change(documents):
    """Only name, instance and component; and they find the pods that they are for."""
    stable = {f"app.kubernetes.io/{key}" for key in ("name", "instance", "component")}
    for document in documents:
        if document["kind"] not in ("Deployment", "Service"):
            continue
        selector = document["spec"]["selector"]
        selector = selector.get("matchLabels", selector)
        assert stable == selector.keys(), name(document)
        pods = [
            d["spec"]["template"]["metadata"]["labels"]
            for d in documents
            if d["kind"] in ("Deployment", "Job")
        ]
        found = [labels for labels in pods if selector.items() <= labels.items()]
        assert 1 == len(found), name(document)


def test_pods_do_not_change_with_the_charts_version(documents):
    """An upgrade that changes nothing restarts nothing."""
    for document in documents:
        template = document.get("spec", {}).get("template")
        if template is not None:
            labels = template["metadata"]["labels"]
            assert not {"helm.sh/chart", "app.kubernetes.io/version"} & labels.keys()


def test_jobs_end(documents):
    """A deadline and a number of tries for each; finished ones go."""
    for document in documents:
        jobs = {"Job": document, "CronJob": document.get("spec", {}).get("jobTemplate")}
        if (job := jobs.get(document["kind"])) is not None:
            hook = "helm.sh/hook" in document["metadata"].get("annotations", {})
            assert 0 < job["spec"]["activeDeadlineSeconds"], name(document)
            assert 3 >= job["spec"]["backoffLimit"], name(document)
            assert hook or "ttlSecondsAfterFinished" in job["spec"], name(document)


def test_servers_have_time_to_start_and_a_long_fuse():
    """30 minutes of start, 2 minutes of liveness; the engine waits for itself as long as we do."""
    every = [pair for document in render(values(FULL)) for pair in containers(document)]
    (container,) = (one for _, one in every if one["name"] == "server")
    start, live = container["startupProbe"], container["livenessProbe"]
    assert 1800 == start["periodSeconds"] * start["failureThreshold"]
    assert 120 == live["periodSeconds"] * live["failureThreshold"]
    assert 10 == live["timeoutSeconds"]
    engine = {v["name"]: v.get("value") for v in container["env"]}["VLLM_ENGINE_READY_TIMEOUT_S"]
    assert "1800" == engine
    assert "/health" == start["httpGet"]["path"]  # a key guards the rest
    assert {"memory": f"{mebibytes('40Gi')}Mi", "nvidia.com/gpu": "2"} == container["resources"][
        "limits"
    ]


@pytest.mark.parametrize("limit_s", [1, 30, 179, 181, 1799, 7200])
def test_the_start_probe_lasts_as_long_as_the_limit(limit_s):
    """Never shorter, and not a period longer."""
    given = values(CHART / "ci" / "kueue-values.yaml")
    given["serving"]["startLimitSeconds"] = limit_s
    job = next(d for d in render(given) if d["kind"] == "Job")
    probe = job["spec"]["template"]["spec"]["containers"][0]["startupProbe"]
    period = min(10, max(1, math.ceil(limit_s / 180)))
    assert (period, math.ceil(limit_s / period)) == (
        probe["periodSeconds"],
        probe["failureThreshold"],
    )


def test_a_changed_job_is_another_job():
    """A Job does not change: another revision gets another name, the same one keeps it."""
    jobs = lambda given: {d["metadata"]["name"] for d in render(given) if d["kind"] == "Job"}  # noqa: E731
    given = values(FULL)
    before = jobs(given)
    assert before == jobs(given)
    given["models"]["prefetch"][0]["revision"] = "f" * 40
    assert 1 == len(jobs(given) - before)
    given["servers"][0]["args"] = []
    assert 2 == len(jobs(given) - before)


def test_the_hubs_token_is_the_downloads_alone():
    """Servers never see it, and ask no hub."""
    for document in render(values(FULL)):
        for where, container in containers(document):
            names = {v["name"] for v in container.get("env", [])}
            assert ("HF_TOKEN" in names) == ("-get-" in where), where
            if container["name"] == "server":
                assert "HF_HUB_OFFLINE" in names
                assert any(m.get("readOnly") for m in container["volumeMounts"])


def test_the_database_is_migrated_once_before_an_upgrade():
    """And its URI is in no command line of a manifest."""
    documents = render(values(FULL))
    hook = only(documents, "Job", "-mlflow-upgrade")
    assert "pre-upgrade" == hook["metadata"]["annotations"]["helm.sh/hook"]
    for container in (
        hook["spec"]["template"]["spec"]["containers"][0],
        only(documents, "Deployment")["spec"]["template"]["spec"]["containers"][0],
    ):
        words = " ".join([*container["command"], *container.get("args", [])])
        assert "://" not in words.replace("s3://", "")


def test_mlflow_knows_the_names_that_clients_use():
    """With and without port; probes would pass all the same."""
    container = only(render(values(FULL)), "Deployment")["spec"]["template"]["spec"]["containers"][
        0
    ]
    hosts = next(v for v in container["env"] if v["name"] == "MLFLOW_SERVER_ALLOWED_HOSTS")
    service = f"{RELEASE}-adaexplore-mlflow.{NAMESPACE}"
    wanted = {f"{service}.svc:*", f"{service}.svc.cluster.local", "mlflow.example.org:*"}
    assert wanted <= set(hosts["value"].split(","))
    assert True is container["securityContext"]["readOnlyRootFilesystem"]


def test_monitors_only_where_the_cluster_knows_them():
    """Rendered without a cluster, the definition is not known."""
    given = values(FULL)
    given["podMonitors"]["requireApi"] = True
    assert not [d for d in render(given) if d["kind"] == "PodMonitor"]
    monitors = [d for d in render(values(FULL)) if d["kind"] == "PodMonitor"]
    assert [{"release": "prometheus"}] * 2 == [
        {"release": d["metadata"]["labels"].get("release")} for d in monitors
    ]


def test_the_drivers_rights_are_these_and_no_others():
    """The list of the design; no wildcard anywhere."""
    role = only(render({}), "Role", "-driver")
    rights = {
        ("batch", "jobs"): {"create", "get", "list", "watch", "delete", "patch"},
        ("", "pods"): {"get", "list", "watch"},
        ("", "pods/log"): {"get"},
        ("", "services"): {"create", "get", "list", "delete"},
        ("", "events"): {"list", "watch"},
        ("ray.io", "rayclusters"): {"get"},
        ("coordination.k8s.io", "leases"): {"create", "get", "update"},
    }
    assert rights == {
        (group, resource): set(rule["verbs"])
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def test_nobodys_rights_reach_secrets_or_programs(documents):
    """Nor further than the namespace."""
    for document in documents:
        assert document["kind"] not in ("ClusterRole", "ClusterRoleBinding")
        for rule in document.get("rules", []):
            assert not {"secrets", "pods/exec", "pods/attach", "*"} & set(rule["resources"])
            assert "*" not in rule["verbs"]
            assert not ("pods" in rule["resources"] and "create" in rule["verbs"])


def test_the_notes_say_what_uninstalling_leaves():
    """Sweeps are not the release's."""
    notes = chart().render({}, name=RELEASE, namespace=NAMESPACE)["adaexplore/templates/NOTES.txt"]
    assert f"kubectl -n {NAMESPACE} delete rayjobs" in notes
    assert "adaexplore-ray-token" in notes
