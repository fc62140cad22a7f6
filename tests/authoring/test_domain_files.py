"""Domain files: the shipped ones pass, and a faulty one is answered with all its faults at once."""

import copy

import pytest
import yaml

from adaexplore.authoring import domain_files
from adaexplore.errors import DatasetError

SHIPPED = sorted(path.stem for path in domain_files.PACKAGED.glob("*.yaml"))


@pytest.fixture(scope="module")
def document():
    """A faultless document; tests change copies of it."""
    path = domain_files.path_of("hospital_bed_flow")
    return yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)


@pytest.mark.parametrize("domain_id", SHIPPED)
def test_shipped_domains_are_faultless(domain_id):
    """Each is read strictly, under the name of its file."""
    domain = domain_files.read(domain_files.path_of(domain_id))

    assert domain_id == domain.domain_id


def refusal(path):
    with pytest.raises(DatasetError) as caught:
        domain_files.read(path)
    return str(caught.value)


def test_unknown_domains_name_the_known_ones():
    with pytest.raises(DatasetError) as caught:
        domain_files.path_of("moon")

    assert f"unknown domain 'moon': expected one of {', '.join(SHIPPED)}" == str(caught.value)


@pytest.mark.parametrize("data", [b"fields: [", b"\xff\xfe", b"a: b: c", b"\x00", b"!!python/none"])
def test_what_is_no_yaml_is_refused_in_one_line(tmp_path, data):
    path = tmp_path / "d.yaml"
    path.write_bytes(data)
    message = refusal(path)

    assert message.startswith(f"{path}: not a readable YAML file: ")
    assert "\n" not in message


def test_a_missing_file_is_named(tmp_path):
    assert "d.yaml: not a readable YAML file: " in refusal(tmp_path / "d.yaml")


def test_no_object_is_made_by_reading(tmp_path):
    """YAML that would call something is refused, not run."""
    path = tmp_path / "d.yaml"
    path.write_text("!!python/object/apply:pathlib.Path.touch [ran]")

    assert "not a readable YAML file" in refusal(path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("value", [None, [], "text", 3])
def test_a_file_that_holds_no_mapping_is_refused(tmp_path, value):
    path = tmp_path / "d.yaml"
    path.write_text(yaml.safe_dump(value))

    assert f"{path}: 1 faults\n  (the whole file): " in refusal(path)


SHAPE = [
    (lambda d: d.pop("title"), "title: Field required"),
    (lambda d: d.update(colour="red"), "colour: Unexpected keyword argument (got 'red')"),
    (lambda d: d["fields"][3].update(note=1), "fields.3.note: Unexpected keyword argument"),
    (lambda d: d["fields"][3].update(type="float"), "fields.3.type: Input should be 'integer'"),
    (lambda d: d["fields"][0].update(pressure_direction=0), "fields.0.pressure_direction: Input"),
    (lambda d: d["fields"][0].update(eligible_families=["sum"]), "fields.0.eligible_families.0"),
    (lambda d: d["fields"][0]["populations"].update(low=[2.0]), "fields.0.populations.low.1"),
    (lambda d: d["fields"][0].update(minimum="none"), "fields.0.minimum: Input should be a valid"),
    (lambda d: d["fields"][0].pop("reversal"), "fields.0.reversal: Field required"),
    (lambda d: d["actions"].pop(), "actions.3: Field required"),
    (lambda d: d["ordered_triples"][0]["fields"].pop(), "ordered_triples.0.fields.2"),
    (lambda d: d["replacement_groups"][0]["transitions"].pop(), "replacement_groups.0.transitions"),
    (lambda d: d["replacement_groups"][1].update(relation_type="twin"),
     "replacement_groups.1.relation_type: Input should be 'same_metric'"),
    (lambda d: d["events"][0].pop("change_reason"), "events.0.change_reason: Field required"),
    (lambda d: d["constraints"][0].update(expression="a <= b"), "constraints.0.expression: Input"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), SHAPE)
def test_faults_of_shape_are_named_with_their_path(document, change, message):
    """Missing and unknown keys, wrong types, lists of the wrong length."""
    broken = copy.deepcopy(document)
    change(broken)
    domain, faults = domain_files.parse(broken)

    assert domain is None
    assert any(message in fault for fault in faults), faults


def test_all_faults_of_a_file_are_listed_at_once(document, tmp_path):
    """One line a fault, under the file's name and their number."""
    broken = copy.deepcopy(document)
    broken["title"] = " "
    broken["fields"][0]["effect_strength"] = 7
    broken["events"][0]["trigger_event"] = ""
    broken["replacement_groups"][0]["coupling_strength"] = 0.9
    path = tmp_path / "d.yaml"
    path.write_text(yaml.safe_dump(broken))
    head, *lines = refusal(path).splitlines()

    assert f"{path}: 4 faults" == head
    for line, part in zip(
        lines,
        ("title: expected text", ".effect_strength: 7.0 is outside", ".coupling_strength: 0.9",
         ".trigger_event: expected text"),
        strict=True,
    ):  # fmt: skip
        assert line.startswith("  ")
        assert part in line


def test_all_faults_of_shape_are_listed_at_once(document, tmp_path):
    broken = copy.deepcopy(document)
    del broken["role"], broken["fields"][5]["unit"]
    broken["extra"] = "x" * 500
    path = tmp_path / "d.yaml"
    path.write_text(yaml.safe_dump(broken))
    message = refusal(path)

    assert f"{path}: 3 faults" == message.splitlines()[0]
    assert max(map(len, message.splitlines()[1:])) < 160
