"""Where recognition goes wrong: categories are exhaustive, shares equal their loops, by hand and not."""

from dataclasses import replace
from fractions import Fraction
from math import isnan

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from adaexplore.benchmark.scores import estimates, metrics, recognition
from adaexplore.benchmark.world import seeds
from scorebook import POST, PRE, assessments, record
from strategies import EPISODE_RECORDS, STATIONARY_RECORDS

FORTY = hypothesis_settings(max_examples=40)
RECORDS = st.lists(EPISODE_RECORDS, min_size=1, max_size=6)


def told(pre=None, post=None, **parts):
    return record(assessments=assessments(pre, post), **parts)


def same(expected, metric, records):
    """Whether a share has the expected value; None stands for undefined."""
    actual = metrics.value(metric, records)
    return isnan(actual) if expected is None else actual == pytest.approx(float(expected), abs=1e-9)


def share(flags):
    return Fraction(sum(flags), len(flags)) if flags else None


def answers(run):
    return {a.phase: a.directions for a in run.assessments if a.status == "completed"}


# -- factors -----------------------------------------------------------------------------------

ERRORS = {
    "exact": {"f0": 1, "f1": -1, "f2": 1},
    "omission_only": {"f1": 1},
    "addition_only": {"f0": 1, "f1": 1, "f2": 1, "f7": 1},
    "both": {"f0": 1, "f6": 1, "f7": 1},
}
"""Answers to `PRE` by what is wrong with their fields; directions do not matter."""


@pytest.mark.parametrize("category", recognition.FACTOR_CATEGORIES)
def test_an_answer_falls_into_its_category_and_no_other(category):
    run = told(pre=ERRORS[category])
    shares = [metrics.value(m, [run]) for m in recognition.FACTOR_ERRORS["pre"]]

    assert category == recognition.factor_category(run, "pre")
    assert [c == category for c in recognition.FACTOR_CATEGORIES] == shares


def test_an_empty_answer_omits_only():
    assert "omission_only" == recognition.factor_category(told(pre={}), "pre")


def test_missing_answers_are_in_no_category():
    unfinished = record(assessments=assessments({}, status="truncated"))
    stationary = told(pre=PRE, post=PRE, drifts=False)

    assert None is recognition.factor_category(unfinished, "pre")
    assert None is recognition.factor_category(unfinished, "post")
    assert None is recognition.factor_category(stationary, "pre")
    assert "exact" == recognition.factor_category(stationary, "post")
    assert all(same(None, m, [unfinished]) for m in recognition.FACTOR_ERRORS["pre"])


@FORTY
@given(RECORDS, st.sampled_from(recognition.PHASES))
def test_shares_of_factor_errors_equal_a_count(records, phase):
    found = []
    for run in records:
        if phase in answers(run) and phase in run.truth:
            said, true = set(answers(run)[phase]), set(run.truth[phase])
            found.append((said - true != set(), true - said != set()))
    kinds = {
        "exact": (False, False),
        "omission_only": (False, True),
        "addition_only": (True, False),
        "both": (True, True),
    }

    for category, metric in zip(kinds, recognition.FACTOR_ERRORS[phase], strict=True):
        assert f"factors_{phase}_{category}" == metric.name
        assert same(share([kind == kinds[category] for kind in found]), metric, records)
    if found:
        assert 1.0 == pytest.approx(
            sum(metrics.value(m, records) for m in recognition.FACTOR_ERRORS[phase])
        )


def test_precision_and_recall_by_hand():
    """Before: 2 of 4 reported are right, of 3 true. After: 1 of 1. Then pooled with a second run."""
    run = told(pre={"f0": 1, "f1": 1, "f6": 1, "f7": 1}, post={"f3": 1})
    other = told(pre={"f2": 1}, post={})

    assert same(Fraction(3, 4), recognition.FACTOR_PRECISION, [run])
    assert same(Fraction(1, 2), recognition.FACTOR_RECALL, [run])
    assert same((Fraction(3, 5) + 1) / 2, recognition.FACTOR_PRECISION, [run, other])
    assert same((Fraction(3, 6) + Fraction(1, 6)) / 2, recognition.FACTOR_RECALL, [run, other])


@FORTY
@given(st.lists(STATIONARY_RECORDS, min_size=1, max_size=4))
def test_one_phase_has_its_own_precision_and_recall(records):
    """Their harmonic mean is the F1 of the main table."""
    precision = metrics.value(recognition.FACTOR_PRECISION, records)
    recall = metrics.value(recognition.FACTOR_RECALL, records)
    f1 = metrics.value(metrics.FACTOR_RECOGNITION, records)

    if precision + recall > 0.0:  # neither undefined nor both 0
        assert f1 == pytest.approx(2 * precision * recall / (precision + recall))


def test_who_reports_nothing_has_no_precision():
    silent = told(pre={}, post={})

    assert same(None, recognition.FACTOR_PRECISION, [silent])
    assert same(0, recognition.FACTOR_RECALL, [silent])
    assert same(None, recognition.CHANGE_PRECISION, [silent])
    assert same(0, recognition.CHANGE_RECALL, [silent])


# -- changes -----------------------------------------------------------------------------------


def change_atoms(before, after):
    """Atoms as (field, before, after) with None for absent: another form than the code's."""
    fields = before.keys() | after.keys()
    return {(f, before.get(f), after.get(f)) for f in fields if before.get(f) != after.get(f)}


def kind(atom):
    _, before, after = atom
    return "removal" if after is None else "addition" if before is None else "reversal"


def atom_sets(records):
    """(reported, true) of every eligible run."""
    return [
        (change_atoms(a["pre"], a["post"]), change_atoms(r.truth["pre"], r.truth["post"]))
        for r in records
        for a in [answers(r)]
        if r.drifts and set(a) == {"pre", "post"}
    ]


@FORTY
@given(RECORDS)
def test_shares_of_atoms_equal_a_count(records):
    sets = atom_sets(records)
    right = [atom for reported, true in sets for atom in reported & true]
    said = [atom for reported, _ in sets for atom in reported]
    kinds = {"removal": ["removal"], "addition": ["addition"], "reversal": ["reversal"]}
    kinds["replacement"] = ["removal", "addition"]

    assert same(Fraction(len(right), len(said)) if said else None,
                recognition.CHANGE_PRECISION, records)  # fmt: skip
    assert same(Fraction(len(right), 3 * len(sets)) if sets else None,
                recognition.CHANGE_RECALL, records)  # fmt: skip
    for metric in recognition.RECOVERED:
        wanted = kinds[metric.name.removeprefix("recovered_")]
        hits = sum(kind(atom) in wanted for atom in right)
        expected = Fraction(hits, len(wanted) * len(sets)) if sets else None
        assert same(expected, metric, records)


@FORTY
@given(RECORDS)
def test_shares_of_episodes_equal_a_count(records):
    found, unchanged = [], []
    for reported, true in atom_sets(records):
        kinds = {kind(atom) for atom in reported & true}
        both = {"removal", "addition"} <= kinds
        found.append((both, "reversal" in kinds))
        unchanged.append(not reported)
    wanted = {
        "complete": (True, True),
        "replacement_only": (True, False),
        "reversal_only": (False, True),
        "neither": (False, False),
    }

    for category, metric in zip(wanted, recognition.EPISODE_SHARES, strict=True):
        assert f"episodes_{category}" == metric.name
        assert same(share([f == wanted[category] for f in found]), metric, records)
    assert same(share(unchanged), recognition.UNCHANGED, records)
    assert sum(unchanged) <= sum(f == (False, False) for f in found)


REPORTS = {
    "complete": (PRE, POST),
    "replacement_only": ({"f2": -1}, {"f3": -1}),
    "reversal_only": ({"f1": 1}, {"f1": -1}),
    "neither": ({"f2": -1}, {"f0": 1, "f1": 1}),
}
"""Reports by what they recover; the last has one atom of the replacement, which counts as none."""


@pytest.mark.parametrize("category", recognition.EPISODE_CATEGORIES)
def test_a_report_falls_into_its_category_and_no_other(category):
    run = told(*REPORTS[category])
    shares = [metrics.value(m, [run]) for m in recognition.EPISODE_SHARES]

    assert category == recognition.episode_category(run)
    assert [c == category for c in recognition.EPISODE_CATEGORIES] == shares


def test_a_removal_alone_is_half_a_replacement():
    run = told(*REPORTS["neither"])
    shares = {m.name: metrics.value(m, [run]) for m in recognition.RECOVERED}

    assert shares == {
        "recovered_replacement": 0.5,
        "recovered_removal": 1.0,
        "recovered_addition": 0.0,
        "recovered_reversal": 0.0,
    }


def test_wrong_directions_recover_nothing():
    """Strict matching: the right fields with a wrong sign are other atoms."""
    run = told({"f0": 1, "f1": -1, "f2": 1}, {"f0": 1, "f1": 1, "f3": 1})

    assert "neither" == recognition.episode_category(run)
    assert same(0, recognition.CHANGE_PRECISION, [run])


def test_only_the_same_fields_and_directions_are_unchanged():
    assert recognition.is_unchanged(told(PRE, PRE))
    assert recognition.is_unchanged(told({}, {}))
    assert not recognition.is_unchanged(told(PRE, {**PRE, "f0": -1}))
    assert not recognition.is_unchanged(told(PRE, None))


def test_episodes_that_are_not_eligible_have_no_category():
    half, stationary = told(PRE, None), told(PRE, PRE, drifts=False)

    assert None is recognition.episode_category(half)
    assert None is recognition.episode_category(stationary)
    assert same(None, recognition.UNCHANGED, [half, stationary])


@FORTY
@given(RECORDS)
def test_order_does_not_matter(records):
    every = (*recognition.PRECISION_RECALL, *recognition.RECOVERED, *recognition.EPISODE_SHARES)
    for metric in every:
        there, back = (metrics.value(metric, list(r)) for r in (records, records[::-1]))
        assert there == pytest.approx(back, nan_ok=True)


def test_shares_have_intervals_and_n_like_every_metric():
    """The n counts eligible runs; an episode without a second report is none."""
    runs = [told(*pair, episode_id=f"e{i}") for i, pair in enumerate(REPORTS.values())]
    runs.append(replace(told(PRE, None), episode_id="half"))
    found = estimates.of_metric(
        recognition.EPISODE_SHARES[0], runs, rng=seeds.generator("test recognition")
    )

    assert (0.25, 4) == (found.value, found.n)
    assert 0.0 == found.low < 0.25 < found.high < 1.0
