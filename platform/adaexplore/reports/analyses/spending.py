"""Spending: how the protocol was followed, and what the calls cost.

Protocol counts are part of the records and the same for everyone who replays them; calls, tokens, money
and time come from attempts, failed ones included, and differ between two ways to the same scores.
"""

from dataclasses import fields, replace
from math import nan
from typing import Final

import numpy as np

from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.scores import metrics
from adaexplore.benchmark.scores.estimates import Estimate
from adaexplore.benchmark.scores.metrics import Metric
from adaexplore.benchmark.world.fields import Floats
from adaexplore.experiments.tables import Table, Value, protocol_table
from adaexplore.experiments.tallies import COUNTED, Counted
from adaexplore.experiments.usages import Usage
from adaexplore.reports.evidence import Evidence
from adaexplore.reports.sections import Analysis, listed, told

UNHEEDED: Final = 0.05
"""Share of unanswered cases above which a score says as much of the protocol as of the model."""


def _rate(name: str) -> Metric:
    """A count of the protocol as a mean over episode runs."""

    def contribution(record: EpisodeRecord) -> Floats:
        return np.array([getattr(record.counts, name), 1.0])

    return Metric(
        name=f"{name}_mean",
        contribution=contribution,
        value=lambda s: metrics.ratio(s[..., 0], s[..., 1]),
    )


RATES: Final = tuple(map(_rate, COUNTED))


def protocol(evidence: Evidence) -> Analysis:
    """Repairs, fallbacks, truncations, abstentions and calculator use."""
    blank = Analysis(
        key="protocol", title="Following the protocol",
        question="Do models reply in the form that was asked for, and how often are they helped out?",
    )  # fmt: skip
    if not any(evidence.records.values()):
        return replace(blank, absent="no episode run has a result yet")
    counted = {group: Counted.of(runs) for group, runs in evidence.records.items()}
    sums = replace(
        protocol_table(counted), name="protocol_sums", title="Sums over episode runs",
        note="n counts runs with a result; unscored are those that a full context or a content filter ended.",
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = []
    for model, setting in evidence.records:
        runs = evidence.under(setting).get(model, ())
        found = evidence.estimates(RATES, runs, "protocol", model, setting)
        unanswered = evidence.scores()[(model, setting), metrics.UNANSWERED.name]
        rows.append((model, setting, unanswered, *(found[rate.name] for rate in RATES)))
    means = Table(
        name="protocol", columns=("model", "setting", "unanswered", *COUNTED), rows=tuple(rows),
        title="Means over scored episode runs", note="Unanswered is a share of cases; n counts runs.",
    )  # fmt: skip
    silent = {
        f"{row[0]} under {row[1]}": e
        for row in rows
        if isinstance(e := row[2], Estimate) and e.value > UNHEEDED
    }
    return replace(blank, reading=_silence(silent), tables=(means, sums), warnings=_warned(silent))


def _silence(silent: dict[str, Estimate]) -> str:
    if not silent:
        return f"No model leaves more than {UNHEEDED:.0%} of its cases unanswered."
    most = max(silent, key=lambda name: silent[name].value)
    return f"{most} leaves a share of {told(silent[most])} of its cases unanswered."


def _warned(silent: dict[str, Estimate]) -> tuple[str, ...]:
    if not silent:
        return ()
    names = listed(list(silent))
    says = "these scores say as much of the protocol as of the model"
    return (f"Many cases are unanswered for {names}: {says}.",)


def cost(evidence: Evidence) -> Analysis:
    """Calls, failed attempts, tokens, money and time."""
    blank = Analysis(
        key="cost",
        title="Calls, tokens and money",
        question="What did the results cost, retries included?",
    )
    if not any(usage.calls or usage.failed_attempts for usage in evidence.usages.values()):
        return replace(blank, absent="no attempt has booked a call")
    columns = (
        "model",
        "setting",
        *(f.name for f in fields(Usage)),
        "usd_per_run",
        "output_tokens_per_run",
    )
    rows = tuple(_cost_row(evidence, group, usage) for group, usage in evidence.usages.items())
    table = Table(
        name="cost", columns=columns, rows=rows, title="All attempts, over all launches",
        note="Lost tokens are the input of calls whose answer never came. Money leaves out models without a "
        "known price; a row with any unpriced token has none. Seconds are those of the calls themselves.",
    )  # fmt: skip
    total = Usage()
    for usage in evidence.usages.values():
        total.add(usage)
    reading = (
        f"{total.calls} calls were answered and {total.failed_attempts} attempts at a call failed; "
        f"{total.input_tokens} tokens went in and {total.output_tokens} came out, for {total.usd:.2f} USD"
        + (
            f" and {total.unpriced_tokens} tokens without a known price."
            if total.unpriced_tokens
            else "."
        )
    )
    return replace(blank, reading=reading, tables=(table,))


def _cost_row(evidence: Evidence, group: tuple[str, str], usage: Usage) -> tuple[Value, ...]:
    values = {f.name: getattr(usage, f.name) for f in fields(Usage)}
    if usage.unpriced_tokens:
        values["usd"] = nan
    runs = len(evidence.records.get(group, ())) or nan
    return (*group, *values.values(), values["usd"] / runs, usage.output_tokens / runs)
