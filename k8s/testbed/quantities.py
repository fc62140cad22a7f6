"""Kubernetes quantities as numbers. Source: Kubernetes API reference, "Quantity"."""

import math
from decimal import Decimal
from typing import Final

SUFFIXES: Final = {
    "m": Decimal("0.001"),
    "": Decimal(1),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
}


def number(quantity: str | float) -> Decimal:
    """The number that a quantity such as `500m`, `1.5Gi` or 2 stands for."""
    text = str(quantity)
    digits = text.rstrip("KMGTkmi")
    return Decimal(digits) * SUFFIXES[text[len(digits) :]]


def whole(quantity: str | float) -> int:
    """The same, rounded up, as Kubernetes does."""
    return math.ceil(number(quantity))
