"""Domains: a decision situation with its catalog of fields and everything authored about them.

A domain is complete when stages 1 to 7 of the authoring contract are (paper, appendix prompts):
inventory, semantics, numeric priors, ordered triples, constraints,
replacement groups, and events. Domains are read from files by `adaexplore.authoring`.

Decision: the paper names one trigger event and one change reason for each episode but no stage that
writes them. Here the domain holds *events*, each written for one exact compound change (which field
leaves, which takes its slot, which turns its direction), and the search draws only from them.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from adaexplore.benchmark.world.constraints import Constraint, fields
from adaexplore.benchmark.world.fields import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One of the four actions, in rising intensity of intervention."""

    action_id: str
    display_name: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedTriple:
    """Three fields that can settle the decision one after another (lexicographic rules)."""

    order_id: str
    fields: tuple[str, str, str]
    rationale: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """One direction of a replacement: why one field leaves and the other takes its place."""

    outgoing: str
    incoming: str
    trigger: str
    relinquish_reason: str
    take_reason: str
    duration: str
    ending_condition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacementGroup:
    """Two fields of the same pressure direction that can hand a rule slot to one another."""

    group_id: str
    members: tuple[str, str]
    relation_type: Literal["same_metric", "different_horizon", "same_source", "proxy_substitution"]
    decision_role: str
    rationale: str
    source_contrast: str
    authority_by_field: dict[str, str]
    coupling_strength: float
    """Normalised dependence of the two in the population, 0 to 0.6."""
    effective_scope: str
    transitions: tuple[Handoff, Handoff]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One observable event that explains one exact compound change."""

    event_id: str
    outgoing: str
    incoming: str
    reversed: str
    trigger_event: str
    change_reason: str


@dataclass(frozen=True, kw_only=True)
class Domain:
    """Everything that is authored about one decision situation."""

    domain_id: str
    title: str
    role: str
    question: str
    actions: tuple[Action, Action, Action, Action]
    fields: tuple[Field, ...]
    constraints: tuple[Constraint, ...]
    ordered_triples: tuple[OrderedTriple, ...]
    replacement_groups: tuple[ReplacementGroup, ...]
    capacity_findings: str
    events: tuple[Event, ...]

    @cached_property
    def catalog(self) -> dict[str, Field]:
        """Fields by id."""
        return {field.field_id: field for field in self.fields}

    def constraints_among(self, visible: tuple[str, ...]) -> tuple[Constraint, ...]:
        """Constraints that refer to visible fields only; the others cannot be evaluated."""
        shown = set(visible)
        return tuple(c for c in self.constraints if fields(c.expression) <= shown)
