"""Tables: what a sweep's records say, as rows.

Score tables are made from the tallies of records alone, in a fixed order and with named random streams,
so the same records give the same bytes whatever happened on the way. Undefined is an empty cell, never 0.
"""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.scores import comparisons, estimates, metrics, statistics
from adaexplore.benchmark.scores.estimates import Estimate
from adaexplore.benchmark.scores.metrics import Metric
from adaexplore.benchmark.world import seeds
from adaexplore.experiments.tallies import COUNTED, CURVE, SHOWN, Counted, Group, Tallies, Tally
from adaexplore.experiments.usages import Usage

DIGITS: Final = 6
BASELINE: Final = "default"
"""The setting that ablations are compared with."""
INDEPENDENT: Final = "stationary_iid"
"""The setting with cases of its own: a difference from the baseline would mix them with the lack of drift."""

Estimates = Mapping[tuple[Group, str], Estimate]
"""Estimates by group and name of the metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """What the score tables say, and what it rests on, for every group in the sweep's order."""

    counted: Mapping[Group, Counted]
    known: Estimates
    """Of every metric of the score tables."""


class P(float):
    """A p-value: written with significant digits, since what matters are the small ones."""


Value = str | int | float | Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table with its column names; where people read it, also with a title and a note."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    title: str = ""
    note: str = ""
    """How the numbers are to be read: what n counts, which tests are one family."""

    def csv(self) -> bytes:
        """The table as CSV with Unix line ends; undefined numbers are empty.

        A column of estimates becomes four: the value, and its `low`, `high` and `n`.
        """
        wide = [any(isinstance(row[i], Estimate) for row in self.rows) for i in self._places]
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        names = (_names(name, split) for name, split in zip(self.columns, wide, strict=True))
        writer.writerow(name for some in names for name in some)
        for row in self.rows:
            cells = (_cells(value, split) for value, split in zip(row, wide, strict=True))
            writer.writerow(cell for some in cells for cell in some)
        return buffer.getvalue().encode()

    @property
    def _places(self) -> range:
        return range(len(self.columns))


def _names(column: str, split: bool) -> list[str]:
    parts = ("", "_low", "_high", "_n") if split else ("",)
    return [f"{column}{part}" for part in parts]


def _cells(value: Value, split: bool) -> list[str]:
    if isinstance(value, Estimate):
        return [*map(_cell, (value.value, value.low, value.high)), str(value.n)]
    return [_cell(value), *[""] * (3 if split else 0)]


def _cell(value: str | float) -> str:
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        return f"{value:.{DIGITS}g}" if isinstance(value, P) else f"{value + 0.0:.{DIGITS}f}"
    return str(value)


def estimate(metric: Metric, records: Sequence[EpisodeRecord], *stream: str) -> Estimate:
    """A metric over episode runs, with a bootstrap interval clustered by episode.

    Args:
        metric: What is estimated.
        records: Episode runs of one group, all seeds.
        stream: Names of the random stream, so that every interval has its own.
    """
    return estimates.of_metric(metric, records, rng=_stream(metric, *stream))


def _stream(metric: Metric, *names: str) -> np.random.Generator:
    return seeds.generator("bootstrap", metric.name, *names)


def scores(tallies: Tallies) -> Scores:
    """Every metric of the score tables for every group; as `estimate` of its records."""
    known = {
        (group, metric.name): _of_tally(metric, tally, group)
        for metric in SHOWN
        for group, tally in tallies.items()
    }
    return Scores(counted={g: tally.counted for g, tally in tallies.items()}, known=known)


def _of_tally(metric: Metric, tally: Tally, group: Group) -> Estimate:
    episodes = [episode for episode, _ in tally.keys]
    rows = tally.rows(metric)
    return estimates.of_rows(metric, rows, episodes, rng=_stream(metric, *group))


MAIN_COLUMNS: Final = (
    "model", "setting", "n", "ea", "ea_low", "ea_high", "ca", "ca_low", "ca_high",
    "unique_probes", "re_probes", "factor_recognition", "change_recognition",
)  # fmt: skip


def main_table(scores: Scores) -> Table:
    """One row a model and setting: the six metrics of the paper, accuracies with intervals."""
    rows: list[tuple[Value, ...]] = []
    for group, counted in scores.counted.items():
        ea, ca, *others = (scores.known[group, metric.name] for metric in metrics.MAIN)
        accuracies = (ea.value, ea.low, ea.high, ca.value, ca.low, ca.high)
        rows.append((*group, counted.scored, *accuracies, *(e.value for e in others)))
    return Table(name="main", columns=MAIN_COLUMNS, rows=tuple(rows))


def metric_table(scores: Scores) -> Table:
    """One row a model, setting and metric, each with its interval and n."""
    columns = ("model", "setting", "metric", "value", "low", "high", "n")
    rows: list[tuple[Value, ...]] = []
    for group in scores.counted:
        for metric in SHOWN:
            e = scores.known[group, metric.name]
            rows.append((*group, metric.name, e.value, e.low, e.high, e.n))
    return Table(name="metrics", columns=columns, rows=tuple(rows))


def ablation_table(tallies: Tallies) -> Table:
    """Difference in calibrated accuracy of each setting of the same cases from default, by episode."""
    columns = ("model", "setting", "n", "ca_default", "ca", "difference", "low", "high")
    rows: list[tuple[Value, ...]] = []
    for (model, setting), tally in tallies.items():
        base = tallies.get((model, BASELINE))
        if setting not in (BASELINE, INDEPENDENT) and base is not None:
            rows.append((model, setting, *_difference(base, tally, model, setting)))
    return Table(name="ablation", columns=columns, rows=tuple(rows))


def _difference(base: Tally, other: Tally, model: str, setting: str) -> tuple[Value, ...]:
    """(n, base, other, difference, low, high) over the episodes that both have."""
    metric = metrics.CALIBRATED_ACCURACY
    rows = (zip(tally.keys, tally.rows(metric), strict=True) for tally in (base, other))
    pairs = comparisons.pair_rows(metric, *rows)
    if not pairs.episodes:
        return (0, *[math.nan] * 5)
    before, after = (float(pairs.value(r.sum(axis=0))) for r in (pairs.first, pairs.second))
    rng = seeds.generator("paired bootstrap", model, setting)
    low, high = statistics.paired_interval(pairs.first, pairs.second, pairs.value, rng=rng)
    return len(pairs.episodes), before, after, after - before, low, high


def curve_table(tallies: Tallies) -> Table:
    """Calibrated accuracy by batch, aligned at the change, with a bootstrap band."""
    columns = ("model", "setting", "batches_after_change", "ca", "low", "high", "n")
    rows: list[tuple[Value, ...]] = []
    for group, tally in tallies.items():
        for offset, metric in CURVE.items():
            e = _of_tally(metric, tally, group)
            rows.append((*group, offset, e.value, e.low, e.high, e.n))
    return Table(name="curve", columns=columns, rows=tuple(rows))


def protocol_table(groups: Mapping[Group, Counted]) -> Table:
    """Protocol accounting a model and setting: sums over episode runs."""
    columns = ("model", "setting", "n", "unscored", "unanswered_cases", *COUNTED)
    rows: list[tuple[Value, ...]] = []
    for group, found in groups.items():
        counts = (found.counts[name] for name in COUNTED)
        rows.append((*group, found.runs, found.unscored, found.unanswered, *counts))
    return Table(name="protocol", columns=columns, rows=tuple(rows))


def accounting_table(usages: Mapping[Group, Usage]) -> Table:
    """What was spent a model and setting, by attempts: may differ between ways to the same scores."""
    columns = ("model", "setting", *(field.name for field in fields(Usage)))
    rows: list[tuple[Value, ...]] = []
    for (model, setting), usage in usages.items():
        values = {field.name: getattr(usage, field.name) for field in fields(Usage)}
        if usage.unpriced_tokens:
            values["usd"] = math.nan
        rows.append((model, setting, *values.values()))
    return Table(name="accounting", columns=columns, rows=tuple(rows))


def all_tables(tallies: Tallies, scores: Scores) -> tuple[Table, ...]:
    """Every table of a sweep, from its tallies and the scores that they give."""
    return (
        main_table(scores),
        ablation_table(tallies),
        curve_table(tallies),
        metric_table(scores),
        protocol_table(scores.counted),
    )
