"""The opening messages say what the contract asks for, and their digest stands for every text."""

import re
from dataclasses import replace

import pytest

from adaexplore.benchmark.game import prompts
from adaexplore.benchmark.game.play import play
from adaexplore.benchmark.game.protocol import TOOLS, Protocol
from adaexplore.benchmark.world import constraints
from players import card_of


def opening(world, setting, protocol=None):
    """(system message, first user message) of an episode."""
    system, first = next(play(world, setting, protocol or Protocol())).messages
    return system.content, first.content


def flat(value):
    """All strings of nested texts."""
    if isinstance(value, str):
        return {value}
    values = value.values() if isinstance(value, dict) else value
    return set().union(*map(flat, values)) if isinstance(value, dict | tuple) else set()


def test_the_digest_is_of_every_text():
    """No sentence of the module stands outside the texts that its digest is made of."""
    names = [n for n in vars(prompts) if n.isupper() and n != "DIGEST"]
    texts = [getattr(prompts, name) for name in names]

    assert len(names) > 10
    assert set().union(*map(flat, texts)) == flat(prompts._TEXTS)
    assert prompts.ECHO_CHARS in prompts._TEXTS


def test_the_system_message_tells_the_whole_protocol(stage):
    """Role, question, actions in order, tools, limits; no placeholder is left open."""
    protocol = Protocol(max_probes=11, max_expressions=13)
    for world in stage.worlds[::5]:
        for setting in stage.settings.values():
            system, _ = opening(world, setting, protocol)
            places = [
                system.index(f"- **{action.display_name}** (`action_{k}`): {action.description}")
                for k, action in enumerate(world.domain.actions)
            ]

            assert sorted(places) == places
            assert world.domain.role in system
            assert world.domain.question in system
            assert all(f"## {tool}: " in system for tool in TOOLS)
            assert "1 to 11 probes" in system
            assert "at most 13 expressions" in system
            assert not re.search(r"\{[a-z_]*\}(?!\})", system.replace('"arguments":{}', ""))


@pytest.mark.parametrize(
    ("name", "said", "unsaid"),
    [
        ("default", "taken out of this conversation", "Nothing is taken out"),
        ("stationary", "taken out of this conversation", "Nothing is taken out"),
        ("evidence_given", "the utility of the action you chose for every case", "stands in their"),
        ("full", "the utilities of all four actions for every case", "stands in their"),
        ("forced_probe", "You have to probe in every window", "Probing is optional"),
        ("evidence_given", "Probing is optional", "You have to probe in every window"),
    ],
)
def test_the_system_message_tells_the_policies_of_the_setting(stage, name, said, unsaid):
    system, _ = opening(stage.worlds[0], stage.settings[name])

    assert said in system
    assert unsaid not in system


def test_the_system_message_tells_the_repair_scope_and_the_fewest_probes(stage):
    world, setting = stage.worlds[0], replace(stage.settings["default"], min_probes=2)
    window, _ = opening(world, setting)
    decision, _ = opening(world, setting, Protocol(repair_scope="decision"))

    assert "2 to 16 probes" in window
    assert "once in a batch window" in window
    assert "once in a batch window" not in decision


def test_the_first_message_shows_each_field_and_constraint_once(stage):
    """In the episode's own order, with type, unit and bounds; then the card of the first window."""
    for world in stage.worlds:
        _, first = opening(world, stage.settings["default"])
        lines = [line for line in first.splitlines() if line.startswith("- ")]
        shown = [
            f"- **{f.display_name}** (`{f.field_id}`, type: {f.type}, unit: {f.unit}, "
            f"minimum: {f.bounds[0]}, maximum: {f.bounds[1]}): {f.description}"
            for f in (world.domain.catalog[name] for name in world.episode.visible_fields)
        ]
        shown += [
            f"- {c.description} `{constraints.to_text(c.expression)}`" for c in world.constraints
        ]

        assert [" ".join(text.split()) for text in shown] == [" ".join(t.split()) for t in lines]
        assert (0, 0, 12, None) == tuple(card_of(first)[key] for key in CARD_KEYS)


CARD_KEYS = (
    "cumulative_utility",
    "cumulative_probes",
    "remaining_action_batches",
    "pending_action_batch",
)
