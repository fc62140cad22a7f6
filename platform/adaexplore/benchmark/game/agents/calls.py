"""Writing replies: the JSON that an agent sends.

The environment takes one JSON object and nothing around it, numbers on the grid of two decimal
places. Source: the tools of `game.prompts`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from adaexplore.benchmark.game.agents.reading import ShownField, View
from adaexplore.benchmark.world.episodes import Row
from adaexplore.benchmark.world.utility import ACTIONS


def request() -> str:
    """Reveal the batch without a probe."""
    return _call("request_next_batch", {})


def explore(view: View, rows: Sequence[Row], spare: Sequence[Row]) -> str:
    """Probe these rows, at most as many as one call takes; spare rows where more are required."""
    least, most = view.probe_limits
    asked = list(rows[:most])
    if not asked and view.can_request:
        return request()
    return probe(view, [*asked, *spare[: max(0, least - len(asked))]])


def submit(view: View, actions: Sequence[int]) -> str:
    """Answer the pending cases, one action index each, in their order."""
    chosen = {
        case_id: ACTIONS[action] for (case_id, _), action in zip(view.pending, actions, strict=True)
    }
    return _call("submit_action_batch", {"batch_id": view.batch_id, "actions": chosen})


def probe(view: View, rows: Iterable[Row]) -> str:
    """Ask about rows (hundredths), each as a variation of the most similar probe so far."""
    return _call("probe_batch", {"probes": [_probe(view, row) for row in rows]})


def assess(directions: Mapping[str, int]) -> str:
    """Name relevant fields with their direction, +1 or -1."""
    entries = [
        {"field_id": name, "direction": "positive" if direction > 0 else "negative"}
        for name, direction in directions.items()
    ]
    return json.dumps({"relevant_fields": list(directions), "field_directions": entries})


def _probe(view: View, row: Row) -> dict[str, Any]:
    numbers = {f.field_id: _number(f, v) for f, v in zip(view.fields, row, strict=True)}
    if not view.probes:
        return {"values": numbers}
    known = np.asarray([seen.row for seen in view.probes])
    base = view.probes[int(np.argmin((known != np.asarray(row)).sum(axis=1)))]
    kept = dict(zip(numbers, base.row, strict=True))
    changes = {
        f.field_id: numbers[f.field_id]
        for f, v in zip(view.fields, row, strict=True)
        if kept[f.field_id] != v
    }
    return {"base_context_id": base.context_id, "changes": changes}


def _number(field: ShownField, hundredths: int) -> int | float:
    return hundredths // 100 if field.whole else hundredths / 100


def _call(tool: str, arguments: dict[str, Any]) -> str:
    return json.dumps({"tool": tool, "arguments": arguments}, separators=(",", ":"))
