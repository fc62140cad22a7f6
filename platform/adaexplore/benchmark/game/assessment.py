"""Assessments: what the agent believes the rule to be, asked on a fork of the conversation.

After the change batch (where the rule drifts) and at the end, the agent names the relevant fields
and their directions. The question tells neither how many there are nor whether anything changed.
Source: paper, auxiliary assessments.
"""

from dataclasses import dataclass
from typing import Literal

from adaexplore.benchmark.game import replies
from adaexplore.benchmark.game.replies import RejectedError, quoted

DIRECTIONS = {"positive": 1, "negative": -1}

Phase = Literal["pre", "post"]
Status = Literal["completed", "rejected", "truncated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """One assessment as answered."""

    phase: Phase
    """`pre` is asked after the change batch; the one at the end is `post`, drift or not."""
    status: Status
    directions: dict[str, int]
    """+1 or -1 by field reported as relevant; empty unless completed."""


def read(
    text: str, visible: tuple[str, ...], *, parsing: Literal["strict", "lenient"], max_chars: int
) -> dict[str, int]:
    """Reported directions by field id; RejectedError with reasons if the reply is not of the form."""
    document = replies.read_object(text, parsing=parsing, max_chars=max_chars)
    if set(document) != {"relevant_fields", "field_directions"}:
        raise RejectedError(["expected exactly the keys 'relevant_fields' and 'field_directions'"])
    fields, entries = document["relevant_fields"], document["field_directions"]
    if not isinstance(fields, list) or not isinstance(entries, list):
        raise RejectedError(["expected 'relevant_fields' and 'field_directions' to be lists"])
    faults = [f"{quoted(name)} is not a listed field" for name in fields if name not in visible]
    if not faults and len(set(fields)) != len(fields):
        faults.append("a field is named twice")
    directions: dict[str, int] = {}
    for entry in entries:
        faults += _read_entry(entry, directions)
    if not faults and set(directions) != set(fields):
        faults.append("expected exactly one direction for each relevant field and for no other")
    if faults:
        raise RejectedError(faults)
    return directions


def _read_entry(entry: object, directions: dict[str, int]) -> list[str]:
    if not isinstance(entry, dict) or set(entry) != {"field_id", "direction"}:
        return [f"expected 'field_id' and 'direction', got {quoted(entry)}"]
    name, direction = entry["field_id"], entry["direction"]
    if not isinstance(name, str) or direction not in tuple(DIRECTIONS):
        return [f"expected a field id with 'positive' or 'negative', got {quoted(entry)}"]
    if name in directions:
        return [f"{quoted(name)} has two directions"]
    directions[name] = DIRECTIONS[direction]
    return []
