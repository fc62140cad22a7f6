"""The population that cases are drawn from.

A row draws a profile uniformly from low, mixed and high, then each visible field from that
profile's Beta on its legal range; replacement partners that are both visible depend on each other
through a Gaussian copula; then the grid; then every constraint among visible fields. (Paper,
appendix prompts on numeric priors and on replacement groups; the copula is a decision of ours.)

The copula is made by ranks (Iman and Conover 1982): each field's independent draws are put into the
order of correlated normals. So no quantile function is needed, every marginal is exactly the Beta
sample, and only elementwise arithmetic and sorting decide the result.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from adaexplore.benchmark.world import constraints
from adaexplore.benchmark.world.domains import Domain
from adaexplore.benchmark.world.fields import PROFILES, Field, Floats, Hundredths, normalise

MAX_REJECTED: Final = 0.90
"""A constraint that rejects a larger share of draws rejects the candidate."""
MAX_ROUNDS: Final = 12
MIN_EIGENVALUE: Final = 1e-6
MAX_PROJECTIONS: Final = 200


class InfeasibleError(ValueError):
    """Constraints that leave too little of the population; `reason` names them."""

    def __init__(self, reason: str) -> None:
        """Keep the reason as the candidate's rejection reason."""
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """A sample of rows on the grid."""

    fields: tuple[Field, ...]
    values: Hundredths
    """Shape (n, d): one row a case, one column a field, in hundredths."""

    def columns(self) -> dict[str, Floats]:
        """Normalised columns by field id, each of shape (n,)."""
        return normalised(self.fields, self.values)


def normalised(fields: tuple[Field, ...], values: Hundredths) -> dict[str, Floats]:
    """Normalised columns of grid values, shape (n, d), by field id."""
    low, high = (np.array([getattr(f, end) for f in fields]) for end in ("minimum", "maximum"))
    columns = normalise(values, low, high).T
    return {field.field_id: column for field, column in zip(fields, columns, strict=True)}


def draw(
    domain: Domain,
    visible: tuple[str, ...],
    size: int,
    rng: np.random.Generator,
    *,
    drifting: tuple[str, str],
) -> Population:
    """A population sample of the visible fields.

    Args:
        domain: Where fields, replacement groups and constraints come from.
        visible: Ids of the visible fields, in the order of the columns.
        size: Rows wanted.
        rng: Generator to draw from.
        drifting: The outgoing and the incoming field. If they would be the only coupled pair,
            they are drawn independently: else correlations among cases would mark them.

    Raises:
        InfeasibleError: A constraint, or all together, reject more than 90 % of the draws.
    """
    fields = tuple(domain.catalog[field_id] for field_id in visible)
    factor = cholesky(nearest_correlation(_couplings(domain, visible, drifting)))
    kept: list[Hundredths] = []
    for _ in range(MAX_ROUNDS):
        rows = _draw_once(fields, factor, size, rng)
        kept.append(_feasible(domain, visible, rows))
        if sum(map(len, kept)) >= size:
            return Population(fields=fields, values=np.concatenate(kept)[:size])
    raise InfeasibleError("infeasible: all constraints together")


def _draw_once(
    fields: tuple[Field, ...], factor: Floats, size: int, rng: np.random.Generator
) -> Hundredths:
    profile_of_row = rng.integers(len(PROFILES), size=size)
    values = np.empty((size, len(fields)))
    for index, profile in enumerate(PROFILES):
        rows = np.flatnonzero(profile_of_row == index)
        order = _correlated(rng.standard_normal((len(rows), len(fields))), factor)
        for column, field in enumerate(fields):
            alpha, beta = field.populations.beta(profile)
            draws = np.sort(rng.beta(alpha, beta, size=len(rows)))
            ranked = rows[np.argsort(order[:, column], kind="stable")]
            values[ranked, column] = field.minimum + draws * (field.maximum - field.minimum)
    return np.stack([field.grid(values[:, i]) for i, field in enumerate(fields)], axis=1)


def _correlated(normals: Floats, factor: Floats) -> Floats:
    """`normals @ factor.T`, by elementwise steps: matrix products differ between processors."""
    result = np.zeros_like(normals)
    for row in range(len(factor)):
        for column in range(row + 1):
            result[:, row] += factor[row, column] * normals[:, column]
    return result


def _feasible(domain: Domain, visible: tuple[str, ...], rows: Hundredths) -> Hundredths:
    active = domain.constraints_among(visible)
    columns = {field_id: rows[:, i] for i, field_id in enumerate(visible)}
    for constraint in active:
        _fix(domain, constraint.expression, columns)
    good = np.ones(len(rows), dtype=bool)
    for constraint in active:
        held = constraints.hold_all(constraint.expression, columns)
        if 1.0 - held.mean() > MAX_REJECTED:
            raise InfeasibleError(f"infeasible: {constraint.constraint_id}")
        good &= held
    return rows[good]


def _fix(
    domain: Domain, expression: constraints.Expression, columns: dict[str, Hundredths]
) -> None:
    """Compute, in place, a field that an `eq` constraint fixes, instead of drawing it."""
    if expression["op"] != "eq":
        return
    sides = (expression["left"], expression["right"])
    for own, other in (sides, sides[::-1]):
        field_id = own.get("field")
        if field_id and field_id not in constraints.fields(other):
            wanted = constraints.approximate(other, columns)
            columns[field_id][:] = domain.catalog[field_id].grid(np.nan_to_num(wanted))
            return


def _couplings(domain: Domain, visible: tuple[str, ...], drifting: tuple[str, str]) -> Floats:
    pairs = {
        frozenset(group.members): group.coupling_strength
        for group in domain.replacement_groups
        if set(group.members) <= set(visible) and group.coupling_strength > 0.0
    }
    if set(pairs) == {frozenset(drifting)}:
        pairs = {}
    matrix = np.eye(len(visible))
    for pair, strength in pairs.items():
        i, j = (visible.index(field_id) for field_id in pair)
        matrix[i, j] = matrix[j, i] = strength
    return matrix


def nearest_correlation(matrix: Floats) -> Floats:
    """The positive definite correlation matrix nearest to a symmetric one, shape (d, d).

    Alternating projections with Dykstra's correction (Higham 2002, algorithm 3.3), then a shrink
    towards the identity that lifts the smallest eigenvalue. Rounded to 12 digits: eigenvalues
    differ in their last bits between processors.
    """
    if np.linalg.eigvalsh(matrix)[0] > MIN_EIGENVALUE:
        return matrix
    current, correction = matrix.copy(), np.zeros_like(matrix)
    for _ in range(MAX_PROJECTIONS):
        shifted = current - correction
        values, vectors = np.linalg.eigh(shifted)
        positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
        correction = positive - shifted
        current = (positive + positive.T) / 2.0
        np.fill_diagonal(current, 1.0)
    lowest = min(float(np.linalg.eigvalsh(current)[0]), 0.0)
    shrink = (MIN_EIGENVALUE - lowest) / (1.0 - lowest)
    return np.round((1.0 - 2.0 * shrink) * current + 2.0 * shrink * np.eye(len(matrix)), 12)


def cholesky(matrix: Floats) -> Floats:
    """Lower triangular factor, in scalar arithmetic so that it is the same on every machine."""
    size = len(matrix)
    factor = np.zeros((size, size))
    for i in range(size):
        for j in range(i + 1):
            dot = math.fsum(factor[i, k] * factor[j, k] for k in range(j))
            rest = float(matrix[i, j]) - dot
            factor[i, j] = math.sqrt(rest) if i == j else rest / factor[j, j]
    return factor
