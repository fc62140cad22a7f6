"""What the tests of the game share beside the common fixtures."""

import dataclasses

import pytest


class Stage:
    """Worlds and settings under one name, with a short printed form for Hypothesis."""

    def __init__(self, worlds, settings):
        full = dataclasses.replace(settings["evidence_given"], name="full", evidence="full")
        self.worlds = worlds
        self.settings = {**settings, "full": full}


@pytest.fixture(scope="session")
def stage(worlds, settings):
    """The packaged episodes, and the five settings with `full` evidence as a sixth."""
    return Stage(worlds, settings)
