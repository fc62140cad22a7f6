"""The order of the tests for two workers that take a half each."""

from pathlib import Path

from halves import longest_first


def pytest_collection_modifyitems(items):
    """The longest begin."""
    longest_first(
        items,
        Path(__file__).parent,
        ["engine_is_killed", "keep_to_the_schema", "missing_model", "one_life"],
    )
