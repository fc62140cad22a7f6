"""What can go wrong between us and a bucket, and what each fault asks for.

A fault has one of four classes. BUSY may pass: it is tried again with pauses. EXPIRED asks for fresh
credentials, once. KEYS asks whether the credentials have changed meanwhile, and is final if not.
FINAL is never tried again. How exceptions become faults is in `diagnoses`.
"""

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a fault asks for."""

    BUSY = "busy"
    EXPIRED = "expired"
    KEYS = "keys"
    FINAL = "final"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One failed try."""

    kind: Kind
    what: str
    """What came."""
    mend: str
    """What to do about it; `{keys}` stands for where keys are looked for."""
    code: str = ""
    """The service's name of the fault, or its HTTP status where it sent no name."""
    status: int = 0
    """HTTP status; 0 if there was no answer."""


def message(fault: Fault, where: str, keys: str, tries: int) -> str:
    """The one line that a user reads.

    Args:
        fault: The last one.
        where: Address of the object and of the service.
        keys: Where credentials are looked for; never their values.
        tries: How often it was tried.
    """
    often = f" ({tries} times)" if tries > 1 else ""
    return f"{where}: {fault.what}{often}; {fault.mend.format(keys=keys)}"


def short(text: str) -> str:
    """A text as part of one line."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(plain.split())[:200]
