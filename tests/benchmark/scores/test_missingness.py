"""Missing runs: counted against the plan, filled three ways, bounded for sure, compared exactly."""

from dataclasses import replace
from itertools import product
from math import comb, isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy import stats

from adaexplore.benchmark.game.assessment import Assessment
from adaexplore.benchmark.scores import metrics, missingness, significance
from adaexplore.benchmark.scores.missingness import Group
from adaexplore.benchmark.world import seeds
from scorebook import PRE, accuracy, assessments, record, scoring
from strategies import DIRECTIONS, EPISODE_RECORDS

FORTY = hypothesis_settings(max_examples=40)


def stream(*names):
    return seeds.generator("test missingness", *names)


def plan(count, runs=1):
    return {f"e{i}": runs for i in range(count)}


def group(hits, planned):
    return Group(planned=planned, records=[scoring(f"e{i}", h) for i, h in hits.items()])


KNOWN = missingness.known_episodes(scoring(f"e{i}", 8) for i in range(6))


def by_policy(metric, found, known=KNOWN):
    return missingness.by_policy(metric, found, known, rng=stream("policy"))


# -- the plan ----------------------------------------------------------------------------------


def test_missing_runs_are_counted_against_the_plan():
    """One seed of e0, all of e2; an unscored record is as missing as none."""
    unscored = replace(scoring("e0", 3), status="content_filter")
    records = [scoring("e0", 1), unscored, scoring("e1", 1), scoring("e1", 2)]

    assert {"e0": 1, "e2": 2} == Group(planned=plan(3, 2), records=records).missing()


@pytest.mark.parametrize(("planned", "message"), [({"e0": 1}, "most 1 .* got 2"), ({}, "most 0")])
def test_more_than_was_planned_is_refused(planned, message):
    runs = Group(planned=planned, records=[scoring("e0", 1)] * 2)
    with pytest.raises(ValueError, match=f"e0: expected at {message}"):
        runs.missing()


# -- three ways --------------------------------------------------------------------------------


def test_a_score_told_three_ways_by_hand():
    """4 and 6 of 8 are known; the third episode could be 0, nothing, or 8 of 8."""
    found = by_policy(metrics.CALIBRATED_ACCURACY, group({0: 4, 1: 6}, plan(3)))

    assert accuracy(5) == pytest.approx(found.excluded.value)
    assert accuracy(5) * 2 / 3 == pytest.approx(found.as_zero.value)
    assert accuracy(10, 24) == pytest.approx(found.worst.value)
    assert accuracy(18, 24) == pytest.approx(found.best.value)
    assert (3, 1, 0) == (found.planned, found.missing, found.unknown)
    assert (2, 3) == (found.excluded.n, found.as_zero.n)


def test_without_missing_runs_all_ways_are_one():
    found = by_policy(metrics.EXACT_ACCURACY, group({0: 4, 1: 6}, plan(2)))
    values = [e.value for e in (found.excluded, found.as_zero, found.worst, found.best)]

    assert [10 / 16] * 4 == values
    assert 0 == found.missing


def test_all_failed_is_undefined_without_filling_and_bounded_by_everything_with_it():
    found = by_policy(metrics.EXACT_ACCURACY, group({}, plan(3)))

    assert isnan(found.excluded.value)
    assert (0.0, 0.0, 1.0) == (found.as_zero.value, found.worst.value, found.best.value)
    assert (0, 3) == (found.excluded.n, found.missing)


def test_episodes_that_nobody_completed_are_named_and_not_made_up():
    found = by_policy(metrics.EXACT_ACCURACY, group({0: 4}, {"e0": 1, "never": 2}))

    assert (3, 2, 2) == (found.planned, found.missing, found.unknown)
    assert 0.5 == found.excluded.value == found.worst.value == found.best.value


def test_seeds_of_an_episode_stay_one_episode():
    """Two of three seeds fill the same cluster: no interval comes from one episode."""
    found = by_policy(metrics.EXACT_ACCURACY, group({0: 4}, {"e0": 3}))

    assert 4 / 24 == pytest.approx(found.as_zero.value)
    assert isnan(found.as_zero.low)


def test_metrics_without_a_worst_and_a_best_are_refused():
    with pytest.raises(ValueError, match=r"bounds \(ea, ca, .*\), got re_probes"):
        by_policy(metrics.RE_PROBES, group({0: 4}, plan(1)))


def test_known_episodes_are_complete():
    cut = replace(scoring("e1", 3), status="overflow")

    assert ["e0"] == list(missingness.known_episodes([scoring("e0", 1), cut]))


@st.composite
def plays(draw):
    """A record, and the same episode played in any other way."""
    run = draw(EPISODE_RECORDS)
    actions = draw(st.lists(st.sampled_from([None, 0, 1, 2, 3]), min_size=8, max_size=8))
    cases = tuple(replace(c, action=a) for c, a in zip(run.cases, actions, strict=False))
    told = tuple(
        Assessment(phase=phase, status="completed", directions=draw(DIRECTIONS))
        for phase in run.truth
    )
    return replace(run, episode_id="lost", cases=cases, assessments=told)


@FORTY
@given(st.lists(EPISODE_RECORDS, max_size=3), plays(), st.sampled_from(missingness.BOUNDED))
def test_no_play_leaves_the_bounds(scored, lost, metric):
    """Whatever the missing run was, the pooled metric lies between worst and best."""
    others = [run for run in scored if run.drifts == lost.drifts]
    value = metrics.value(metric, [*others, lost])
    low, silent, high = (
        metrics.value(metric, [*others, play(lost)])
        for play in (missingness.worst, missingness.silent, missingness.best)
    )

    if not isnan(value):
        assert low - 1e-9 <= value <= high + 1e-9
    if not isnan(silent):
        assert low - 1e-9 <= silent <= high + 1e-9


@FORTY
@given(EPISODE_RECORDS)
def test_the_ends_of_the_scale(run):
    """Alone, the best is 1 and the worst and the silent have nothing; silence is chance."""
    best, worst, silent = (
        [metrics.value(m, [play(run)]) for m in missingness.BOUNDED]
        for play in (missingness.best, missingness.worst, missingness.silent)
    )
    changes = 1 if run.drifts else float("nan")
    nothing = 0 if run.drifts else float("nan")

    assert [1, 1, 1, changes] == pytest.approx(best, nan_ok=True)
    assert [0, 0, 0, nothing] == pytest.approx(silent, abs=1e-9, nan_ok=True)
    assert [0, 0, nothing] == pytest.approx([worst[0], *worst[2:]], nan_ok=True)
    assert worst[1] < 0.0


def test_a_missing_assessment_of_a_scored_run_stays_missing():
    runs = Group(planned={"e0": 1}, records=[record("e0", assessments=assessments(PRE))])
    found = by_policy(metrics.CHANGE_RECOGNITION, runs)

    assert isnan(found.as_zero.value)
    assert 0 == found.missing


# -- do models lose as many? -------------------------------------------------------------------


def losing(lost, count=6):
    return group(dict.fromkeys(range(lost, count), 4), plan(count))


def equal(**lost):
    groups = {model: losing(*counts) for model, counts in lost.items()}
    return missingness.equal_missingness(groups, rng=stream("equal"))


def test_shares_are_compared_in_pairs_with_holm():
    found = equal(a=(0, 40), b=(12, 40), c=(1, 40))
    raw = [significance.fisher(x, y) for x, y in [((0, 40), (12, 40)), ((0, 40), (1, 40)),
                                                  ((12, 40), (1, 40))]]  # fmt: skip

    assert [("a", "b"), ("a", "c"), ("b", "c")] == [(p.first, p.second) for p in found.pairs]
    assert raw == [p.p for p in found.pairs]
    assert list(significance.holm(raw)) == [p.p_holm for p in found.pairs]
    assert stats.fisher_exact([[0, 40], [12, 28]]).pvalue == pytest.approx(raw[0], abs=1e-9)
    assert found.p <= 0.001
    assert 3 == found.n


@pytest.mark.parametrize(("hits", "n"), [(0, 7), (3, 7), (7, 7), (1, 240)])
def test_rates_have_exact_intervals(hits, n):
    found = equal(m=(hits, n)).rates["m"]
    expected = stats.binomtest(hits, n).proportion_ci(method="exact")

    assert (hits / n, n) == (found.value, found.n)
    assert (expected.low, expected.high) == pytest.approx((found.low, found.high), abs=1e-9)


def exact_p(counts):
    """The p by listing every table with the same totals."""
    total = sum(hits for hits, _ in counts)
    sizes = [n for _, n in counts]

    def statistic(hits):
        return sum(h * h / n for h, n in zip(hits, sizes, strict=True))

    observed = statistic([hits for hits, _ in counts])
    tables = [t for t in product(*(range(n + 1) for n in sizes)) if sum(t) == total]
    ways = [np.prod([comb(n, h) for h, n in zip(t, sizes, strict=True)]) for t in tables]
    extreme = [w for t, w in zip(tables, ways, strict=True) if statistic(t) >= observed - 1e-9]
    return sum(extreme) / sum(ways)


@pytest.mark.parametrize(
    "counts", [[(0, 6), (3, 6), (1, 6)], [(1, 4), (2, 9), (3, 5)], [(2, 6), (2, 6)]]
)
def test_the_test_over_all_models_equals_the_list_of_tables(counts):
    """Drawn, so equal up to the noise of 9999 draws: three standard errors are 1.5 points."""
    found = equal(**{f"m{i}": count for i, count in enumerate(counts)})

    assert exact_p(counts) == pytest.approx(found.p, abs=0.015)


def test_large_groups_agree_with_chi_squared():
    counts = [(30, 240), (45, 240), (38, 240)]
    table = [[h for h, _ in counts], [n - h for h, n in counts]]
    found = missingness._equal_shares(counts, stream("large"))

    assert stats.chi2_contingency(table).pvalue == pytest.approx(found, abs=0.02)


def test_seeds_that_fail_together_are_one_failure():
    """Three seeds of one episode missing are one missing episode."""
    once = Group(planned=plan(4, 3), records=[scoring(f"e{i}", 1) for i in (0, 1, 2)] * 3)
    found = missingness.equal_missingness({"m": once}, rng=stream("seeds"))

    assert (0.25, 4) == (found.rates["m"].value, found.rates["m"].n)


def test_too_little_to_compare():
    one, none = equal(a=(1, 6)), equal()
    empty = equal(a=(1, 6), b=(0, 0))

    assert (1, 0, 1) == (one.n, none.n, empty.n)
    assert all(isnan(t.p) for t in (one, none, empty))
    assert isnan(empty.pairs[0].p)
    assert isnan(empty.pairs[0].p_holm)
    assert isnan(empty.rates["b"].value)
    assert 0 == empty.rates["b"].n


def test_nothing_missing_is_no_difference():
    found = equal(a=(0, 6), b=(0, 6), c=(0, 9))

    assert 1.0 == found.p
    assert [1.0] * 3 == [pair.p_holm for pair in found.pairs]


def test_order_of_models_does_not_matter_to_pairs():
    there, back = equal(a=(1, 20), b=(9, 20)), equal(b=(9, 20), a=(1, 20))

    assert there.pairs[0].p == back.pairs[0].p
    assert there.p == pytest.approx(back.p, abs=0.01)


def test_equal_models_are_told_apart_as_rarely_as_they_should_be():
    """200 comparisons of four models that miss 10 % of 50 episodes: at most 5 %, give or take 3."""
    rng, runs = stream("null"), 200
    hits = rng.binomial(50, 0.1, size=(runs, 4))
    p_values = [missingness._equal_shares([(h, 50) for h in row], rng) for row in hits.tolist()]

    assert np.mean(np.array(p_values) <= 0.05) <= 0.08
