"""Rows of numbers, kept exactly and in little memory: columns of small counts take two bytes a number.

Most of what an episode run adds to the tables are counts of cases, and a sweep has tens of thousands of
runs. Rows are taken one by one, and packed some hundreds at a time.
"""

from array import array
from typing import Final

import numpy as np

from adaexplore.benchmark.world.fields import Floats

ROWS: Final = 256
"""Rows that are packed together."""

_Block = tuple[np.ndarray, np.ndarray, Floats]
"""(whether each column holds counts, shape (k,); those columns in two bytes; the others)."""


class Rows:
    """Rows of one width, in the order in which they were added."""

    def __init__(self) -> None:
        """None yet."""
        self._packed: list[_Block] = []
        self._loose = array("d")
        self._width = 0

    def add(self, row: Floats) -> None:
        """Add a row, shape (k,)."""
        self._width = len(row)
        self._loose.frombytes(np.asarray(row, dtype=np.float64).tobytes())
        if len(self._loose) >= ROWS * self._width:
            self._pack()

    def extend(self, other: "Rows") -> None:
        """Add the rows of another; what is packed is shared."""
        self._pack()
        other._pack()  # noqa: SLF001 (one of its kind)
        self._width = other._width or self._width  # noqa: SLF001
        self._packed += other._packed  # noqa: SLF001

    def array(self) -> Floats:
        """All rows, shape (n, k)."""
        self._pack()
        rows = np.empty((sum(len(counts) for _, counts, _ in self._packed), self._width))
        start = 0
        for counted, counts, others in self._packed:
            block = rows[start : start + len(counts)]
            block[:, counted], block[:, ~counted] = counts, others
            start += len(counts)
        return rows

    def _pack(self) -> None:
        if not self._loose:
            return
        rows = np.array(self._loose).reshape(-1, self._width)
        with np.errstate(invalid="ignore"):  # what is no number is no count either
            counts = rows.clip(0.0, 65535.0).astype(np.uint16)
        counted = ((counts == rows) & ~np.signbit(rows)).all(axis=0)
        self._packed.append((counted, counts[:, counted], rows[:, ~counted]))
        self._loose = array("d")
