"""An episode in words: its hidden rule as a person would state it, and its course in a few sentences.

Numbers of a rule are given in the units of its fields: what is a threshold of 0.2 on [-1, 1] inside is
a pressure or a count of beds here.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from adaexplore.benchmark.game.assessment import Phase
from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.scores import metrics
from adaexplore.benchmark.world import fields
from adaexplore.benchmark.world.episodes import World
from adaexplore.benchmark.world.fields import Field
from adaexplore.benchmark.world.rules import Rule, Slot
from adaexplore.reports.episodes.windows import Window

FAMILIES: Final[Mapping[str, tuple[str, str]]] = {
    fields.ADDITIVE: ("additive", "Its fields add up, each with its weight."),
    fields.CONJUNCTIVE: (
        "conjunctive",
        "Every condition has to be met: the one that is met least decides how strongly to intervene.",
    ),
    fields.DISJUNCTIVE: (
        "disjunctive",
        "One condition is enough: the one that is met most decides how strongly to intervene.",
    ),
    fields.LEXICOGRAPHIC: (
        "lexicographic",
        "Its fields are looked at in order: the first that is clear of its threshold decides, else the last.",
    ),
}
"""(name, how the fields act together) by family."""

SIGNS: Final[Mapping[int, str]] = {1: "+", -1: "\u2212", 0: ""}
"""A direction as a sign; 0 where a field has none."""
RECOVERED: Final = 2
"""Windows at the end whose accuracy is told."""


def number(field: Field, value: float) -> str:
    """A value of a field with its unit."""
    shown = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return shown if field.unit in ("", "1", "count") else f"{shown} {field.unit}"


def threshold(field: Field, slot: Slot) -> float:
    """Where the field's side turns, in its own unit."""
    return field.minimum + (slot.threshold + 1.0) / 2.0 * (field.maximum - field.minimum)


def condition(rule: Rule, slot: Slot, field: Field) -> str:
    """What one field does in the rule."""
    calls = "higher calls for more" if slot.direction > 0 else "lower calls for more"
    if rule.family == fields.ADDITIVE:
        return f"{calls}, weight {slot.weight:.2f}"
    side = "above" if slot.direction > 0 else "below"
    told = f"{side} {number(field, threshold(field, slot))} calls for more"
    if rule.family != fields.LEXICOGRAPHIC:
        return told
    width = rule.band * (field.maximum - field.minimum) / 2.0
    return f"{told}, undecided within {number(field, width)} of it"


# -- the course --------------------------------------------------------------------------------


def story(record: EpisodeRecord, found: Sequence[Window], world: World, old: int) -> list[str]:
    """The course of a run in a few sentences.

    Args:
        record: What was played.
        found: Its windows.
        world: The episode.
        old: How many wrong answers after the change the old rule would have called right.
    """
    if not found:
        return ["No window was completed."]
    if not record.drifts:
        return [f"In this run the rule never changed. {_played(found, 'The agent')}", *_end(record)]
    before = [w for w in found if w.number <= record.change_batch]
    after = [w for w in found if w.number > record.change_batch]
    told = [_played(before, "Before the change the agent")]
    if after:
        told += [_change(record, world, before[-1], after[0]), _reaction(after, old)]
    return [*told, *_end(record)]


def _played(found: Sequence[Window], head: str) -> str:
    probes, repeated = _sum(found, "probes"), _sum(found, "repeated")
    used = sum(1 for window in found if window.probes)
    again = f" ({repeated} of them at points it knew)" if repeated else ""
    made = f"made {probes} probes in {used} of {len(found)} windows{again}"
    probed = made if probes else "never probed"
    return f"{head} {probed}, chose the best action in {_right(found)} and earned {_earned(found)}."


def _change(record: EpisodeRecord, world: World, last: Window, first: Window) -> str:
    change, names = world.episode.transition, world.domain.catalog
    return (
        f"After window {record.change_batch} {names[change.incoming].display_name} took the place of "
        f"{names[change.outgoing].display_name}, and {names[change.reversed].display_name} turned its "
        f"direction. Right answers went from {last.right} of {len(last.cases)} in window {last.number} "
        f"to {first.right} of {len(first.cases)} in window {first.number}."
    )


def _reaction(after: Sequence[Window], old: int) -> str:
    probing = [window.number for window in after if window.probes]
    probed = (
        f"It probed again in {_windows(probing)}: {_sum(after, 'probes')} probes, "
        f"{_sum(after, 'repeated')} at points it knew from before."
        if probing
        else "It never probed again."
    )
    wrong = sum(len(window.cases) for window in after) - _sum(after, "right")
    stuck = (
        f" {_count(wrong, 'answer')} missed the best action; {old} of these followed the old rule."
    )
    last = after[-RECOVERED:]
    end = f" In the last {len(last)} windows the best action was chosen in {_right(last)}."
    return f"{probed}{stuck if wrong else ''}{end if len(after) > RECOVERED else ''}"


def _end(record: EpisodeRecord) -> list[str]:
    """What it believed at the end."""
    told = []
    if metrics.completed(record, "post") is not None:
        true = len(record.truth["post"])
        hits, alarms, _ = metrics.factor_counts(record, "post")
        more = f", and {alarms} beside them" if alarms else ""
        told.append(f"At the end it named {hits} of the {true} relevant fields{more}.")
    reported = metrics.reported_atoms(record) if record.drifts else None
    if reported is not None:
        atoms = metrics.true_atoms(record)
        told.append(
            f"Between its two answers stand {len(reported & atoms)} of the {len(atoms)} changes "
            f"that happened, and {len(reported - atoms)} that did not."
        )
    return told


def _windows(numbers: Sequence[int]) -> str:
    """Numbers of windows, runs of them as ranges."""
    runs: list[list[int]] = []
    for value in numbers:
        if runs and runs[-1][-1] == value - 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    shown = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return f"window{'s' if len(numbers) > 1 else ''} {', '.join(shown)}"


def _right(found: Sequence[Window]) -> str:
    cases = sum(len(window.cases) for window in found)
    right = _sum(found, "right")
    return f"{right} of {cases} cases ({100 * right / cases:.0f} %)"


def _earned(found: Sequence[Window]) -> str:
    best = sum(window.best for window in found)
    return (
        f"{sum(window.earned for window in found):.2f} of the {best:.2f} of utility that was there"
    )


def _sum(found: Sequence[Window], name: str) -> int:
    return sum(int(getattr(window, name)) for window in found)


def _count(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


# -- beliefs -----------------------------------------------------------------------------------


def verdict(true: Mapping[str, int], believed: Mapping[str, int], field_id: str) -> str:
    """What a belief about one field is worth: right, turned round, missed, false, or nothing to say."""
    if field_id in true and field_id in believed:
        return "right" if true[field_id] == believed[field_id] else "turned"
    if field_id in true:
        return "missed"
    return "false" if field_id in believed else ""


def asked(record: EpisodeRecord, phase: Phase) -> str:
    """When the assessment of a phase was asked for."""
    return f"after window {record.change_batch}" if phase == "pre" else "at the end"
