"""Faults: one repair, one regeneration, then the fallback; and endings that the provider makes."""

from dataclasses import replace

import pytest

from adaexplore.benchmark.game.protocol import Protocol, Reply
from players import View, by_values, call, card_of, drive, points_of, submit

BAD = "not a call"
CUT = Reply(text=call("request_next_batch"), finish_reason="length")
"""Cut off, although what there is of it would be a call."""
GO = call("request_next_batch")


def answer(messages):
    return submit(View(messages), by_values)


def planned(points, plan, turn=None):
    """A player without fault but for the replies planned for (window, decision), in their order.

    `turn`, a list, takes what the planned moments were asked.
    """
    left = {moment: list(replies) for moment, replies in plan.items()}

    def player(messages):
        view = View(messages)
        if view.forked:
            return '{"relevant_fields":[],"field_directions":[]}'
        moment = (view.window, "act" if view.pending else "explore")
        if left.get(moment):
            reply = left[moment].pop(0)
            if turn is not None:
                turn.append(messages)
            return reply(messages) if callable(reply) else reply
        if view.pending:
            return answer(messages)
        return call("probe_batch", probes=[{"values": points[view.window]}])

    return player


def played(world, setting, plan, protocol=None):
    """(record, the planned moments' requests) of an episode with planned replies."""
    asked = []
    transcript = drive(world, setting, planned(points_of(world), plan, asked), protocol)
    return transcript.record, asked


def kinds(record):
    return [(fault.batch_number, fault.decision, fault.kind) for fault in record.faults]


def unanswered(record):
    return sorted({case.batch_number for case in record.cases if case.action is None})


def unprobed(record):
    return sorted(set(range(1, 13)) - {probe.batch_number for probe in record.probes})


def counts(record):
    return record.counts.repairs, record.counts.fallbacks, record.counts.truncations


@pytest.fixture
def default(settings):
    return settings["default"]


# -- repairs -----------------------------------------------------------------------------------

WINDOW, DECISION = Protocol(), Protocol(repair_scope="decision")


@pytest.mark.parametrize(
    ("protocol", "plan", "expected"),
    [
        # (repairs, fallbacks), windows without probes, unanswered batches
        (WINDOW, {(3, "explore"): [BAD]}, ((1, 0), [], [])),
        (WINDOW, {(3, "act"): [BAD]}, ((1, 0), [], [])),
        (WINDOW, {(3, "explore"): [BAD], (3, "act"): [BAD]}, ((1, 1), [], [3])),
        (DECISION, {(3, "explore"): [BAD], (3, "act"): [BAD]}, ((2, 0), [], [])),
        (WINDOW, {(3, "explore"): [BAD, BAD]}, ((1, 1), [3], [])),
        (DECISION, {(3, "explore"): [BAD, BAD]}, ((1, 1), [3], [])),
        (WINDOW, {(3, "explore"): [BAD, BAD], (3, "act"): [BAD]}, ((1, 2), [3], [3])),
        (DECISION, {(3, "explore"): [BAD, BAD], (3, "act"): [BAD]}, ((2, 1), [3], [])),
        (DECISION, {(3, "explore"): [BAD, BAD], (3, "act"): [BAD, BAD]}, ((2, 2), [3], [3])),
        (WINDOW, {(3, "act"): [BAD, BAD]}, ((1, 1), [], [3])),
        (WINDOW, {(3, "act"): [BAD], (4, "explore"): [BAD]}, ((2, 0), [], [])),
        (WINDOW, {(3, "act"): [BAD, BAD], (4, "act"): [BAD]}, ((2, 1), [], [3])),
        (WINDOW, {(12, "act"): [BAD, BAD]}, ((1, 1), [], [12])),
    ],
)
def test_a_second_fault_of_the_scope_ends_the_decision(world, default, protocol, plan, expected):
    """Explore: the batch is revealed without a probe. Act: it ends with every case unanswered."""
    record, _ = played(world, default, plan, protocol)

    assert expected == (counts(record)[:2], unprobed(record), unanswered(record))
    assert [(w, d, "rejected") for (w, d), bad in plan.items() for _ in bad] == kinds(record)
    assert "completed" == record.status


def test_a_rejection_changes_nothing_but_tells_why(world, default):
    plan = {(2, "explore"): [call("submit_action_batch", batch_id="batch_02", actions={}), BAD]}
    record, asked = played(world, default, plan)
    before, after = (card_of(messages[-1].content) for messages in asked)
    text = asked[1][-1].content

    assert before == after
    assert text.startswith('Environment result: {"accepted": false, "message": "')
    assert all(reason in text for reason in record.faults[0].reasons)
    assert "no action batch is pending" in record.faults[0].reasons[0]


def test_every_kind_of_call_spends_the_one_repair(world, default):
    """A refused tool, refused arguments and an unreadable reply count alike."""
    bads = [
        call("submit_action_batch", batch_id="batch_01", actions={}),
        call("calculator", expressions=[]),
        call("probe_batch", probes=[]),
        call("request_next_batch", x=1),
        call("no_such_tool"),
        "",
    ]
    for first in bads:
        for second in bads:
            record, _ = played(world, default, {(1, "explore"): [first, second]})
            assert ((1, 1), [1]) == (counts(record)[:2], unprobed(record))


# -- truncation --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("regenerations", "plan", "expected"),
    [
        # (repairs, fallbacks, truncations), windows without probes, unanswered batches
        (1, {(5, "explore"): [CUT]}, ((0, 0, 1), [], [])),
        (1, {(5, "act"): [CUT]}, ((0, 0, 1), [], [])),
        (1, {(5, "explore"): [CUT, CUT]}, ((0, 1, 2), [5], [])),
        (1, {(5, "act"): [CUT, CUT]}, ((0, 1, 2), [], [5])),
        (1, {(5, "explore"): [CUT, BAD], (5, "act"): [CUT]}, ((1, 0, 2), [], [])),
        (1, {(5, "explore"): [CUT, CUT], (5, "act"): [BAD]}, ((1, 1, 2), [5], [])),
        (1, {(5, "act"): [BAD, CUT]}, ((1, 0, 1), [], [])),
        (1, {(5, "act"): [BAD, CUT, CUT]}, ((1, 1, 2), [], [5])),
        (1, {(5, "act"): [BAD, CUT, BAD]}, ((1, 1, 1), [], [5])),
        (0, {(5, "explore"): [CUT]}, ((0, 1, 1), [5], [])),
        (2, {(5, "act"): [CUT, CUT]}, ((0, 0, 2), [], [])),
        (2, {(5, "act"): [CUT, CUT, CUT]}, ((0, 1, 3), [], [5])),
    ],
)
def test_a_cut_off_reply_is_generated_again_outside_the_repair_budget(
    world, default, regenerations, plan, expected
):
    record, _ = played(world, default, plan, Protocol(regenerations=regenerations))

    assert expected == (counts(record), unprobed(record), unanswered(record))


def test_a_regeneration_is_asked_for_with_the_same_request(world, default):
    record, asked = played(world, default, {(5, "act"): [CUT, answer]})

    assert asked[0] == asked[1]
    assert not record.faults


def test_a_reply_cut_off_twice_is_one_fault_and_told_as_such(world, default):
    record, asked = played(world, default, {(5, "explore"): [CUT, CUT], (5, "act"): [answer]})
    *_, echoed, told = asked[-1]

    assert [(5, "explore", "truncated")] == kinds(record)
    assert "request_next_batch" not in echoed.content
    assert "cut off twice" in told.content
    assert card_of(told.content)["pending_action_batch"] is not None


# -- settings that force probes ----------------------------------------------------------------


def test_a_forced_window_is_waived_only_after_a_failed_repair(world, settings):
    """`request_next_batch` stays refused, with the reason; the next window is forced again."""
    plan = {(2, "explore"): [GO], (4, "explore"): [GO, BAD], (5, "explore"): [GO]}
    record, asked = played(world, settings["forced_probe"], plan)

    assert ((3, 1, 0), [4], []) == (counts(record), unprobed(record), unanswered(record))
    assert all("every batch window must be probed" in m[-1].content for m in asked)
    assert "request_next_batch is not available" in record.faults[0].reasons[0]


@pytest.mark.parametrize("name", ["default", "forced_probe"])
def test_fewer_probes_than_the_setting_asks_for_are_refused(world, settings, name):
    setting = replace(settings[name], min_probes=3)
    point = {"values": points_of(world)[0]}
    two, three = (call("probe_batch", probes=[point] * count) for count in (2, 3))
    plan = {(window, "explore"): [two, three] for window in range(1, 13)}
    record, asked = played(world, setting, plan)

    assert (12, 0, 0) == counts(record)
    assert 36 == len(record.probes)
    assert "a list of 3 to 16, got 2" in record.faults[0].reasons[0]
    assert "3 to 16 probes" in asked[0][0].content


# -- parsing -----------------------------------------------------------------------------------


def test_what_lenient_reading_would_accept_is_counted(world, default):
    """A fenced call is; a call that the environment refuses, and prose, are not."""
    fenced = f"```json\n{GO}\n```"
    plan = {(1, "explore"): [fenced], (2, "act"): [GO], (3, "explore"): [BAD], (4, "act"): [fenced]}
    strict, _ = played(world, default, plan)
    lenient, _ = played(world, default, plan, Protocol(reply_parsing="lenient"))

    assert (4, 2) == (len(strict.faults), strict.counts.lenient_would_accept)
    assert (3, 0) == (len(lenient.faults), lenient.counts.lenient_would_accept)
    assert [1] == unprobed(lenient)


def test_two_calculator_calls_in_a_row_are_a_fault_even_across_a_fallback(world, default):
    """A refused one counts as one: only another tool makes the calculator available again."""
    sums = call("calculator", expressions=["1 + 1"])
    plan = {(3, "explore"): [sums, sums, sums], (3, "act"): [sums]}
    record, asked = played(world, default, plan)
    usable = [View(messages).available["calculator"] for messages in asked]

    assert [True, False, False, False] == usable
    assert (1, [3], [3]) == (record.counts.calculator_calls, unprobed(record), unanswered(record))


# -- endings -----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["overflow", "content_filter"])
@pytest.mark.parametrize(
    ("moment", "finished"),
    [((1, "explore"), 0), ((6, "explore"), 5), ((6, "act"), 5), ((12, "act"), 11)],
)
def test_the_provider_ends_the_episode_and_what_was_played_is_kept(
    world, default, status, moment, finished
):
    """Also where the ending comes in place of a regeneration."""
    ending = Reply(text="", finish_reason=status)
    for replies in ([ending], [CUT, ending], [BAD, ending]):
        record, _ = played(world, default, {moment: replies})

        assert status == record.status
        assert [b for b in range(1, finished + 1) for _ in range(8)] == [
            case.batch_number for case in record.cases
        ]
        assert finished + (moment[1] == "act") == len(record.probes)
