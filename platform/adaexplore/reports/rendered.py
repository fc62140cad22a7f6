"""Rendered: analyses as sections of a page.

Tables sort by buttons in their heads, scroll inside their own box, and tell assistive software which
column they are sorted by. A number that rests on another n than its row says so itself.
"""

from collections.abc import Sequence
from math import isfinite

from adaexplore.benchmark.scores.estimates import Estimate
from adaexplore.experiments.tables import P, Table, Value
from adaexplore.reports import labels, page, plots
from adaexplore.reports.markup import Markup, element, join
from adaexplore.reports.sections import Analysis, Figure, shown, shown_p

LONG = 24
"""Rows above which a table gets a box of its own height."""
SURE = 0.05
"""Adjusted p below which a value is shown in bold."""


def section(analysis: Analysis) -> Markup:
    """One analysis."""
    return page.section(
        analysis.key,
        analysis.title,
        element("p", analysis.question, class_="question"),
        element("p", analysis.reading, class_="reading") if analysis.reading else None,
        warnings(analysis.warnings),
        *map(figure, analysis.figures),
        *map(table, analysis.tables),
        _links(analysis.links),
    )


def _links(found: Sequence[tuple[str, str]]) -> Markup | None:
    if not found:
        return None
    items = (element("li", element("a", name, href=address)) for name, address in found)
    return join(element("h3", "Pages of single episodes"), element("ul", *items))


def absent(found: Sequence[Analysis]) -> Markup | None:
    """Analyses that could not be made, and why."""
    if not found:
        return None
    items = (element("li", element("strong", a.title), f": {a.absent}.") for a in found)
    return page.section("absent", "Not in this report", element("ul", *items))


def warnings(found: Sequence[str]) -> Markup | None:
    """Warnings as a list; nothing where there are none."""
    items = (element("li", warning) for warning in found)
    return element("ul", *items, class_="notice warnings") if found else None


# -- figures -----------------------------------------------------------------------------------


def figure(made: Figure) -> Markup:
    """A figure: its key, one picture a panel, and its files."""
    panels = plots.inline(made)
    return element(
        "figure",
        element("figcaption", made.title),
        _key(made) if made.keyed else None,
        element("div", *panels, class_="panels" if len(panels) > 1 else "panels single"),
        element("p", made.told, class_="note"),
        _files("figures", made.name, ("png", "svg")),
    )


def _key(made: Figure) -> Markup:
    items = (
        element("li", plots.sample(look, made.kind), name) for name, look in plots.series_of(made)
    )
    return element("ul", *items, class_="key")


def _files(folder: str, name: str, endings: Sequence[str]) -> Markup:
    links = [element("a", ending.upper(), href=f"{folder}/{name}.{ending}") for ending in endings]
    return element(
        "p", "As a file: ", links[0], *(join(", ", link) for link in links[1:]), class_="files"
    )


# -- tables ------------------------------------------------------------------------------------


def table(made: Table) -> Markup:
    """A table with its title, note and files."""
    return element(
        "div",
        element("h3", made.title or made.name, id=f"table-{made.name}"),
        grid(labels.with_n(made)),
        element("p", made.note, class_="note") if made.note else None,
        _files("tables", made.name, ("csv", "tex")),
    )


def grid(made: Table) -> Markup:
    """The table itself, in a box that scrolls and can be reached by keyboard."""
    numbers = labels.numeric(made)
    heads = (
        element(
            "th",
            element("button", labels.head(name), type="button", title=labels.EXPLAINED.get(name)),
            scope="col",
            class_="num" if number else None,
        )
        for name, number in zip(made.columns, numbers, strict=True)
    )
    rows = (element("tr", *_row(made, row)) for row in made.rows)
    name = f"table-{made.name}"
    inside = element(
        "table", element("thead", element("tr", *heads)), element("tbody", *rows),
        class_="sortable", aria_labelledby=name,
    )  # fmt: skip
    class_ = "box long" if len(made.rows) > LONG else "box"
    return element("div", inside, class_=class_, role="region", aria_labelledby=name, tabindex="0")


def _row(made: Table, row: tuple[Value, ...]) -> list[Markup]:
    n = row[made.columns.index("n")] if "n" in made.columns else None
    first = element("th", str(row[0]), scope="row")
    return [first if isinstance(row[0], str) else _cell(row[0], n), *(_cell(v, n) for v in row[1:])]


def _cell(value: Value, n: Value | None) -> Markup:
    if isinstance(value, Estimate):
        return _estimate(value, n)
    if isinstance(value, str):
        return element("td", value)
    class_ = "num sure" if isinstance(value, P) and value < SURE else "num"
    key = repr(float(value)) if isfinite(value) else ""
    return element("td", _number(value), class_=class_, data_v=key)


def _number(value: float) -> str:
    if isinstance(value, P):
        return shown_p(value)
    if isinstance(value, int):
        return f"{value:,}".replace("-", "\N{MINUS SIGN}")
    return shown(value)


def _estimate(e: Estimate, n: Value | None) -> Markup:
    if not isfinite(e.value):
        return element("td", class_="num", data_v="", title=f"undefined, n = {e.n}")
    low, high = shown(e.low), shown(e.high)
    beside = f"[{low}, {high}]" if low else ""
    other = "" if e.n == n else f" n {e.n}"
    return element(
        "td",
        shown(e.value),
        element("span", beside + other, class_="ci") if beside or other else None,
        class_="num",
        data_v=repr(e.value),
        title=f"n = {e.n}",
    )
