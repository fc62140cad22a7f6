"""Stage 5: feasibility constraints. Which combinations of values cannot be?

The schema holds the whole grammar as named forms. Source: paper, appendix prompt on feasibility and
its expression grammar; the words are ours.
"""

from typing import Any, Final

from adaexplore.authoring import drafts, shapes, validators
from adaexplore.authoring.calls import Call
from adaexplore.authoring.drafts import Draft
from adaexplore.authoring.ideas import Plan
from adaexplore.benchmark.world.constraints import COMPARISONS, MAX_ARGS

CONTRACT: Final = """\
You compare the fields of a recurring decision with each other and write down which joint values are \
impossible, as expressions that a program evaluates.

What counts
- Only what is true by definition, by accounting, because one population contains another, or \
because a physical capacity cannot be exceeded: a part is at most its whole, a union at least each \
of its members. If you can think of one legitimate record that breaks the relation, leave it out.
- Correlation, cause and effect, usual movement together and usual behaviour are not constraints.
- Judge from the descriptions. Similar names prove neither equality nor containment nor complement.
- No constraint at all is a proper answer: an empty list.

What does not belong
- Anything on one field alone, legal ranges included, also as a precondition of a relation; whether \
a value is present, missing, undefined or not applicable. A constraint is applied only to \
records in which all its fields have numbers.

Grammar (no nesting beyond it)
- atom: {"field": id}
- term: an atom; {"const": number}; or {"op": ..., "args": [...]} with atoms as arguments, 2 to 8 \
of them for add and mul, exactly 2 for sub and div
- numeric: a term, or one such node over terms
- comparison: {"op": "le" | "lt" | "ge" | "gt" | "eq", "left": numeric, "right": numeric}
- clause: a comparison; {"op": "not", "arg": comparison}; or {"op": "and" | "or", "args": [2 to 8 \
comparisons]}
- expression: a clause; {"op": "not", "arg": clause}; {"op": "and" | "or", "args": [2 to 8 clauses]}; \
or {"op": "implies", "if": clause, "then": clause}
Write a single comparison where that says it; for a real condition use implies rather than a \
disguised or.

Units: what is added, subtracted or compared must be of one dimension, after an exact conversion \
where one is needed; products and quotients only where the result can be compared. A count is never \
held against a rate or a duration.

Each constraint states one independent relation; what could be two is two. Of constraints that say \
the same after reordering or simplifying keep the plainest; that one implies another is no reason to \
drop it.
`constraint_id`: lower case with underscores, never used twice. `description`: one sentence on why it \
cannot be otherwise. At the end try every tree on its border cases, and see that it says just what \
the description says."""


def _node(args: str, *, many: bool) -> shapes.Schema:
    operators = ("add", "mul") if many else ("sub", "div")
    items = shapes.array(shapes.reference(args), least=2, most=MAX_ARGS if many else 2)
    return shapes.record(op=shapes.choice(*operators), args=items)


def _joined(args: str) -> shapes.Schema:
    items = shapes.array(shapes.reference(args), least=2, most=MAX_ARGS)
    return shapes.record(op=shapes.choice("and", "or"), args=items)


def _negated(arg: str) -> shapes.Schema:
    return shapes.record(op=shapes.choice("not"), arg=shapes.reference(arg))


_FORMS: Final = {
    "atom": shapes.record(field=shapes.text()),
    "term": shapes.either(
        shapes.reference("atom"),
        shapes.record(const=shapes.number()),
        _node("atom", many=True),
        _node("atom", many=False),
    ),
    "numeric": shapes.either(
        shapes.reference("term"), _node("term", many=True), _node("term", many=False)
    ),
    "comparison": shapes.record(
        op=shapes.choice(*COMPARISONS),
        left=shapes.reference("numeric"),
        right=shapes.reference("numeric"),
    ),
    "clause": shapes.either(
        shapes.reference("comparison"), _negated("comparison"), _joined("comparison")
    ),
    "expression": shapes.either(
        shapes.reference("clause"),
        _negated("clause"),
        _joined("clause"),
        shapes.record(
            **{
                "op": shapes.choice("implies"),
                "if": shapes.reference("clause"),
                "then": shapes.reference("clause"),
            }
        ),
    ),
}
SCHEMA: Final = {
    **shapes.record(
        feasibility_constraints=shapes.array(
            shapes.record(
                constraint_id=shapes.text(),
                description=shapes.text(),
                expression=shapes.reference("expression"),
            )
        )
    ),
    "$defs": _FORMS,
}
_KEYS: Final = ("field_id", "display_name", "type", "unit", "description", "minimum", "maximum")


def calls(draft: Draft, plan: Plan) -> list[Call]:
    """One call: all constraints."""
    del plan  # relations cross the whole catalog

    def check(answer: Any) -> list[str]:
        return list(validators.feasibility(drafts.domain(merged(draft, [answer]))))

    payload = {"scenario": drafts.scenario(draft), "fields": drafts.catalog(draft, _KEYS)}
    return [
        Call(name="05-feasibility", contract=CONTRACT, payload=payload, schema=SCHEMA, check=check)
    ]


def merged(draft: Draft, answers: list[Any]) -> Draft:
    """The draft with its constraints."""
    return {**draft, "constraints": answers[0]["feasibility_constraints"]}
