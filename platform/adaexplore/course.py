"""The course of one episode as lines of text: what a person wants to see of it in a terminal.

What an agent wrote can stand in a record (in the reasons of its faults), so every text passes
through `display.plain`.
"""

from collections.abc import Iterable, Mapping, Sequence

from adaexplore.benchmark.game.assessment import Assessment, Phase
from adaexplore.benchmark.game.records import CaseRecord, EpisodeRecord
from adaexplore.benchmark.world.episodes import World
from adaexplore.benchmark.world.rules import Rule
from adaexplore.display import plain
from adaexplore.reports.episodes import windows

_WINDOW = "  {:>6}  {:>6}  {:>9}  {:<10}  {:<10}  {:>5}  {:>7}  {:>7}  {:>10}"
_HEADS = (
    "window", "probes", "re-probes", "chosen", "best", "right", "utility", "of best", "cumulative",
)  # fmt: skip


def lines(record: EpisodeRecord, world: World) -> list[str]:
    """The course of an episode: its rule, its windows, what the agent believed, what went wrong."""
    return [*_head(record, world), "", *_windows(record), "", *_beliefs(record), *_faults(record)]


def _head(record: EpisodeRecord, world: World) -> list[str]:
    episode, domain = world.episode, world.domain
    counts = record.counts
    found = [
        f"  domain      {domain.title} ({domain.domain_id})",
        f"  family      {record.family}",
        f"  fields      {', '.join(record.visible_fields)}",
        f"  rule        {_rule(episode.pre)}",
    ]
    if record.drifts:
        change = episode.transition
        found += [
            f"  after {record.change_batch:<2}    {_rule(episode.post)}",
            f"  event       {change.trigger_event}",
            f"  reason      {change.change_reason}",
        ]
    else:
        found.append("  after       the rule never changes here")
    told = ", ".join(
        f"{getattr(counts, name)} {name.replace('_', ' ')}"
        for name in ("turns", "repairs", "fallbacks", "truncations", "calculator_calls")
    )
    return [plain(line) for line in [*found, f"  played      {record.status}: {told}"]]


def _rule(rule: Rule) -> str:
    return _directions({slot.field_id: slot.direction for slot in rule.slots})


def _directions(directions: Mapping[str, int]) -> str:
    signs = (f"{'+' if direction > 0 else '-'}{name}" for name, direction in directions.items())
    return ", ".join(signs) or "none"


# -- windows -----------------------------------------------------------------------------------


def _windows(record: EpisodeRecord) -> list[str]:
    """A line a window that was completed, and one where the rule changes."""
    found = [_WINDOW.format(*_HEADS)]
    played = windows.completed(record)
    for window, total in zip(played, windows.totals(played).earned, strict=True):
        found.append(
            _WINDOW.format(
                window.number, window.probes, window.repeated, _chosen(window.cases),
                _best(window.cases), f"{window.right}/{len(window.cases)}", f"{window.earned:+.2f}",
                f"{window.best:.2f}", f"{total:+.2f}",
            )
        )  # fmt: skip
        if record.drifts and window.number == record.change_batch:
            found.append("          -- the rule changes --")
    return found


def _chosen(cases: Iterable[CaseRecord]) -> str:
    """One digit a case: the action's number, a dot for none."""
    return "".join("." if case.action is None else str(case.action) for case in cases)


def _best(cases: Iterable[CaseRecord]) -> str:
    return "".join(str(windows.best_action(case.utilities)) for case in cases)


# -- beliefs and faults ------------------------------------------------------------------------


def _beliefs(record: EpisodeRecord) -> list[str]:
    """Each assessment with the truth below it."""
    found = []
    for assessment in record.assessments:
        when = f"after window {record.change_batch}" if assessment.phase == "pre" else "at the end"
        found += [
            plain(f"  believed {when}: {_belief(assessment)}"),
            plain(f"     truth {' ' * len(when)}: {_truth(record, assessment.phase)}"),
        ]
    return found or ["  no assessment was reached"]


def _belief(assessment: Assessment) -> str:
    if assessment.status != "completed":
        return f"no answer that counts ({assessment.status})"
    return _directions(assessment.directions)


def _truth(record: EpisodeRecord, phase: Phase) -> str:
    return _directions(record.truth.get(phase, {}))


def _faults(record: EpisodeRecord) -> list[str]:
    if not record.faults:
        return []
    return ["", "  faults", *(f"    {_fault(fault.batch_number, fault.decision, fault.kind, fault.reasons)}"
                              for fault in record.faults)]  # fmt: skip


def _fault(number: int, decision: str, kind: str, reasons: Sequence[str]) -> str:
    why = f": {'; '.join(reasons)}" if reasons else ""
    return plain(f"window {number}, {decision}: {kind}{why}")
