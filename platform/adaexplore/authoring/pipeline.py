"""The authoring pipeline: from a scenario idea to a domain file and a dataset of its episodes.

Seven stages grow the domain document; candidates are then searched, audited (with other distractors
where only those were refused), reviewed, and the best kept in equal numbers for each family. Every
call goes through an `Asker`, so that whatever is stored is taken and only the rest is asked: the
whole run is a function of the idea and the stored replies. Source: paper, authoring appendix.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from adaexplore.authoring import candidates as candidates_module
from adaexplore.authoring import drafts, stages, validators
from adaexplore.authoring.calls import Asker
from adaexplore.authoring.candidates import Candidate
from adaexplore.authoring.drafts import Draft
from adaexplore.authoring.ideas import Idea
from adaexplore.authoring.stages import Stage, audit, review
from adaexplore.benchmark.world.domains import Domain
from adaexplore.benchmark.world.fields import FAMILIES, Family
from adaexplore.errors import DatasetError

LAST_STAGE: Final = stages.REVIEW

Told = Callable[[str], None]
"""Told of progress, a line at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Authored:
    """What a whole run made."""

    draft: Draft
    """The domain document, complete and without faults."""
    episodes: tuple[Candidate, ...]
    """The selected episodes in rounds of one a family, with their scores."""
    counts: dict[Family, dict[str, int]]
    """By family: candidates searched, accepted and rejected by the audit, qualified, selected."""
    reasons: dict[str, dict[str, str]]
    """The reviewer's sentences by candidate and dimension, for the selected episodes."""


async def growth(
    idea: Idea, asker: Asker, *, first: int, last: int
) -> AsyncIterator[tuple[Stage, Draft]]:
    """Each stage up to `last` with the domain document after it; before `first` only as stored.

    Raises:
        StageError: A stage has no faultless answer.
    """
    draft: Draft = idea.scenario
    stored_only = replace(asker, rounds=0)
    for stage in stages.STAGES[:last]:
        source = asker if stage.number >= first else stored_only
        answers = [await source.answer(call) for call in stage.calls(draft, idea.plan)]
        draft = drafts.ordered(stage.merged(draft, answers))
        yield stage, draft


async def authored(idea: Idea, draft: Draft, asker: Asker, *, told: Told) -> Authored:
    """The episodes of a grown domain: searched, audited, reviewed and selected.

    Raises:
        StageError: The audit or the review has no faultless answer.
        SearchError: Too few candidates can be found, or too few pass.
        DatasetError: The grown document has faults as a whole.
    """
    domain = whole(draft)
    ranked: dict[Family, list[Candidate]] = {}
    counts: dict[Family, dict[str, int]] = {}
    reasons: dict[str, dict[str, str]] = {}
    for family in FAMILIES:
        run = _Judging(idea=idea, domain=domain, family=family, asker=asker)
        ranked[family], counts[family], spoken = await run.ranked(told)
        reasons.update(spoken)
    each = idea.plan.episodes_each
    chosen = candidates_module.selected(ranked, each, domain.domain_id)
    kept = {candidate.candidate_id: reasons[candidate.candidate_id] for candidate in chosen}
    for family in FAMILIES:
        counts[family]["selected"] = each
    return Authored(draft=draft, episodes=tuple(chosen), counts=counts, reasons=kept)


def whole(draft: Draft) -> Domain:
    """The domain of a complete draft; DatasetError that lists its faults, if any."""
    domain = drafts.domain(draft)
    if found := validators.faults(domain):
        listed = "\n".join(f"  {fault}" for fault in found)
        raise DatasetError(f"{domain.domain_id}: {len(found)} faults in the whole domain\n{listed}")
    return domain


# -- judging the candidates of one family ------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judging:
    idea: Idea
    domain: Domain
    family: Family
    asker: Asker

    async def ranked(
        self, told: Told
    ) -> tuple[list[Candidate], dict[str, int], dict[str, dict[str, str]]]:
        """(qualified candidates, best first; counts; the reviewer's sentences)."""
        plan = self.idea.plan
        found = candidates_module.found(self.domain, self.family, plan.seed, plan.candidates_each)
        accepted, verdicts = await self._audited(found)
        scored, reasons = await self._reviewed(accepted)
        passed = candidates_module.qualified(scored, plan.minimum)
        counts = {
            "searched": len(found),
            "accepted": len(accepted),
            **{name: verdicts[name] for name in (audit.REJECT_CORE, audit.REJECT_DISTRACTORS)},
            "qualified": len(passed),
        }
        listed = ", ".join(f"{number} {name}" for name, number in counts.items())
        told(f"stages 8 and 9, {self.family}: {listed}")
        return passed, counts, reasons

    async def _audited(self, found: list[Candidate]) -> tuple[list[Candidate], Counter[str]]:
        """Accepted candidates in their order, and how often each verdict fell."""
        accepted: list[Candidate] = []
        fallen: Counter[str] = Counter()
        pending = found
        for attempt in range(self.idea.plan.redraws + 1):
            verdicts = await self._verdicts(pending, attempt)
            fallen.update(verdicts.values())
            accepted += [c for c in pending if verdicts[c.candidate_id] == audit.ACCEPT]
            again = [c for c in pending if verdicts[c.candidate_id] == audit.REJECT_DISTRACTORS]
            pending = self._redrawn(again) if attempt < self.idea.plan.redraws else []
        return sorted(accepted, key=lambda c: c.candidate_id), fallen

    async def _verdicts(self, pending: Sequence[Candidate], attempt: int) -> dict[str, str]:
        label = f"08-audit-{self.family}" + (f"-redraw-{attempt}" if attempt else "")
        verdicts: dict[str, str] = {}
        for number, batch in enumerate(self._batches(pending), start=1):
            call = audit.call(f"{label}-{number}", batch, again=attempt > 0)
            verdicts |= audit.verdicts(await self.asker.answer(call))
        return verdicts

    def _redrawn(self, again: Sequence[Candidate]) -> list[Candidate]:
        """The candidates with other distractors, where there are any."""
        others = [candidates_module.redrawn(candidate, self.idea.plan.seed) for candidate in again]
        return [candidate for candidate in others if candidate is not None]

    async def _reviewed(
        self, accepted: Sequence[Candidate]
    ) -> tuple[list[Candidate], dict[str, dict[str, str]]]:
        scored: list[Candidate] = []
        reasons: dict[str, dict[str, str]] = {}
        for number, batch in enumerate(self._batches(accepted), start=1):
            answer: Any = await self.asker.answer(
                review.call(f"09-review-{self.family}-{number}", batch)
            )
            scores = review.scores(answer)
            scored += [candidates_module.reviewed(c, scores[c.candidate_id]) for c in batch]
            reasons |= review.reasons(answer)
        return scored, reasons

    def _batches(self, candidates: Sequence[Candidate]) -> list[Sequence[Candidate]]:
        size = self.idea.plan.candidates_a_call
        return [candidates[i : i + size] for i in range(0, len(candidates), size)]
