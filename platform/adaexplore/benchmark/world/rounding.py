"""Rounding many numbers at once, as Python rounds one.

`numpy.round` multiplies, and so goes wrong where a number lies next to a tie; `round` is right and takes
longer than what it rounds took to be made. Records are compared byte for byte, so both ways have to agree.
"""

from typing import Final

import numpy as np

from adaexplore.benchmark.world.fields import Floats

_SURE: Final = 0.499
"""Nearer to a tie than this leaves, Python decides: a product is right to far less than a thousandth."""


def rounded(values: Floats, digits: int) -> Floats:
    """`round(value, digits)` of each value, same shape; values below 1e12 / 10**digits in size."""
    scaled = values * 10.0**digits
    whole = np.rint(scaled)
    result = (
        whole / 10.0**digits
    )  # one division of two exact numbers: the float nearest to the decimal
    unsure = np.abs(scaled - whole) > _SURE
    if unsure.any():
        result[unsure] = [round(value, digits) for value in values[unsure].tolist()]
    return result
