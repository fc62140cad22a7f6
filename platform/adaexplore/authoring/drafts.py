"""Drafts: the domain document while it grows, and how a half-authored one is judged.

The validators judge a whole domain. A draft is made whole with neutral stand-ins for what later
stages have yet to author; a stage then runs the validator of its own part only, so the stand-ins
are never judged.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import TypeAdapter

from adaexplore.benchmark.world.domains import Domain

Draft = dict[str, Any]
"""A domain document in the form of a domain file, as far as it has been authored."""

_DOMAIN: Final = TypeAdapter(Domain)
_KEYS: Final = (
    "domain_id", "title", "role", "question", "actions", "fields", "constraints",
    "ordered_triples", "replacement_groups", "capacity_findings", "events",
)  # fmt: skip
"""Keys of a domain file, in their order."""
_STAND_INS: Final[dict[str, Any]] = {
    "effect_strength": 0.5,
    "eligible_families": ["additive_aggregation", "conjunctive_gating", "disjunctive_sufficiency"],
    "reversal": {
        "is_reversal": False, "trigger": "", "semantics_before": "", "semantics_after": "",
        "reversal_reason": "", "reversal_rationale": "not yet authored",
    },
    "minimum": 0, "maximum": 100, "typical_range": [0, 100],
    "populations": {"low": [3, 3], "mixed": [3, 3], "high": [3, 3]},
    "parameter_basis": "not yet authored",
}  # fmt: skip


def domain(draft: Draft) -> Domain:
    """The draft as a domain, with stand-ins for what is not authored yet."""
    empty: Draft = {key: [] for key in _KEYS[5:]}
    whole = {**empty, "capacity_findings": "not yet authored", **draft}
    whole["fields"] = [{**_STAND_INS, **field} for field in whole["fields"]]
    return _DOMAIN.validate_python(whole, extra="forbid")


def ordered(draft: Draft) -> Draft:
    """The same draft with its keys in the order of a domain file."""
    return {key: draft[key] for key in _KEYS if key in draft}


def extended(draft: Draft, additions: Mapping[str, Mapping[str, Any]]) -> Draft:
    """The draft with further keys for fields, given by field id."""
    fields = [{**field, **additions.get(field["field_id"], {})} for field in draft["fields"]]
    return {**draft, "fields": fields}


def scenario(draft: Draft) -> dict[str, Any]:
    """The part that every stage is told: title, role, question and action ladder."""
    return {key: draft[key] for key in ("title", "role", "question", "actions")}


def catalog(draft: Draft, keys: Iterable[str]) -> list[dict[str, Any]]:
    """The fields with the named keys only, so that a stage sees what it needs."""
    wanted = tuple(keys)
    return [{key: field[key] for key in wanted} for field in draft["fields"]]


def once_each(expected: Iterable[str], given: Iterable[str], where: str) -> list[str]:
    """Faults of a list of ids that must name each expected one exactly once."""
    names, wanted = list(given), list(expected)
    missing = [name for name in wanted if name not in names]
    unknown = [name for name in dict.fromkeys(names) if name not in wanted]
    twice = [name for name in dict.fromkeys(names) if name in wanted and names.count(name) > 1]
    return [
        *(f"{where}: '{name}' is missing; answer for every id exactly once" for name in missing),
        *(
            f"{where}: '{name}' was not asked for; use the supplied ids as they are"
            for name in unknown
        ),
        *(
            f"{where}: '{name}' is answered {names.count(name)} times; once is right"
            for name in twice
        ),
    ]
