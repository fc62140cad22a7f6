"""Where an episode probed: one small panel a field, a mark a probe.

A mark is placed by its window and the field's value and shaped by the action that was best there, so a
field that matters sorts the shapes and a distractor does not. The ground is tinted while the rule holds
the field, and a line shows its threshold.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from adaexplore.benchmark.game.records import EpisodeRecord, ProbeRecord
from adaexplore.benchmark.world import fields as world_fields
from adaexplore.benchmark.world.episodes import World
from adaexplore.benchmark.world.fields import Field
from adaexplore.benchmark.world.rules import Rule
from adaexplore.reports import drawings
from adaexplore.reports.drawings import Axes
from adaexplore.reports.episodes import windows, words
from adaexplore.reports.markup import Markup, element, join

WIDTH: Final = 300
HEIGHT: Final = 132
_CORNERS: Final = {
    1: ((0, -1.2), (1.1, 0.9), (-1.1, 0.9)),
    2: ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    3: ((-1, -1), (1, -1), (1, 1), (-1, 1)),
}
"""Of the shapes that are no circles, in units of their size."""


_TOLD: Final = (
    "Each mark is a probe: across its window, upwards the field's value, its shape the action that was best "
    "there. The ground is tinted while the rule holds the field; a dashed line is its threshold."
)


def panels(record: EpisodeRecord, world: World, total: int) -> Iterable[Markup]:
    """All fields, those of the rule first, with what the shapes mean."""
    yield element("p", _TOLD, class_="small soft")
    yield element("p", *_legend(world), class_="legend small")
    roles = [_role(record, world, field) for field in world.fields]
    order = sorted(range(len(roles)), key=lambda i: not roles[i])
    made = (_captioned(record, world, i, total, roles[i]) for i in order)
    yield element("div", *made, class_="panels")


def _legend(world: World) -> Iterable[Markup]:
    for index, action in enumerate(world.domain.actions):
        mark = action_mark(8, 8, index, action.display_name, size=5)
        key = element("svg", mark, viewBox="0 0 16 16", class_="key", aria_hidden="true")
        yield element("span", key, f" {index} {action.display_name}")


def _captioned(record: EpisodeRecord, world: World, position: int, total: int, role: str) -> Markup:
    field = world.fields[position]
    shown = element("span", role or "distractor", class_="role" if role else "role none")
    told = element("figcaption", element("b", field.display_name), f" {field.unit} ", shown)
    return element("figure", told, panel(record, world, position, total), class_="panel")


def _role(record: EpisodeRecord, world: World, field: Field) -> str:
    """What a field is in the rule, before and after; empty for a distractor."""
    episode = world.episode
    phases = [("before" if record.drifts else "relevant", episode.pre)]
    phases += [("after", episode.post)] if record.drifts else []
    told = [
        f"{when} {words.SIGNS[rule.directions[field.field_id]]}"
        for when, rule in phases
        if field.field_id in rule.directions
    ]
    return ", ".join(told)


def panel(record: EpisodeRecord, world: World, position: int, total: int) -> Markup:
    """Where one field was probed: a mark a probe, by window, shaped by the best action there."""
    field = world.fields[position]
    axes = Axes(
        windows=total, top=8, height=HEIGHT - 30, low=field.minimum, high=field.maximum, left=50,
        width=WIDTH - 58,
    )  # fmt: skip
    values = [field.from_hundredths(probe.row[position]) for probe in record.probes]
    marks = [
        _mark(axes.x(place), axes, field, probe, value)
        for place, probe, value in zip(_places(record.probes), record.probes, values, strict=True)
    ]
    parts = [
        *_relevance(record, world, field, axes),
        *(_limit(axes, value) for value in (field.minimum, field.maximum)),
        *(drawings.label(axes.x(n), HEIGHT - 6, n) for n in _ticks(record, total)),
        *_small_change(record, axes),
        *marks,
    ]
    told = f"{len(set(values))} values, {min(values)} to {max(values)}" if values else "no probe"
    return drawings.drawing(WIDTH, HEIGHT, f"Probes over {field.display_name}", told, *parts)


def _ticks(record: EpisodeRecord, total: int) -> list[int]:
    return [1, record.change_batch, total] if record.drifts else [1, total]


def _limit(axes: Axes, value: float) -> Markup:
    y = axes.y(value)
    shown = f"{value:g}" if abs(value) < 100_000 else f"{value:.0e}"
    return join(
        drawings.line(axes.left, y, axes.left + axes.width, y, "grid"),
        drawings.label(axes.left - 6, y + 4, shown, "end"),
    )


def _small_change(record: EpisodeRecord, axes: Axes) -> Iterable[Markup]:
    if record.drifts:
        x = axes.x(record.change_batch + 0.5)
        yield drawings.line(x, axes.top, x, axes.bottom, "change")


def _relevance(record: EpisodeRecord, world: World, field: Field, axes: Axes) -> Iterable[Markup]:
    """A tinted ground while the field is in the rule, and where its threshold lies."""
    middle = record.change_batch + 0.5 if record.drifts else axes.windows + 0.5
    episode = world.episode
    phases = [(episode.pre, 0.5, middle)]
    if record.drifts:
        phases.append((episode.post, middle, axes.windows + 0.5))
    for rule, start, end in phases:
        yield from _ground(rule, field, axes, axes.x(start), axes.x(end))


def _ground(rule: Rule, field: Field, axes: Axes, x1: float, x2: float) -> Iterable[Markup]:
    for slot in rule.slots:
        if slot.field_id != field.field_id:
            continue
        told = words.condition(rule, slot, field)
        yield drawings.bar(x1, axes.top, x2 - x1, axes.height, "relevant", told)
        if rule.family != world_fields.ADDITIVE:
            y = axes.y(words.threshold(field, slot))
            yield drawings.line(x1, y, x2, y, "threshold")


def _places(probes: Sequence[ProbeRecord]) -> Iterable[float]:
    """Places of probes: side by side, in their order, within their window's column."""
    sizes = Counter(probe.batch_number for probe in probes)
    seen: Counter[int] = Counter()
    for probe in probes:
        number = probe.batch_number
        yield number - 0.5 + (seen[number] + 0.5) / sizes[number]
        seen[number] += 1


def _mark(x: float, axes: Axes, field: Field, probe: ProbeRecord, value: float) -> Markup:
    best = windows.best_action(probe.utilities)
    told = (
        f"{probe.context_id}, window {probe.batch_number}: {value} {field.unit}, "
        f"best action_{best} ({max(probe.utilities):+.2f})"
    )
    return action_mark(x, axes.y(value), best, told)


def action_mark(x: float, y: float, action: int, told: str, size: float = 3.3) -> Markup:
    """The shape of an action: circle, triangle, diamond, square, in rising intensity."""
    if action == 0:
        return drawings.dot(x, y, size, "a0", told)
    at = ((x + size * dx, y + size * dy) for dx, dy in _CORNERS[action])
    points = " ".join(f"{drawings.px(left)},{drawings.px(top)}" for left, top in at)
    return element("polygon", element("title", told), points=points, class_=f"a{action}")
