"""Stage 1: the field inventory. Which numbers would an expert look at before deciding?

Source: paper, appendix prompt on the inventory; the words are ours.
"""

from typing import Any, Final

from adaexplore.authoring import drafts, shapes, validators
from adaexplore.authoring.calls import Call
from adaexplore.authoring.drafts import Draft
from adaexplore.authoring.ideas import Plan

CONTRACT: Final = """\
You draw up the catalog of numeric measurements for a recurring decision. The user gives you the \
setting: who decides, the question, and four actions on one ladder of rising intervention.

What to collect
- Every number that somebody in this role could really have in front of them before deciding, and \
that would make stronger or weaker intervention more sensible. Look in many places: the state now, \
what is exposed, load and work in progress, times, quality, exceptions, hazards, how fast things \
recover by themselves, forecasts and trends, finished history, and subgroups that answer a question \
of their own. At least {least} fields; more where the setting carries them.
- A field may describe the item that is decided on, or anything that bears on it: its route, queue, \
cohort, surroundings, or the system around it.
- Numbers that foretell loss, decline, urgency or unaided recovery within the horizon belong here, \
as long as they do not depend on which action is taken.

What to leave out
- Switches that merely name an operating regime; permission or ability to carry out an action; what \
a stronger action would cause; forecasts that presuppose an action; how the case turned out.
- Fields where the middle is best and both ends are bad, and any field whose meaning turns at some \
value of its own.
- Doubles: synonyms, exact complements, fixed conversions of one another, totals that follow from \
other listed fields. Of each such set keep one. Each field must tell something that no other does.

One direction each
- With everything else about the circumstances fixed, a larger value must point the same way over \
the entire legal range: 1 where it never weakens the case for intervening, -1 where it never \
strengthens it. Give the direction under the most usual circumstances.
- It is welcome, and you should look for it, that some plain event in the world would turn a \
field's direction round as a whole. Neutral readings are the best hunting ground: levels, flows and \
signed rates, progress, throughput, time elapsed or left, availability, forecasts. That a direction \
could turn under other circumstances does not make it unclear now.
- Look also for different measurements between which evidence could pass: when a procedure or source \
changes, one of them takes over the part that the other played.

How to write a field
- `field_id`: lower case with underscores, never to change. `display_name`: short. `type`: integer \
or decimal. `unit`: exact.
- `description`: exactly one quantity and how to read its value. Where needed say what is taken from \
what, in which order; numerator, denominator and time base of a share or rate; event and horizon of \
a probability or forecast; population, window and aggregation of a statistic.
- Where a quantity may not exist (nothing was started, so it has no duration), say that it is then \
undefined; do not let a number such as 0 stand for that.
- `pressure_direction`: 1 or -1.

Before you answer, go over the list once more: wide coverage, complete entries, no two fields that \
could be told from one another only by name.""".replace("{least}", str(validators.MIN_FIELDS))

SCHEMA: Final = shapes.record(
    fields=shapes.array(
        shapes.record(
            field_id=shapes.text(),
            display_name=shapes.text(),
            type=shapes.choice("integer", "decimal"),
            unit=shapes.text(),
            description=shapes.text(),
            pressure_direction=shapes.choice(1, -1),
        )
    )
)


def calls(draft: Draft, plan: Plan) -> list[Call]:
    """One call: the whole inventory."""
    del plan  # one question, whatever the sizes

    def check(answer: Any) -> list[str]:
        return list(validators.inventory(drafts.domain(merged(draft, [answer]))))

    payload = {"scenario": drafts.scenario(draft)}
    return [
        Call(name="01-inventory", contract=CONTRACT, payload=payload, schema=SCHEMA, check=check)
    ]


def merged(draft: Draft, answers: list[Any]) -> Draft:
    """The draft with its fields."""
    return {**draft, "fields": answers[0]["fields"]}
