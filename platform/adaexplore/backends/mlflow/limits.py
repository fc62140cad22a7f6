"""What MLflow takes: characters of names, lengths of values, entries of one call.

MLflow refuses some names, cuts long values without a word, and makes infinity a number. So names are
spelled with what it takes, with a mark of the original where that changed it; a long value ends with
its length and digest; undefined and infinite points are left out. Source: limits of MLflow 3.17.
"""

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from adaexplore.backends.mlflow.service import Entry
from adaexplore.experiments.contents import Point

PARAM_CHARS: Final = 6000
TAG_CHARS: Final = 8000
NAME_CHARS: Final = 250
PARAMS_A_CALL: Final = 100
POINTS_A_CALL: Final = 800
"""With its params, a call then has at most the 1,000 entries that MLflow takes."""
_REFUSED: Final = re.compile(r"[^\w./ -]", re.ASCII)


def name(key: str) -> str:
    """A key as MLflow takes it, the same for the same key, other keys giving others."""
    spelled = _REFUSED.sub("_", key)
    parts = [part if part.strip(".") else f"_{part}" for part in spelled.split("/")]
    spelled = "/".join(parts)
    if spelled == key and len(key) <= NAME_CHARS:
        return key
    return f"{spelled[: NAME_CHARS - 9]}-{_mark(key)[:8]}"


def clipped(value: str, most: int) -> str:
    """A value of at most so many characters; a longer one ends with its length and digest."""
    if len(value) <= most:
        return value
    end = f"... ({len(value)} characters, sha256 {_mark(value)[:16]})"
    return value[: most - len(end)] + end


def params(given: Mapping[str, str]) -> dict[str, str]:
    """Params as MLflow takes them."""
    return {name(key): clipped(value, PARAM_CHARS) for key, value in given.items()}


def tags(given: Mapping[str, str]) -> dict[str, str]:
    """Tags as MLflow takes them; those of MLflow itself keep their names."""
    return {name(key): clipped(value, TAG_CHARS) for key, value in given.items()}


def points(given: Iterable[Point]) -> list[Point]:
    """Points as MLflow takes them, without undefined and infinite ones."""
    return [(name(key), value, step) for key, value, step in given if math.isfinite(value)]


def entries(
    shown: Iterable[Point], given: Mapping[str, str], last: Mapping[str, str], time_ms: int
) -> Iterator[Entry]:
    """The calls that log points and params, as few as may be; `last` are tags that go with the last."""
    pairs, series = list(params(given).items()), points(shown)
    calls = max(1, -(-len(pairs) // PARAMS_A_CALL), -(-len(series) // POINTS_A_CALL))
    for n in range(calls):
        yield Entry(
            points=series[n * POINTS_A_CALL : (n + 1) * POINTS_A_CALL],
            params=dict(pairs[n * PARAMS_A_CALL : (n + 1) * PARAMS_A_CALL]),
            tags=tags(last) if n == calls - 1 else None,
            time_ms=time_ms,
        )


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
