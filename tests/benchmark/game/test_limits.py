"""Protocols and settings refuse sizes that no episode could be played with."""

from dataclasses import replace

import pytest

from adaexplore.benchmark.game.protocol import Protocol


@pytest.mark.parametrize(
    ("name", "least"),
    [("max_probes", 1), ("max_expressions", 1), ("max_reply_chars", 1), ("regenerations", 0)],
)
def test_a_protocol_has_usable_limits(name, least):
    assert least == getattr(Protocol(**{name: least}), name)
    with pytest.raises(ValueError, match=f"expected {name} of at least {least}, got {least - 1}"):
        Protocol(**{name: least - 1})


def test_a_setting_asks_for_at_least_one_probe(settings):
    for setting in settings.values():
        assert setting == replace(setting, min_probes=setting.min_probes)
        with pytest.raises(ValueError, match="min_probes of at least 1, got 0"):
            replace(setting, min_probes=0)
