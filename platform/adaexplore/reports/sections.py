"""What an analysis says: tables, figures as descriptions, a sentence, and what to be careful about.

Analyses know nothing of pages, files or drawing: they end here, and everything that shows them begins
here. A figure is described by its numbers; where there are none there is no figure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from adaexplore.benchmark.scores.estimates import Estimate
from adaexplore.experiments.tables import P, Table

Kind = Literal["curves", "intervals", "shares", "scatter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One mark."""

    x: float
    """Where it stands: along the axis, or the number of its row, from 0 at the top."""
    value: Estimate
    across: Estimate | None = None
    """In a scatter plot: `x` with its interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Marks of one look."""

    name: str
    look: int
    """Number of its colour and marker, the same for a model in every figure."""
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One of several plots side by side."""

    title: str
    series: tuple[Series, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure as numbers.

    The kinds are `curves` (lines with bands), `intervals` (rows with a value and its interval),
    `shares` (rows that are divided) and `scatter`.
    """

    name: str
    """Of its files, without an ending."""
    kind: Kind
    title: str
    told: str
    """What is to be seen, for those who cannot see it."""
    panels: tuple[Panel, ...]
    x_label: str
    y_label: str = ""
    rows: tuple[str, ...] = ()
    marks: tuple[float, ...] = ()
    """Values that are marked by a line across: chance, the oracle, no difference."""
    change: float | None = None
    """Where the rule drifts, in curves."""
    keyed: bool = True
    """Whether a key tells the series apart; without, the rows do."""

    @property
    def drawn(self) -> bool:
        """Whether there is anything to draw."""
        values = (p.value.value for panel in self.panels for s in panel.series for p in s.points)
        return any(map(isfinite, values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """One section of a report."""

    key: str
    """Its name in links and files."""
    title: str
    question: str
    reading: str = ""
    """What the numbers say, in a sentence."""
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    warnings: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    """(text, address beside the page) of what there is to read on."""
    absent: str = ""
    """Why there is nothing to show; then there are no tables and no figures."""


# -- sentences ---------------------------------------------------------------------------------


def told(e: Estimate, *, digits: int = 2, signed: bool = False) -> str:
    """An estimate in a sentence: `0.43 (95 % interval 0.39 to 0.47, n = 40)`."""
    if not isfinite(e.value):
        return f"undefined (n = {e.n})"
    value, low, high = (shown(number, digits, signed=signed) for number in (e.value, e.low, e.high))
    interval = f"95 % interval {low} to {high}, " if isfinite(e.low) else ""
    return f"{value} ({interval}n = {e.n})"


def shown(number: float, digits: int = 3, *, signed: bool = False) -> str:
    """A number as people read it, large ones with fewer digits; empty where it is undefined."""
    if not isfinite(number):
        return ""
    digits = min(digits, 1) if abs(number) >= 10.0 else digits
    rounded = round(number, digits) + 0.0  # no negative zero
    text = f"{rounded:+.{digits}f}" if signed else f"{rounded:.{digits}f}"
    return text.replace("-", "\N{MINUS SIGN}")


def shown_p(p: float) -> str:
    """A p-value as people read it."""
    if not isfinite(p):
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names in a sentence, the first few of many."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def counted(n: int, thing: str) -> str:
    """A number of things."""
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"


def extremes(values: dict[str, Estimate]) -> tuple[str, str] | None:
    """Names of the highest and the lowest defined value; None with fewer than two."""
    defined = {name: e.value for name, e in values.items() if isfinite(e.value)}
    if len(defined) < 2:
        return None
    return max(defined, key=defined.__getitem__), min(defined, key=defined.__getitem__)


def ps(values: Sequence[float]) -> list[P]:
    """p-values as cells of a table."""
    return [P(value) for value in values]
