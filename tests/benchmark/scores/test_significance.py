"""p-values equal enumeration, scipy and statsmodels, and reject as rarely as they promise."""

from itertools import product
from math import comb, isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from adaexplore.benchmark.scores import significance
from adaexplore.benchmark.world import seeds

TIED = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=8)
DISTINCT = st.lists(st.integers(1, 10**6), min_size=1, max_size=40, unique=True)


# -- signed ranks ------------------------------------------------------------------------------


def enumerated(differences):
    """The p by trying every assignment of signs to the Pratt ranks."""
    ranked = stats.rankdata(np.abs(differences))
    signed = [(rank, d > 0) for rank, d in zip(ranked, differences, strict=True) if d]
    total = sum(rank for rank, _ in signed)
    seen = sum(rank for rank, positive in signed if positive)
    sums = [
        sum(rank for (rank, _), keep in zip(signed, signs, strict=True) if keep)
        for signs in product((False, True), repeat=len(signed))
    ]
    as_extreme = [s for s in sums if s <= min(seen, total - seen)]
    return min(1.0, 2.0 * len(as_extreme) / len(sums))


@given(TIED)
def test_signed_ranks_equal_the_enumeration_of_signs(differences):
    """Ties and zeros included: p is exact given the ranks."""
    found = significance.signed_rank(np.array(differences))

    assert enumerated(differences) == pytest.approx(found.p, abs=1e-12)
    assert (len(differences), differences.count(0.0)) == (found.n, found.zeros)


@hypothesis_settings(max_examples=50)
@given(DISTINCT, st.randoms(use_true_random=False))
def test_signed_ranks_equal_scipy_where_it_is_exact(sizes, random):
    differences = np.array([size * random.choice((-1.0, 1.0)) for size in sizes])
    expected = stats.wilcoxon(differences, method="exact")
    found = significance.signed_rank(differences)

    assert expected.pvalue == pytest.approx(found.p, abs=1e-9)
    assert expected.statistic == min(found.plus, found.minus)


@pytest.mark.parametrize(
    "differences", [[0, 0, 1, 1, -1, 2, 3, 3, -4], [0, -5, 2, 2, 2, 2], [1, -1, 0, 0, 0, 0]]
)
def test_signed_ranks_equal_scipys_permutations_with_ties_and_zeros(differences):
    """zero_method is Pratt's."""
    method = stats.PermutationMethod(n_resamples=10**6)
    expected = stats.wilcoxon(differences, zero_method="pratt", method=method)

    found = significance.signed_rank(np.array(differences, dtype=float))

    assert expected.pvalue == pytest.approx(found.p, abs=1e-9)


def test_many_pairs_take_the_normal_approximation():
    """Beyond `EXACT_PAIRS`, as scipy has it; there the exact p is hardly different."""
    rng = seeds.generator("test many pairs")
    differences = np.round(rng.normal(0.08, 1.0, size=significance.EXACT_PAIRS + 5), 2)
    expected = stats.wilcoxon(differences, zero_method="pratt", method="asymptotic")
    approximate = significance.signed_rank(differences).p
    kept = differences[: significance.EXACT_PAIRS]
    exact = significance.signed_rank(kept).p
    beside = stats.wilcoxon(kept, zero_method="pratt", method="asymptotic").pvalue

    assert expected.pvalue == pytest.approx(approximate, abs=1e-9)
    assert beside == pytest.approx(exact, rel=0.06)  # 3.5 deviations out


def test_signed_ranks_by_hand():
    """Ranks 1, 2, 3, 4 of which only 2 is negative: 3 of 16 sign patterns give at most 2."""
    found = significance.signed_rank(np.array([0.1, -0.2, 0.3, 0.4]))

    assert (8.0, 2.0, 4, 0) == (found.plus, found.minus, found.n, found.zeros)
    assert 6 / 16 == found.p
    assert 0.6 == found.rank_biserial


def test_equal_differences_are_as_sure_as_a_coin():
    """Six pairs that differ by the same: both ends of 64 sign patterns."""
    found = significance.signed_rank(np.full(6, 0.1 + 0.2))

    assert 2 / 64 == found.p
    assert 1.0 == found.rank_biserial


def test_rounding_errors_are_no_ties_broken():
    """0.1 + 0.2 and 0.3 are the same difference, and a difference of 1e-17 is none."""
    crooked = significance.signed_rank(np.array([0.1 + 0.2, -0.3, 1e-17, 0.7]))

    assert significance.signed_rank(np.array([0.3, -0.3, 0.0, 0.7])) == crooked
    assert 1 == crooked.zeros


@pytest.mark.parametrize(("count", "p"), [(0, float("nan")), (1, 1.0), (9, 1.0)])
def test_no_difference_is_no_evidence(count, p):
    """Nothing compared has no p; pairs without a difference have 1, and no effect size."""
    found = significance.signed_rank(np.zeros(count))

    assert p == pytest.approx(found.p, nan_ok=True)
    assert (count, count) == (found.n, found.zeros)
    assert isnan(found.rank_biserial)


def test_one_pair_proves_nothing():
    assert 1.0 == significance.signed_rank(np.array([3.0])).p


@given(TIED, st.randoms(use_true_random=False))
def test_signed_ranks_know_neither_order_nor_direction(differences, random):
    """Shuffled pairs give the same; exchanged conditions the same p and the opposite effect."""
    shuffled = random.sample(differences, len(differences))
    found = significance.signed_rank(np.array(differences))
    turned = significance.signed_rank(-np.array(differences))

    assert found == significance.signed_rank(np.array(shuffled))
    assert (found.p, found.plus, found.minus) == (turned.p, turned.minus, turned.plus)


def test_undefined_differences_are_refused():
    with pytest.raises(ValueError, match="expected finite differences, got nan"):
        significance.signed_rank(np.array([0.1, float("nan")]))


@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_signed_ranks_reject_no_more_often_than_they_say(zeros):
    """1000 skew-free comparisons of 25 episodes without an effect: at most 5 %, give or take 2.1."""
    rng, runs, rejected = seeds.generator("test rejections", str(zeros)), 1000, 0
    for _ in range(runs):
        differences = rng.standard_t(3, size=25) * (rng.random(25) >= zeros)
        rejected += significance.signed_rank(differences).p <= 0.05

    assert 0.02 <= rejected / runs <= 0.071


# -- families ----------------------------------------------------------------------------------


P_VALUES = st.lists(st.integers(0, 100).map(lambda k: k / 100), min_size=1, max_size=12)


@given(P_VALUES)
def test_holm_equals_its_step_down_twin(p_values):
    """Rejected at a level exactly when the stepwise procedure rejects at it."""
    adjusted = significance.holm(p_values)
    for level in (0.05, 0.2, 0.5):
        rejected, left = set(), sorted(range(len(p_values)), key=p_values.__getitem__)
        while left and p_values[left[0]] * len(left) <= level:
            rejected.add(left.pop(0))
        assert rejected == {i for i, p in enumerate(adjusted) if p <= level}


def test_holm_equals_statsmodels():
    p_values = np.round(seeds.generator("test holm").random(40) ** 4, 3)  # some are equal
    expected = multipletests(p_values, method="holm")[1]

    assert expected.tolist() == pytest.approx(list(significance.holm(p_values)), abs=1e-9)


def test_holm_by_hand():
    """Smallest times three, next times two; never below an earlier one, never above 1."""
    assert (0.04, 0.03, 0.04) == pytest.approx(significance.holm([0.04, 0.01, 0.02]))
    assert (1.0, 1.0) == significance.holm([0.7, 0.9])


def test_tests_that_could_not_be_made_are_not_in_the_family():
    found = significance.holm([float("nan"), 0.03, 0.01, float("nan")])

    assert significance.holm([0.03, 0.01]) == found[1:3]
    assert isnan(found[0])
    assert isnan(found[3])
    assert () == significance.holm([])


def test_holm_keeps_the_family_wise_error():
    """2000 families of 10 true hypotheses: any rejection in 5 %, give or take 1.5."""
    p_values = seeds.generator("test families").random((2000, 10))
    rejected = np.mean([min(significance.holm(family)) <= 0.05 for family in p_values])

    assert 0.035 <= rejected <= 0.065


# -- two groups --------------------------------------------------------------------------------

TABLES = st.tuples(st.integers(1, 40), st.integers(1, 40)).flatmap(
    lambda n: st.tuples(
        st.tuples(st.integers(0, n[0]), st.just(n[0])),
        st.tuples(st.integers(0, n[1]), st.just(n[1])),
    )
)


@given(TABLES)
def test_fisher_equals_scipy(table):
    (a, n), (b, m) = table
    expected = stats.fisher_exact([[a, n - a], [b, m - b]]).pvalue

    assert expected == pytest.approx(significance.fisher((a, n), (b, m)), abs=1e-9)


@given(TABLES)
def test_fisher_knows_neither_order_nor_which_outcome_is_the_hit(table):
    (a, n), (b, m) = table
    found = significance.fisher((a, n), (b, m))

    assert (
        found == significance.fisher((b, m), (a, n)) == significance.fisher((n - a, n), (m - b, m))
    )


def test_fisher_by_hand():
    """Fisher's tea: 3 of 4 right. Of 70 ways 1 + 16 + 16 + 1 are no likelier."""
    assert 34 / comb(8, 4) == significance.fisher((3, 4), (1, 4))
    assert 1.0 == significance.fisher((0, 5), (0, 9))
    assert isnan(significance.fisher((0, 0), (3, 9)))
    assert isnan(significance.fisher((3, 9), (0, 0)))


def test_fisher_rejects_no_more_often_than_it_says():
    """1000 pairs of models that miss 15 % of 60 episodes alike: exact, so at most 5 % and noise."""
    hits = seeds.generator("test fisher").binomial(60, 0.15, size=(1000, 2))
    rejected = np.mean([significance.fisher((a, 60), (b, 60)) <= 0.05 for a, b in hits.tolist()])

    assert rejected <= 0.06
