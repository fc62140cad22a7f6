"""Tables of one episode: its rule, its cases, its beliefs and its faults."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from adaexplore.benchmark.game.assessment import Phase
from adaexplore.benchmark.game.records import CaseRecord, EpisodeRecord
from adaexplore.benchmark.scores import metrics
from adaexplore.benchmark.world.episodes import World
from adaexplore.benchmark.world.rules import Rule
from adaexplore.reports import page
from adaexplore.reports.episodes import windows, words
from adaexplore.reports.episodes.windows import Window
from adaexplore.reports.markup import Markup, element, join

VERDICTS: Final[Mapping[str, str]] = {
    "right": "right", "turned": "wrong direction", "missed": "missed", "false": "does not matter",
    "": "",
}  # fmt: skip


def table(
    caption: str, heads: Iterable[object], rows: Iterable[Markup], class_: str = ""
) -> Markup:
    """A table in a box that scrolls by itself."""
    columns = (h if str(h).startswith("<th") else element("th", h, scope="col") for h in heads)
    made = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *columns)),
        element("tbody", *rows),
        class_=class_ or None,
    )
    return page.scrolling(caption, made)


def row(first: object, *cells: object, class_: str | None = None) -> Markup:
    """A row with its head; cells that are not elements yet become plain ones."""
    made = (c if str(c).startswith("<td") else element("td", c) for c in cells)
    return element("tr", element("th", first, scope="row"), *made, class_=class_)


# -- the rule ----------------------------------------------------------------------------------


def rule(world: World, *, drifts: bool) -> Markup:
    """The hidden rule before and after, slot by slot."""
    episode = world.episode
    name, how = words.FAMILIES[episode.pre.family]
    heads = ["before", "after", "what changed"] if drifts else ["the whole episode"]
    rows = []
    for index in range(len(episode.pre.slots)):
        after = (_slot(world, episode.post, index), _changed(world, index)) if drifts else ()
        rows.append(row(_slot(world, episode.pre, index), *after))
    told = f"The rule is {name}. {how}"
    return join(element("p", told), table("The fields of the hidden rule", heads, rows, "rule"))


def _slot(world: World, found: Rule, index: int) -> Markup:
    slot = found.slots[index]
    field = world.domain.catalog[slot.field_id]
    return join(
        element("strong", f"{words.SIGNS[slot.direction]} {field.display_name}"),
        " ",
        element("code", slot.field_id, class_="soft"),
        element("br"),
        words.condition(found, slot, field),
    )


def _changed(world: World, index: int) -> str:
    before, after = world.episode.pre.slots[index], world.episode.post.slots[index]
    if before.field_id != after.field_id:
        return "another field in its place"
    return "as before" if before.direction == after.direction else "its direction turned"


# -- cases -------------------------------------------------------------------------------------


_SUMS: Final = ("right", "earned", "possible", "total")
_CASES: Final = (
    "A bold number is the best action, chosen. Otherwise an arrow leads from the chosen action to the best; a "
    "dash is a case that was left unanswered. A dotted frame marks the answer that the old rule asked for. "
    "The four utilities of a case are told when the pointer rests on it."
)


def cases(record: EpisodeRecord, found: Sequence[Window], old: frozenset[str]) -> Markup:
    """What was chosen against what was best: a row a window, a cell a case."""
    most = max((len(window.cases) for window in found), default=0)
    heads = ["window", "probes", *map(_case_head, range(most)), *_SUMS]
    sums = windows.totals(found)
    rows = []
    for window, total in zip(found, sums.earned, strict=True):
        rows.append(_window(window, total, most, old))
        if record.drifts and window.number == record.change_batch:
            told = element("td", "the rule changes here, unannounced", colspan=most + 6)
            rows.append(element("tr", told, class_="drift"))
    made = table("Chosen against best, window by window", heads, rows, "cases")
    return join(element("p", _CASES, class_="small soft"), made)


def _case_head(position: int) -> Markup:
    return element(
        "th", element("span", "case ", class_="unseen"), position + 1, scope="col", class_="case"
    )


def _window(window: Window, total: float, most: int, old: frozenset[str]) -> Markup:
    padding = [element("td")] * (most - len(window.cases))
    return row(
        window.number,
        _number(window.probes),
        *(_case(case, stuck=case.context_id in old) for case in window.cases),
        *padding,
        _number(f"{window.right}/{len(window.cases)}"),
        _number(f"{window.earned:+.2f}"),
        _number(f"{window.best:.2f}"),
        _number(f"{total:+.2f}"),
    )


def _number(value: object) -> Markup:
    return element("td", value, class_="num")


def _case(case: CaseRecord, *, stuck: bool) -> Markup:
    best = windows.best_action(case.utilities)
    values = ", ".join(f"action_{i} {u:+.2f}" for i, u in enumerate(case.utilities))
    chosen = "unanswered" if case.action is None else f"chose action_{case.action}"
    more = "; the old rule's answer" if stuck else ""
    title = f"{case.context_id}: {chosen}, best action_{best}; {values}{more}"
    if metrics.is_best(case):
        shown, kind = element("b", case.action), "hit"
    else:
        mark = "\u2013" if case.action is None else str(case.action)
        shown = join(mark, _instead(best))
        kind = "none" if case.action is None else "miss"
    words = element("span", "right " if kind == "hit" else "", class_="unseen")
    return element("td", words, shown, title=title, class_=f"{kind}{' old' if stuck else ''}")


def _instead(best: int) -> Markup:
    unseen = element("span", " best ", class_="unseen")
    return join(element("span", "\u2192", class_="best", aria_hidden="true"), unseen, best)


# -- beliefs -----------------------------------------------------------------------------------


def beliefs(record: EpisodeRecord, world: World) -> Markup:
    """Each assessment against the truth, field by field; fields that neither names are left out."""
    phases: list[Phase] = [phase for phase in ("pre", "post") if phase in record.truth]
    heads = ["field"]
    for phase in phases:
        heads += [f"true {_when(record, phase)}", "believed", "verdict"]
    rows = []
    for field in world.fields:
        cells = [cell for phase in phases for cell in _belief(record, phase, field.field_id)]
        if any(str(cell) != "<td></td>" for cell in cells):
            rows.append(row(field.display_name, *cells))
    told = [element("p", line) for line in _told(record, phases)]
    return join(*told, table("Believed against true directions", heads, rows, "beliefs"))


def _when(record: EpisodeRecord, phase: Phase) -> str:
    return words.asked(record, phase)


def _belief(record: EpisodeRecord, phase: Phase, field_id: str) -> list[Markup]:
    true = record.truth[phase]
    answered = metrics.completed(record, phase)
    believed = {} if answered is None else answered.directions
    said = "" if answered is None else words.verdict(true, believed, field_id)
    shown = VERDICTS[said]
    return [
        element("td", words.SIGNS[true.get(field_id, 0)]),
        element("td", words.SIGNS[believed.get(field_id, 0)]),
        element("td", shown, class_=f"verdict {said}") if shown else element("td"),
    ]


def _told(record: EpisodeRecord, phases: Iterable[Phase]) -> Iterable[str]:
    status = {found.phase: found.status for found in record.assessments}
    for phase in phases:
        when = _when(record, phase)
        if status.get(phase) == "completed":
            hits, alarms, missed = metrics.factor_counts(record, phase)
            yield f"Asked {when}: {hits} of {hits + missed} relevant fields named, {alarms} beside them."
        else:
            yield f"Asked {when}: no answer that counts ({status.get(phase, 'never reached')})."


def changes(record: EpisodeRecord, world: World) -> Markup | None:
    """The changes that happened and those that its two answers tell; None where there is no pair."""
    reported = metrics.reported_atoms(record) if record.drifts else None
    if reported is None:
        return None
    true, names = metrics.true_atoms(record), world.domain.catalog
    rows = [
        row(
            f"{atom[0]}: {names[atom[1]].display_name}",
            _turn(*atom[2:]),
            _found(atom in true, atom in reported),
        )
        for atom in sorted(true | reported)
    ]
    score = f"Change recognition of this run: {metrics.change_f1(record):.2f}"
    return table(score, ["change", "direction", ""], rows, "changes")


def _turn(before: int, after: int) -> str:
    """Directions before and after; 0 where the field was, or is, not in the rule."""
    return " to ".join(words.SIGNS[sign] for sign in (before, after) if sign)


def _found(true: bool, reported: bool) -> Markup:
    said = "right" if true and reported else "missed" if true else "false"
    words = {"right": "told", "missed": "not told", "false": "told, did not happen"}
    return element("td", words[said], class_=f"verdict {said}")


# -- faults ------------------------------------------------------------------------------------


def faults(record: EpisodeRecord) -> Markup:
    """Replies that were refused or cut off, with the reasons that the agent was given."""
    counts = record.counts
    told = (
        f"{counts.repairs} repairs, {counts.fallbacks} fallbacks, {counts.truncations} replies cut off, "
        f"{counts.lenient_would_accept} that a lenient reading would have accepted."
    )
    if not record.faults:
        return element("p", "No reply was refused. ", told)
    rows = [
        row(f.batch_number, f.decision, f.kind, element("td", *_reasons(f.reasons)))
        for f in record.faults
    ]
    heads = ["window", "decision", "what", "reasons"]
    return join(element("p", told), table("Refused and cut off replies", heads, rows, "faults"))


def _reasons(reasons: Sequence[str]) -> Iterable[Markup]:
    return (element("div", reason, dir="auto") for reason in reasons)
