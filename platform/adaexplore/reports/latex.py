"""LaTeX: tables as they go into a paper (booktabs)."""

from math import isfinite
from typing import Final

from adaexplore.benchmark.scores.estimates import Estimate
from adaexplore.experiments.tables import P, Table, Value
from adaexplore.reports import labels

SPECIAL: Final = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}",
}  # fmt: skip


def escaped(text: str) -> str:
    """A text without meaning to LaTeX; line breaks and what cannot be seen become spaces."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    return "".join(SPECIAL.get(char, char) for char in plain)


def table(made: Table) -> bytes:
    """A `table` environment with title and note; values with their intervals in brackets."""
    made = labels.with_n(made)
    numbers = labels.numeric(made)
    kinds = "".join("r" if number else "l" for number in numbers)
    heads = " & ".join(escaped(labels.head(column)) for column in made.columns)
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escaped(made.title or made.name)}. {escaped(made.note)}}}",
        rf"\label{{tab:{made.name}}}",
        rf"\begin{{tabular}}{{{kinds}}}",
        r"\toprule",
        rf"{heads} \\",
        r"\midrule",
        *(rf"{' & '.join(map(_cell, row))} \\" for row in made.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return ("\n".join(lines) + "\n").encode()


def _cell(value: Value) -> str:
    if isinstance(value, Estimate):
        if not isfinite(value.value):
            return "--"
        interval = f" [{_number(value.low)}, {_number(value.high)}]" if isfinite(value.low) else ""
        return _number(value.value) + interval
    if isinstance(value, P):
        return "--" if not isfinite(value) else f"${'<0.001' if value < 0.001 else f'{value:.3f}'}$"
    if isinstance(value, float):
        return _number(value) if isfinite(value) else "--"
    return escaped(str(value))


def _number(value: float) -> str:
    return f"${round(value, 3) + 0.0:.3f}$"
