"""Stage 6: replacement groups. Between which two fields can evidence pass, and by what event?

Source: paper, appendix prompt on replacements; the words are ours.
"""

from typing import Any, Final

from adaexplore.authoring import drafts, shapes, validators
from adaexplore.authoring.calls import Call
from adaexplore.authoring.drafts import Draft
from adaexplore.authoring.ideas import Plan

CONTRACT: Final = """\
You search the settled catalog of a recurring decision for pairs of fields between which a place in \
the decision rule can pass. Some event that could really happen makes one field give up its place \
and gives the other a good reason to take it.

What makes a pair
- Both have the same `pressure_direction`, so that the place keeps its meaning for the ladder.
- The event makes the outgoing field unavailable, out of date, out of scope, less typical or no \
longer preferred for that purpose; and thanks to it the incoming field is at hand and telling enough, \
in agreement with what the outgoing one meant.
- The two need not be equal, nor equally good, nor of one type, unit, population or horizon. Those \
differences may be the very point.
Compare all pairs, in both directions, by what the fields describe and not by how they are named. \
Leave a pair out only if the two would contradict each other in the claimed circumstances, if they \
make sense only together, or if no coherent event can be found.

`relation_type`, honestly chosen:
- same_metric: two sources for one construct;
- different_horizon: one construct at other horizons or cut-off times;
- same_source: two views out of one governing system, between which a change of procedure or of \
authority switches;
- proxy_substitution: different constructs, each a fair stand-in for the concern that prevails in its \
circumstances.

For each pair
- `group_id` of its own, lower case with underscores; `members`: the two ids.
- `decision_role`: the part both can play, in a few words.
- `rationale`: the concern they share, the difference that matters, and why the handover works in \
spite of it. That one goes missing while the other is there is not a rationale.
- `source_contrast`: in brief, how the two come about.
- `authority_by_field`: for each member once, `field_id` and who or what vouches for it.
- `coupling_strength`: 0 to 0.6, how strongly the two move together.
- `effective_scope`: for which objects or population, at which step or decision, and within which \
time or authority the handover holds. Names of rule families do not belong here.
- `transitions`: exactly two, one in each direction, each with `outgoing`, `incoming`, its own \
`trigger`, `relinquish_reason` (why the one gives up the place), `take_reason` (what speaks for the \
other; never just that the first is gone), `duration` and `ending_condition`. Each direction may come \
from an event of quite another kind, and one may be much rarer.

Fields may recur in several pairs. Return every pair that holds. `capacity_findings`: in a few \
sentences, how you searched and which near pairs failed for lack of any coherent handover. If the \
list stays empty, say there for the strongest candidates why."""

_HANDOFF: Final = (
    "outgoing", "incoming", "trigger", "relinquish_reason", "take_reason", "duration",
    "ending_condition",
)  # fmt: skip
SCHEMA: Final = shapes.record(
    replacement_groups=shapes.array(
        shapes.record(
            group_id=shapes.text(),
            members=shapes.array(shapes.text(), least=2, most=2),
            relation_type=shapes.choice(
                "same_metric", "different_horizon", "same_source", "proxy_substitution"
            ),
            decision_role=shapes.text(),
            rationale=shapes.text(),
            source_contrast=shapes.text(),
            authority_by_field=shapes.array(
                shapes.record(field_id=shapes.text(), authority=shapes.text()), least=2, most=2
            ),
            coupling_strength=shapes.number(),
            effective_scope=shapes.text(),
            transitions=shapes.array(
                shapes.record(**{name: shapes.text() for name in _HANDOFF}), least=2, most=2
            ),
        )
    ),
    capacity_findings=shapes.text(),
)
_KEYS: Final = (
    "field_id", "display_name", "type", "unit", "description", "pressure_direction",
    "effect_strength", "eligible_families",
)  # fmt: skip


def calls(draft: Draft, plan: Plan) -> list[Call]:
    """One call: all groups."""
    del plan  # pairs cross the whole catalog

    def check(answer: Any) -> list[str]:
        whole = drafts.domain(merged(draft, [answer]))
        found = list(validators.replacements(whole))
        if not answer["capacity_findings"].strip():
            found.append("capacity_findings: expected an account of the search, got nothing")
        return found

    payload = {"scenario": drafts.scenario(draft), "fields": drafts.catalog(draft, _KEYS)}
    return [
        Call(name="06-replacements", contract=CONTRACT, payload=payload, schema=SCHEMA, check=check)
    ]


def merged(draft: Draft, answers: list[Any]) -> Draft:
    """The draft with its replacement groups and the findings of the search."""
    groups = [
        {
            **group,
            "authority_by_field": {
                a["field_id"]: a["authority"] for a in group["authority_by_field"]
            },
        }
        for group in answers[0]["replacement_groups"]
    ]
    findings = answers[0]["capacity_findings"]
    return {**draft, "replacement_groups": groups, "capacity_findings": findings}
