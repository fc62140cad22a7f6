"""An episode by windows: what each cost, earned and could have earned, as the record tells it."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from adaexplore.benchmark.game.records import CaseRecord, EpisodeRecord
from adaexplore.benchmark.scores import metrics
from adaexplore.benchmark.world.episodes import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One completed window."""

    number: int
    cases: tuple[CaseRecord, ...]
    probes: int
    repeated: int
    """Probes whose point had been probed in an earlier window."""

    @property
    def right(self) -> int:
        """Cases in which the best action was chosen."""
        return sum(map(metrics.is_best, self.cases))

    @property
    def accuracy(self) -> float:
        """Calibrated accuracy: 0 is chance, 1 the oracle."""
        return float(metrics.calibrated_accuracy_value(metrics.accuracy_sums(self.cases)))

    @property
    def earned(self) -> float:
        """Utility of the chosen actions; an unanswered case earns 0."""
        return sum(map(earned, self.cases))

    @property
    def best(self) -> float:
        """Utility of the best actions: what the oracle earns."""
        return sum(max(case.utilities) for case in self.cases)

    @property
    def chance(self) -> float:
        """What actions drawn by lot earn in the mean."""
        return sum(sum(case.utilities) / len(case.utilities) for case in self.cases)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Running sums after each window, one entry a window."""

    earned: tuple[float, ...]
    best: tuple[float, ...]
    chance: tuple[float, ...]


def completed(record: EpisodeRecord) -> tuple[Window, ...]:
    """The windows that were completed, in order."""
    found = []
    seen: set[tuple[int, ...]] = set()
    for number in sorted({case.batch_number for case in record.cases}):
        rows = [probe.row for probe in record.probes if probe.batch_number == number]
        window = Window(
            number=number,
            cases=tuple(case for case in record.cases if case.batch_number == number),
            probes=len(rows),
            repeated=sum(row in seen for row in rows),
        )
        found.append(window)
        seen |= {*rows}
    return tuple(found)


def totals(found: Iterable[Window]) -> Totals:
    """Running sums over windows."""
    several = tuple(found)
    return Totals(
        earned=tuple(accumulate(window.earned for window in several)),
        best=tuple(accumulate(window.best for window in several)),
        chance=tuple(accumulate(window.chance for window in several)),
    )


def earned(case: CaseRecord) -> float:
    """Utility of the action that was chosen, unrounded; 0 where none was."""
    return 0.0 if case.action is None else case.utilities[case.action]


def best_action(utilities: Iterable[float]) -> int:
    """Index of the best action."""
    values = tuple(utilities)
    return values.index(max(values))


def answers_of_old(record: EpisodeRecord, world: World, *, iid: bool) -> frozenset[str]:
    """Ids of the wrong answers after the change that the rule before it would have called right.

    Args:
        record: What was answered.
        world: The episode that was played.
        iid: Whether its cases were those that are drawn without control of flips.
    """
    episode = world.episode
    batches = episode.iid_cases if iid else episode.cases
    found = set()
    for window in completed(record):
        if not record.drifts or window.number <= record.change_batch:
            continue
        before = world.utilities(episode.pre, batches[window.number - 1])
        for case, utilities in zip(window.cases, before, strict=True):
            if not metrics.is_best(case) and case.action == best_action(utilities):
                found.add(case.context_id)
    return frozenset(found)
