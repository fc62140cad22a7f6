"""The table of a bench run: its rows, and how they become Markdown, JSON and a part of a page.

A row is what was measured in each repeat of one thing, with the target it has, if any. Targets point
both ways: a cost is at most so much, a rate at least. A row without figures says why there are none,
so that nothing is left out in silence.
"""

import json
from dataclasses import asdict, dataclass
from statistics import median

BEGIN = "<!-- bench: what follows is written by make bench -->"
END = "<!-- bench: end -->"
NOTE_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    key: str
    """Name by which other tables find it."""
    what: str
    found: tuple[float, ...] = ()
    """What each repeat gave; empty if it could not be measured."""
    unit: str = ""
    target: float | None = None
    least: bool = False
    """Whether the target is the least that it should be, rather than the most."""
    note: str = ""
    """Why nothing was measured; or what a reader of the figure has to know."""

    @property
    def middle(self):
        """Median of the repeats; nan if there are none."""
        return median(self.found) if self.found else float("nan")

    @property
    def state(self):
        """`met`, `MISSED`, `SKIPPED`, or nothing where there is no target."""
        if not self.found:
            return "SKIPPED"
        if self.target is None:
            return ""
        met = self.middle >= self.target if self.least else self.middle <= self.target
        return "met" if met else "MISSED"

    def line(self):
        """The row in Markdown."""
        note = " ".join(self.note.split()).replace("|", "/")[:NOTE_CHARS]
        what = f"{self.what} ({note})" if note else self.what
        limit = "" if self.target is None else f"at {'least' if self.least else 'most'} "
        target = limit and limit + quantity(self.target, self.unit)
        if not self.found:
            return f"| {what} | | | {target} | {self.state} |"
        few = f"{number(min(self.found))} to {number(max(self.found))}"
        spread = few if len(self.found) > 1 else "once"
        return (
            f"| {what} | {quantity(self.middle, self.unit)} | {spread} | {target} | {self.state} |"
        )


def measured(key, what, found, unit="", target=None, *, least=False):
    """A row of one figure, or of several."""
    figures = tuple(found) if isinstance(found, list | tuple) else (found,)
    return Row(key=key, what=what, found=figures, unit=unit, target=target, least=least)


def number(value):
    """A figure with three digits that count; whole from 100 on, with commas."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 or value == 0 else f"{value:.1e}"


def quantity(value, unit):
    """A figure with its unit."""
    return f"{number(value)} {unit}".rstrip()


def table(rows):
    """All rows in Markdown, and which targets are missed."""
    head = "| what | median | spread | target | |\n|---|---|---|---|---|"
    missed = [row.what for row in rows if row.state == "MISSED"]
    skipped = [row.what for row in rows if row.state == "SKIPPED"]
    lines = [head, *(row.line() for row in rows), "", f"Missed: {'; '.join(missed) or 'none'}."]
    if skipped:
        lines.append(f"Skipped: {'; '.join(skipped)}.")
    return "\n".join(lines)


def dumps(machine, rows):
    """A run as JSON."""
    return json.dumps({"machine": machine, "rows": [asdict(row) for row in rows]}, indent=1) + "\n"


def loads(text):
    """(machine, rows) of a run that was written as JSON."""
    found = json.loads(text)
    return found["machine"], [Row(**{**row, "found": tuple(row["found"])}) for row in found["rows"]]


def replaced(page, block):
    """A page with the text between its two markers replaced.

    Raises:
        ValueError: The page does not have each marker once, in order.
    """
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in tail:
        raise ValueError(f"expected one {BEGIN!r} and behind it one {END!r} in the page")
    return f"{head}{BEGIN}\n\n{block}\n\n{END}{tail}"
