"""These tests need packages of all extras (make test-charts); elsewhere they are not selected."""

import pytest

from chart_views import PROFILES, render, values


@pytest.fixture(params=PROFILES, ids=lambda path: path.name.removesuffix("-values.yaml"))
def profile(request):
    return request.param


@pytest.fixture
def documents(profile):
    return render(values(profile))


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent.name == "charts":
            item.add_marker(pytest.mark.charts)
