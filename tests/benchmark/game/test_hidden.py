"""What an agent is never told: the rule, the drift, the branch, and who the episode is.

Three nets: texts that must not occur; hidden parts that can be exchanged without changing a byte;
and every number of every message computed again from the world by other code.
"""

import json
import re
from dataclasses import replace

import pytest

import twins
from adaexplore.benchmark.world.episodes import World
from adaexplore.benchmark.world.fields import FAMILIES
from players import card_of, drive, points_of, restless, steady

NAMES = ("default", "evidence_given", "forced_probe", "full", "stationary", "stationary_iid")


def told(transcript):
    """Every different text that the environment wrote in an episode, forks included."""
    return {m.content for r in transcript.requests for m in r if m.role != "assistant"}


@pytest.mark.parametrize("name", NAMES)
def test_hidden_texts_do_not_occur(stage, name):
    """Neither the event, nor thresholds, weights and quartiles, nor ids; families only as a list."""
    for world in stage.worlds[::3]:
        texts = told(drive(world, stage.settings[name], steady(points_of(world))))
        system = next(text for text in texts if text.startswith("# Your role"))
        rest = "\0".join(texts - {system})
        episode = world.episode

        assert [1] * 4 == [system.count(family) for family in FAMILIES]
        assert [0] * 4 == [rest.count(family) for family in FAMILIES]
        transition = episode.transition
        for text in (
            episode.episode_id,
            transition.event_id,
            transition.trigger_event,
            transition.change_reason,
            *precise(episode),
        ):
            assert text not in system + rest


def precise(episode):
    """Hidden numbers with more places than any number an agent sees, as digits."""
    slots = (*episode.pre.slots, *episode.post.slots)
    numbers = [slot.threshold for slot in slots] + [slot.weight for slot in slots]
    numbers += [episode.pre.band, episode.post.band]
    numbers += [episode.calibration.q25, episode.calibration.q50, episode.calibration.q75]
    digits = {f"{abs(number):.12f}".rstrip("0") for number in numbers}
    return {text for text in digits if len(text.partition(".")[2]) > 2}


def with_hidden_parts_of(world, other, **changes):
    """The world with another id, event and review; rules, cases and the rest as `changes` say."""
    episode = replace(
        world.episode,
        episode_id="another-999",
        transition=other.episode.transition,
        review=None,
        **changes,
    )
    return World(domain=world.domain, episode=episode)


@pytest.mark.parametrize("name", NAMES)
def test_identity_and_event_change_no_byte(stage, name):
    """Another episode id, event and name of the setting: the same requests to the end."""
    setting = stage.settings[name]
    for world, other in zip(stage.worlds[:4], stage.worlds[4:8], strict=True):
        twin = with_hidden_parts_of(world, other)
        renamed = replace(setting, name="another_setting")
        player = restless(7, points_of(world), faults=0.2)
        once, again = drive(world, setting, player), drive(twin, renamed, player)

        assert once.requests == again.requests
        assert once.record != again.record


@pytest.mark.parametrize("name", NAMES)
def test_first_messages_depend_on_nothing_hidden(stage, name):
    """Rules, calibration, change batch and cases of another kind: the same opening to the byte."""
    setting = stage.settings[name]
    for world in stage.worlds[:8]:
        episode = world.episode
        turned = tuple(replace(slot, direction=-slot.direction) for slot in episode.post.slots)
        twin = with_hidden_parts_of(
            world,
            stage.worlds[-1],
            pre=replace(episode.post, slots=turned[::-1]),
            post=episode.pre,
            change_batch=13 - episode.change_batch,
            cases=episode.iid_cases,
            iid_cases=episode.cases,
        )
        player = steady(points_of(world))

        assert drive(world, setting, player).requests[0] == drive(twin, setting, player).requests[0]


def test_the_change_batch_changes_no_byte_before_the_change(stage):
    """Until the earlier of two change batches is over, nothing tells which one it will be."""
    for name in ("default", "evidence_given", "forced_probe", "full"):
        for world in stage.worlds[:6]:
            early, late = (
                drive(
                    with_hidden_parts_of(world, world, change_batch=batch),
                    stage.settings[name],
                    restless(3, points_of(world), faults=0.1),
                )
                for batch in (5, 8)
            )
            pairs = zip(early.turns, late.turns, strict=False)
            first = next(before for (before, _), (other, _) in pairs if before != other)

            assert window(first) >= 6


def window(messages):
    return 13 - card_of(messages[-1].content)["remaining_action_batches"]


# -- every number computed again ---------------------------------------------------------------


def expected_utilities(world, setting, batch_number, row):
    late = setting.drifts and batch_number > world.episode.change_batch
    rule = world.episode.post if late else world.episode.pre
    return [float(u) for u in twins.utilities(twins.row_score(world, rule, row))]


KEYS = {
    "message", "batch_number", "batch_id", "accepted", "results", "batch_utility", "errors",
    "cumulative_utility", "cumulative_probes", "context_id", "probe_mode", "base_context_id",
    "utilities", "action_0", "action_1", "action_2", "action_3", "utility", "abstained", "action_id",
    "index", "ok", "value", "error", "variable", "variables", "successful_expression_count",
    "invalid_expression_count", "tool_usability", "tool", "available", "reason", "cases",
    "raw_values", "remaining_action_batches", "pending_action_batch", "a", "b",
}  # fmt: skip


def keys_of(value):
    if isinstance(value, list):
        return set().union(*map(keys_of, value))
    if isinstance(value, dict):
        return set(value).union(*map(keys_of, value.values()))
    return set()


@pytest.mark.parametrize("name", NAMES)
def test_every_number_follows_from_the_contract(stage, name):
    """Keys are those of the contract, and each value is what the world gives for what was asked."""
    setting = stage.settings[name]
    for world in (stage.worlds[1], stage.worlds[3]):
        transcript = drive(world, setting, steady(points_of(world)))
        record = transcript.record
        batches = world.episode.iid_cases if setting.cases == "iid" else world.episode.cases
        rows = dict(zip((f"case_{i + 1:03d}" for i in range(96)), sum(batches, ()), strict=True))
        numbers = {c.context_id: c.batch_number for c in record.cases}
        worth = {k: expected_utilities(world, setting, numbers[k], row) for k, row in rows.items()}
        probed = {
            p.context_id: expected_utilities(world, setting, p.batch_number, p.row)
            for p in record.probes
        }
        chosen = {c.context_id: c.action for c in record.cases}
        texts = told(transcript)
        payloads = [json.loads(t) for text in texts for t in documents(text)]

        assert keys_of(payloads) <= KEYS | set(world.episode.visible_fields)
        seen_probes, seen_outcomes, seen_cases = set(), set(), set()
        for payload in payloads:
            for case in (payload.get("pending_action_batch") or {}).get("cases", ()):
                assert world.numbers(rows[case["context_id"]]) == case["raw_values"]
                seen_cases.add(case["context_id"])
            for result in payload.get("results", ()):
                identity = result.get("context_id", "")
                if identity.startswith("probe_"):
                    assert_shown(probed[identity], result["utilities"].values())
                    seen_probes.add(identity)
                elif identity:
                    action = chosen[identity]
                    gain = 0.0 if action is None else worth[identity][action]
                    assert_shown([gain], [result["utility"]])
                    assert (action is None) == result.get("abstained", False)
                    if setting.evidence == "full":
                        assert_shown(worth[identity], result["utilities"].values())
                    seen_outcomes.add(identity)
        assert set(probed) == seen_probes
        assert set(rows) == seen_outcomes == seen_cases


def documents(text):
    """The JSON objects that a message of the environment consists of."""
    return re.findall(r"^(?:Environment result|Current state): (\{.*\})$", text, re.MULTILINE)


def assert_shown(exact, shown):
    """Two decimals of the exact values."""
    for value, text in zip(exact, map(repr, shown), strict=True):
        assert abs(value - float(text)) <= 0.005 + 1e-9
        assert len(text.partition(".")[2]) <= 2
