"""The stages of authoring, in order, and what each asks, checks and adds.

Stages 1 to 7 grow the domain document: `calls` splits a stage into its questions, `merged` adds the
answers. Stages 8 and 9 judge candidate episodes and have modules of the same form with candidates
in place of the document. Source: paper, appendix prompts; the words are ours.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from adaexplore.authoring import calls as calls_module
from adaexplore.authoring.calls import Call
from adaexplore.authoring.drafts import Draft
from adaexplore.authoring.ideas import Plan
from adaexplore.authoring.stages import (
    audit,
    events,
    feasibility,
    inventory,
    priors,
    replacements,
    review,
    semantics,
    triples,
)

AUDIT: Final = 8
REVIEW: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One step from a draft to a fuller draft."""

    number: int
    title: str
    adds: str
    """Key of the document that the stage fills, or fills up."""
    calls: Callable[[Draft, Plan], list[Call]]
    merged: Callable[[Draft, list[Any]], Draft]
    """The draft with the answers of all calls, in the order of the calls."""


_Part = tuple[str, str, Callable[[Draft, Plan], list[Call]], Callable[[Draft, list[Any]], Draft]]
_PARTS: Final[tuple[_Part, ...]] = (
    ("field inventory", "fields", inventory.calls, inventory.merged),
    ("semantics", "fields", semantics.calls, semantics.merged),
    ("numeric priors", "fields", priors.calls, priors.merged),
    ("ordered triples", "ordered_triples", triples.calls, triples.merged),
    ("feasibility", "constraints", feasibility.calls, feasibility.merged),
    ("replacements", "replacement_groups", replacements.calls, replacements.merged),
    ("events", "events", events.calls, events.merged),
)
STAGES: Final = tuple(
    Stage(number=number, title=title, adds=adds, calls=calls, merged=merged)
    for number, (title, adds, calls, merged) in enumerate(_PARTS, start=1)
)

_TEXTS: Final = [
    calls_module.SYSTEM, calls_module.REPAIR,
    inventory.CONTRACT, inventory.SCHEMA, semantics.CONTRACT, semantics.SCHEMA, semantics.FAMILIES,
    priors.CONTRACT, priors.SCHEMA, triples.CONTRACT, triples.SCHEMA,
    feasibility.CONTRACT, feasibility.SCHEMA, replacements.CONTRACT, replacements.SCHEMA,
    events.CONTRACT, events.SCHEMA, audit.CONTRACT, audit.schema(again=False),
    audit.schema(again=True), review.CONTRACT, review.SCHEMA,
]  # fmt: skip
DIGEST: Final = hashlib.sha256(json.dumps(_TEXTS, sort_keys=True).encode()).hexdigest()
"""Stands for every word and schema that a model is sent."""
