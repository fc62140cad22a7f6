"""Validators: each kind of fault is found in a document that is otherwise faultless, and only it."""

import copy
from types import SimpleNamespace

import pytest
import yaml

from adaexplore.authoring import domain_files, validators


@pytest.fixture(scope="module")
def document():
    """A faultless document; tests change copies of it."""
    path = domain_files.path_of("hospital_bed_flow")
    return yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)


def faults(document, change):
    """Faults of the document after a change to a copy of it."""
    broken = copy.deepcopy(document)
    change(SimpleNamespace(**broken, document=broken))
    domain, found = domain_files.parse(broken)
    assert domain is not None, found
    assert found == validators.faults(domain)
    return found


def put(where, *path_and_value):
    """A change that sets one value: `put("fields", 0, "unit", "")`."""
    *path, value = path_and_value

    def change(d):
        node = d.document
        for key in (where, *path[:-1]):
            node = node[key]
        node[path[-1] if path else where] = value

    return change


def several(*changes):
    """A change that makes several."""

    def change(d):
        for each in changes:
            each(d)

    return change


def whole(key, value):
    return lambda d: d.document.update({key: value})


def less(left, right):
    return {"op": "le", "left": left, "right": right}


def constraint(expression):
    return put("constraints", 0, "expression", expression)


def population(index, **pairs):
    return several(
        *(put("fields", index, "populations", name, pair) for name, pair in pairs.items())
    )


RISING = {"low": [2.0, 4.0], "mixed": [3.0, 3.0], "high": [4.0, 2.0]}
ROOMY = several(put("fields", 0, "typical_range", [0, 240]), put("fields", 0, "maximum", 240))
BEDS = {"field": "bed_occupancy_pct"}
MANY = {"const": 10**9}


def test_the_document_is_faultless(document):
    """Else no test below says anything; with room for the populations that they write."""
    assert [] == faults(document, lambda _: None)
    assert [] == faults(document, several(ROOMY, population(0, **RISING)))


FAULTS = [
    # identity
    (whole("domain_id", "Hospital"), "domain_id: 'Hospital' is not lower case"),
    (put("actions", 1, "action_id", "action_2"), "actions: expected the ids action_0"),
    (lambda d: d.actions.reverse(), "actions: expected the ids action_0"),
    (whole("title", " "), "title: expected text"),
    (whole("role", ""), "role: expected text"),
    (whole("question", ""), "question: expected text"),
    (whole("capacity_findings", "\n"), "capacity_findings: expected text"),
    (put("actions", 2, "description", ""), "actions.action_2.description: expected text"),
    (put("actions", 2, "display_name", ""), "actions.action_2.display_name: expected text"),
    # inventory
    (put("fields", 1, "display_name", ""), "fields.longest_ed_bed_wait_h.display_name: expected"),
    (put("fields", 1, "unit", ""), "fields.longest_ed_bed_wait_h.unit: expected text"),
    (put("fields", 1, "description", ""), "fields.longest_ed_bed_wait_h.description: expected"),
    (lambda d: d.fields[1].update(display_name=d.fields[0]["display_name"].upper()),
     "fields.display_name: 'ed patients"),
    (lambda d: d.fields[1].update(description=d.fields[0]["description"]), "fields.description: '"),
    # semantics
    (put("fields", 0, "effect_strength", 0.05), ".effect_strength: 0.05 is outside (0.1, 1.0)"),
    (put("fields", 0, "effect_strength", 1.01), ".effect_strength: 1.01 is outside (0.1, 1.0)"),
    (put("fields", 0, "effect_strength", float("nan")), ".effect_strength: nan is outside"),
    (put("fields", 0, "eligible_families", []), ".eligible_families: name at least one"),
    (put("fields", 0, "eligible_families", ["lexicographic_priority"]), "leave lexicographic to"),
    (put("fields", 0, "eligible_families", ["conjunctive_gating"] * 2),
     ".eligible_families: 'conjunctive_gating' stands 2 times"),
    # priors
    (put("fields", 0, "typical_range", [30, 20]), "minimum <= typical_range[0] <= typical_range"),
    (put("fields", 0, "typical_range", [-1, 20]), "minimum <= typical_range[0] <= typical_range"),
    (put("fields", 0, "typical_range", [1, 9999]), "minimum <= typical_range[0] <= typical_range"),
    (several(put("fields", 0, "minimum", 9), put("fields", 0, "maximum", 9),
             put("fields", 0, "typical_range", [9, 9])), "expected minimum <= typical_range"),
    (put("fields", 0, "maximum", float("nan")), "minimum <= typical_range[0] <= typical_range"),
    (several(ROOMY, put("fields", 0, "maximum", 240.5), population(0, **RISING)),
     ": an integer field needs whole bounds, got 0.0 and 240.5"),
    (put("fields", 0, "parameter_basis", ""), ".parameter_basis: expected text"),
    (population(0, low=[0.0, 5.0]), ".low: expected alpha, beta > 0 with a sum of 4 to 12"),
    (population(0, low=[5.0, -5.0]), ".low: expected alpha, beta > 0 with a sum of 4 to 12"),
    (population(0, mixed=[1.0, 2.9]), ".mixed: expected alpha, beta > 0 with a sum of 4 to 12"),
    (population(0, high=[6.0, 6.1]), ".high: expected alpha, beta > 0 with a sum of 4 to 12"),
    (several(ROOMY, population(0, **RISING | {"low": [3.1, 2.9]})), "the means must rise"),
    (several(ROOMY, population(0, **RISING | {"high": [2.9, 3.1]})), "the means must rise"),
    (several(ROOMY, population(0, **RISING), put("fields", 0, "typical_range", [81, 240])),
     ".low: its mean 80 lies outside the typical range 81 to 240"),
    (several(ROOMY, population(0, **RISING), put("fields", 0, "typical_range", [0, 119])),
     ".mixed: its mean 120 lies outside the typical range 0 to 119"),
    # triples
    (lambda d: d.ordered_triples[1].update(order_id=d.ordered_triples[0]["order_id"]),
     "ordered_triples.order_id: '"),
    (lambda d: d.ordered_triples[1].update(fields=d.ordered_triples[0]["fields"]),
     "ordered_triples.fields: '"),
    (lambda d: d.ordered_triples[0]["fields"].__setitem__(1, d.ordered_triples[0]["fields"][0]),
     ": expected three different fields, got"),
    (put("ordered_triples", 0, "fields", 2, "bed_ocupancy_pct"), "unknown field 'bed_ocupancy_pct'"),
    (put("ordered_triples", 0, "rationale", ""), ".rationale: expected text"),
    # feasibility
    (lambda d: d.constraints[1].update(constraint_id=d.constraints[0]["constraint_id"]),
     "constraints.constraint_id: 'corridor_within_waiting' stands 2 times"),
    (lambda d: d.constraints[1].update(expression=d.constraints[0]["expression"]),
     "constraints.expression: 'corridor_care_patients <= ed_waiting_for_bed' stands 2 times"),
    (constraint({"op": "le", "left": BEDS}), "expression: expected exactly the keys"),
    (constraint(less(BEDS, {"const": float("nan")})), ".right.const: expected a number"),
    (constraint(less(BEDS, {"field": "bed_occupancy"})),
     "unknown field 'bed_occupancy'; did you mean 'bed_occupancy_pct'?"),
    (constraint(less(BEDS, {"const": 200})), "expected a relation between fields"),
    (constraint(less({"op": "add", "args": [BEDS, MANY]}, {"field": "ready_beds_pct"})),
     "no mixture of the fields' population means satisfies it"),
    (constraint(less(BEDS, {"field": "bed_turnaround_min"})), "convert one exactly"),
    (put("constraints", 0, "description", ""), "corridor_within_waiting.description: expected text"),
    # replacements
    (lambda d: d.replacement_groups[1].update(group_id=d.replacement_groups[0]["group_id"]),
     "replacement_groups.group_id: 'emergency_demand' stands 2 times"),
    (lambda d: d.replacement_groups.append(
        {**d.replacement_groups[0], "group_id": "again",
         "members": d.replacement_groups[0]["members"][::-1]}),
     "replacement_groups.members: 'ed_waiting_for_bed and forecast_ed_admissions_12h' stands"),
    (put("replacement_groups", 0, "members", 1, "moonlight"), "unknown field 'moonlight'"),
    (put("replacement_groups", 0, "coupling_strength", 0.61), ".coupling_strength: 0.61 is outside"),
    (put("replacement_groups", 0, "coupling_strength", -0.1), ".coupling_strength: -0.1 is outside"),
    (lambda d: d.replacement_groups[0]["authority_by_field"].popitem(), ".authority_by_field: exp"),
    (put("replacement_groups", 0, "decision_role", ""), ".decision_role: expected text"),
    (put("replacement_groups", 0, "rationale", ""), ".rationale: expected text"),
    (put("replacement_groups", 0, "source_contrast", ""), ".source_contrast: expected text"),
    (put("replacement_groups", 0, "effective_scope", ""), ".effective_scope: expected text"),
    *((put("replacement_groups", 0, "transitions", 0, name, ""), f".{name}: expected text")
      for name in ("trigger", "relinquish_reason", "take_reason", "duration", "ending_condition")),
    # events
    (lambda d: d.events[1].update(event_id=d.events[0]["event_id"]), "events.event_id: '"),
    (lambda d: d.events[1].update(
        {key: d.events[0][key] for key in ("outgoing", "incoming", "reversed")}),
     "events change: '"),
    (put("events", 0, "reversed", "moonlight"), "unknown field 'moonlight'"),
    (lambda d: d.events[0].update(reversed=_without_reversal(d)), "has no reversal account"),
    (put("events", 0, "trigger_event", " "), ".trigger_event: expected text"),
    (put("events", 0, "change_reason", " "), ".change_reason: expected text"),
]  # fmt: skip


def _without_reversal(d):
    taken = (d.events[0]["outgoing"], d.events[0]["incoming"])
    lasting = [f["field_id"] for f in d.fields if not f["reversal"]["is_reversal"]]
    return next(name for name in lasting if name not in taken)


@pytest.mark.parametrize(("change", "message"), FAULTS)
def test_a_fault_is_found_and_no_other(document, change, message):
    """The line names the path and the reason; nothing faultless is blamed with it."""
    (fault,) = faults(document, change)

    assert message in fault


def some(document, *, is_reversal):
    """Index of a field that can reverse, or of one that cannot."""
    flags = [field["reversal"]["is_reversal"] for field in document["fields"]]
    return flags.index(is_reversal)


@pytest.mark.parametrize(
    "name", ["trigger", "semantics_before", "semantics_after", "reversal_reason"]
)
def test_a_reversal_needs_its_whole_account(document, name):
    index = some(document, is_reversal=True)
    (fault,) = faults(document, put("fields", index, "reversal", name, " "))

    assert f".reversal.{name}: expected a sentence, because is_reversal is True" in fault


@pytest.mark.parametrize(
    "name", ["trigger", "semantics_before", "semantics_after", "reversal_reason"]
)
def test_without_reversal_there_is_nothing_to_account_for(document, name):
    index = some(document, is_reversal=False)
    (fault,) = faults(document, put("fields", index, "reversal", name, "It rains."))

    assert f".reversal.{name}: expected an empty string, because is_reversal is False" in fault


def test_the_rationale_stands_exactly_where_nothing_reverses(document):
    reversing, lasting = (some(document, is_reversal=flag) for flag in (True, False))
    change = several(
        put("fields", reversing, "reversal", "reversal_rationale", "It rains."),
        put("fields", lasting, "reversal", "reversal_rationale", ""),
    )

    assert 2 == len(faults(document, change))


def test_means_of_a_field_that_presses_downwards_must_fall(document):
    """The order of the populations follows the pressure direction."""
    index = next(i for i, f in enumerate(document["fields"]) if f["pressure_direction"] == -1)
    found = faults(document, population(index, **RISING))

    assert any("the means must fall from low to high" in fault for fault in found)


def test_an_id_that_is_not_lower_case_is_found(document):
    """Renamed throughout, so that nothing else is wrong."""
    text = yaml.safe_dump(document).replace("gp_referrals_pending", "GP-referrals")
    domain, found = domain_files.parse(yaml.load(text, yaml.CSafeLoader))

    assert domain is not None
    assert ["fields.GP-referrals: the id is not lower case with underscores"] == found


def test_twice_the_same_field_id_is_found(document):
    found = faults(document, lambda d: d.fields.append({**d.fields[0], "display_name": "Another",
                                                        "description": "Another."}))  # fmt: skip

    assert ["fields.field_id: 'ed_waiting_for_bed' stands 2 times; each must be unique"] == found


def test_a_small_catalog_is_found(document):
    """24 fields are enough, 23 are not."""
    unused = whole("constraints", []), whole("ordered_triples", []), whole("events", [])
    bare = several(*unused, whole("replacement_groups", []))
    enough = several(bare, lambda d: d.fields.__delitem__(slice(24, None)))
    few = several(bare, lambda d: d.fields.__delitem__(slice(23, None)))

    assert [] == faults(document, enough)
    assert ["fields: expected at least 24, got 23; author more"] == faults(document, few)


def test_a_handoff_needs_one_pressure_direction(document):
    """A member that presses the other way cannot take the slot."""
    member = document["replacement_groups"][0]["members"][0]
    index = [f["field_id"] for f in document["fields"]].index(member)
    change = several(
        put("fields", index, "pressure_direction", -1),
        population(index, low=[3.0, 3.0], mixed=[3.0, 3.0], high=[3.0, 3.0]),
        put("fields", index, "typical_range", [0, document["fields"][index]["maximum"]]),
    )
    found = faults(document, change)

    assert found
    assert all(".members: expected one pressure direction" in fault for fault in found)


def test_handoffs_are_authored_in_both_directions(document):
    """Twice the same direction is not enough, and events of the other one have nothing to stand on."""
    group = document["replacement_groups"][0]
    found = faults(
        document, put("replacement_groups", 0, "transitions", [group["transitions"][0]] * 2)
    )

    assert ".transitions: expected exactly one in each direction" in found[0]
    assert all("is not a transition of a replacement group" in fault for fault in found[1:])


def test_an_event_needs_a_handoff_and_a_third_field(document):
    """A pair that no group has, and a reversal of one of the two that change places."""
    event = document["events"][0]
    stray = faults(document, put("events", 0, "incoming", "gp_referrals_pending"))
    same = faults(document, put("events", 0, "reversed", event["outgoing"]))

    assert any("is not a transition of a replacement group" in fault for fault in stray)
    assert any(".reversed: expected a field other than the two" in fault for fault in same)
