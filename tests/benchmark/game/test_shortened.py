"""Shortened episodes: the first windows of a whole one, and worth what was played of it."""

import math
import re
from dataclasses import replace

import pytest

import twins
from adaexplore.benchmark.game.agents import Told, oracle
from adaexplore.benchmark.game.protocol import Protocol
from adaexplore.benchmark.scores import metrics
from players import View, belief, by_values, call, drive, points_of, steady, submit

REMAINING = re.compile(r'("remaining_action_batches": )(\d+)')
SIZES = ("one", "up to the change", "one beyond", "all but one")


def plain(world):
    """Two new probes and an old one in every window, an action for every case, one same belief."""
    points, (first, second, *_) = points_of(world), world.episode.visible_fields

    def player(messages):
        view = View(messages)
        if view.forked:
            return belief(**{first: "positive", second: "negative"})
        if view.pending:
            return submit(view, by_values)
        new = [{"values": points[(len(view.probes) + i) % len(points)]} for i in range(2)]
        old = [{"base_context_id": name, "changes": {}} for name in view.probes[:1]]
        return call("probe_batch", probes=new + old)

    return player


def batches(world, size):
    change = world.episode.change_batch
    return {"one": 1, "up to the change": change, "one beyond": change + 1, "all but one": 11}[size]


def shortened(world, setting, count, player=None):
    return drive(world, setting, player or plain(world), Protocol(batches=count))


def later(messages, windows):
    """Messages as they are where the episode goes on for so many more windows."""
    return [
        (m.role, REMAINING.sub(lambda found: f"{found[1]}{int(found[2]) + windows}", m.content))
        for m in messages
    ]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["default", "stationary", "stationary_iid", "evidence_given"])
def test_it_is_the_beginning_of_the_whole_episode(stage, name, size):
    """Word for word, apart from the number of batches that remain, which is the number played."""
    for world in stage.worlds[::9]:
        count, setting = batches(world, size), stage.settings[name]
        short = shortened(world, setting, count)
        whole = drive(world, setting, plain(world))
        pairs = list(zip(short.turns, whole.turns, strict=False))

        assert f'"remaining_action_batches": {count},' in short.requests[0][1].content
        assert len(pairs) == len(short.turns)
        assert all(later(a, 12 - count) == list(b) for (a, _), (b, _) in pairs)
        assert short.record.cases == tuple(
            case for case in whole.record.cases if case.batch_number <= count
        )
        assert short.record.probes == tuple(
            probe for probe in whole.record.probes if probe.batch_number <= count
        )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["default", "stationary", "forced_probe"])
def test_it_drifts_only_if_a_window_is_played_under_the_new_rule(stage, name, size):
    """Else it is one phase under the old rule, assessed once, at the end."""
    setting = stage.settings[name]
    for world in stage.worlds[::9]:
        episode, count = world.episode, batches(world, size)
        record = shortened(world, setting, count).record
        drifts = setting.drifts and count > episode.change_batch
        before, after = episode.pre.directions, episode.post.directions

        assert drifts == record.drifts
        assert ({"pre": before, "post": after} if drifts else {"post": before}) == record.truth
        assert (["pre", "post"] if drifts else ["post"]) == [a.phase for a in record.assessments]
        assert episode.change_batch == record.change_batch


def twin_values(world, setting, count):
    """The metrics of `plain`, from the hidden rules in exact fractions."""
    episode = world.episode
    change = min(episode.change_batch, count) if setting.drifts else count
    parts = [(episode.pre, range(1, change + 1)), (episode.post, range(change + 1, count + 1))]
    best = [
        twins.best_action(twins.row_score(world, rule, row))
        == by_values({"raw_values": world.numbers(row)})
        for rule, numbers in parts
        for number in numbers
        for row in episode.cases[number - 1]
    ]
    points = points_of(world)
    asked, phases = 0, ([], [])
    for number in range(1, count + 1):
        asked_now = [asked % len(points), (asked + 1) % len(points), *([0] if asked else [])]
        phases[number > change].extend(tuple(points[i].values()) for i in asked_now)
        asked += len(asked_now)
    early, late = map(set, phases)
    found = [set(rule.directions) & set(episode.visible_fields[:2]) for rule, n in parts if n]
    scores = [2 * len(common) / 5 for common in found]
    moved = change < count
    return {
        "ea": sum(best) / len(best),
        "unique_probes": len(early) + len(late),
        "re_probes": len(early & late) if moved else math.nan,
        "factor_recognition": sum(scores) / len(scores),
        "change_recognition": 0.0 if moved else math.nan,
        "unanswered": 0.0,
        "assessment_completion": 1.0,
        "paired_completion": 1.0 if moved else math.nan,
    }


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["default", "stationary"])
def test_metrics_agree_with_their_twins(stage, name, size):
    setting = stage.settings[name]
    for world in stage.worlds[::9]:
        count = batches(world, size)
        record = shortened(world, setting, count).record
        measured = {m.name: metrics.value(m, [record]) for m in (*metrics.MAIN, *metrics.BESIDE)}
        del measured["ca"]

        assert pytest.approx(twin_values(world, setting, count), nan_ok=True) == measured


@pytest.mark.parametrize("size", SIZES)
def test_the_oracle_is_perfect_in_what_is_played(stage, size):
    """It is asked about the rule of its last window, also where that is the change batch."""
    setting = stage.settings["default"]
    for world in stage.worlds[::9]:
        told, count = Told(world=world, drifts=True), batches(world, size)
        record = shortened(world, setting, count, lambda m, told=told: oracle(m, told)).record
        values = [metrics.value(metric, [record]) for metric in metrics.MAIN]
        moved = count > world.episode.change_batch

        expected = [1.0, 1.0, 0.0, *([0.0, 1.0, 1.0] if moved else [math.nan, 1.0, math.nan])]
        assert pytest.approx(expected, nan_ok=True) == values


def test_all_windows_are_the_whole_episode(stage):
    world, setting = stage.worlds[0], stage.settings["default"]
    player = steady(points_of(world))

    assert drive(world, setting, player) == shortened(world, setting, 12, player)


@pytest.mark.parametrize("count", [-1, 0, 13])
def test_there_is_no_such_number_of_windows(protocol, count):
    with pytest.raises(ValueError, match=rf"expected batches of 1 to 12, or null, got {count}"):
        replace(protocol, batches=count)
