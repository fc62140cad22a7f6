"""Shapes of answers: one JSON Schema that is both sent to the model and checked here.

A stage's answer has a strict form. Endpoints that can be held to a schema get it with the request;
the others read it in the prompt; and either way the answer is checked against the very same
document, so that the form that is asked for and the form that is accepted cannot drift apart. Only
the keywords that the builders below write are known, which is the part of JSON Schema that
structured output commonly takes: every object is closed and requires all of its keys.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

Schema = dict[str, Any]
MAX_NUMBER: Final = 1e12
"""Largest magnitude of a number; no measurement needs more, and none above it is computed with."""


def text() -> Schema:
    """A string; whether it may be empty is the stage's own check."""
    return {"type": "string"}


def integer() -> Schema:
    """A whole number."""
    return {"type": "integer"}


def number() -> Schema:
    """Any number."""
    return {"type": "number"}


def boolean() -> Schema:
    """True or false."""
    return {"type": "boolean"}


def choice(*values: str | int) -> Schema:
    """One of the given values, all of one type."""
    kind = "integer" if isinstance(values[0], int) else "string"
    return {"type": kind, "enum": list(values)}


def array(items: Schema, *, least: int = 0, most: int | None = None) -> Schema:
    """A list of `least` to `most` items (None: any number) of one shape."""
    bounds = {"minItems": least} if least else {}
    return {
        "type": "array",
        "items": items,
        **bounds,
        **({} if most is None else {"maxItems": most}),
    }


def record(**properties: Schema) -> Schema:
    """An object with exactly these keys."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def either(*options: Schema) -> Schema:
    """Any one of several shapes."""
    return {"anyOf": list(options)}


def reference(name: str) -> Schema:
    """A shape that the outermost schema holds under `$defs`."""
    return {"$ref": f"#/$defs/{name}"}


def response_format(name: str, schema: Schema) -> Schema:
    """The `json_schema` member of a response format of type `json_schema`."""
    return {"name": name, "strict": True, "schema": schema}


# -- checking ----------------------------------------------------------------------------------


def faults(value: Any, schema: Schema) -> list[str]:
    """Every place where a JSON value is not of the shape, as `path: expected ..., got ...`."""
    return _faults(value, schema, "", schema.get("$defs", {}))


def _faults(value: Any, schema: Schema, where: str, known: Mapping[str, Schema]) -> list[str]:
    if "$ref" in schema:
        return _faults(value, known[schema["$ref"].rpartition("/")[2]], where, known)
    if "anyOf" in schema:
        # The nearest shape is what the author meant; its faults are the ones that help.
        found = [_faults(value, option, where, known) for option in schema["anyOf"]]
        return min(found, key=len)
    kind = schema["type"]
    if not _KINDS[kind](value):
        return [f"{where or 'answer'}: expected {_article(kind)}, got {_shown(value)}"]
    if "enum" in schema and value not in schema["enum"]:
        options = ", ".join(str(option) for option in schema["enum"])
        return [f"{where}: expected one of {options}, got {_shown(value)}"]
    if kind == "object":
        return _object_faults(value, schema["properties"], where, known)
    return _array_faults(value, schema, where, known) if kind == "array" else []


def _object_faults(
    value: Mapping[str, Any],
    properties: Mapping[str, Schema],
    where: str,
    known: Mapping[str, Schema],
) -> list[str]:
    lead = f"{where}." if where else ""
    found = [f"{lead}{key}: missing" for key in properties if key not in value]
    found += [f"{lead}{key}: there is no such key" for key in value if key not in properties]
    for key, schema in properties.items():
        if key in value:
            found += _faults(value[key], schema, f"{lead}{key}", known)
    return found


def _array_faults(
    value: Sequence[Any], schema: Schema, where: str, known: Mapping[str, Schema]
) -> list[str]:
    least, most = schema.get("minItems", 0), schema.get("maxItems", len(value))
    if not least <= len(value) <= most:
        bounds = (
            f"{least}" if least == most else f"{least} to {schema.get('maxItems', 'any number')}"
        )
        return [f"{where}: expected {bounds} items, got {len(value)}"]
    return [
        fault
        for index, item in enumerate(value)
        for fault in _faults(item, schema["items"], f"{where}[{index}]", known)
    ]


def arranged(value: Any, schema: Schema) -> Any:
    """The same value, of the shape, with the keys of its objects in the order of the schema.

    What stands under a reference or a choice of shapes is left as it is.
    """
    if schema.get("type") == "object":
        return {key: arranged(value[key], inner) for key, inner in schema["properties"].items()}
    if schema.get("type") == "array":
        return [arranged(item, schema["items"]) for item in value]
    return value


_KINDS: Final[dict[str, Callable[[Any], bool]]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and _countable(value),
    "integer": lambda value: isinstance(value, int) and _countable(value),
}


def _countable(value: float) -> bool:
    """Whether a number is no truth value and of a magnitude that is computed with (nan is not)."""
    return not isinstance(value, bool) and -MAX_NUMBER <= value <= MAX_NUMBER


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aio" else f"a {kind}"


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
