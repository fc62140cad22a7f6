"""Correlations across models equal scipy on the models' metrics, and draw episodes for all models."""

from dataclasses import replace
from math import isnan

import numpy as np
import pytest
from scipy import stats

from adaexplore.benchmark.scores import metrics, model_correlations
from adaexplore.benchmark.world import seeds
from scorebook import BEST, MIDDLING, POST, PRE, WORST, assessments, probes, record

HITS = {"a": (1, 2, 3), "b": (4, 6, 5), "c": (7, 5, 8), "d": (3, 2, 1)}
POINTS = {"a": (1, 3, 2), "b": (5, 4, 6), "c": (6, 6, 5), "d": (2, 5, 4)}


def stream(*names):
    return seeds.generator("test model correlations", *names)


def run(episode, hits, points, middling=0):
    actions = [BEST] * hits + [MIDDLING] * middling + [WORST] * (8 - hits)
    asked = probes(range(points))
    return record(f"e{episode}", actions={1: actions}, probes=asked)


def groups(hits=HITS, points=POINTS):
    return {
        model: [run(i, h, points[model][i], i) for i, h in enumerate(row)]
        for model, row in hits.items()
    }


def of_models(metric, found):
    return [metrics.value(metric, runs) for runs in found.values()]


def across(found, name="x"):
    x, y = metrics.UNIQUE_PROBES, metrics.CALIBRATED_ACCURACY
    return model_correlations.across(x, y, found, rng=stream(name))


def test_the_coefficient_and_p_equal_scipy_on_the_models_metrics():
    models = groups()
    expected = stats.pearsonr(
        of_models(metrics.UNIQUE_PROBES, models), of_models(metrics.CALIBRATED_ACCURACY, models)
    )
    found = across(models)

    assert expected.statistic == pytest.approx(found.estimate.value, abs=1e-9)
    assert expected.pvalue == pytest.approx(found.p, abs=1e-9)
    assert (4, 3) == (found.estimate.n, found.clusters)
    assert -1.0 <= found.estimate.low < found.estimate.value < found.estimate.high <= 1.0


def test_a_resample_draws_an_episode_for_all_models():
    """The interval spans the coefficients of all 27 draws of three episodes, written out."""
    models = groups()
    drawn = [
        across({m: [runs[i] for i in pick] for m, runs in models.items()}).estimate.value
        for pick in np.ndindex(3, 3, 3)
    ]
    low, high = np.quantile(drawn, (0.025, 0.975), method="inverted_cdf")
    found = across(models).estimate

    assert low == pytest.approx(found.low, abs=0.02)
    assert high == pytest.approx(found.high, abs=0.02)


def test_outcomes_come_from_the_same_models():
    """The mean of both coefficients; each equals the correlation by itself."""
    models = groups()
    found = model_correlations.with_outcomes(metrics.UNIQUE_PROBES, models, rng=stream("outcomes"))
    expected = [
        stats.pearsonr(of_models(metrics.UNIQUE_PROBES, models), of_models(m, models)).statistic
        for m in (metrics.EXACT_ACCURACY, metrics.CALIBRATED_ACCURACY)
    ]

    assert "unique_probes" == found.metric
    assert expected == pytest.approx([found.ea.estimate.value, found.ca.estimate.value], abs=1e-9)
    assert np.mean(expected) == pytest.approx(found.average.value, abs=1e-9)
    assert 4 == found.average.n
    assert found.average.low < found.average.value < found.average.high


def test_a_metric_is_at_one_with_itself():
    found = model_correlations.with_outcomes(metrics.EXACT_ACCURACY, groups(), rng=stream("self"))

    assert (1.0, 1.0, 1.0) == pytest.approx(
        (found.ea.estimate.value, found.ea.estimate.low, found.ea.estimate.high)
    )
    assert 0.0 == pytest.approx(found.ea.p, abs=1e-9)


def test_order_of_models_runs_and_seeds_do_not_matter():
    models = groups()
    turned = {m: runs[::-1] * 2 for m, runs in reversed(models.items())}
    found, other = across(models), across(turned)

    assert (found.estimate.value, found.estimate.low, found.estimate.high) == pytest.approx(
        (other.estimate.value, other.estimate.low, other.estimate.high)
    )
    assert found.p == pytest.approx(other.p)


def test_models_without_the_metric_are_left_out():
    """One without scored runs, one without a run at all."""
    lost = [replace(each, status="overflow") for each in groups()["a"]]
    found = across({**groups(), "lost": lost, "none": []})

    assert 4 == found.estimate.n
    assert across(groups()).estimate.value == pytest.approx(found.estimate.value)


def test_models_may_have_played_different_episodes():
    models = groups()
    models["a"] = [replace(each, episode_id=f"x{each.episode_id}") for each in models["a"]]
    found = across(models)

    assert across(groups()).estimate.value == pytest.approx(found.estimate.value)
    assert 6 == found.clusters


@pytest.mark.parametrize("count", [0, 1, 2])
def test_fewer_than_three_models_say_nothing(count):
    found = across(dict(list(groups().items())[:count]))

    assert count == found.estimate.n
    assert all(isnan(v) for v in (found.estimate.value, found.estimate.low, found.p))


def test_one_episode_has_a_coefficient_but_no_interval():
    found = across({m: runs[:1] for m, runs in groups().items()})

    assert -1.0 < found.estimate.value < 1.0
    assert isnan(found.estimate.low)


def test_models_that_do_not_vary_have_no_correlation():
    found = across(groups(points=dict.fromkeys(HITS, (3, 3, 3))))

    assert all(isnan(v) for v in (found.estimate.value, found.p))
    assert 4 == found.estimate.n


def test_models_below_the_recognition_floor_stand_apart():
    """Undefined recognition is not above any floor."""
    told = {
        "sees": [record("e1", assessments=assessments(PRE, POST))],
        "blind": [record("e1", assessments=assessments(PRE, PRE))],
        "mute": [record("e1")],
    }

    assert (("sees",), ("blind", "mute")) == model_correlations.split_by_floor(told)
    assert (("sees", "blind"), ("mute",)) == model_correlations.split_by_floor(told, -0.1)
