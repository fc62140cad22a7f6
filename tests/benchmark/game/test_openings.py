"""What an episode begins with is made once for a setting and a protocol, and for no other."""

import dataclasses

from adaexplore.benchmark.game.play import play
from adaexplore.benchmark.game.protocol import Protocol


def first_request(world, setting, protocol):
    return next(play(world, setting, protocol))


def test_runs_of_one_condition_share_their_opening(world, settings):
    one, two = (first_request(world, settings["default"], Protocol()) for _ in range(2))
    assert all(a is b for a, b in zip(one.messages, two.messages, strict=True))
    assert one.schema is two.schema


def test_runs_of_another_condition_do_not(world, settings):
    """Each is what a world gives that has met no other."""
    conditions = [(setting, Protocol()) for setting in settings.values()]
    conditions += [(settings["default"], Protocol(max_probes=3, max_expressions=2))]
    for setting, protocol in conditions * 2:
        fresh = dataclasses.replace(world)
        wanted = first_request(fresh, setting, protocol)
        assert wanted == first_request(world, setting, protocol)
