"""Stage 8: the audit. Can the hidden rule, its change and all eight fields belong to one case?

A candidate whose distractors were refused comes back with others; its core is then settled and only
the new distractors are judged. Source: paper, appendix prompt on the audit; the words are ours.
"""

from collections.abc import Sequence
from typing import Any, Final

from adaexplore.authoring import drafts, shapes
from adaexplore.authoring.calls import Call
from adaexplore.authoring.candidates import Candidate

ACCEPT: Final = "accept"
REJECT_CORE: Final = "reject_core"
REJECT_DISTRACTORS: Final = "reject_distractors"

CONTRACT: Final = """\
You audit candidate episodes of a decision benchmark for whether they could occur in practice. An \
episode shows eight fields of one setting. A hidden rule reads three of them (`core`, in the order \
of the rule where the family is lexicographic_priority); its declared change replaces one core field \
by another shown field and turns the direction of a third; the others are `distractors` without \
influence.

Take each candidate by itself. Ask whether the parts that the core fields play, and all eight \
measurements together, can hold for one governed object, at one time of decision, over one horizon. \
Of the change judge only what is declared, as it is declared; supply no cause, no justification and \
no further change of your own.

`verdict`:
- reject_core: the parts given to the core fields, or the declared change, do not make sense;
- reject_distractors: the core makes sense, but its distractors cannot be there beside it, or one of \
them gives away what happens only after the decision;
- accept: core and all eight fields make sense.
A candidate with a `prior_core_review` has passed on its core before and has new distractors now: \
judge those alone, with accept or reject_distractors.
`reason`: one sentence. Do not propose other fields. Answer for every `candidate_id` exactly once."""


def schema(*, again: bool) -> shapes.Schema:
    """Form of the answer; `again`: for candidates whose core has been accepted before."""
    verdicts = (ACCEPT, REJECT_DISTRACTORS) if again else (ACCEPT, REJECT_CORE, REJECT_DISTRACTORS)
    decision = shapes.record(
        candidate_id=shapes.text(), verdict=shapes.choice(*verdicts), reason=shapes.text()
    )
    return shapes.record(decisions=shapes.array(decision))


def call(name: str, batch: Sequence[Candidate], *, again: bool) -> Call:
    """The audit of some candidates of one domain, all new or all with other distractors."""

    def check(answer: Any) -> list[str]:
        decisions = answer["decisions"]
        expected = (candidate.candidate_id for candidate in batch)
        given = [decision["candidate_id"] for decision in decisions]
        return drafts.once_each(expected, given, "decisions") + [
            f"decisions.{d['candidate_id']}.reason: expected a sentence, got nothing"
            for d in decisions
            if not d["reason"].strip()
        ]

    prior = {"prior_core_review": ACCEPT} if again else {}
    payload = {
        "scenario": batch[0].scenario(),
        "candidates": [{**candidate.shown(texts=False), **prior} for candidate in batch],
    }
    form = schema(again=again)
    return Call(name=name, contract=CONTRACT, payload=payload, schema=form, check=check)


def verdicts(answer: Any) -> dict[str, str]:
    """Verdict by candidate id."""
    return {d["candidate_id"]: d["verdict"] for d in answer["decisions"]}
