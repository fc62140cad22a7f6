"""From what was seen to what is believed, said and done: the part that learning agents share."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from adaexplore.benchmark.game.agents import fitting, inference, points
from adaexplore.benchmark.game.agents.fitting import Data
from adaexplore.benchmark.game.agents.inference import Committee, Effort
from adaexplore.benchmark.game.agents.observations import of_case, of_probe
from adaexplore.benchmark.game.agents.points import Space
from adaexplore.benchmark.game.agents.reading import SeenCase, SeenProbe, View

UNKNOWING: Final = 1
"""The action of an agent that believes nothing yet: the mild one in the middle."""


def observed(where: Space, probes: Sequence[SeenProbe], cases: Sequence[SeenCase] = ()) -> Data:
    """Probes and finished cases as data to fit."""
    rows = (*(probe.row for probe in probes), *(case.row for case in cases))
    told = [*(of_probe(p) for p in probes), *(of_case(c) for c in cases)]
    return fitting.data(points.normalised(where.fields, rows), told)


@lru_cache(maxsize=512)
def believed(where: Space, probes: tuple[SeenProbe, ...]) -> Committee | None:
    """The committee fitted to probes alone; None without any."""
    return inference.fit(observed(where, probes), Effort()) if probes else None


def choose(view: View, held: Committee | None) -> list[int]:
    """The action that promises most for every pending case."""
    if held is None:
        return [UNKNOWING] * len(view.pending)
    rows = tuple(row for _, row in view.pending)
    return inference.best_actions(held, points.normalised(view.fields, rows))


def report(view: View, held: Committee | None) -> dict[str, int]:
    """Relevant fields and their directions, as the best member has them."""
    if held is None:
        return {}
    return {view.fields[column].field_id: d for column, d in held.best.directions.items()}
