"""Validators: what each authoring stage must satisfy, as pure functions.

Each returns a list of faults, `path: what is wrong; how to mend it`, empty when all is well. The
shape of the document (keys, types, list lengths) has been checked before. Source: paper, appendix
prompts of stages 1 to 6.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from adaexplore.authoring import units
from adaexplore.benchmark.world import constraints
from adaexplore.benchmark.world.domains import Domain, Event, Handoff, ReplacementGroup
from adaexplore.benchmark.world.fields import PROFILES, Field

MIN_FIELDS: Final = 24
STRENGTH: Final = (0.1, 1.0)
CONCENTRATION: Final = (4.0, 12.0)
COUPLING: Final = (0.0, 0.6)
MAX_JOINED: Final = 8
"""Fields in one constraint; a relation of more is several, and its mixtures could not be tried."""
_ID: Final = re.compile(r"[a-z][a-z0-9_]*")
_TOLERANCE: Final = 1e-9


def faults(domain: Domain) -> list[str]:
    """Every fault of every stage, in the order of the stages."""
    checks: tuple[Callable[[Domain], Iterable[str]], ...] = (
        identity, inventory, semantics, priors, triples, feasibility, replacements, events,
    )  # fmt: skip
    return [fault for check in checks for fault in check(domain)]


def identity(domain: Domain) -> Iterable[str]:
    """The domain itself and its four actions."""
    if not _ID.fullmatch(domain.domain_id):
        yield f"domain_id: '{domain.domain_id}' is not lower case with underscores"
    expected = [f"action_{i}" for i in range(4)]
    if [action.action_id for action in domain.actions] != expected:
        yield f"actions: expected the ids {', '.join(expected)} in this order"
    yield from _texts("", domain, ("title", "role", "question", "capacity_findings"))
    for action in domain.actions:
        yield from _texts(f"actions.{action.action_id}.", action, ("display_name", "description"))


def inventory(domain: Domain) -> Iterable[str]:
    """Stage 1: enough fields, each distinct and described."""
    if len(domain.fields) < MIN_FIELDS:
        yield f"fields: expected at least {MIN_FIELDS}, got {len(domain.fields)}; author more"
    yield from _unique("fields.field_id", (f.field_id for f in domain.fields))
    yield from _unique("fields.display_name", (f.display_name.lower() for f in domain.fields))
    yield from _unique("fields.description", (f.description.lower() for f in domain.fields))
    for field in domain.fields:
        if not _ID.fullmatch(field.field_id):
            yield f"fields.{field.field_id}: the id is not lower case with underscores"
        yield from _texts(
            f"fields.{field.field_id}.", field, ("display_name", "unit", "description")
        )


def semantics(domain: Domain) -> Iterable[str]:
    """Stage 2: strength, families, and a full account of reversal or of its absence."""
    for field in domain.fields:
        where = f"fields.{field.field_id}"
        if not STRENGTH[0] <= field.effect_strength <= STRENGTH[1]:
            yield f"{where}.effect_strength: {field.effect_strength} is outside {STRENGTH}"
        if not field.eligible_families or "lexicographic_priority" in field.eligible_families:
            yield f"{where}.eligible_families: name at least one, and leave lexicographic to the triples"
        yield from _unique(f"{where}.eligible_families", field.eligible_families)
        yield from _reversal(field, f"{where}.reversal")


def _reversal(field: Field, where: str) -> Iterable[str]:
    account = field.reversal
    event = ("trigger", "semantics_before", "semantics_after", "reversal_reason")
    filled, empty = (
        (event, ("reversal_rationale",))
        if account.is_reversal
        else (("reversal_rationale",), event)
    )
    for name in filled:
        if not getattr(account, name).strip():
            yield f"{where}.{name}: expected a sentence, because is_reversal is {account.is_reversal}"
    for name in empty:
        if getattr(account, name).strip():
            yield f"{where}.{name}: expected an empty string, because is_reversal is {account.is_reversal}"


def priors(domain: Domain) -> Iterable[str]:
    """Stage 3: ranges in order, Beta populations in order and inside them."""
    for field in domain.fields:
        yield from _priors(field)


def _priors(field: Field) -> Iterable[str]:
    where = f"fields.{field.field_id}"
    low, high = field.typical_range
    if not (field.minimum <= low <= high <= field.maximum and field.minimum < field.maximum):
        yield (
            f"{where}: expected minimum <= typical_range[0] <= typical_range[1] <= maximum, got "
            f"{field.minimum}, {low}, {high}, {field.maximum}"
        )
        return
    if field.type == "integer" and (field.minimum % 1 or field.maximum % 1):
        yield f"{where}: an integer field needs whole bounds, got {field.minimum} and {field.maximum}"
    yield from _texts(f"{where}.", field, ("parameter_basis",))
    yield from _populations(field, f"{where}.populations")


def _populations(field: Field, where: str) -> Iterable[str]:
    means = {}
    for profile in PROFILES:
        alpha, beta = field.populations.beta(profile)
        if alpha <= 0.0 or beta <= 0.0 or not CONCENTRATION[0] <= alpha + beta <= CONCENTRATION[1]:
            yield f"{where}.{profile}: expected alpha, beta > 0 with a sum of 4 to 12, got {alpha}, {beta}"
            return
        means[profile] = alpha / (alpha + beta)
    ordered = [field.pressure_direction * means[profile] for profile in PROFILES]
    if not ordered[0] <= ordered[1] + _TOLERANCE or not ordered[1] <= ordered[2] + _TOLERANCE:
        order = "rise" if field.pressure_direction == 1 else "fall"
        yield f"{where}: the means must {order} from low to high; reorder the Beta pairs"
    for profile in ("low", "mixed"):
        raw = field.minimum + means[profile] * (field.maximum - field.minimum)
        low, high = field.typical_range
        if not low - _TOLERANCE <= raw <= high + _TOLERANCE:
            yield f"{where}.{profile}: its mean {raw:g} lies outside the typical range {low:g} to {high:g}"


def triples(domain: Domain) -> Iterable[str]:
    """Stage 4: ordered triples of distinct known fields, each with its rationale."""
    yield from _unique("ordered_triples.order_id", (t.order_id for t in domain.ordered_triples))
    yield from _unique(
        "ordered_triples.fields", (", ".join(t.fields) for t in domain.ordered_triples)
    )
    for triple in domain.ordered_triples:
        where = f"ordered_triples.{triple.order_id}"
        yield from _known(domain, where, triple.fields)
        if len(set(triple.fields)) != 3:
            yield f"{where}: expected three different fields, got {', '.join(triple.fields)}"
        yield from _texts(f"{where}.", triple, ("rationale",))


def feasibility(domain: Domain) -> Iterable[str]:
    """Stage 5: constraints in the grammar, over known fields, that ordinary values can satisfy."""
    yield from _unique("constraints.constraint_id", (c.constraint_id for c in domain.constraints))
    for constraint in domain.constraints:
        where = f"constraints.{constraint.constraint_id}"
        broken = constraints.faults(constraint.expression, where=f"{where}.expression")
        yield from broken
        if broken:
            continue
        names = constraints.fields(constraint.expression)
        unknown = list(_known(domain, where, sorted(names)))
        yield from unknown
        if len(names) < 2:
            yield f"{where}: expected a relation between fields; single ranges belong to the field"
        if len(names) > MAX_JOINED:
            yield f"{where}: expected at most {MAX_JOINED} fields, got {len(names)}; split it"
            continue
        if not unknown:
            named = {field.field_id: field.unit for field in domain.fields}
            yield from units.faults(constraint.expression, named, f"{where}.expression")
        # Without sound priors there are no means to try; they have faults of their own.
        sound = not unknown and not any(f for n in names for f in _priors(domain.catalog[n]))
        if sound and not _satisfiable(domain, constraint.expression):
            yield f"{where}: no mixture of the fields' population means satisfies it; check its sides"
        yield from _texts(f"{where}.", constraint, ("description",))
    texts = (
        constraints.to_text(c.expression)
        for c in domain.constraints
        if not constraints.faults(c.expression)
    )
    yield from _unique("constraints.expression", texts)


def _satisfiable(domain: Domain, expression: constraints.Expression) -> bool:
    """Whether some mixture of population means (each field at low, mixed or high) satisfies it."""
    names = sorted(constraints.fields(expression))
    centres = {name: _centres(domain.catalog[name]) for name in names}
    candidates: list[dict[str, int]] = [{}]
    for name in names:
        candidates = [{**c, name: value} for c in candidates for value in centres[name]]
    return any(constraints.holds(expression, candidate) for candidate in candidates)


def _centres(field: Field) -> list[int]:
    span = field.maximum - field.minimum
    means = [a / (a + b) for a, b in (field.populations.beta(profile) for profile in PROFILES)]
    return [field.to_hundredths(field.minimum + mean * span) for mean in means]


def replacements(domain: Domain) -> Iterable[str]:
    """Stage 6: two fields of one pressure direction, and both handoffs between them."""
    yield from _unique(
        "replacement_groups.group_id", (g.group_id for g in domain.replacement_groups)
    )
    pairs = (" and ".join(sorted(g.members)) for g in domain.replacement_groups)
    yield from _unique("replacement_groups.members", pairs)
    for group in domain.replacement_groups:
        where = f"replacement_groups.{group.group_id}"
        unknown = list(_known(domain, where, group.members))
        yield from unknown or _group(domain, group, where)


def _group(domain: Domain, group: ReplacementGroup, where: str) -> Iterable[str]:
    first, second = (domain.catalog[member] for member in group.members)
    if first.pressure_direction != second.pressure_direction:
        yield f"{where}.members: expected one pressure direction; the handoff must keep the slot's meaning"
    if not COUPLING[0] <= group.coupling_strength <= COUPLING[1]:
        yield f"{where}.coupling_strength: {group.coupling_strength} is outside {COUPLING}"
    if set(group.authority_by_field) != set(group.members):
        yield f"{where}.authority_by_field: expected one entry for each member"
    directions = {(t.outgoing, t.incoming) for t in group.transitions}
    if directions != {group.members, group.members[::-1]}:
        yield f"{where}.transitions: expected exactly one in each direction between the members"
    texts = ("decision_role", "rationale", "source_contrast", "effective_scope")
    yield from _texts(f"{where}.", group, texts)
    for handoff in group.transitions:
        names = tuple(name for name in Handoff.__dataclass_fields__)
        yield from _texts(f"{where}.transitions.{handoff.outgoing}.", handoff, names)


def events(domain: Domain) -> Iterable[str]:
    """Events: each an authored handoff and the reversal of another field that can reverse."""
    yield from _unique("events.event_id", (e.event_id for e in domain.events))
    changes = (f"{e.outgoing}, {e.incoming}, {e.reversed}" for e in domain.events)
    yield from _unique("events change", changes)
    handoffs = {(t.outgoing, t.incoming) for g in domain.replacement_groups for t in g.transitions}
    for event in domain.events:
        where = f"events.{event.event_id}"
        unknown = list(_known(domain, where, (event.outgoing, event.incoming, event.reversed)))
        yield from unknown or _event(domain, event, where, handoffs)


def _event(
    domain: Domain, event: Event, where: str, handoffs: set[tuple[str, str]]
) -> Iterable[str]:
    if (event.outgoing, event.incoming) not in handoffs:
        yield f"{where}: {event.outgoing} to {event.incoming} is not a transition of a replacement group"
    if event.reversed in (event.outgoing, event.incoming):
        yield f"{where}.reversed: expected a field other than the two that change places"
    if not domain.catalog[event.reversed].reversal.is_reversal:
        yield f"{where}.reversed: {event.reversed} has no reversal account; choose one that has"
    yield from _texts(f"{where}.", event, ("trigger_event", "change_reason"))


# -- shared checks -----------------------------------------------------------------------------


def _unique(where: str, values: Iterable[str]) -> Iterable[str]:
    for name, times in Counter(values).items():
        if times > 1:
            yield f"{where}: '{name}' stands {times} times; each must be unique"


def _known(domain: Domain, where: str, names: Iterable[str]) -> Iterable[str]:
    for name in names:
        if name not in domain.catalog:
            yield f"{where}: unknown field '{name}'{_suggestion(domain, name)}"


def _suggestion(domain: Domain, name: str) -> str:
    near = [known for known in domain.catalog if _near(known, name)]
    return f"; did you mean '{near[0]}'?" if near else ""


def _near(known: str, name: str) -> bool:
    return (
        known in name
        or name in known
        or sum(a != b for a, b in zip(known, name, strict=False)) <= 2
    )


def _texts(where: str, record: object, names: tuple[str, ...]) -> Iterable[str]:
    for name in names:
        if not str(getattr(record, name)).strip():
            yield f"{where}{name}: expected text, got nothing"
