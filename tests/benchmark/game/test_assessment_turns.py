"""Assessments as the game asks them: on a fork, with one repair and one regeneration."""

import pytest

from adaexplore.benchmark.game.protocol import Reply
from players import QUESTION, belief, drive, is_fork, points_of, restless

BAD = "not a belief"
GO = '{"tool": "request_next_batch", "arguments": {}}'
GOOD = '{"relevant_fields":[],"field_directions":[]}'
CUT = Reply(text=GOOD, finish_reason="length")
"""Cut off, although what there is of it would be an answer."""


@pytest.mark.parametrize("status", ["overflow", "content_filter"])
def test_the_provider_may_end_the_episode_in_an_assessment(world, settings, status):
    """The first one ends it after the change batch, the last one with all cases played."""
    for number, cases in ((1, 8 * world.episode.change_batch), (2, 96)):
        behaved, asked = restless(1, points_of(world), faults=0.0), []

        def player(messages, behaved=behaved, asked=asked, number=number):
            asked += [1] * is_fork(messages)
            ends = is_fork(messages) and len(asked) == number
            return Reply(text="", finish_reason=status) if ends else behaved(messages)

        record = drive(world, settings["default"], player).record
        assert (status, cases) == (record.status, len(record.cases))
        assert number - 1 == len(record.assessments)


@pytest.mark.parametrize(
    ("replies", "status", "repairs"),
    [
        ([GOOD], "completed", 0),
        ([BAD, GOOD], "completed", 1),
        ([BAD, BAD], "rejected", 1),
        ([GO, GO], "rejected", 1),
        ([CUT, GOOD], "completed", 0),
        ([CUT, CUT], "truncated", 0),
        ([CUT, BAD, GOOD], "completed", 1),
        ([BAD, CUT, GOOD], "completed", 1),
        ([BAD, CUT, CUT], "truncated", 1),
    ],
)
def test_an_assessment_has_one_repair_and_one_regeneration(
    world, settings, replies, status, repairs
):
    """Else it is missing; faults of assessments are none of the episode's."""
    behaved, left, asked = restless(1, points_of(world), faults=0.0), list(replies), []

    def player(messages):
        if not is_fork(messages):
            return behaved(messages)
        asked.append(messages)
        return left.pop(0)

    record = drive(world, settings["stationary"], player).record
    assert ([("post", status)], []) == (
        [(a.phase, a.status) for a in record.assessments],
        list(record.faults),
    )
    assert {} == record.assessments[0].directions
    assert repairs == record.counts.repairs
    assert not left
    for before, after, reply in zip(asked, asked[1:], replies, strict=False):
        if reply is CUT:
            assert before == after
        else:
            assert before == after[:-2]
            assert reply == after[-2].content
            assert '"accepted": false' in after[-1].content


def test_what_is_reported_is_recorded_with_its_phase(world, settings):
    """Directions as +1 and -1; the question is the same both times, on the then conversation."""
    first, *_, last = world.episode.visible_fields
    answers = [belief(**{first: "positive"}), belief(**{last: "negative", first: "negative"})]
    behaved, left, asked = restless(1, points_of(world), faults=0.0), list(answers), []

    def player(messages):
        if not is_fork(messages):
            return behaved(messages)
        asked.append(messages[-1].content)
        return left.pop(0)

    record = drive(world, settings["default"], player).record
    assert [("pre", {first: 1}), ("post", {last: -1, first: -1})] == [
        (a.phase, a.directions) for a in record.assessments
    ]
    questions = {text.rpartition("\n\n")[2] for text in asked}
    assert 1 == len(questions)
    assert QUESTION in questions.pop()


def test_a_field_that_is_not_shown_cannot_be_reported(world, settings):
    """Fields of the domain outside the episode are refused like any other name."""
    hidden = next(f for f in world.domain.catalog if f not in world.episode.visible_fields)
    behaved = restless(1, points_of(world), faults=0.0)

    def player(messages):
        return belief(**{hidden: "positive"}) if is_fork(messages) else behaved(messages)

    record = drive(world, settings["stationary"], player).record
    assert ["rejected"] == [a.status for a in record.assessments]
