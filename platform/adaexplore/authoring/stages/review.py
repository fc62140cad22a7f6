"""Stage 9: the quality review. Three scores for each episode that passed its audit.

Source: paper, appendix prompt on the quality review; the words are ours.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from adaexplore.authoring import drafts, shapes
from adaexplore.authoring.calls import Call
from adaexplore.authoring.candidates import Candidate
from adaexplore.benchmark.world.episodes import Review

DIMENSIONS: Final = tuple(Review.__dataclass_fields__)
MAX_CHARS: Final = 240
"""Of the sentence beside a score."""
_STEPS: Final = 10
"""Steps of the scale in one point: scores have one decimal."""

CONTRACT: Final = """\
You give the last opinion on the quality of episodes for a benchmark about decision rules that \
change. Each episode gets, by itself, a score on each dimension below. Scores have one decimal and \
run up to 5.0 from 0.0; use the whole scale: 5 could serve as a model, 4 is good, 3 will do but \
shows its weak points, 2 is clearly weak, 1 has a grave defect, 0 makes no sense or contradicts \
itself.

- `field_realism`: would the eight fields really be at hand for this decision, about this object, at \
this time and over this horizon, and do they fit the setting together?
- `rule_change_realism`: do `trigger_event` and `change_reason` believably lead to exactly the \
replacement and the turned direction that the fields and directions before and after show? Both \
must come from one coherent event that can be observed, not from two that merely coincide.
- `distractor_quality`: are the distractors credible context, worth a look, without spelling out the \
action, betraying the outcome, or containing the core in their own definition? That a distractor \
goes along with the decision, or would seem to matter in some drawn case, is no fault. It is one only \
if by its very definition it outranks, doubles or sidesteps the core.

Beside each score one sentence with its reason, at most 240 characters. Answer for every `episode_id` \
exactly once."""

_SCORED: Final = shapes.record(score=shapes.number(), reason=shapes.text())
SCHEMA: Final = shapes.record(
    reviews=shapes.array(
        shapes.record(episode_id=shapes.text(), **dict.fromkeys(DIMENSIONS, _SCORED))
    )
)


def call(name: str, batch: Sequence[Candidate]) -> Call:
    """The review of some candidates of one domain."""

    def check(answer: Any) -> list[str]:
        expected = (candidate.candidate_id for candidate in batch)
        given = [review["episode_id"] for review in answer["reviews"]]
        scores = [fault for review in answer["reviews"] for fault in _scores(review)]
        return drafts.once_each(expected, given, "reviews") + scores

    episodes = []
    for candidate in batch:
        shown = candidate.shown(texts=True)
        episodes.append({"episode_id": shown.pop("candidate_id"), **shown})
    payload = {"scenario": batch[0].scenario(), "episodes": episodes}
    return Call(name=name, contract=CONTRACT, payload=payload, schema=SCHEMA, check=check)


def _scores(review: dict[str, Any]) -> Iterable[str]:
    for name in DIMENSIONS:
        where = f"reviews.{review['episode_id']}.{name}"
        score, reason = review[name]["score"], review[name]["reason"].strip()
        steps = score * _STEPS
        if not 0.0 <= score <= 5.0 or abs(steps - round(steps)) > 1e-9:
            yield f"{where}.score: expected 0.0 to 5.0 in steps of 0.1, got {score}"
        if not 1 <= len(reason) <= MAX_CHARS:
            yield f"{where}.reason: expected one sentence of 1 to {MAX_CHARS} characters, got {len(reason)}"


def scores(answer: Any) -> dict[str, Review]:
    """Scores by candidate id."""
    return {
        review["episode_id"]: Review(**{name: float(review[name]["score"]) for name in DIMENSIONS})
        for review in answer["reviews"]
    }


def reasons(answer: Any) -> dict[str, dict[str, str]]:
    """The sentence beside each score, by candidate id and dimension."""
    return {
        review["episode_id"]: {name: review[name]["reason"] for name in DIMENSIONS}
        for review in answer["reviews"]
    }
