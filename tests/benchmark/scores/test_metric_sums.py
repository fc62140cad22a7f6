"""Every metric is a function of sums over episodes: undefined for none, and blind to their order."""

from math import isnan, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from adaexplore.benchmark.scores import metrics
from strategies import EPISODE_RECORDS

FORTY = hypothesis_settings(max_examples=40)  # each holds several episodes of many cases
RECORDS = st.lists(EPISODE_RECORDS, min_size=1, max_size=5)
ALL = (*metrics.MAIN, *metrics.BESIDE, metrics.at_offset(1))


def test_columns_of_the_main_table():
    names = [metric.name for metric in metrics.MAIN]

    assert [
        "ea", "ca", "unique_probes", "re_probes", "factor_recognition", "change_recognition",
    ] == names  # fmt: skip
    assert len(ALL) == len({metric.name for metric in ALL})


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: metric.name)
def test_nothing_played_is_undefined(metric):
    """Not 0: a missing number must never look like a bad one."""
    assert isnan(metrics.value(metric, []))


@FORTY
@given(RECORDS, st.randoms(use_true_random=False))
def test_order_of_episodes_does_not_matter(records, random):
    shuffled = random.sample(records, len(records))
    for metric in ALL:
        expected = metrics.value(metric, records)
        assert expected == pytest.approx(metrics.value(metric, shuffled), abs=1e-12, nan_ok=True)


@FORTY
@given(RECORDS)
def test_a_metric_of_episodes_played_twice_is_the_same(records):
    """Every metric is a ratio of sums, so replicates that agree change nothing."""
    for metric in ALL:
        expected = metrics.value(metric, records)
        twice = metrics.value(metric, [*records, *records])
        assert expected == pytest.approx(twice, abs=1e-12, nan_ok=True)


def test_ratio_of_nothing_is_undefined():
    assert [0.5, nan] == pytest.approx(metrics.ratio(np.ones(2), np.array([2.0, 0.0])), nan_ok=True)
