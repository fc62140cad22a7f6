"""The page of one episode run: its course as a person would tell it, and everything behind it.

Who opens it wants to know what was hidden, what the agent did about it, and when it noticed. So the
page goes from the story to the rule, the course, the probes, the cases and the beliefs, and ends with
the raw conversation. A run that was cut short, failed or was never scored has the same page with what
there is, and says so first.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.world.episodes import BATCHES
from adaexplore.experiments.stored import StoredCell
from adaexplore.reports import page
from adaexplore.reports.episodes import conversations, figures, probes, tables, windows, words
from adaexplore.reports.episodes.runs import EpisodeRun
from adaexplore.reports.episodes.windows import Window
from adaexplore.reports.markup import Markup, element, join

Section = tuple[str, str, Sequence[Markup | None]]
"""(name, heading, parts)."""
_UNSCORED: Final = {
    "overflow": "The conversation outgrew the model's context window.",
    "content_filter": "The provider's content filter refused an answer.",
}


def report_key(sweep: str) -> str:
    """Store key of a sweep's report, which links to pages and which pages link to."""
    return f"sweeps/{sweep}/report/report.html"


def key(sweep: str, cell: StoredCell, episode_id: str) -> str:
    """Store key of the page of a run; `UP` and the report's name lead from there to the report."""
    return f"sweeps/{sweep}/report/episodes/{cell.label}/{episode_id}.html"


UP: Final = "../../../../"
"""From a page to the folder of the report."""


def page_of(run: EpisodeRun, *, report: str | None, others: Sequence[str] = ()) -> bytes:
    """The page of a run.

    Args:
        run: What there is of it.
        report: Address of the sweep's report, seen from the page; None where there is none.
        others: Labels of the cells that have played the episode too.
    """
    title = f"{run.world.episode.episode_id} by {run.cell.label}"
    sections = [*_told(run), _rule(run), *_course(run), _talk(run), _digests(run)]
    return page.page(
        f"{title} \u00b7 {run.sweep}",
        _head(run, report, others, sections),
        join(_state(run), *(page.section(name, title, *parts) for name, title, parts in sections)),
        style=page.asset("episodes/episode.css"),
    )


# -- head --------------------------------------------------------------------------------------


def _head(
    run: EpisodeRun, report: str | None, others: Sequence[str], sections: Sequence[Section]
) -> Markup:
    model, setting = run.cell.group
    episode, domain = run.world.episode, run.world.domain
    back = f"sweep {run.sweep}"
    link = back if report is None else element("a", f"report of {back}", href=report)
    facts = [
        ("model", model),
        ("setting", f"{setting}, seed {run.cell.seed}"),
        ("domain", f"{domain.title} ({domain.domain_id})"),
        ("rule", f"{words.FAMILIES[episode.pre.family][0]}, {_drift(run)}"),
        ("status", _status(run)),
        *([("also by", ", ".join(others))] if others else []),
    ]
    links = (element("a", title, href=f"#{name}") for name, title, _ in sections)
    return element(
        "div",
        element("p", link, class_="small soft"),
        element("h1", f"Episode {episode.episode_id}"),
        _facts(facts),
        element("nav", *links, aria_label="Sections"),
    )


def _drift(run: EpisodeRun) -> str:
    after = run.world.episode.change_batch
    return f"changes after window {after}" if run.drifts else "never changes in this run"


def _status(run: EpisodeRun) -> str:
    if run.finished and run.record is not None:
        return run.record.status.replace("_", " ")
    return run.status.state


def _facts(facts: Iterable[tuple[str, object]]) -> Markup:
    return element("dl", *(join(element("dt", k), element("dd", v)) for k, v in facts))


def _state(run: EpisodeRun) -> Markup | None:
    """What keeps this run from being a whole one."""
    told = []
    if not run.finished:
        told.append(f"This run {run.status}. The page shows what there is.")
    elif run.record is not None and run.record.status != "completed":
        why = _UNSCORED[run.record.status]
        told.append(
            f"{why} The run ended unscored: it enters no table. The page shows what there is."
        )
    if run.torn:
        told.append(
            "The journal's last line was torn off by a crash; its reply is not among these."
        )
    if run.trouble is not None:
        told.append(f"The requests cannot be computed again here: {run.trouble}")
    lines = [element("p", line, dir="auto") for line in told]
    return element("div", *lines, class_="notice", role="note") if lines else None


# -- what happened -----------------------------------------------------------------------------


def _told(run: EpisodeRun) -> Iterable[Section]:
    if run.record is None:
        return
    found = windows.completed(run.record)
    lines = words.story(run.record, found, run.world, len(_old(run, run.record)))
    yield "story", "What happened", [element("p", line) for line in lines]


def _old(run: EpisodeRun, record: EpisodeRecord) -> frozenset[str]:
    iid = run.cell.semantic["setting"].get("cases") == "iid"
    return windows.answers_of_old(record, run.world, iid=iid)


def _rule(run: EpisodeRun) -> Section:
    change = run.world.episode.transition
    event = [
        element("h3", f"The event after window {run.world.episode.change_batch}"),
        element("blockquote", change.trigger_event),
        element("p", change.change_reason),
        element("p", "The agent is told neither.", class_="soft small"),
    ]
    made = tables.rule(run.world, drifts=run.drifts)
    return "rule", "The hidden rule", [made, *(event if run.drifts else ())]


def _course(run: EpisodeRun) -> Iterable[Section]:
    record = run.record
    if record is None:
        return
    found = windows.completed(record)
    total = _windows(run, found)
    if found:
        yield "course", "The course", list(figures.both(record, found, total))
    if record.probes:
        yield "probes", "Where it probed", list(probes.panels(record, run.world, total))
    if found:
        yield "cases", "What it chose", [tables.cases(record, found, _old(run, record))]
    beliefs = [tables.beliefs(record, run.world), tables.changes(record, run.world)]
    yield "beliefs", "What it believed", beliefs
    yield "faults", "Faults and repairs", [tables.faults(record)]


def _windows(run: EpisodeRun, found: Sequence[Window]) -> int:
    """How many windows the run has when it is played whole."""
    planned = run.cell.semantic.get("protocol", {}).get("batches") or BATCHES
    return max(int(planned), *(window.number for window in found), 1)


# -- what is behind it -------------------------------------------------------------------------


def _talk(run: EpisodeRun) -> Section:
    if not run.exchanges:
        return "conversation", "The conversation", [element("p", "No reply was kept.")]
    button = element(
        "button", "open or close all", type="button", class_="tool", data_opens="conversation",
        aria_pressed="false", hidden=True,
    )  # fmt: skip
    told = _facts(conversations.spent(run.exchanges))
    turns = conversations.conversation(run)
    return "conversation", "The conversation", [told, button, turns]


def _digests(run: EpisodeRun) -> Section:
    semantic = run.cell.semantic
    names = ("dataset", "prompts", "protocol_version", "identity_version")
    facts: list[tuple[str, object]] = [
        ("cell", run.cell.cell_id),
        *((name.replace("_", " "), semantic.get(name)) for name in names),
        ("hidden side", run.world.digest),
    ]
    if run.record is not None:
        facts.append(("observations", run.record.observation_digest))
    facts.append(("journal", run.journal or "none"))
    model, setting = run.cell.group
    again = (
        f"adaexplore show {run.sweep} {run.world.episode.episode_id} --model {model} "
        f"--setting {setting} --seed {run.cell.seed}"
    )
    facts.append(("this page again", element("code", again)))
    return "digests", "Digests", [_facts((k, element("code", v)) for k, v in facts)]
