"""Progress on a terminal: counted at every call, drawn only as often as anyone can see."""

import io

from rich.console import Console

from adaexplore import display
from adaexplore.models.activity import Activity


def test_calls_are_counted_and_the_line_is_told_seldom():
    output = Console(file=io.StringIO(), force_terminal=True, width=120)
    meter = display.Meter(output, 2, Activity())
    with meter.shown():
        for _ in range(5_000):
            meter.call()
        meter.episode(failed=False)
        meter.episode(failed=True)

    assert (5_000, 2, 1) == (meter.calls, meter.episodes, meter.failed)
    assert "2/2" in output.file.getvalue()
    assert "1 failed" in output.file.getvalue()
