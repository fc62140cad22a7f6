"""The conversation: it always ends, roles alternate, and what precedes a reveal stays byte for byte.

The checker below sees the requests and nothing of the game.
"""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from adaexplore.benchmark.game.protocol import Protocol, Reply
from players import CARD, QUESTION, card_of, drive, is_fork, points_of, restless, steady

PROTOCOLS = (
    Protocol(),
    Protocol(repair_scope="decision", reply_parsing="lenient"),
    Protocol(regenerations=0, max_probes=4, max_expressions=1),
)


def without_question(messages):
    """A fork's conversation as it was before the question; a repair of the answer cut off too."""
    at = next(i for i, m in enumerate(messages) if m.role == "user" and QUESTION in m.content)
    card, _, _ = messages[at].content.partition("\n\nA question aside")
    return (*messages[:at], messages[at]._replace(content=card))


def states(transcript):
    """The conversation as it stood at each request, forks without their question."""
    return [without_question(m) if is_fork(m) else m for m in transcript.requests]


def remaining(messages):
    return card_of(messages[-1].content)["remaining_action_batches"]


def reveal_of(messages):
    """Place of the message that revealed the pending batch: the first whose card shows it."""
    cards = [card_of(m.content) if m.role == "user" else None for m in messages]
    identity = cards[-1]["pending_action_batch"]["batch_id"]
    for i, card in enumerate(cards):
        pending = card and card["pending_action_batch"]
        if pending and pending["batch_id"] == identity:
            return i
    raise AssertionError("no message reveals the pending batch")


def assert_alternating(messages):
    assert [m.role for m in messages[:2]] == ["system", "user"]
    for i, message in enumerate(messages[1:]):
        assert message.role == ("assistant" if i % 2 else "user")
        assert message.content.strip()
        message.content.encode()
    assert "user" == messages[-1].role


def assert_rewritten(before, after):
    """A batch was completed: everything from its reveal on is replaced by the outcome."""
    place = reveal_of(before)
    assert before[:place] == after[:place]
    assert place + 1 == len(after)
    kept = before[place].content.partition(CARD)[0]
    forced = kept.startswith('Environment result: {"accepted": false')
    probed = kept.startswith('Environment result: {"results"')
    assert forced or probed or not kept
    new = after[place].content
    outcome = new.removeprefix(kept) if probed else new
    assert outcome.startswith('Environment result: {"message": "Action batch ')
    assert all('"raw_values"' not in message.content for message in after)


def assert_step(before, after, reply, *, rewrites):
    """One reply took the conversation from `before` to `after` in one of three ways."""
    if before == after:
        assert "length" == reply.finish_reason
    elif rewrites and remaining(before) != remaining(after):
        assert_rewritten(before, after)
    else:
        assert before == after[: len(before)]
        assert len(before) + 2 == len(after)
        told = after[-1].content.partition(CARD)[0]
        refusals = ('"accepted": false', "ended without an accepted submission")
        accepted = not any(refusal in told for refusal in refusals)
        assert as_kept(reply, accepted=accepted) == after[-2].content


def as_kept(reply, *, accepted):
    """A reply as the conversation keeps it: whole when accepted, else clipped and never empty."""
    if reply.finish_reason == "length":
        return "(a reply that was cut off by the length limit)"
    text = "".join("?" if "\ud800" <= c <= "\udfff" else c for c in reply.text)
    if accepted or (text.strip() and len(text) <= 4000):
        return text
    return text[:4000] + "..." if text.strip() else "(an empty reply)"


def assert_conversation(transcript, setting):
    for messages in transcript.requests:
        assert_alternating(messages)
    conversations = states(transcript)
    steps = zip(
        transcript.requests, conversations, conversations[1:], transcript.replies, strict=False
    )
    for messages, before, after, reply in steps:
        if is_fork(messages):  # nothing of it returns
            assert before == after
        else:
            assert_step(before, after, reply, rewrites=setting.evidence == "rewritten")


@given(
    seed=st.integers(0, 10**6),
    index=st.integers(0, 31),
    faults=st.sampled_from((0.0, 0.1, 0.3, 0.7, 1.0)),
    counting=st.booleans(),
    protocol=st.sampled_from(PROTOCOLS),
    name=st.sampled_from(
        ("default", "stationary", "stationary_iid", "evidence_given", "forced_probe", "full")
    ),
)
@settings(max_examples=80)
def test_any_player_comes_to_the_end(stage, seed, index, faults, counting, protocol, name):
    """Whatever is replied: twelve batches of eight, both assessments, and a history in order."""
    setting, world = stage.settings[name], stage.worlds[index % len(stage.worlds)]
    player = restless(seed, points_of(world), faults=faults, counting=counting)
    transcript = drive(world, setting, player, protocol)
    record = transcript.record

    assert "completed" == record.status
    assert [b for b in range(1, 13) for _ in range(8)] == [c.batch_number for c in record.cases]
    assert (["pre", "post"] if setting.drifts else ["post"]) == [
        a.phase for a in record.assessments
    ]
    assert len(transcript.replies) == record.counts.turns
    assert_conversation(transcript, setting)


def test_a_steady_player_s_history(stage):
    """The checker on a player that meets every kind of reveal, fault and exchange."""
    world = stage.worlds[3]
    for setting in stage.settings.values():
        assert_conversation(drive(world, setting, steady(points_of(world))), setting)


def test_evidence_given_takes_nothing_out(stage, world):
    """Every conversation begins with the one before it, and all cases stay readable."""
    for name in ("evidence_given", "full"):
        transcript = drive(world, stage.settings[name], steady(points_of(world)))
        conversations = states(transcript)

        for before, after in pairwise(conversations):
            assert before == after[: len(before)]
        everything = "".join(m.content for m in conversations[-1])
        shown = [f'"context_id": "case_{i + 1:03d}", "raw_values"' for i in range(96)]
        assert all(piece in everything for piece in shown)


def test_reasoning_is_never_sent_back(settings, world):
    for setting in settings.values():
        transcript = drive(world, setting, steady(points_of(world)))

        assert all("thought" in reply.reasoning for reply in transcript.replies)
        assert all("thought" not in m.content for r in transcript.requests for m in r)


def test_the_main_history_does_not_tell_of_assessments(settings, world):
    """Answered well, badly, twice badly or cut off: the same main requests to the byte."""
    player = steady(points_of(world))

    def with_answers(*answers):
        def answered(messages):
            if not is_fork(messages):
                return player(messages)
            return answers[0 if QUESTION in messages[-1].content else -1]

        return answered

    good = '{"relevant_fields":[],"field_directions":[]}'
    cut = Reply(text="{", finish_reason="length")
    for setting in settings.values():
        played = [
            drive(world, setting, with_answers(*answers))
            for answers in ((good,), ("no idea",), ("no idea", good), (cut,), ("\ud800", cut))
        ]
        conversations = [[messages for messages, _ in t.turns] for t in played]

        assert all(conversations[0] == other for other in conversations[1:])
        assert len({tuple(a.status for a in t.record.assessments) for t in played}) == 3
