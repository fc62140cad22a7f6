"""Stage 7: events. One happening that explains one exact compound change.

A stage of ours: the paper names the texts but nothing that writes them. The changes are proposed
here, from handoffs, reversal accounts and families, so that each family gets enough of them, spread
over many pairs and many reversed fields. The model writes the event, or declines a change that no
single happening could bring about. Declined changes are left out.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from adaexplore.authoring import drafts, shapes, validators
from adaexplore.authoring.calls import Call
from adaexplore.authoring.drafts import Draft
from adaexplore.authoring.ideas import Plan
from adaexplore.benchmark.world import search
from adaexplore.benchmark.world.domains import Domain, Event
from adaexplore.benchmark.world.fields import FAMILIES

CONTRACT: Final = """\
The decision rule in a recurring decision is going to change in two ways at the same moment: one \
field hands its place to another, and a third field, which stays, comes to argue the other way. For \
each proposed change you write the one event that brings both about, or you decline.

A proposal tells you: the `outgoing` field and the `incoming` one that takes its place, with the \
handover that was worked out for them; the `reversed` field, with the account of how its meaning can \
turn; all three with their descriptions. These are material. The event must produce this exact \
change: no other field enters, leaves or turns, and the directions are the given ones.

`trigger_event`: one concrete occurrence that people on site would notice and could date, in one or \
two sentences. Not two occurrences joined by "and": if the handover and the turn have separate \
causes, it must be plain how both follow from one thing. It depends neither on the action chosen in \
a case nor on the values of the fields.
`change_reason`: one or two sentences that derive both halves: why, after this event, the incoming \
field is the better evidence in that place; and why a larger reading of the reversed field now \
argues the other way.
Write as one writes in the trade: facts and operations, not the vocabulary of this task (rule, \
place, slot, field, direction, reversal, drift).

Decline where no single believable event does both: `coherent` false, both texts empty, and one \
sentence in `decline_reason`. Declining a forced story is better than telling it. Otherwise \
`coherent` is true and `decline_reason` empty. Answer for every `change_id` exactly once."""

SCHEMA: Final = shapes.record(
    events=shapes.array(
        shapes.record(
            change_id=shapes.text(),
            coherent=shapes.boolean(),
            trigger_event=shapes.text(),
            change_reason=shapes.text(),
            decline_reason=shapes.text(),
        )
    )
)
SEPARATOR: Final = "--"
"""Between the field ids of a change id; no field id can hold it."""
_FIELD_KEYS: Final = ("field_id", "display_name", "unit", "description", "pressure_direction")


def proposals(draft: Draft, plan: Plan) -> list[Event]:
    """Changes to write events for, texts empty and ids made of their fields, in a seeded order.

    Every family that can use that many has at least `plan.events_each`; a change serves each family
    that its fields are eligible for.
    """
    domain = drafts.domain({**draft, "events": []})
    everything = replace(domain, events=tuple(_combinations(domain)))
    chosen: list[Event] = []
    # The family that can use fewest comes first, because what serves it often serves the others.
    for family in reversed(FAMILIES):
        searcher = search.Searcher(
            domain=everything, family=family, seed=plan.seed, parameters=search.Parameters()
        )
        usable = searcher.usable_events()
        kept = [event for event in chosen if event in set(usable)]
        chosen += _spread(usable, kept, plan.events_each)
    return chosen


def _combinations(domain: Domain) -> Iterable[Event]:
    turning = [field.field_id for field in domain.fields if field.reversal.is_reversal]
    for group in domain.replacement_groups:
        for handoff in group.transitions:
            pair = (handoff.outgoing, handoff.incoming)
            for turned in (field_id for field_id in turning if field_id not in pair):
                yield Event(
                    event_id=SEPARATOR.join((*pair, turned)), outgoing=pair[0], incoming=pair[1],
                    reversed=turned, trigger_event="", change_reason="",
                )  # fmt: skip


def _spread(usable: Iterable[Event], kept: list[Event], wanted: int) -> list[Event]:
    """Further events, up to `wanted` with those kept: rarest pair first, then rarest turn."""
    rest = [event for event in usable if event not in set(kept)]
    pairs = Counter((event.outgoing, event.incoming) for event in kept)
    turns = Counter(event.reversed for event in kept)
    added: list[Event] = []
    while rest and len(kept) + len(added) < wanted:
        best = min(rest, key=lambda e: (pairs[e.outgoing, e.incoming], turns[e.reversed]))
        rest.remove(best)
        added.append(best)
        pairs[best.outgoing, best.incoming] += 1
        turns[best.reversed] += 1
    return added


def calls(draft: Draft, plan: Plan) -> list[Call]:
    """A call for every `plan.events_a_call` proposed changes."""
    changes, size = proposals(draft, plan), plan.events_a_call
    batches = [changes[i : i + size] for i in range(0, len(changes), size)]
    return [_call(draft, number, batch) for number, batch in enumerate(batches, start=1)]


def _call(draft: Draft, number: int, batch: list[Event]) -> Call:
    def check(answer: Any) -> list[str]:
        given = [event["change_id"] for event in answer["events"]]
        wrong = drafts.once_each((change.event_id for change in batch), given, "events")
        if not wrong:
            wrong = [fault for event in answer["events"] for fault in _account(event)]
        return wrong or list(validators.events(drafts.domain(merged(draft, [answer]))))

    payload = {
        "scenario": drafts.scenario(draft),
        "changes": [_told(draft, change) for change in batch],
    }
    name = f"07-events-{number}"
    return Call(name=name, contract=CONTRACT, payload=payload, schema=SCHEMA, check=check)


def _account(event: dict[str, Any]) -> Iterable[str]:
    texts = ("trigger_event", "change_reason")
    filled, empty = (
        (texts, ("decline_reason",)) if event["coherent"] else (("decline_reason",), texts)
    )
    where = f"events.{event['change_id']}"
    for name in filled:
        if not event[name].strip():
            yield f"{where}.{name}: expected text, because coherent is {event['coherent']}"
    for name in empty:
        if event[name].strip():
            yield f"{where}.{name}: expected nothing, because coherent is {event['coherent']}"


def _told(draft: Draft, change: Event) -> dict[str, Any]:
    """One proposal as the model reads it."""
    catalog = {field["field_id"]: field for field in draft["fields"]}
    shown = {
        role: {key: catalog[getattr(change, role)][key] for key in _FIELD_KEYS}
        for role in ("outgoing", "incoming", "reversed")
    }
    handover = next(
        handoff
        for group in draft["replacement_groups"]
        for handoff in group["transitions"]
        if (handoff["outgoing"], handoff["incoming"]) == (change.outgoing, change.incoming)
    )
    account = catalog[change.reversed]["reversal"]
    return {"change_id": change.event_id, **shown, "handover": handover, "turn": account}


def merged(draft: Draft, answers: list[Any]) -> Draft:
    """The draft with an event for every change that was not declined."""
    told = [e for answer in answers for e in answer["events"] if e["coherent"]]
    events = []
    for number, event in enumerate(told, start=1):
        outgoing, incoming, turned = event["change_id"].split(SEPARATOR)
        events.append(
            {
                "event_id": f"change_{number:03d}", "outgoing": outgoing, "incoming": incoming,
                "reversed": turned, "trigger_event": event["trigger_event"],
                "change_reason": event["change_reason"],
            }
        )  # fmt: skip
    return {**draft, "events": events}
