"""Records: a function of the episode and the replies, and the same after any interruption."""

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaexplore.benchmark.game import records
from adaexplore.benchmark.game.play import play
from adaexplore.benchmark.game.protocol import Protocol
from adaexplore.benchmark.world.episodes import World
from players import drive, points_of, restless, steady

NAMES = ("default", "evidence_given", "forced_probe", "full", "stationary", "stationary_iid")


def through_json(record):
    return json.loads(json.dumps(record.to_document()))


# -- resume is replay --------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_killed_anywhere_an_episode_goes_on_to_the_same_record(stage, name):
    """For every k: the first k replies replayed, the player asked from there on."""
    world, setting = stage.worlds[3], stage.settings[name]
    player = restless(5, points_of(world), faults=0.25)
    whole = drive(world, setting, player)

    for k in range(len(whole.replies) + 1):
        asked = []

        def resumed(messages, asked=asked):
            asked.append(messages)
            return player(messages)

        again = drive(world, setting, resumed, recorded=whole.replies[:k])
        assert whole == again
        assert whole.requests[k:] == asked


@given(seed=st.integers(0, 10**6), name=st.sampled_from(NAMES), k=st.integers(0, 60))
@settings(max_examples=25)
def test_replies_of_any_player_replay_to_the_same_record(stage, seed, name, k):
    """Also of one that depends on more than the messages, and with endings by the provider."""
    world = stage.worlds[seed % len(stage.worlds)]
    player = restless(seed, points_of(world), counting=True, endings=0.02)
    whole = drive(world, stage.settings[name], player)
    rest = iter(whole.replies[k:])
    again = drive(world, stage.settings[name], lambda _: next(rest), recorded=whole.replies[:k])

    assert whole == again
    assert through_json(whole.record) == through_json(again.record)


def test_episodes_played_in_turns_do_not_meet(stage):
    """Six episodes, one reply each in turn: the records of playing them one after another."""
    world = stage.worlds[1]
    player = restless(9, points_of(world), faults=0.2)
    alone = [drive(world, stage.settings[name], player) for name in NAMES]

    games = [play(world, stage.settings[name], Protocol()) for name in NAMES]
    requests = [next(game) for game in games]
    together = [None] * len(games)
    for turn in range(400):
        for i, game in enumerate(games):
            if together[i] is None:
                assert alone[i].requests[turn] == requests[i].messages
                try:
                    requests[i] = game.send(alone[i].replies[turn])
                except StopIteration as stop:
                    together[i] = stop.value
    assert [transcript.record for transcript in alone] == together


# -- documents ---------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), name=st.sampled_from(NAMES))
@settings(max_examples=25)
def test_a_record_survives_json(stage, seed, name):
    """Floats to the last bit, None apart from 0, and every type as it was."""
    world = stage.worlds[seed % len(stage.worlds)]
    player = restless(seed, points_of(world), endings=0.01)
    record = drive(world, stage.settings[name], player).record
    again = records.from_document(through_json(record))

    assert record == again
    assert repr(record) == repr(again)


@pytest.mark.parametrize("spoil", [lambda d: d.pop("cases"), lambda d: d.update(extra=1)])
def test_what_is_no_record_is_refused(stage, spoil):
    world = stage.worlds[0]
    document = through_json(
        drive(world, stage.settings["default"], steady(points_of(world))).record
    )
    spoil(document)

    with pytest.raises((KeyError, TypeError, ValueError)):
        records.from_document(document)


def test_a_record_holds_the_contract_s_parts_and_nothing_of_clock_or_host(stage):
    """Its keys are listed here: one that is added has to be one that a second run makes again."""
    world = stage.worlds[0]
    document = through_json(
        drive(world, stage.settings["default"], steady(points_of(world))).record
    )

    assert {
        "episode_id", "domain_id", "family", "setting", "drifts", "change_batch", "visible_fields",
        "status", "hidden_digest", "observation_digest", "truth", "cases", "probes", "assessments",
        "faults", "counts",
    } == set(document)  # fmt: skip
    assert {
        "turns", "repairs", "fallbacks", "truncations", "calculator_calls", "lenient_would_accept",
        "input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens",
    } == set(document["counts"])  # fmt: skip
    rows = [*document["cases"], *document["probes"], *document["assessments"], *document["faults"]]
    assert {
        "context_id", "batch_number", "action", "utilities", "base_context_id", "row", "phase",
        "status", "directions", "decision", "kind", "reasons",
    } == {key for row in rows for key in row}  # fmt: skip


def test_the_record_tells_what_happened(stage):
    """Truth per phase, tokens summed, reasoning left out."""
    for name, setting in stage.settings.items():
        world = stage.worlds[5]
        transcript = drive(world, setting, steady(points_of(world)))
        record, episode = transcript.record, world.episode
        rules = (
            {"pre": episode.pre, "post": episode.post} if setting.drifts else {"post": episode.pre}
        )

        assert (name, setting.drifts) == (record.setting, record.drifts)
        assert {
            phase: {slot.field_id: slot.direction for slot in rule.slots}
            for phase, rule in rules.items()
        } == record.truth
        for kind in ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens"):
            spent = sum(getattr(reply, kind) for reply in transcript.replies)
            assert spent == getattr(record.counts, kind) > 0
        assert "thought" not in json.dumps(record.to_document())


# -- digests -----------------------------------------------------------------------------------


def test_the_hidden_digest_tells_episodes_apart(stage):
    """Equal for the same episode under any setting; another for any other, however near."""
    digests = {world.digest for world in stage.worlds}
    world = stage.worlds[0]
    rows = world.episode.cases
    swapped = ((rows[0][1], rows[0][0], *rows[0][2:]), *rows[1:])
    near = dataclasses.replace(world.episode, cases=swapped)

    assert len(stage.worlds) == len(digests)
    assert World(domain=world.domain, episode=near).digest not in digests
    played = {
        drive(world, setting, steady(points_of(world))).record.hidden_digest
        for setting in stage.settings.values()
    }
    assert {world.digest} == played


def test_the_observation_digest_tells_observations_apart(stage):
    """Every change of a reply that the environment answers differently changes it."""
    world, setting = stage.worlds[0], stage.settings["default"]
    transcripts = [
        drive(world, setting, restless(seed, points_of(world), faults=0.2)) for seed in range(20)
    ]

    assert 20 == len({transcript.record.observation_digest for transcript in transcripts})
