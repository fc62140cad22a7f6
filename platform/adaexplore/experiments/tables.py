"""Tables: what a sweep's records say, as rows.

Score tables are made from records alone, in a fixed order and with named random streams, so the
same records give the same bytes whatever happened on the way. Undefined is an empty cell, never 0.
"""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.scores import metrics, statistics
from adaexplore.benchmark.scores.metrics import Metric
from adaexplore.benchmark.world import seeds
from adaexplore.benchmark.world.fields import Floats
from adaexplore.experiments.usages import Usage

DIGITS: Final = 6
BASELINE: Final = "default"
"""The setting that ablations are compared with."""

Group = tuple[str, str]
"""(model, setting): what a row of the main table pools, over all seeds."""
Records = Mapping[Group, Sequence[EpisodeRecord]]
"""Records by group, in the order of the sweep's axes."""
Value = str | int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table with its column names."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    def csv(self) -> bytes:
        """The table as CSV with Unix line ends; undefined numbers are empty."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_cell(value) for value in row] for row in self.rows)
        return buffer.getvalue().encode()


def _cell(value: Value) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value + 0.0:.{DIGITS}f}"
    return str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A metric with its 95 % interval and the number of episode runs for which it is defined."""

    value: float
    low: float
    high: float
    n: int


def scored(records: Sequence[EpisodeRecord]) -> list[EpisodeRecord]:
    """Episodes that count: those that the provider did not end, ordered by their ids."""
    return sorted((r for r in records if r.status == "completed"), key=lambda r: r.episode_id)


def estimate(metric: Metric, records: Sequence[EpisodeRecord], *stream: str) -> Estimate:
    """A metric over episode runs, with a bootstrap interval clustered by episode.

    Args:
        metric: What is estimated.
        records: Episode runs of one group, all seeds.
        stream: Names of the random stream, so that every interval has its own.
    """
    counted = scored(records)
    rows = metrics.contributions(metric, counted)
    if not len(rows):
        return Estimate(value=math.nan, low=math.nan, high=math.nan, n=0)
    rng = seeds.generator("bootstrap", metric.name, *stream)
    clusters = [record.episode_id for record in counted]
    low, high = statistics.interval(rows, clusters, metric.value, rng=rng)
    point = float(metric.value(rows.sum(axis=0)))
    if math.isnan(point):
        low = high = math.nan
    defined = int(np.isfinite(metric.value(rows)).sum())
    return Estimate(value=point, low=low, high=high, n=defined)


MAIN_COLUMNS: Final = (
    "model", "setting", "n", "ea", "ea_low", "ea_high", "ca", "ca_low", "ca_high",
    "unique_probes", "re_probes", "factor_recognition", "change_recognition",
)  # fmt: skip


def main_table(records: Records) -> Table:
    """One row a model and setting: the six metrics of the paper, accuracies with intervals."""
    rows: list[tuple[Value, ...]] = []
    for (model, setting), group in records.items():
        found = {m.name: estimate(m, group, model, setting) for m in metrics.MAIN}
        ea, ca = found["ea"], found["ca"]
        others = [found[name].value for name in MAIN_COLUMNS[9:]]
        accuracies = (ea.value, ea.low, ea.high, ca.value, ca.low, ca.high)
        rows.append((model, setting, len(scored(group)), *accuracies, *others))
    return Table(name="main", columns=MAIN_COLUMNS, rows=tuple(rows))


def metric_table(records: Records) -> Table:
    """One row a model, setting and metric, each with its interval and n."""
    columns = ("model", "setting", "metric", "value", "low", "high", "n")
    rows: list[tuple[Value, ...]] = []
    for (model, setting), group in records.items():
        for metric in (*metrics.MAIN, *metrics.BESIDE):
            e = estimate(metric, group, model, setting)
            rows.append((model, setting, metric.name, e.value, e.low, e.high, e.n))
    return Table(name="metrics", columns=columns, rows=tuple(rows))


def ablation_table(records: Records) -> Table:
    """Difference in calibrated accuracy of each setting from default, paired by episode."""
    columns = ("model", "setting", "n", "ca_default", "ca", "difference", "low", "high")
    rows: list[tuple[Value, ...]] = []
    for (model, setting), group in records.items():
        base = records.get((model, BASELINE))
        if setting != BASELINE and base is not None:
            rows.append((model, setting, *_difference(base, group, model, setting)))
    return Table(name="ablation", columns=columns, rows=tuple(rows))


def _difference(
    base: Sequence[EpisodeRecord], other: Sequence[EpisodeRecord], model: str, setting: str
) -> tuple[Value, ...]:
    """(n, base, other, difference, low, high) over the episodes that both have."""
    first, second = _sums_by_episode(base), _sums_by_episode(other)
    # Equal hidden digests prove that both met the same cases and the same rules.
    shared = sorted(first.keys() & second.keys())
    if not shared:
        return (0, *[math.nan] * 5)
    rows = [np.stack([sums[key] for key in shared]) for sums in (first, second)]
    value = metrics.calibrated_accuracy_value
    before, after = (float(value(r.sum(axis=0))) for r in rows)
    rng = seeds.generator("paired bootstrap", model, setting)
    low, high = statistics.paired_interval(rows[0], rows[1], value, rng=rng)
    return len(shared), before, after, after - before, low, high


def _sums_by_episode(records: Sequence[EpisodeRecord]) -> dict[tuple[str, str], Floats]:
    """Accuracy sums over all seeds, by (episode, digest of its hidden side)."""
    sums: dict[tuple[str, str], Floats] = {}
    for record in scored(records):
        key = (record.episode_id, record.hidden_digest)
        sums[key] = sums.get(key, np.zeros(5)) + metrics.accuracy_sums(record.cases)
    return sums


def curve_table(records: Records) -> Table:
    """Calibrated accuracy by batch, aligned at the change, with a bootstrap band."""
    columns = ("model", "setting", "batches_after_change", "ca", "low", "high", "n")
    rows: list[tuple[Value, ...]] = []
    for (model, setting), group in records.items():
        for offset in metrics.OFFSETS:
            e = estimate(metrics.at_offset(offset), group, model, setting)
            rows.append((model, setting, offset, e.value, e.low, e.high, e.n))
    return Table(name="curve", columns=columns, rows=tuple(rows))


COUNTED: Final = (
    "turns", "repairs", "fallbacks", "truncations", "calculator_calls", "lenient_would_accept",
)  # fmt: skip


def protocol_table(records: Records) -> Table:
    """Protocol accounting a model and setting: sums over episode runs."""
    columns = ("model", "setting", "n", "unscored", "unanswered_cases", *COUNTED)
    rows: list[tuple[Value, ...]] = []
    for (model, setting), group in records.items():
        unanswered = sum(case.action is None for record in group for case in record.cases)
        counts = [sum(getattr(record.counts, name) for record in group) for name in COUNTED]
        unscored = len(group) - len(scored(group))
        rows.append((model, setting, len(group), unscored, unanswered, *counts))
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


def all_tables(records: Records) -> tuple[Table, ...]:
    """Every table of a sweep."""
    makers = (main_table, ablation_table, curve_table, metric_table, protocol_table)
    return tuple(make(records) for make in makers)
