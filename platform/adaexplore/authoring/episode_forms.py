"""The form of a stored episode: one record that is its JSON Schema and its check alike.

A line of a split's file is what `episodes.to_document` writes. Here its form is stated once, as a
record, from which the published JSON Schema is generated (draft 2020-12) and against which
`adaexplore dataset validate` checks every line; a test keeps the published file equal to it.
"""

from collections.abc import Iterable
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from adaexplore.benchmark.world.calibration import Calibration
from adaexplore.benchmark.world.episodes import BATCH_SIZE, BATCHES, VISIBLE, Review, Transition
from adaexplore.benchmark.world.rules import Rule

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_ROW = Annotated[list[int | float], Field(min_length=VISIBLE, max_length=VISIBLE)]
_BATCH = Annotated[list[_ROW], Field(min_length=BATCH_SIZE, max_length=BATCH_SIZE)]
_BATCHES = Annotated[list[_BATCH], Field(min_length=BATCHES, max_length=BATCHES)]
_Id = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class EpisodeForm:
    """One episode of AdaExploreBench, hidden side included."""

    episode_id: _Id
    domain_id: _Id
    visible_fields: Annotated[list[_Id], Field(min_length=VISIBLE, max_length=VISIBLE)]
    """The fields that the agent sees, in its order: the columns of every case."""
    change_batch: Annotated[int, Field(ge=1, lt=BATCHES)]
    """The rule changes after this batch completes; batches count from 1."""
    transition: Transition
    pre: Rule
    post: Rule
    calibration: Calibration
    review: Review | None
    """Quality scores, 0 to 5; null until a review has been made."""
    cases: _BATCHES
    """Batches of cases, values in the order of `visible_fields`; half of each are flip cases."""
    iid_cases: _BATCHES
    """Batches drawn without control of flips."""


_FORM: Final = TypeAdapter(EpisodeForm)


def schema() -> dict[str, Any]:
    """JSON Schema of a line of a split's file; every object is closed."""
    found = _FORM.json_schema()
    _close(found)
    for node in found["$defs"].values():
        _close(node)
    return {"$schema": DIALECT, **found, "title": "AdaExploreBench episode"}


def faults(document: Any) -> Iterable[str]:
    """Each breach of the form as `path: what is wrong`; nothing when the document has it."""
    try:
        _FORM.validate_python(document, extra="forbid")
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            path = ".".join(map(str, fault["loc"])) or "(the whole line)"
            yield f"{path}: {fault['msg']} (got {repr(fault['input'])[:60]})"


def _close(node: dict[str, Any]) -> None:
    node["additionalProperties"] = False
    for described in node["properties"].values():
        described.pop("title", None)
    if node["title"] == "Rule":
        node["properties"]["slots"] |= {"minItems": 3, "maxItems": 3}
