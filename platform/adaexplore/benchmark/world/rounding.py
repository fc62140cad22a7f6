"""Rounding many numbers, as Python's `round` does, in a third of its time.

`round` is right at ties and next to them, because it goes by way of the number's decimal text. A product
is right everywhere else. Records are compared byte for byte, so both ways have to agree.
"""

from collections.abc import Iterable
from typing import Final

SURE: Final = 0.499
"""Nearer to a tie than this leaves, the text decides: a product is right to far less than a thousandth."""


def rounded(values: Iterable[float], digits: int) -> list[float]:
    """`round(value, digits)` of each value; values below 1e12 / 10**digits in size."""
    scale = 10.0**digits
    result = []
    for value in values:
        scaled = value * scale
        whole = round(scaled)
        if whole and -SURE < scaled - whole < SURE:
            result.append(whole / scale)  # of two exact numbers: the float nearest to the decimal
        else:
            result.append(round(value, digits))  # it knows a negative zero, too
    return result
