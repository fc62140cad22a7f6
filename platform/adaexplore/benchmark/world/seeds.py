"""Seeds by name.

A random stream belongs to a purpose, never to a position, a time or a worker: `generator("search",
"hospital_bed_flow", 3)` is the same stream wherever and whenever it is asked for, and adding a
stream never shifts another one.
"""

import hashlib

import numpy as np


def generator(*path: str | int) -> np.random.Generator:
    """Generator of the stream with this path of names.

    Args:
        path: What the stream is for, from the general to the particular. Not empty.

    Returns:
        A fresh PCG64 generator, equal for equal paths on every machine.

    Raises:
        ValueError: The path is empty.
    """
    if not path:
        raise ValueError("expected at least one name for a random stream, got none")
    name = "\x1f".join(f"{type(part).__name__}:{part}" for part in path)
    entropy = int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "big")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))
