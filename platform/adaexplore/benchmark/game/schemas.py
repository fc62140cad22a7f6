"""Reply forms as JSON schemas, for endpoints that can be held to one.

A schema says nothing that the prompt does not: the tools, the visible fields with their types, the
actions. It is the same for every turn of an episode and for every branch. The reply is read and
judged exactly as without one.
"""

from typing import Any

from adaexplore.benchmark.game.assessment import DIRECTIONS
from adaexplore.benchmark.game.protocol import Protocol
from adaexplore.benchmark.world.episodes import World
from adaexplore.benchmark.world.utility import ACTIONS

Schema = dict[str, Any]


def call_schema(world: World, protocol: Protocol) -> Schema:
    """Form of a tool call: one alternative a tool."""
    numbers = {field.field_id: _number(field.type) for field in world.fields}
    whole = _object(numbers)
    changes = {**_object(numbers), "required": []}
    probe = {
        "anyOf": [
            _object({"values": whole}),
            _object({"base_context_id": {"type": "string"}, "changes": changes}),
        ]
    }
    actions = {"type": "object", "additionalProperties": {"type": "string", "enum": list(ACTIONS)}}
    arguments = {
        "probe_batch": _object({"probes": _list(probe, 1, protocol.max_probes)}),
        "request_next_batch": _object({}),
        "submit_action_batch": _object({"batch_id": {"type": "string"}, "actions": actions}),
        "calculator": _object(
            {"expressions": _list({"type": "string"}, 1, protocol.max_expressions)}
        ),
    }
    calls = [
        _object({"tool": {"type": "string", "enum": [tool]}, "arguments": form})
        for tool, form in arguments.items()
    ]
    return _named("call", {"anyOf": calls})


def assessment_schema(world: World) -> Schema:
    """Form of an assessment."""
    field_id = {"type": "string", "enum": list(world.episode.visible_fields)}
    direction = {"type": "string", "enum": list(DIRECTIONS)}
    most = len(world.fields)
    form = {
        "relevant_fields": _list(field_id, 0, most),
        "field_directions": _list(_object({"field_id": field_id, "direction": direction}), 0, most),
    }
    return _named("assessment", _object(form))


def _named(name: str, schema: Schema) -> Schema:
    # Not strict: strict forms allow neither open keys (case ids) nor optional ones (changes).
    return {"name": name, "strict": False, "schema": schema}


def _number(kind: str) -> Schema:
    return {"type": "integer" if kind == "integer" else "number"}


def _object(properties: dict[str, Schema]) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(item: Schema, least: int, most: int) -> Schema:
    return {"type": "array", "items": item, "minItems": least, "maxItems": most}
