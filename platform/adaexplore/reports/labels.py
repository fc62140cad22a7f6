"""Labels: what columns of tables are called where people read them."""

from dataclasses import replace
from typing import Final

from adaexplore.benchmark.scores.estimates import Estimate
from adaexplore.experiments.tables import Table

HEADS: Final = {
    "n": "n", "ea": "EA", "ca": "CA", "factor_recognition": "FR", "change_recognition": "CR",
    "p": "p", "p_holm": "p (Holm)", "p_normalised": "p (normalised)",
    "p_holm_normalised": "p (normalised, Holm)", "r": "r", "r_normalised": "r (normalised)",
    "rho": "rho", "d_z": "d_z", "p_drop": "p (drop)", "p_regained": "p (regained)",
    "p_remaining": "p (remaining)", "rank_biserial": "rank-biserial", "usd": "USD",
    "rank_biserial_drop": "rank-biserial (drop)", "rank_biserial_regained": "rank-biserial (regained)",
    "rank_biserial_remaining": "rank-biserial (remaining)", "usd_per_run": "USD a run",
    "output_tokens_per_run": "output tokens a run", "ca_default": "CA default",
    "ca_stationary": "CA stationary", "r_ea": "r with EA", "p_ea": "p", "r_ca": "r with CA", "p_ca": "p",
    "offset": "batches after the change", "re_probes": "re-probes",
}  # fmt: skip
"""Heads that are not the column's name in words."""
EXPLAINED: Final = {
    "ea": "exact accuracy: share of cases with the best action",
    "ca": "calibrated accuracy: 0 is chance, 1 the oracle",
    "factor_recognition": "factor recognition: F1 of the fields reported as relevant",
    "change_recognition": "change recognition: F1 of the reported parts of the change",
    "re_probes": "points from before the change that were asked again after it",
    "unique_probes": "distinct points that were asked, before and after the change",
}
"""What heads mean, for those who do not know the benchmark by heart."""


def head(column: str) -> str:
    """The head of a column."""
    return HEADS.get(column, column.replace("_", " "))


def numeric(table: Table) -> list[bool]:
    """Which columns hold numbers."""
    return [
        all(isinstance(row[i], int | float | Estimate) for row in table.rows)
        for i in range(len(table.columns))
    ]


def with_n(table: Table) -> Table:
    """The table with a column for n, where it has estimates and none yet: the largest n of the row."""
    if "n" in table.columns:
        return table
    sizes = ([v.n for v in row if isinstance(v, Estimate)] for row in table.rows)
    largest = [max(found, default=None) for found in sizes]
    if not any(largest):
        return table
    first = next(i for i, number in enumerate([*numeric(table), True]) if number)
    rows = (
        (*row[:first], "" if n is None else n, *row[first:])
        for row, n in zip(table.rows, largest, strict=True)
    )
    columns = (*table.columns[:first], "n", *table.columns[first:])
    return replace(table, columns=columns, rows=tuple(rows))
