"""Figures of one episode: its course by window, and what it earned beside oracle and chance."""

from collections.abc import Iterable, Sequence
from typing import Final

from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.reports import drawings, page
from adaexplore.reports.drawings import Axes
from adaexplore.reports.episodes import windows
from adaexplore.reports.episodes.windows import Window
from adaexplore.reports.markup import Markup, element, join

_COURSE: Final = (
    "Probes: light ones at new points, dark ones at points of earlier windows. Accuracy: 0 is chance, 1 the "
    "oracle. Utility: what was earned within what was possible."
)
_CUMULATIVE: Final = (
    "Cumulative utility: of this run, of the best action in every case (the oracle), and of actions drawn "
    "by lot, whose utilities sum to zero."
)


def both(record: EpisodeRecord, found: Sequence[Window], total: int) -> Iterable[Markup]:
    """The two figures with their captions, for a run of `total` windows."""
    for drawn, told in (
        (course(record, found, total), _COURSE),
        (cumulative(record, found, total), _CUMULATIVE),
    ):
        box = page.scrolling("figure by window", drawn)
        yield element("figure", box, element("figcaption", told), class_="wide")


# -- the course --------------------------------------------------------------------------------


def course(record: EpisodeRecord, found: Sequence[Window], total: int) -> Markup:
    """Probes, accuracy and utility by window, with the change marked."""
    most = max([4, *(window.probes for window in found)])
    probes = Axes(windows=total, top=26, height=70, low=0, high=most)
    accuracy = Axes(windows=total, top=126, height=116, low=-0.5, high=1)
    best = max([1.0, *(window.best for window in found)])
    lost = min([0.0, *(window.earned for window in found)])
    utility = Axes(windows=total, top=274, height=106, low=lost, high=best)
    told = (
        f"{sum(w.probes for w in found)} probes and {sum(w.right for w in found)} best actions over "
        f"{len(found)} windows; the table of cases below gives every number."
    )
    parts = [
        *_frame(probes, "probes", (0, most)),
        *_frame(accuracy, "accuracy", (0, 1)),
        *_frame(utility, "utility", (0, round(best))),
        *_change(record, total, 18, utility.bottom),
        *_ticks(utility),
        *(_probe_bars(probes, window) for window in found),
        *_accuracy_line(accuracy, found),
        *(_utility_bars(utility, window) for window in found),
    ]
    return drawings.drawing(
        drawings.WIDTH, utility.bottom + 34, "The course of the episode by window", told, *parts
    )


def _frame(axes: Axes, name: str, marks: Iterable[float]) -> Iterable[Markup]:
    yield drawings.label(axes.left, axes.top - 9, name, "start", "axis")
    for mark in marks:
        y = axes.y(mark)
        yield drawings.line(axes.left, y, axes.left + axes.width, y, "grid")
        yield drawings.label(axes.left - 8, y + 4, f"{mark:g}", "end")


def _ticks(axes: Axes) -> Iterable[Markup]:
    for number in range(1, axes.windows + 1):
        yield drawings.label(axes.x(number), axes.bottom + 16, number)
    yield drawings.label(axes.left - 8, axes.bottom + 16, "window", "end", "axis")


def _change(record: EpisodeRecord, total: int, top: float, bottom: float) -> Iterable[Markup]:
    if record.drifts:
        x = Axes(windows=total, top=0, height=1, low=0, high=1).x(record.change_batch + 0.5)
        yield drawings.line(x, top, x, bottom, "change")
        yield drawings.label(x + 5, top - 1, "the rule changes", "start", "changed")


def _probe_bars(axes: Axes, window: Window) -> Markup:
    width = 0.6 * axes.column
    x = axes.x(window.number) - width / 2
    told = f"window {window.number}: {window.probes} probes, {window.repeated} at known points"
    known, new = axes.y(window.repeated), axes.y(window.probes)
    return join(
        drawings.bar(x, known, width, axes.bottom - known, "known", told)
        if window.repeated
        else None,
        drawings.bar(x, new, width, known - new, "new", told),
    )


def _accuracy_line(axes: Axes, found: Sequence[Window]) -> Iterable[Markup]:
    points = [(axes.x(w.number), axes.y(max(w.accuracy, axes.low))) for w in found]
    yield drawings.path(points, "own")
    for (x, y), window in zip(points, found, strict=True):
        told = (
            f"window {window.number}: calibrated accuracy {window.accuracy:.2f}, "
            f"{window.right} of {len(window.cases)} right"
        )
        yield element(
            "circle",
            element("title", told),
            cx=drawings.px(x),
            cy=drawings.px(y),
            r=4,
            class_="own-mark",
        )
    for value, name in ((1.0, "oracle"), (0.0, "chance")):
        yield drawings.label(axes.left + axes.width + 10, axes.y(value) + 4, name, "start", "axis")


def _utility_bars(axes: Axes, window: Window) -> Markup:
    width = 0.6 * axes.column
    x, zero = axes.x(window.number) - width / 2, axes.y(0)
    told = f"window {window.number}: {window.earned:+.2f} of {window.best:.2f}"
    own = axes.y(window.earned)
    return join(
        drawings.bar(x, axes.y(window.best), width, zero - axes.y(window.best), "possible", told),
        drawings.bar(x, min(own, zero), width, abs(zero - own), "earned", told),
    )


# -- what it earned ----------------------------------------------------------------------------


def cumulative(record: EpisodeRecord, found: Sequence[Window], total: int) -> Markup:
    """Cumulative utility of the run, of the oracle and of actions drawn by lot."""
    sums = windows.totals(found)
    low = min([0.0, *sums.earned])
    high = max([1.0, *sums.best])
    axes = Axes(windows=total, top=26, height=210, low=low, high=high)
    lines = (
        ("oracle", sums.best, "oracle"),
        ("this run", sums.earned, "own"),
        ("by lot", sums.chance, "lot"),
    )
    told = "; ".join(f"{name} {values[-1]:+.2f}" for name, values, _ in lines if values)
    places = spread([axes.y(values[-1]) for _, values, _ in lines if values], 14)
    parts = [
        *_frame(axes, "cumulative utility", (0, round(high / 2), round(high))),
        *_change(record, total, 18, axes.bottom),
        *_ticks(axes),
    ]
    for (name, values, class_), place in zip(lines, places, strict=False):
        points = [(axes.x(w.number), axes.y(v)) for w, v in zip(found, values, strict=True)]
        parts.append(drawings.path(points, class_))
        end = f"{name} {round(values[-1], 1) + 0.0:.1f}"
        parts.append(drawings.label(points[-1][0] + 14, place + 4, end, "start", "end"))
    return drawings.drawing(
        drawings.WIDTH, axes.bottom + 34, "Cumulative utility by window", told, *parts
    )


def spread(places: Sequence[float], least: float) -> list[float]:
    """Places moved down until each is so far below the one above it, in their order."""
    found: dict[int, float] = {}
    last = float("-inf")
    for index in sorted(range(len(places)), key=lambda i: places[i]):
        found[index] = last = max(places[index], last + least)
    return [found[index] for index in range(len(places))]
