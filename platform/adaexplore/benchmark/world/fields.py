"""Fields: the numeric measurements of a domain, and the grid their values live on.

The agent sees integers exactly and decimals at two places. Inside, a value on that grid is held in
*hundredths*, a whole number, so that equality, duplicates and constraints are exact and never
depend on how a float was made.

Source: paper, appendix prompts for stages 1 to 3 (inventory, semantics, numeric priors).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Family = Literal[
    "additive_aggregation",
    "conjunctive_gating",
    "disjunctive_sufficiency",
    "lexicographic_priority",
]
ADDITIVE: Family = "additive_aggregation"
CONJUNCTIVE: Family = "conjunctive_gating"
DISJUNCTIVE: Family = "disjunctive_sufficiency"
LEXICOGRAPHIC: Family = "lexicographic_priority"
FAMILIES: tuple[Family, ...] = (ADDITIVE, CONJUNCTIVE, DISJUNCTIVE, LEXICOGRAPHIC)

PROFILES = ("low", "mixed", "high")
"""Intervention tendencies that a case is drawn from, in this order."""

Floats = npt.NDArray[np.float64]
Hundredths = npt.NDArray[np.int64]
"""Values on the agent-facing grid, times 100."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reversal:
    """Whether, and after what event, a higher value comes to mean the opposite."""

    is_reversal: bool
    trigger: str
    semantics_before: str
    semantics_after: str
    reversal_reason: str
    reversal_rationale: str
    """What was considered when `is_reversal` is false; empty otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Populations:
    """Beta (alpha, beta) of the normalised value `(v - minimum) / (maximum - minimum)`."""

    low: tuple[float, float]
    mixed: tuple[float, float]
    high: tuple[float, float]

    def beta(self, profile: str) -> tuple[float, float]:
        """(alpha, beta) of one of `PROFILES`."""
        pair: tuple[float, float] = getattr(self, profile)
        return pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One measurement: identity, meaning, and numeric prior."""

    field_id: str
    display_name: str
    type: Literal["integer", "decimal"]
    unit: str
    description: str
    pressure_direction: Literal[1, -1]
    """+1 when a higher value ordinarily asks for stronger intervention."""
    effect_strength: float
    """Relative decision relevance, 0.1 to 1."""
    eligible_families: tuple[Family, ...]
    reversal: Reversal
    minimum: float
    maximum: float
    typical_range: tuple[float, float]
    populations: Populations
    parameter_basis: str

    @property
    def bounds(self) -> tuple[int | float, int | float]:
        """(minimum, maximum) as the numbers an agent sees."""
        low, high = self.to_hundredths(self.minimum), self.to_hundredths(self.maximum)
        return self.from_hundredths(low), self.from_hundredths(high)

    def to_hundredths(self, value: float) -> int:
        """Grid value nearest to `value` (in the field's unit), in hundredths."""
        return round(value) * 100 if self.type == "integer" else round(value * 100)

    def from_hundredths(self, hundredths: int) -> int | float:
        """The number an agent sees: an int for integers, a two-place float for decimals."""
        return int(hundredths) // 100 if self.type == "integer" else int(hundredths) / 100

    def grid(self, values: Floats) -> Hundredths:
        """Nearest grid values of an array of any shape, in hundredths, clipped to the range."""
        step = 100 if self.type == "integer" else 1
        nearest = np.rint(values * (100 / step)).astype(np.int64) * step
        return np.clip(nearest, self.to_hundredths(self.minimum), self.to_hundredths(self.maximum))

    def normalise(self, hundredths: Hundredths) -> Floats:
        """Values on [-1, 1], same shape (paper, normalisation of relevant fields)."""
        return normalise(hundredths, self.minimum, self.maximum)


def normalise(hundredths: Hundredths, low: float | Floats, high: float | Floats) -> Floats:
    """Grid values on [-1, 1] between bounds that broadcast (paper, normalisation of relevant fields)."""
    return 2.0 * (hundredths / 100.0 - low) / (high - low) - 1.0
