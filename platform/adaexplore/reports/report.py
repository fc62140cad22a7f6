"""The report: every analysis of one or more sweeps, as a page and as files beside it."""

import shlex
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from adaexplore.benchmark.scores import estimates
from adaexplore.reports import cautions, latex, methods, page, plots, rendered
from adaexplore.reports.analyses import (
    contrasts,
    drift,
    exploration,
    gaps,
    looks,
    outcomes,
    recognitions,
    settings,
    spending,
)  # fmt: skip
from adaexplore.reports.evidence import Evidence
from adaexplore.reports.markup import Markup, element, join
from adaexplore.reports.sections import Analysis

THREADS: Final = 4
LEAD: Final = (
    "How well do these agents explore, decide, and adapt when the rule that they learned changes "
    "under them?"
)
ANALYSES: Final[tuple[Callable[[Evidence], Analysis], ...]] = (
    outcomes.main,
    settings.ablations,
    drift.curves,
    drift.drop_and_recovery,
    exploration.within,
    exploration.across,
    exploration.with_outcomes,
    recognitions.precision_and_recall,
    recognitions.factor_errors,
    recognitions.atoms,
    recognitions.episode_categories,
    settings.independent_cases,
    outcomes.by_family,
    outcomes.by_domain,
    spending.protocol,
    spending.cost,
    gaps.policies,
    gaps.equal_missingness,
    looks.episodes,
)
"""In the order of the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was found, and how to show it."""

    evidence: Evidence
    analyses: tuple[Analysis, ...]
    cautions: tuple[str, ...]
    command: str
    """Makes the report again."""

    @property
    def made(self) -> tuple[Analysis, ...]:
        """Analyses that have something to show."""
        return tuple(a for a in self.analyses if not a.absent)

    @property
    def absent(self) -> tuple[Analysis, ...]:
        """Analyses that do not, each with its reason."""
        return tuple(a for a in self.analyses if a.absent)


def build(evidence: Evidence, against: Evidence | None = None) -> Report:
    """Every analysis of the evidence.

    Args:
        evidence: What was played.
        against: Another body of evidence that it is compared with.
    """
    # Most of the time goes into resampling, which leaves the other threads free to run; streams are
    # named, so who is first makes no difference.
    with ThreadPoolExecutor(THREADS, thread_name_prefix="analysis") as pool:
        analyses = list(pool.map(lambda analyse: analyse(evidence), ANALYSES))
    if against is not None:
        analyses.insert(1, contrasts.contrast(against, evidence))
    return Report(
        evidence=evidence,
        analyses=tuple(analyses),
        cautions=cautions.cautions(evidence),
        command=_command(evidence, against),
    )


def _command(evidence: Evidence, against: Evidence | None) -> str:
    words = ["adaexplore", "report", *evidence.origin.sweeps]
    for sweep in against.origin.sweeps if against else ():
        words += ["--against", sweep]
    return shlex.join([*words, *evidence.origin.options])


# -- the page ----------------------------------------------------------------------------------


def html(report: Report) -> bytes:
    """The page: one file that loads nothing."""
    sweeps = " and ".join(report.evidence.origin.sweeps)
    head = element(
        "div",
        element("h1", f"Report on {sweeps}"),
        element("p", LEAD, class_="soft"),
    )
    sections = element(
        "div",
        *map(rendered.section, report.made),
        rendered.absent(report.absent),
        methods.section(report.evidence, report.command),
        element("footer", "Made by adaexplore from the stored records alone; see Methods."),
    )
    body = join(
        rendered.warnings(report.cautions),
        _facts(report.evidence),
        element("div", _contents(report), sections, class_="columns"),
    )
    style, script = page.asset("report.css"), page.asset("report.js")
    return page.page(f"Report on {sweeps}", head, body, style=style, script=script)


def _facts(evidence: Evidence) -> Markup:
    runs = evidence.records.values()
    planned = sum(sum(plan.values()) for plan in evidence.planned.values())
    episodes = {r.episode_id for found in runs for r in estimates.scored(found)}
    numbers = {
        "models": len(evidence.models),
        "settings": len(evidence.settings),
        "episodes": len(episodes),
        "scored runs": evidence.scored,
        "planned runs": planned,
    }
    cells = (element("div", element("dt", k), element("dd", f"{v:,}")) for k, v in numbers.items())
    return element("dl", *cells, class_="facts")


def _contents(report: Report) -> Markup:
    places = [(a.key, a.title) for a in report.made]
    places += [("absent", "Not in this report")] if report.absent else []
    places.append(("methods", "Methods"))
    items = (element("li", element("a", title, href=f"#{key}")) for key, title in places)
    heading = element("h2", "Contents", id="contents")
    return element(
        "nav", heading, element("ol", *items), class_="contents", aria_labelledby="contents"
    )


# -- files -------------------------------------------------------------------------------------


def files(report: Report) -> Iterator[tuple[str, bytes]]:
    """(path, content) of the page and of every table and figure beside it."""
    for analysis in report.made:
        for table in analysis.tables:
            yield f"tables/{table.name}.csv", table.csv()
            yield f"tables/{table.name}.tex", latex.table(table)
        for figure in analysis.figures:
            for ending, data in plots.files(figure).items():
                yield f"figures/{figure.name}.{ending}", data
    yield page.REPORT, html(report)
