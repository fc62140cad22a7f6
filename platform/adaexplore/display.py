"""What a person sees while a sweep runs and when it is done.

On a terminal: a live line with rates and time left. Elsewhere (a log file, CI): a plain line every
few seconds. Tables are shown with their intervals; the words of models never pass through here.
"""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table as RichTable
from rich.text import Text

from adaexplore.benchmark.scores import metrics
from adaexplore.benchmark.scores.estimates import Estimate
from adaexplore.experiments.forecasts import Forecast
from adaexplore.experiments.sweeps import Plan
from adaexplore.experiments.tables import Scores, Table
from adaexplore.experiments.trackers import Tracker
from adaexplore.models.activity import Activity

LOG_SECONDS: Final = 10.0
DRAW_SECONDS: Final = 0.1
"""As often as the line is drawn; telling it more often only costs."""
LOG_WIDTH: Final = 170
"""Columns where the width of the output is not known."""


def console() -> Console:
    """Where people read: the terminal, or a wide plain page."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=LOG_WIDTH)


class Meter:
    """Counts episodes and calls, and shows them."""

    def __init__(self, output: Console, total: int, activity: Activity) -> None:
        """Show on `output` how much of `total` episode runs is done, and who waits for what."""
        self._activity = activity
        self._output = output
        self._total = total
        self._live: Progress | None = None
        self._start = self._logged = self._drawn = time.monotonic()
        self.episodes = 0
        self.failed = 0
        self.calls = 0

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show progress for as long as the block runs."""
        if not self._output.is_terminal:
            yield
            return
        columns = (
            TextColumn("episodes"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
        )  # fmt: skip
        with Progress(*columns, console=self._output) as self._live:
            self._task = self._live.add_task("episodes", total=self._total, rate="")
            yield
        self._live = None

    def call(self) -> None:
        """One model call was made."""
        self.calls += 1
        self._show()

    def episode(self, *, failed: bool) -> None:
        """One episode run ended."""
        self.episodes += 1
        self.failed += failed
        self._show(completed=True)

    def _show(self, *, completed: bool = False) -> None:
        now_s = time.monotonic()
        if self._live is not None:
            if completed or now_s - self._drawn >= DRAW_SECONDS:
                self._drawn = now_s
                self._live.update(self._task, completed=self.episodes, rate=self._rate())
        elif completed and now_s - self._logged >= LOG_SECONDS:
            self._logged = now_s
            left = self._left()
            for line in self._activity.longest_waits(3):
                self._output.print(f"    {line}", markup=False)
            self._output.print(
                f"  {self.episodes}/{self._total} episodes, {self._rate()}, {left} left"
            )

    def _rate(self) -> str:
        seconds = max(time.monotonic() - self._start, 1e-9)
        failures = f", {self.failed} failed" if self.failed else ""
        return f"{self.episodes / seconds:.1f} episodes/s, {self.calls / seconds:.0f} calls/s{failures}"

    def _left(self) -> str:
        if not self.episodes:
            return "unknown time"
        seconds = (time.monotonic() - self._start) / self.episodes * (self._total - self.episodes)
        return f"{seconds:.0f} s"


def wait_for(output: Console, tracker: Tracker) -> None:
    """Wait until a tracker has shown everything, saying how much is left."""
    if tracker.wait(1.0):
        return
    with output.status("showing runs in MLflow") as status:
        while not tracker.wait(1.0):
            status.update(f"showing runs in MLflow: {tracker.pending()} left")


def show_plan(output: Console, plan: Plan) -> None:
    """What a launch will do."""
    models = list(dict.fromkeys(cell.model for cell in plan.cells))
    settings = list(dict.fromkeys(cell.setting.name for cell in plan.cells))
    seeds = sorted({cell.seed for cell in plan.cells})
    fewest, usual = plan.calls
    output.print(f"sweep {plan.sweep}")
    output.print(f"  models    {', '.join(models)}")
    output.print(f"  settings  {', '.join(settings)}")
    output.print(f"  seeds     {', '.join(map(str, seeds))}")
    output.print(
        f"  cells     {len(plan.cells)}, of {len(plan.worlds)} episodes each: {plan.runs} episode runs"
    )
    output.print(f"  finished  {len(plan.finished)}, to play {len(plan.jobs)}")
    output.print(f"  calls     about {fewest} to {usual}")


def show_forecasts(output: Console, forecasts: dict[str, Forecast]) -> None:
    """What the missing episode runs of each remote model will take, as far as can be told."""
    for name, f in forecasts.items():
        money = "price unknown" if f.usd is None else f"about {f.usd:.2f} USD"
        tokens = f"{f.input_tokens / 1e6:.1f} M tokens in, {f.output_tokens / 1e6:.1f} M out"
        output.print(f"  forecast  {name}: {f.calls} calls, {tokens}, {money} (reasoning apart)")


def show_main(output: Console, scores: Scores) -> None:
    """The main table, every metric with its 95 % interval."""
    short = {
        "ea": "EA", "ca": "CA", "unique_probes": "unique probes", "re_probes": "re-probes",
        "factor_recognition": "FR", "change_recognition": "CR",
    }  # fmt: skip
    labels = max(len(model) + len(setting) for model, setting in scores.counted) + 10
    narrow = output.width < LOG_WIDTH
    most = max(1, (output.width - labels) // 15) if narrow else len(metrics.MAIN)
    for start in range(0, len(metrics.MAIN), most):  # what does not fit side by side goes below
        part = metrics.MAIN[start : start + most]
        shown = _grid("" if start else "Main table (value, 95 % interval over episodes)")
        for name in ("model", "setting", "n", *(short[m.name] for m in part)):
            left = name in ("model", "setting")
            shown.add_column(name, justify="left" if left else "right", no_wrap=True)
        for group, counted in scores.counted.items():
            cells = [Text(_estimate(scores.known[group, m.name], narrow)) for m in part]
            shown.add_row(*group, str(counted.scored), *cells)
        output.print(shown)


def show_rates(output: Console, scores: Scores) -> None:
    """The rates that belong beside the main table, where they are not what they should be."""
    for model, setting in scores.counted:
        found = {m.name: scores.known[(model, setting), m.name].value for m in metrics.BESIDE}
        told = []
        if found["unanswered"] > 0.0:
            told.append(f"{found['unanswered']:.1%} of the cases unanswered")
        told += [
            f"{name.replace('_', ' ')} {found[name]:.1%}"
            for name in ("assessment_completion", "paired_completion")
            if found[name] < 1.0
        ]
        if told:
            output.print(f"  {model} {setting}: {', '.join(told)}", markup=False)


def show_ablation(output: Console, table: Table) -> None:
    """Differences from default, paired by episode."""
    if not table.rows:
        return
    shown = _grid("Ablations: CA against default, paired by episode (difference, 95 % interval)")
    for name in ("model", "setting", "n", "CA default", "CA", "difference"):
        shown.add_column(
            name, justify="left" if name in ("model", "setting") else "right", no_wrap=True
        )
    for row in table.rows:
        base, value, difference, low, high = (x for x in row[3:] if isinstance(x, float))
        numbers = [_number(x) for x in (base, value)]
        interval = f"{difference:+.3f} ({low:+.3f} to {high:+.3f})"
        undefined = math.isnan(difference)
        shown.add_row(*map(str, row[:3]), *numbers, "" if undefined else interval)
    output.print(shown)


def _grid(title: str) -> RichTable:
    return RichTable(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="",
        box=None,
        padding=(0, 1),
    )


def _estimate(e: Estimate, narrow: bool) -> str:
    if math.isnan(e.value):
        return ""
    digits = 3 if abs(e.value) < 10.0 else 1
    value = f"{e.value:.{digits}f}"
    if math.isnan(e.low):
        return value
    gap = "\n" if narrow else " "
    return f"{value}{gap}[{e.low:.{digits - 1}f}, {e.high:.{digits - 1}f}]"


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3f}"


def show_lines(output: Console, lines: Sequence[str]) -> None:
    """Plain lines that are never wrapped, so that they can be copied."""
    for line in lines:
        output.print(line, soft_wrap=True, markup=False)


def plain(text: str) -> str:
    """A text of unknown origin as one line without what would steer a terminal."""
    return "".join(c if c.isprintable() else " " for c in text)
