"""Brute-force twins: the benchmark's equations once more, one case at a time, in exact fractions.

Tests compare the vectorised code with these. Nothing here calls it.
"""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import prod

ANCHORS = tuple(Fraction(k, 4) for k in (-3, -1, 1, 3))
BOUNDARIES = (Fraction(-1, 2), Fraction(0), Fraction(1, 2))


def normalised(field, hundredths):
    """A grid value of a field on [-1, 1]."""
    low, high = Fraction(str(field.minimum)), Fraction(str(field.maximum))
    return 2 * (Fraction(hundredths, 100) - low) / (high - low) - 1


def normalised_row(world, row):
    """A row of an episode on [-1, 1], by field id."""
    pairs = zip(world.fields, row, strict=True)
    return {field.field_id: normalised(field, int(value)) for field, value in pairs}


def margins(rule, values):
    """Oriented margins of a rule's slots, in slot order."""
    return [
        slot.direction * (Fraction(values[slot.field_id]) - Fraction(slot.threshold))
        for slot in rule.slots
    ]


def decisive(rule, values):
    """Index of the slot that settles a lexicographic rule."""
    for index, margin in enumerate(margins(rule, values)):
        if abs(margin) > Fraction(rule.band):
            return index
    return len(rule.slots) - 1


def evidence(rule, values):
    """Raw evidence of one row."""
    if rule.family == "additive_aggregation":
        total = Fraction(0)
        for slot in rule.slots:
            total += slot.direction * Fraction(slot.weight) * Fraction(values[slot.field_id])
        return total
    oriented = margins(rule, values)
    if rule.family == "lexicographic_priority":
        return oriented[decisive(rule, values)]
    ordered = sorted(oriented)
    return ordered[0] if rule.family == "conjunctive_gating" else ordered[-1]


def score(calibration, raw):
    """Intervention score of one raw evidence."""
    middle = Fraction(calibration.q50)
    side = calibration.q25 if raw < middle else calibration.q75
    distance = abs((raw - middle) / (Fraction(side) - middle)) / 2
    return min(distance, Fraction(1)) * (1 if raw > middle else -1)


def row_score(world, rule, row):
    """Intervention score of one row of an episode."""
    return score(world.episode.calibration, evidence(rule, normalised_row(world, row)))


def best_action(at):
    """Index of the action whose anchor is nearest to a score (off the boundaries)."""
    return min(range(4), key=lambda k: abs(Fraction(at) - ANCHORS[k]))


def boundary_distance(at):
    """Distance of a score to the nearest change of the best action."""
    return min(abs(at - boundary) for boundary in BOUNDARIES)


def utilities(at):
    """Utilities of the four actions at a score, to 30 digits."""
    with localcontext() as context:
        context.prec = 30
        distances = [Fraction(at) - anchor for anchor in ANCHORS]
        weights = [
            (-8 * Decimal(d.numerator) ** 2 / Decimal(d.denominator) ** 2).exp() for d in distances
        ]
        return [(4 * weight / sum(weights) - 1) / 3 for weight in weights]


# -- constraints: numerators and denominators, compared crosswise ------------------------------


def holds(expression, values):
    """Whether a case (hundredths by field id) satisfies an expression; None when undefined."""
    op = expression["op"]
    if op in ("le", "lt", "ge", "gt", "eq"):
        left, right = _value(expression["left"], values), _value(expression["right"], values)
        if left is None or right is None:
            return None
        gap = left[0] * right[1] - right[0] * left[1]
        return {"le": gap <= 0, "lt": gap < 0, "ge": gap >= 0, "gt": gap > 0, "eq": gap == 0}[op]
    if op == "implies":
        parts = [holds(expression["if"], values), holds(expression["then"], values)]
    else:
        children = [expression["arg"]] if op == "not" else expression["args"]
        parts = [holds(child, values) for child in children]
    if None in parts:
        return None
    answers = {"not": not parts[0], "and": all(parts), "or": any(parts)}
    return answers[op] if op in answers else (not parts[0]) or parts[1]


def _value(node, values):
    """(numerator, positive denominator) of a numeric node; None when undefined."""
    if "field" in node:
        return int(values[node["field"]]), 100
    if "const" in node:
        return Decimal(str(node["const"])).as_integer_ratio()
    parts = [_value(arg, values) for arg in node["args"]]
    if None in parts:
        return None
    bottom = prod(part[1] for part in parts)
    if node["op"] == "mul":
        return prod(part[0] for part in parts), bottom
    if node["op"] == "div":
        (a, b), (c, d) = parts
        return None if c == 0 else (a * d * (1 if c > 0 else -1), b * abs(c))
    tops = [part[0] * (bottom // part[1]) for part in parts]
    return (sum(tops) if node["op"] == "add" else tops[0] - tops[1]), bottom
