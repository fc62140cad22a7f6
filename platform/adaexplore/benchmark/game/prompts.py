"""Every word that the environment says to an agent, in one place.

The texts are this project's own; what they must convey is the paper's contract (appendix, initial
prompt). Nothing in them depends on hidden state: they are filled from the domain, the visible fields
in their permuted order, the setting's policies on history and probing, and the protocol's limits.
Whether the rule drifts is not among these. `DIGEST` stands for all of them in a cell's identity.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final

from adaexplore.benchmark.game import calculator
from adaexplore.benchmark.game.protocol import Protocol
from adaexplore.benchmark.game.settings import Setting
from adaexplore.benchmark.game.written import members
from adaexplore.benchmark.world import constraints
from adaexplore.benchmark.world.episodes import BATCH_SIZE, World

_SYSTEM: Final = """\
# Your role
{role}

{question} Pick one of the four actions for every case you are given. You are judged by your \
cumulative utility: the sum of the utilities of the actions you submit.

A hidden rule decides what each action is worth in each case. Probes show you the rule at work \
without earning anything; choose them so that each tells you something new, because a probe that \
repeats what you already know is wasted. The rule may stay the same for the whole episode, or it may \
change. Nobody will tell you if or when; a change can only take effect right after you have \
completed a batch.

# Actions
{actions}

# Which fields matter
Only some of the listed fields enter the rule. The others are distractors: whatever their value, \
utility stays the same. Which fields matter is hidden, and if the rule changes, other fields may \
matter afterwards.

# The form of the rule
The rule belongs to one of four families. Find out which from what probes and outcomes show.
- `additive_aggregation`: the relevant fields contribute to a weighted sum.
- `conjunctive_gating`: every relevant condition has to be met, so the weakest one decides.
- `disjunctive_sufficiency`: one met condition is enough, so the strongest one decides.
- `lexicographic_priority`: the relevant fields are looked at in a fixed order; the first that is \
decisive settles the matter, and the last one decides where none is.

# What utilities mean
All utilities come from one fixed scale, from about -0.333 (worst) to about 0.976 (best). They are \
not stretched to [-1, 1]. The four utilities of a case add up to about 0. A case you leave \
unanswered earns 0 and counts as wrong.

# How to reply
Reply with exactly one JSON object that has the keys `tool` and `arguments` and no others. Write \
nothing before or after it: no explanation, no Markdown.
{{"tool":"request_next_batch","arguments":{{}}}}
Use only tools that the latest state card marks as available. An accepted call cannot be taken back.

# Tools
## probe_batch: see the utilities of cases that you make up
Every probe returns the utilities of all four actions for one case, under the rule in force now. \
There are two ways to write one. A new case gives a number for every field:
{{"tool":"probe_batch","arguments":{{"probes":[{{"values":{{"<field_id>":1}}}}]}}}}
A variation starts from the `context_id` of an earlier probe result and lists what is different; \
with empty `changes` it asks about the same case again:
{{"tool":"probe_batch","arguments":{{"probes":[{{"base_context_id":"<context_id>","changes":{{}}}}]}}}}
At most one `probe_batch` call in a batch window, {probes} in it. Ids from the same call and \
ids of batch cases cannot be bases. Mind types, ranges, two decimal places and constraints: one \
faulty probe and the whole call is rejected.{probe_policy}

## request_next_batch: see the next batch without probing
{{"tool":"request_next_batch","arguments":{{}}}}{request_policy}

## submit_action_batch: answer the pending cases
{{"tool":"submit_action_batch","arguments":{{"batch_id":"batch_01","actions":{{"<context_id>":"action_1"}}}}}}
A batch has {batch_size} cases. Give one action for each case id you want to answer; what you leave \
out is unanswered, and `actions` may be empty.

## calculator: arithmetic
{{"tool":"calculator","arguments":{{"expressions":["total = (12.5 + 3) * 4","sqrt(total)"]}}}}
Numbers, operators, parentheses and `abs`, `sqrt`, `min`, `max`, `sum`, `mean`, `round`, `floor`, \
`ceil`, `log`, `log10`, `exp`, `pow`; at most {expressions} expressions of {chars} characters, nested \
up to {depth} deep. `name = expression` keeps a \
value for the other expressions of the same call, in any order; nothing is kept between calls. Two \
calculator calls in a row are not allowed.

# How an episode runs
1. A batch window opens with its batch hidden. {opening}
2. Answer the revealed batch with `submit_action_batch`; the next window opens.
3. {repair}
4. The latest state card tells what is true now. Ids say nothing about the rule.

# What you will remember
{memory}
If a batch turns out markedly worse than the ones before although you used the same hypothesis, then \
the hypothesis is wrong or the rule has changed after an earlier batch; probe again before you go on."""

_REVEAL_OPTIONAL: Final = "Reveal it with `probe_batch` or with `request_next_batch`."
_REVEAL_FORCED: Final = (
    "Reveal it with `probe_batch`; going on without a probe is not possible here."
)
_REQUEST_FORCED: Final = (
    "\nNot available in this episode, because every window has to be probed. Only if the repaired call "
    "of a window is rejected too, its batch is revealed without a probe."
)

_REPAIR: Final = {
    "window": (
        "A rejected call may be repaired once in a batch window. If another call of that window is "
        "rejected, a hidden batch is revealed without a probe, and a pending batch ends with all its "
        "cases unanswered."
    ),
    "decision": (
        "A rejected call may be repaired once. If the repaired call is rejected too, a hidden batch is "
        "revealed without a probe, and a pending batch ends with all its cases unanswered."
    ),
}

_MEMORY_REWRITTEN: Final = """\
When a batch is complete, its cases, your submission and everything you wrote while the batch was \
pending are taken out of this conversation. An outcome stands in their place: for every case id the \
utility of the action you chose, the batch total, and the running totals. It is all you keep of that \
batch, so read it as a score of your hypothesis: high utilities support it, low and negative ones \
speak against it. Probe results stay. Only ids of probe results can be bases of later probes."""

_MEMORY_KEPT: Final = """\
Nothing is taken out of this conversation: the cases of finished batches stay readable, and the \
outcome of a batch adds {what} for every case. Use them as evidence about the rule beside your \
probes, and remember that evidence from before a change describes the old rule. Only ids of probe \
results can be bases of later probes; case ids cannot."""

_FIRST: Final = """\
Fields. A full probe gives a JSON number for each of them: a whole number where the type is integer, \
at most two decimal places where it is decimal. Strings, booleans and null are not accepted, even \
where a description speaks of values that do not exist.
{fields}
{constraints}
{card}"""

_CONSTRAINTS: Final = "\nConstraints. Every case satisfies them, and every probe has to.\n{lines}\n"

_ASSESSMENT: Final = """

A question aside, before you continue. It is not part of the batch flow, earns nothing and will not \
be mentioned again. According to what you believe now, which fields enter the rule in force, and does \
a higher value of each call for stronger intervention (positive) or for weaker (negative)? Reply \
with exactly one JSON object of this form, and nothing else; the lists may be empty, and each field \
you name needs exactly one direction:
{"relevant_fields":["<field_id>"],"field_directions":[{"field_id":"<field_id>","direction":"positive"}]}"""

_ACCEPTED: Final = (
    "Action batch {number} was accepted. Its cases and your work on them are no longer shown."
)
_ENDED: Final = (
    "Action batch {number} ended without an accepted submission: all its cases are unanswered. "
    "Its cases and your work on them are no longer shown."
)
_ACCEPTED_KEPT: Final = "Action batch {number} was accepted."
_ENDED_KEPT: Final = (
    "Action batch {number} ended without an accepted submission: all its cases are unanswered."
)
_REPAIR_LEFT: Final = (
    "The call was rejected and nothing has changed. You can send one corrected call."
)
_SKIPPED: Final = {
    "explore": "The call was rejected and no repair is left. The batch is revealed without a probe.",
    "act": "The call was rejected and no repair is left. The batch ended with all its cases unanswered.",
}
_CUT_OFF: Final = {
    "explore": "The reply was cut off twice by the length limit. The batch is revealed without a probe.",
    "act": "The reply was cut off twice by the length limit. The batch ended with all its cases unanswered.",
}
_ASSESSMENT_REJECTED: Final = "The answer was rejected. You can send one corrected JSON object."

CUT_OFF_ECHO: Final = "(a reply that was cut off by the length limit)"
"""Decision: stands in the conversation for an assistant message that was never complete."""
EMPTY_ECHO: Final = "(an empty reply)"
ECHO_CHARS: Final = 4000
"""Decision: a rejected reply is kept in the conversation up to this length."""

_ACTION: Final = "- **{}** (`{}`): {}"
_FIELD: Final = "- **{}** (`{}`, type: {}, unit: {}, minimum: {}, maximum: {}): {}"
_CONSTRAINT: Final = "- {} `{}`"
_PROBING: Final = {
    "optional": " Probing is optional.",
    "forced": " You have to probe in every window.",
}
_KEPT: Final = {
    "outcome": "the utility of the action you chose",
    "full": "the utilities of all four actions",
}
_RESULT: Final = "Environment result: "
_STATE: Final = "Current state: "

_TEXTS: Final = (
    _SYSTEM, _REVEAL_OPTIONAL, _REVEAL_FORCED, _REQUEST_FORCED, _REPAIR, _MEMORY_REWRITTEN,
    _MEMORY_KEPT, _FIRST, _CONSTRAINTS, _ASSESSMENT, _ACCEPTED, _ENDED, _REPAIR_LEFT, _SKIPPED,
    _CUT_OFF, _ASSESSMENT_REJECTED, _ACTION, _FIELD, _CONSTRAINT, _PROBING, _KEPT, _RESULT, _STATE,
    _ACCEPTED_KEPT, _ENDED_KEPT, CUT_OFF_ECHO, EMPTY_ECHO, ECHO_CHARS,
)  # fmt: skip
DIGEST: Final = hashlib.sha256(json.dumps(_TEXTS, sort_keys=True).encode()).hexdigest()
"""Digest of all texts here; part of every cell's identity. Reasons of refusals are not among them:
they, like the rest of the protocol, stand under PROTOCOL_VERSION."""


def system(world: World, setting: Setting, protocol: Protocol) -> str:
    """The system message."""
    domain = world.domain
    forced = setting.probing == "forced"
    least = setting.min_probes
    return _SYSTEM.format(
        role=domain.role.strip(),
        question=domain.question.strip(),
        actions="\n".join(
            _ACTION.format(a.display_name, a.action_id, a.description.strip())
            for a in domain.actions
        ),
        probes=f"{least} to {protocol.max_probes} probes",
        probe_policy=_PROBING[setting.probing],
        request_policy=_REQUEST_FORCED if forced else "",
        batch_size=BATCH_SIZE,
        expressions=protocol.max_expressions,
        chars=calculator.MAX_CHARS,
        depth=calculator.MAX_DEPTH,
        opening=_REVEAL_FORCED if forced else _REVEAL_OPTIONAL,
        repair=_REPAIR[protocol.repair_scope],
        memory=_memory(setting),
    )


def _memory(setting: Setting) -> str:
    if setting.evidence == "rewritten":
        return _MEMORY_REWRITTEN
    return _MEMORY_KEPT.format(what=_KEPT[setting.evidence])


def first(world: World, card: dict[str, Any]) -> str:
    """The first user message: fields in their permuted order, constraints, the state card."""
    fields = "\n".join(
        _FIELD.format(f.display_name, f.field_id, f.type, f.unit, *f.bounds, f.description.strip())
        for f in world.fields
    )
    lines = "\n".join(
        _CONSTRAINT.format(c.description.strip(), constraints.to_text(c.expression))
        for c in world.constraints
    )
    shown = _CONSTRAINTS.format(lines=lines) if lines else ""
    return _FIRST.format(fields=fields, constraints=shown, card=state(card))


def state(card: dict[str, Any]) -> str:
    """The `Current state` card as text."""
    return f"{_STATE}{members(card)}"


def result(payload: dict[str, Any]) -> str:
    """An `Environment result` as text, ending where the card begins."""
    return f"{_RESULT}{members(payload)}\n\n"


def rejection(reasons: Sequence[str], message: str) -> dict[str, Any]:
    """The result of a refused call."""
    return {"accepted": False, "message": message, "errors": list(reasons)}


def outcome_message(batch_number: int, *, accepted: bool, kept: bool) -> str:
    """What happened to a completed batch, truly; `kept` where it stays readable."""
    texts = (_ACCEPTED_KEPT, _ENDED_KEPT) if kept else (_ACCEPTED, _ENDED)
    return texts[0 if accepted else 1].format(number=batch_number)


def fallback_message(decision: str, *, cut_off: bool) -> str:
    """What the environment did after a second fault."""
    return (_CUT_OFF if cut_off else _SKIPPED)[decision]


def repair_message() -> str:
    """A call was refused and may be repaired."""
    return _REPAIR_LEFT


def assessment() -> str:
    """The assessment's question, appended to the last message on a fork of the history."""
    return _ASSESSMENT


def assessment_rejection(reasons: Sequence[str]) -> str:
    """The one repair of an assessment."""
    return result(rejection(reasons, _ASSESSMENT_REJECTED)).rstrip()


def clean(text: str) -> str:
    """An accepted reply as it stands in the conversation: whole, and always valid Unicode."""
    return text.encode("utf-8", "replace").decode("utf-8")


def clipped(text: str) -> str:
    """A rejected reply as it stands in the conversation: never empty, never endless."""
    whole = clean(text)
    if not whole.strip():
        return EMPTY_ECHO
    return whole if len(whole) <= ECHO_CHARS else f"{whole[:ECHO_CHARS]}..."
