"""Stage 2: strength, eligible families, and what would turn a field's direction.

One call for the whole catalog, because strengths mean something only against each other. Source:
paper, appendix prompt on field semantics; the words are ours.
"""

from typing import Any, Final

from adaexplore.authoring import drafts, shapes, validators
from adaexplore.authoring.calls import Call
from adaexplore.authoring.drafts import Draft
from adaexplore.authoring.ideas import Plan

FAMILIES: Final = {
    "additive_aggregation": "every field adds its weighted share, and the sum decides",
    "conjunctive_gating": "each field is a gate to be passed; the one that is least met decides",
    "disjunctive_sufficiency": "any single field can be enough; the one that is most met decides",
}
"""What the three families mean that a field can be eligible for."""

CONTRACT: Final = """\
The catalog of fields for a recurring decision is settled. For each field you state how much it \
weighs, in which kinds of decision rule it can serve, and whether an event could turn its direction. \
Use `field_id` exactly as supplied, each one once; it is the only link to the field.

`effect_strength`, 0.1 to 1.0: how much the field matters beside the others in this catalog. It is a \
relative scale: 0.1 says "less than the rest", not "nothing". Spread the values over the scale so \
that they tell fields apart.

`eligible_families`, one or more of the supplied names: a field that contributes by degrees fits \
additive_aggregation; one that makes a sensible condition to be met together with others fits \
conjunctive_gating; one whose severe reading would be reason enough alone fits \
disjunctive_sufficiency. Decide from what the field measures.

`is_reversal`: true where some event that could really occur here makes a larger reading of this very \
measurement argue the other way on the same ladder of actions. The reading keeps its definition; the \
circumstances change what it says. Examples of the kind: deep snow on a slope ordinarily argues for \
closing the pass, but once a rescue route over packed snow is opened, more of it bears the vehicles; \
a long queue at a counter ordinarily argues for more staff, but during an announced drill it shows \
that people followed the instruction. The two pulls need not be equally strong; both must be real.
Not a reversal: the field stops mattering, becomes undefined or unreadable; an action becomes \
cheaper, harder, allowed or forbidden. The event must not be the decision itself, and must not \
presuppose what value the field has. Think through several events before you answer false.

Where true, one concrete sentence each, and `reversal_rationale` empty:
- `trigger`: the event or changed condition;
- `semantics_before`: what a larger reading argues for ordinarily; it must agree with \
`pressure_direction`;
- `semantics_after`: what the same larger reading argues for once the trigger has happened;
- `reversal_reason`: why the change turns the meaning and does not just weaken it.
Where false, these four are empty strings, and `reversal_rationale` names the events that you weighed \
and why the direction survives each of them.

Before you answer: every field once, strengths comparable across the catalog, families true to their \
meaning, each account complete."""

_STORY: Final = ("trigger", "semantics_before", "semantics_after", "reversal_reason")
SCHEMA: Final = shapes.record(
    fields=shapes.array(
        shapes.record(
            field_id=shapes.text(),
            effect_strength=shapes.number(),
            eligible_families=shapes.array(shapes.choice(*FAMILIES)),
            is_reversal=shapes.boolean(),
            **{name: shapes.text() for name in _STORY},
            reversal_rationale=shapes.text(),
        )
    )
)
_KEYS: Final = ("field_id", "display_name", "type", "unit", "description", "pressure_direction")


def calls(draft: Draft, plan: Plan) -> list[Call]:
    """One call: the whole catalog."""
    del plan  # strengths are comparable only within one answer

    def check(answer: Any) -> list[str]:
        given = [field["field_id"] for field in answer["fields"]]
        wrong = drafts.once_each((f["field_id"] for f in draft["fields"]), given, "fields")
        return wrong + list(validators.semantics(drafts.domain(merged(draft, [answer]))))

    payload = {
        "scenario": drafts.scenario(draft),
        "families": FAMILIES,
        "fields": drafts.catalog(draft, _KEYS),
    }
    return [
        Call(name="02-semantics", contract=CONTRACT, payload=payload, schema=SCHEMA, check=check)
    ]


def merged(draft: Draft, answers: list[Any]) -> Draft:
    """The draft with strength, families and reversal account of each field."""
    additions = {}
    for field in answers[0]["fields"]:
        account = ("is_reversal", *_STORY, "reversal_rationale")
        additions[field["field_id"]] = {
            "effect_strength": field["effect_strength"],
            "eligible_families": field["eligible_families"],
            "reversal": {name: field[name] for name in account},
        }
    return drafts.extended(draft, additions)
