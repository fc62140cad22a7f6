"""Stage 4: ordered triples. Which three fields can settle the decision one after another?

Source: paper, appendix prompt on lexicographic groups; the words are ours.
"""

from typing import Any, Final

from adaexplore.authoring import drafts, shapes, validators
from adaexplore.authoring.calls import Call
from adaexplore.authoring.drafts import Draft
from adaexplore.authoring.ideas import Plan

CONTRACT: Final = """\
You look for rules of priority among the fields of a recurring decision. Such a rule names three \
fields in order. The first is read alone: if its reading is decisive, it settles how far to \
intervene, whatever the others say. If it is not, the second is read in the same way. If that is not \
decisive either, the third has the last word.

What makes three fields fit
- All three are cues for the same decision, at the same time, on the same ladder of actions.
- Each has readings, realistic and not rare, that settle the matter alone, with no arithmetic \
between fields.
- Each has readings that leave the matter open, so that the next cue is needed.
- They tell different things. Not together: synonyms and restatements; a field that means something \
only when computed with another; fields that never exist in the same case; a set in which nobody \
ever leaves a case open.
The order need not be the only defensible policy; it must be one that a sensible organisation could \
adopt and that nobody in the trade would find absurd.

How to search
1. For each field note the part it can play (how bad now, how much is at stake, how likely, how \
soon, which way it is going, how well it mends itself, how sure we are), and which readings settle \
and which leave open.
2. Gather fields around shared concerns. These gatherings overlap; the members need not measure one \
thing, and it is no flaw that two of them may disagree.
3. Find strong pairs: two fields, neither redundant, that can well be read one after the other.
4. To each pair add every third field that can settle what the pair leaves open, not just the first \
that comes to mind.
5. Go back to fields that you used little or not at all and try to connect them; force none.
6. Of each set of three keep the orders in which each place has a reason of its own. One set may \
carry several orders; the same sentence with the names moved round is no reason, and all six orders \
by default are wrong.
7. Sweep over the whole once more: concerns, pairs used again, neglected fields.
Find as many as the catalog truly carries; do not divide it into separate threes, and do not stop at \
a round number. It is most useful when two triples differ only in one place, where one field can \
stand in for another: include both wherever both stand up.

Output: a flat list. `order_id`: lower case with underscores, its own for every order. `fields`: \
three supplied ids, first to last. `rationale`: one sentence that fits this order and no other."""

SCHEMA: Final = shapes.record(
    ordered_triples=shapes.array(
        shapes.record(
            order_id=shapes.text(),
            fields=shapes.array(shapes.text(), least=3, most=3),
            rationale=shapes.text(),
        ),
        least=1,
    )
)
_KEYS: Final = (
    "field_id", "display_name", "type", "unit", "description", "pressure_direction",
    "effect_strength", "typical_range",
)  # fmt: skip


def calls(draft: Draft, plan: Plan) -> list[Call]:
    """One call: all triples."""
    del plan  # triples cross the whole catalog

    def check(answer: Any) -> list[str]:
        return list(validators.triples(drafts.domain(merged(draft, [answer]))))

    payload = {"scenario": drafts.scenario(draft), "fields": drafts.catalog(draft, _KEYS)}
    return [Call(name="04-triples", contract=CONTRACT, payload=payload, schema=SCHEMA, check=check)]


def merged(draft: Draft, answers: list[Any]) -> Draft:
    """The draft with its ordered triples."""
    return {**draft, "ordered_triples": answers[0]["ordered_triples"]}
