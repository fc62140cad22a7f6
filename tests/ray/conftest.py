"""One Ray for all tests that need one that runs already; others start their own."""

import signal
import tempfile

import pytest

import rays


@pytest.fixture(scope="session", autouse=True)
def interruptible():
    """In the background of a script SIGINT is ignored, and whoever is started there ignores it too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


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
    """A model server on loopback, which can be held."""
    with rays.GatedServer() as found:
        yield found
