"""`one_factor`: explore once, one field at a time, and never look again.

The textbook experiment: from a base point every field is moved alone, low and high; then the same
from an answered point whose score is nearest to the middle, where effects are not hidden by the
ends of the scale; then the fields that mattered through more levels. The four families are fitted
to these probes, and from then on the agent only acts. It is a fair player of a world that stays as
it is, and shows what a change costs to one who does not look.
"""

from typing import Final

from adaexplore.benchmark.game.agents import calls, inference, points
from adaexplore.benchmark.game.agents.beliefs import believed, choose, observed, report
from adaexplore.benchmark.game.agents.inference import Committee
from adaexplore.benchmark.game.agents.observations import middle_score
from adaexplore.benchmark.game.agents.points import Space
from adaexplore.benchmark.game.agents.reading import SeenProbe, View, read
from adaexplore.benchmark.game.agents.simple import filler
from adaexplore.benchmark.game.protocol import Message
from adaexplore.benchmark.world.episodes import Row

WINDOWS: Final = 3
"""Windows that are explored; afterwards the belief is never revised."""
_ENDS: Final = (-0.8, 0.8)
_INNER: Final = (-0.4, 0.4)
_LEVELS: Final = (0.1, -0.6, 0.6, -0.2, 0.35)


def one_factor(messages: tuple[Message, ...], _seed: int) -> str:
    """Reply of the agent that explores the first windows only."""
    view = read(messages)
    if view.decision == "explore":
        rows = design(view) if view.window <= WINDOWS else ()
        return calls.explore(view, rows, filler(view))
    if view.decision == "assess":
        return calls.assess(report(view, _belief(view)))
    return calls.submit(view, choose(view, _belief(view)))


def _belief(view: View) -> Committee | None:
    return believed(points.space(view), tuple(p for p in view.probes if p.window <= WINDOWS))


def design(view: View) -> tuple[Row, ...]:
    """Rows of the next call of an exploring window."""
    where = points.space(view)
    if not view.probes:
        return first_design(where)
    base = _base(view)
    moved = inference.moved_columns(observed(where, view.probes))
    levels: dict[int, tuple[float, ...]] = dict.fromkeys(moved, _LEVELS)
    if view.window == 2:
        levels = {c: _INNER if c in moved else _ENDS for c in range(len(base))}
    asked = {probe.row for probe in view.probes}
    return tuple(row for row in one_at_a_time(where, base, levels) if row not in asked)


def first_design(where: Space) -> tuple[Row, ...]:
    """Every field alone, low and high, from the middle of all ranges."""
    base = points.middle(where)
    if base is None:
        return ()
    return one_at_a_time(where, base, dict.fromkeys(range(len(base)), _ENDS))


def one_at_a_time(where: Space, base: Row, levels: dict[int, tuple[float, ...]]) -> tuple[Row, ...]:
    """From the base, each column alone at its levels, or as near to them as is feasible."""
    moved = [points.varied(where, base, {c: level}) for c, ls in levels.items() for level in ls]
    return tuple(dict.fromkeys(row for row in moved if row is not None))


def _base(view: View) -> Row:
    """The row answered nearest to the middle of the scale, in the window before."""
    recent: list[SeenProbe] = [p for p in view.probes if p.window == view.probes[-1].window]
    return min(recent, key=lambda p: (round(abs(middle_score(p.utilities)), 6), p.context_id)).row
