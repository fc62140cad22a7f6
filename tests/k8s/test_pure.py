"""The parts of the test bed that need neither root nor a cluster."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from k8s.testbed import builds, crds, environments, images, quantities, rayjobs, statuses
from k8s.testbed.environments import MissingError, Place
from k8s.testbed.faults import BedError


@pytest.mark.parametrize(
    ("text", "number", "whole"),
    [
        ("500m", Decimal("0.5"), 1),
        ("2", Decimal(2), 2),
        (3, Decimal(3), 3),
        ("1500m", Decimal("1.5"), 2),
        ("64Mi", Decimal(64 * 2**20), 64 * 2**20),
        ("1.5Gi", Decimal(3 * 2**29), 3 * 2**29),
        ("1k", Decimal(1000), 1000),
    ],
)
def test_quantities(text, number, whole):
    assert number == quantities.number(text)
    assert whole == quantities.whole(text)


@given(st.integers(0, 10**6), st.sampled_from(sorted(quantities.SUFFIXES)))
def test_a_quantity_is_its_digits_times_its_suffix(digits, suffix):
    """Whatever the suffix."""
    assert digits * quantities.SUFFIXES[suffix] == quantities.number(f"{digits}{suffix}")


def test_an_image_is_found_by_its_longest_known_beginning():
    """Tags and digests need not be known; half a name is another image."""
    table = {"a/b": images.Image(pull_s=1), "a/b:special": images.Image(pull_s=2)}
    assert 1 == images.find(table, "a/b:1").pull_s
    assert 1 == images.find(table, "a/b@sha256:0").pull_s
    assert 2 == images.find(table, "a/b:special").pull_s
    assert images.find(table, "a/bc") is None
    assert images.find(table, "a") is None


def test_a_table_of_images_is_read_as_it_was_written(tmp_path):
    row = images.Image(folders=("/x",), needs=("/y",), entrypoint=("z",), environment={"A": "1"})
    images.save(tmp_path / "table", {"name": row})
    assert {"name": row} == images.load(tmp_path / "table")


@pytest.mark.parametrize(
    ("text", "said"),
    [("$(A)-$(B)", "1-$(B)"), ("$$(A)", "$(A)"), ("$A ${A}", "$A ${A}"), ("$(A)$(A)", "11")],
)
def test_references_in_words(text, said):
    """As the API's documentation has it."""
    assert said == environments.expanded(text, {"A": "1"})


def test_the_words_of_a_container():
    """A command replaces the entrypoint, arguments are added to either."""
    assert ["e", "x"] == environments.command({"args": ["x"]}, ["e"], {})
    assert ["c", "1"] == environments.command(
        {"command": ["c"], "args": ["$(A)"]}, ["e"], {"A": "1"}
    )
    assert [] == environments.command({}, [], {})


def test_a_service_named_vllm_makes_the_variable_that_breaks_vllm():
    """Which is why pods switch service links off; headless services make none."""
    service = {
        "metadata": {"name": "vllm"},
        "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80}]},
    }
    assert "tcp://10.0.0.1:80" == environments.service_links([service])["VLLM_PORT"]
    service["spec"]["clusterIP"] = "None"
    assert {} == environments.service_links([service])


def test_a_missing_key_is_named_unless_it_is_optional():
    place = Place(pod={}, address="", host="", read=lambda *_: {"data": {"a": "1"}})
    reference = {"name": "m", "key": "b"}
    entry = {"name": "X", "valueFrom": {"configMapKeyRef": reference}}
    with pytest.raises(MissingError, match="couldn't find key b in ConfigMap m"):
        environments.variables({"env": [entry]}, place, {})
    reference["optional"] = True
    assert {} == environments.variables({"env": [entry]}, place, {})


def view(**more):
    return statuses.View(name="c", image="i", **more)


def done(code):
    return view(state=statuses.terminated(code, "", 0.0), finished=True)


@pytest.mark.parametrize(
    ("inits", "mains", "phase"),
    [
        ([], [view()], "Pending"),
        ([view()], [view()], "Pending"),
        ([done(0)], [view(state=statuses.running(0.0))], "Running"),
        ([done(1)], [view()], "Failed"),
        ([], [done(0), done(0)], "Succeeded"),
        ([], [done(0), done(2)], "Failed"),
        ([], [done(0), view(state=statuses.running(0.0))], "Running"),
        (
            [],
            [view(state=statuses.waiting("CrashLoopBackOff"), last={"terminated": {}})],
            "Running",
        ),
    ],
)
def test_phases(inits, mains, phase):
    assert phase == statuses.phase(inits, mains)


def test_conditions_of_others_stay_and_times_change_with_the_value_only():
    scheduled = {"type": "PodScheduled", "status": "True"}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "then"}
    found = statuses.conditions([scheduled, ready], (True, False, True), "Running")
    by_type = {one["type"]: one for one in found}
    assert scheduled == by_type["PodScheduled"]
    assert "then" == by_type["Ready"]["lastTransitionTime"]
    assert ("False", "ContainersNotReady") == (
        by_type["ContainersReady"]["status"],
        by_type["ContainersReady"]["reason"],
    )


def test_times_are_read_as_they_are_written():
    assert 1_000_000_000 == statuses.seconds(statuses.stamp(1_000_000_000.7))


def test_what_the_old_api_server_cannot_hold_is_dropped():
    """And nothing else."""
    before = {
        "a": {"default": "", "type": "string", "x-kubernetes-validations": [1]},
        "b": [{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "default": 0}],
        "c": {"x-kubernetes-list-type": "set", "default": "x"},
    }
    after = {
        "a": {"type": "string"},
        "b": [{"default": 0}],
        "c": {"x-kubernetes-list-type": "set", "default": "x"},
    }
    assert after == crds.acceptable(before)


def test_without_the_real_definitions_open_ones_are_used(tmp_path, monkeypatch):
    """So that everything runs from a lone checkout."""
    monkeypatch.setenv(crds.FOLDER, str(tmp_path))
    assert not crds.real()
    names = [document["metadata"]["name"] for document in crds.documents()]
    assert ["rayclusters.ray.io", "rayjobs.ray.io"] == names


# -- the build ------------------------------------------------------------------------------------


def kept(folder, **changes):
    """A folder of programs as a build leaves it."""
    folder.mkdir(parents=True)
    for name in builds.PROGRAMS:
        (folder / name).write_text("#!/bin/sh\necho Kubernetes v1.20.2\n")
        (folder / name).chmod(0o755)
    digests = {name: builds._digest(folder / name) for name in builds.PROGRAMS}
    manifest = {"recipe": builds.RECIPE, "digests": digests, **changes}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_programs_that_were_built_are_used_again(tmp_path):
    assert kept(tmp_path / "v1") == builds.ensure(tmp_path)


@pytest.mark.parametrize("damage", ["byte", "missing", "recipe", "manifest", "silent"])
def test_damaged_programs_are_removed_and_not_used(tmp_path, damage, capsys):
    """Whatever the damage; the next start builds again."""
    folder = kept(tmp_path / "v1", **({"recipe": 0} if damage == "recipe" else {}))
    program = folder / builds.PROGRAMS[0]
    if damage == "byte":
        program.write_text(program.read_text() + "\n")
    if damage == "missing":
        program.unlink()
    if damage == "manifest":
        (folder / "manifest.json").write_text("{")
    if damage == "silent":
        program.write_text("#!/bin/sh\nexit 1\n")
        digests = {name: builds._digest(folder / name) for name in builds.PROGRAMS}
        (folder / "manifest.json").write_text(
            json.dumps({"recipe": builds.RECIPE, "digests": digests})
        )
    assert builds.kept(tmp_path) is None
    assert not folder.exists()
    assert "is damaged" in capsys.readouterr().err


def test_the_sources_list_is_the_machine_s_own_for_sources(tmp_path):
    """In either form; other lists are left out."""
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list.d" / "debian.sources").write_text(
        "Types: deb\n# old\nURIs: http://mirror/debian\nSuites: s\nComponents: main\n\n"
        "Types: deb\nURIs: http://elsewhere/tools\nSuites: s\nComponents: main\n"
    )
    (tmp_path / "sources.list").write_text("deb http://other/debian s main contrib\n")
    text = builds._source_entries(tmp_path)
    assert 2 == text.count("Types: deb-src")
    assert "elsewhere" not in text
    assert "old" not in text
    assert "URIs: http://other/debian\nSuites: s\nComponents: main contrib" in text


def test_a_machine_without_such_lists_is_told(tmp_path):
    (tmp_path / "sources.list.d").mkdir()
    with pytest.raises(BedError, match="expected the lists of a Debian mirror"):
        builds._source_entries(tmp_path)


# -- RayJobs --------------------------------------------------------------------------------------


def job(**spec):
    metadata = {"name": "sweep", "namespace": "lab", "uid": "u"}
    return {"kind": "RayJob", "apiVersion": "ray.io/v1", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, ""),
        ({"suspend": True}, "suspend needs shutdownAfterJobFinishes"),
        ({"suspend": True, "shutdownAfterJobFinishes": True}, ""),
        ({"ttlSecondsAfterFinished": 1}, "needs shutdownAfterJobFinishes"),
        ({"backoffLimit": -1}, "negative"),
        ({"activeDeadlineSeconds": 0}, "not positive"),
        ({"deletionStrategy": {}, "shutdownAfterJobFinishes": True}, "excludes"),
        ({"clusterSelector": {}}, "clusterSelector"),
        ({"submissionMode": "SidecarMode"}, "not SidecarMode"),
        ({"rayClusterSpec": {"enableInTreeAutoscaling": True}}, "autoscaling"),
    ],
)
def test_illegal_pairs_are_refused(spec, said):
    """What KubeRay refuses, and what the stand-in does not know."""
    fault = rayjobs.fault(job(**{"rayClusterSpec": {}, **spec}))
    assert said in fault if said else fault == ""


def test_a_name_is_no_longer_than_its_pods_allow():
    long = job(rayClusterSpec={})
    long["metadata"]["name"] = "x" * 48
    assert "47" in rayjobs.fault(long)
