"""Units of expressions: sums and comparisons must compare like with like.

A unit is what a field's author wrote, taken as a name; products and quotients combine names. A
constant takes whatever unit its place asks for, and so does a product with a constant, because it
may be an exact conversion. So only plain mistakes are found: beds compared with hours.
Source: paper, appendix prompt on feasibility ("dimensionally valid").
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

Unit = Counter[str] | None
"""Powers by unit name; None fits everything."""


def faults(expression: Mapping[str, Any], units: Mapping[str, str], where: str) -> list[str]:
    """Places of a legal expression where units do not fit, as `path: what meets what`."""
    found: list[str] = []
    _check(expression, units, where, found)
    return found


def _check(node: Mapping[str, Any], units: Mapping[str, str], where: str, found: list[str]) -> None:
    if "left" in node:
        sides = [_unit(node[side], units, f"{where}.{side}", found) for side in ("left", "right")]
        _same(sides, f"{where}.{node['op']}", found)
        return
    for key in ("arg", "if", "then"):
        if key in node:
            _check(node[key], units, f"{where}.{key}", found)
    for index, child in enumerate(node.get("args", ())):
        _check(child, units, f"{where}.args[{index}]", found)


def _unit(node: Mapping[str, Any], units: Mapping[str, str], where: str, found: list[str]) -> Unit:
    if "field" in node:
        return Counter({units[node["field"]].strip().lower(): 1})
    if "const" in node:
        return None
    parts = [_unit(arg, units, f"{where}.args[{i}]", found) for i, arg in enumerate(node["args"])]
    if node["op"] in ("add", "sub"):
        return _same(parts, f"{where}.{node['op']}", found)
    return _product(parts, divide=node["op"] == "div")


def _same(parts: Iterable[Unit], where: str, found: list[str]) -> Unit:
    known = [part for part in parts if part is not None]
    found += [
        f"{where}: '{_name(known[0])}' meets '{_name(part)}'; convert one exactly"
        for part in known[1:]
        if part != known[0]
    ]
    return known[0] if known else None


def _product(parts: list[Unit], *, divide: bool) -> Unit:
    total: Counter[str] = Counter()
    for index, part in enumerate(parts):
        if part is None:
            return None
        sign = -1 if divide and index else 1
        for name, power in part.items():
            total[name] += sign * power
    return Counter({name: power for name, power in total.items() if power})


def _name(unit: Counter[str]) -> str:
    return (
        " ".join(name if power == 1 else f"{name}^{power}" for name, power in unit.items()) or "1"
    )
