"""What was asked is told by the replies alone, for an episode that ended and for any part of one."""

from hypothesis import given, settings
from hypothesis import strategies as st

from adaexplore.benchmark.game.protocol import Reply
from adaexplore.experiments import turns
from players import drive, points_of, steady


def test_a_whole_episode_gives_its_requests_and_its_record(world, settings, protocol):
    setting = settings["default"]
    played = drive(world, setting, steady(points_of(world)))
    followed = turns.follow(world, setting, protocol, [*played.replies, Reply(text="too much")])

    assert followed.ended
    assert played.record == followed.record
    assert played.replies == [reply for _, reply in followed.turns]
    assert played.requests == [request.messages for request, _ in followed.turns]


@settings(max_examples=12)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_part_gives_what_the_whole_begins_with(share, world, settings, protocol):
    setting = settings["default"]
    played = drive(world, setting, steady(points_of(world)))
    cut = int(share * len(played.replies))
    followed = turns.follow(world, setting, protocol, played.replies[:cut])

    assert not followed.ended
    assert cut == len(followed.turns) == followed.record.counts.turns
    assert played.requests[:cut] == [request.messages for request, _ in followed.turns]
    for name in ("cases", "probes", "assessments", "faults"):
        part, whole = getattr(followed.record, name), getattr(played.record, name)
        assert whole[: len(part)] == part
