"""Branch blindness: drift or not, an agent that sees the same sends the same and is sent the same."""

from dataclasses import replace

import pytest

from players import card_of, drive, points_of, restless, steady

PLAYERS = {
    "steady": lambda world: steady(points_of(world)),
    "restless": lambda world: restless(11, points_of(world), faults=0.15),
    "perfectly behaved": lambda world: restless(12, points_of(world), faults=0.0),
}


def window(messages):
    return 13 - card_of(messages[-1].content)["remaining_action_batches"]


def assert_blind(world, drifting, still, player):
    """Main requests are equal until the change has answered a probe or a batch, and then differ."""
    moved, stood = (
        [messages for messages, _ in drive(world, setting, player).turns]
        for setting in (drifting, still)
    )
    change = world.episode.change_batch
    pairs = list(zip(moved, stood, strict=False))
    before = [pair for pair in pairs if window(pair[0]) <= change]
    opened = pairs[len(before)]

    assert before
    assert all(a == b for a, b in before)
    assert opened[0] == opened[1]
    assert change + 1 == window(opened[0])
    assert any(a != b for a, b in pairs)


@pytest.mark.parametrize("player", PLAYERS)
def test_default_and_stationary_are_one_until_the_change(stage, player):
    """In every episode; the question that only default asks meanwhile leaves no trace."""
    for world in stage.worlds:
        assert_blind(
            world,
            stage.settings["default"],
            stage.settings["stationary"],
            PLAYERS[player](world),
        )


@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize("name", ["forced_probe", "evidence_given", "full"])
def test_each_drifting_setting_and_its_still_twin_are_one(stage, name, player):
    drifting = stage.settings[name]
    still = replace(drifting, name="still", drifts=False)
    for world in stage.worlds[::4]:
        assert_blind(world, drifting, still, PLAYERS[player](world))


def test_both_branches_share_their_cases(stage):
    """The same cases in the same order; what they are worth differs only after the change."""
    for world in stage.worlds[::4]:
        moved, stood = (
            drive(world, stage.settings[name], steady(points_of(world))).record.cases
            for name in ("default", "stationary")
        )
        late = [case.batch_number > world.episode.change_batch for case in moved]
        differ = [a.utilities != b.utilities for a, b in zip(moved, stood, strict=True)]

        assert [c.context_id for c in moved] == [c.context_id for c in stood]
        assert not any(d and not after for d, after in zip(differ, late, strict=True))
        assert sum(late) / 2 <= sum(differ)


def test_the_still_branch_is_asked_once_and_the_moving_one_twice(stage):
    """Each question stands on the conversation as it was when its batch had completed."""
    world = stage.worlds[0]
    for name, setting in stage.settings.items():
        transcript = drive(world, setting, steady(points_of(world)))
        left = [card_of(messages[-1].content) for messages, _ in transcript.forks]

        change = [12 - world.episode.change_batch] if setting.drifts else []
        assert [*change, 0] == [card["remaining_action_batches"] for card in left], name
