"""How fast the environment is by itself: what a call would cost if model, network and disk cost nothing."""

from tests.benchmarks.children import ROOT, told
from tests.benchmarks.rows import measured

TIMES = 3
"""Passes over all episodes of `first` for each repeat."""


def rows(bench):
    """The rows of the group."""
    bench.say("turns without a client")
    rates = told(["-m", "tests.benchmarks.drive_turns", TIMES * bench.repeats], paths=[ROOT])
    what = "environment turns, one core, no client"
    yield measured("environments.turns", what, rates, "turns/s")
