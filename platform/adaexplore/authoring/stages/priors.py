"""Stage 3: numeric priors. Legal range, typical range, and three Beta populations of each field.

Asked in batches: every call sees the whole catalog, so that all fields are set in the same world,
and authors some of it. Source: paper, appendix prompt on numeric priors; the words are ours.
"""

from typing import Any, Final

from adaexplore.authoring import drafts, shapes, validators
from adaexplore.authoring.calls import Call
from adaexplore.authoring.drafts import Draft
from adaexplore.authoring.ideas import Plan
from adaexplore.benchmark.world.fields import PROFILES

CONTRACT: Final = """\
The fields of a recurring decision are settled in meaning, direction, weight and families; none of \
that is yours to alter. You give numbers to the fields listed under `assigned`, each exactly once. \
The full catalog stands beside them so that all batches describe one and the same world: its quiet \
days, its mixed days and its strained days.

For each assigned field:
1. `minimum` and `maximum`, the legal range in the field's own unit, and `typical_range`, a narrower \
one inside it, for ordinary days, lower end first. Lay the legal \
range around what quiet, mixed and strained days would show, not around what is thinkable: a range \
that squeezes all usual values into a corner is useless. Whole bounds for integer fields.
2. `populations`: how values are spread when the tendency to intervene is `low`, `mixed` or `high`. \
Each is a Beta distribution of x = (value - minimum) / (maximum - minimum), with alpha > 0, beta > 0 \
and alpha + beta from 4 to 12. Its mean is m = alpha / (alpha + beta), which is the value \
minimum + m * (maximum - minimum).
3. Order of the means: where pressure_direction is 1 they do not fall from low over mixed to high; \
where it is -1 they do not rise. As values, the means of low and of mixed lie inside the typical \
range. The mean of high may leave it where strained days do, and comes near a legal limit only if \
such days are like that.
4. alpha + beta says how much cases of one kind differ among each other: choose it field by field; no \
single pair for all.
5. `parameter_basis`: one or two sentences on why these ranges, centres and spreads. The pairs are \
the authority: do not write computed means into the prose.

Work the three means out for every field before you answer, as x and as values. Check their order \
against the direction, check low and mixed against the typical range, and check that the basis tells \
of the same populations.
Alphas and betas are easier to get right when the wanted mean comes first: mean times concentration \
is alpha, the remainder is beta."""

_PAIR: Final = shapes.record(alpha=shapes.number(), beta=shapes.number())
SCHEMA: Final = shapes.record(
    fields=shapes.array(
        shapes.record(
            field_id=shapes.text(),
            minimum=shapes.number(),
            maximum=shapes.number(),
            typical_range=shapes.array(shapes.number(), least=2, most=2),
            populations=shapes.record(**dict.fromkeys(PROFILES, _PAIR)),
            parameter_basis=shapes.text(),
        )
    )
)
_KEYS: Final = (
    "field_id", "display_name", "type", "unit", "description", "pressure_direction",
    "effect_strength",
)  # fmt: skip


def calls(draft: Draft, plan: Plan) -> list[Call]:
    """A call for every `plan.fields_a_call` fields."""
    ids = [field["field_id"] for field in draft["fields"]]
    batches = [ids[i : i + plan.fields_a_call] for i in range(0, len(ids), plan.fields_a_call)]
    return [_call(draft, number, batch) for number, batch in enumerate(batches, start=1)]


def _call(draft: Draft, number: int, batch: list[str]) -> Call:
    def check(answer: Any) -> list[str]:
        wrong = drafts.once_each(batch, (f["field_id"] for f in answer["fields"]), "fields")
        return wrong + list(validators.priors(drafts.domain(merged(draft, [answer]))))

    payload = {
        "scenario": drafts.scenario(draft),
        "catalog": drafts.catalog(draft, _KEYS),
        "assigned": batch,
    }
    name = f"03-priors-{number}"
    return Call(name=name, contract=CONTRACT, payload=payload, schema=SCHEMA, check=check)


def merged(draft: Draft, answers: list[Any]) -> Draft:
    """The draft with the numbers of every answered field."""
    additions = {}
    for field in (field for answer in answers for field in answer["fields"]):
        pairs = {
            name: [field["populations"][name]["alpha"], field["populations"][name]["beta"]]
            for name in PROFILES
        }
        kept = {key: field[key] for key in ("minimum", "maximum", "typical_range")}
        basis = {"populations": pairs, "parameter_basis": field["parameter_basis"]}
        additions[field["field_id"]] = {**kept, **basis}
    return drafts.extended(draft, additions)
