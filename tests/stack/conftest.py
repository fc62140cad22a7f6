"""The order of the files for two workers that take a file each."""


def pytest_collection_modifyitems(items):
    """The sweep under dying services, which takes as long as all the others together, begins."""
    items.sort(key=lambda item: item.path.parts[-2:] != ("stack", "test_sweeps.py"))
