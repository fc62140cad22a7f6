"""One Ray for all tests that need one that runs already; others start their own."""

import tempfile

import pytest

import rays
from fault_server import FaultServer


@pytest.fixture(scope="session")
def head():
    """The Ray that runs."""
    with (
        tempfile.TemporaryDirectory(prefix="rt-", ignore_cleanup_errors=True) as folder,
        rays.ray_head(folder, cpus=3) as found,
    ):
        yield found


@pytest.fixture
def server():
    """A model server on loopback."""
    with FaultServer() as found:
        yield found
