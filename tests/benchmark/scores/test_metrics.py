"""Every metric against a brute-force computation in plain loops and exact fractions."""

from dataclasses import replace
from fractions import Fraction
from math import isnan

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from adaexplore.benchmark.game.records import CaseRecord
from adaexplore.benchmark.scores import metrics
from strategies import DRIFTING_RECORDS, EPISODE_RECORDS, STATIONARY_RECORDS, TRUE_RULES

FORTY = hypothesis_settings(max_examples=40)  # each holds several episodes of many cases
RECORDS = st.lists(EPISODE_RECORDS, min_size=1, max_size=5)


def same(expected, metric, records):
    """Whether a metric has the expected value; None stands for undefined."""
    actual = metrics.value(metric, records)
    return isnan(actual) if expected is None else actual == pytest.approx(float(expected), abs=1e-9)


def mean(values):
    return Fraction(sum(values), len(values)) if values else None


def cases_of(records):
    return [case for record in records for case in record.cases]


def best_of(case):
    best = 0
    for action in range(1, 4):
        if case.utilities[action] > case.utilities[best]:
            best = action
    return best


def shares_of(case):
    """Exact share of the possible gain of each action."""
    values = [Fraction(u) for u in case.utilities]
    return [(value - min(values)) / (max(values) - min(values)) for value in values]


# -- end-to-end outcomes -----------------------------------------------------------------------


@FORTY
@given(RECORDS)
def test_exact_accuracy(records):
    """Share of cases with the best action; an unanswered one counts 0."""
    hits = [int(case.action == best_of(case)) for case in cases_of(records)]

    assert same(mean(hits), metrics.EXACT_ACCURACY, records)


@FORTY
@given(RECORDS)
def test_calibrated_accuracy(records):
    """Pooled over cases: the gain over chance as a share of the best possible gain over chance."""
    taken, chance = Fraction(0), Fraction(0)
    for case in cases_of(records):
        shares = shares_of(case)
        expected = sum(shares) / 4
        taken += expected if case.action is None else shares[case.action]
        chance += expected
    count = len(cases_of(records))

    assert same((taken - chance) / (count - chance), metrics.CALIBRATED_ACCURACY, records)


@FORTY
@given(RECORDS)
def test_share_of_unanswered_cases(records):
    unanswered = [int(case.action is None) for case in cases_of(records)]

    assert same(mean(unanswered), metrics.UNANSWERED, records)


@FORTY
@given(RECORDS, st.sampled_from(metrics.OFFSETS))
def test_accuracy_at_an_offset_is_that_of_its_batch_alone(records, offset):
    """Each episode gives the batch at that distance from its own change batch."""
    taken, chance, count = Fraction(0), Fraction(0), 0
    for record in records:
        for case in record.cases:
            if case.batch_number - record.change_batch == offset:
                shares = shares_of(case)
                taken += sum(shares) / 4 if case.action is None else shares[case.action]
                chance += sum(shares) / 4
                count += 1
    expected = (taken - chance) / (count - chance) if count else None

    assert same(expected, metrics.at_offset(offset), records)


def test_every_episode_has_the_offsets():
    """Four batches up to the change and four after it, for change batches 5 to 8 of 12."""
    assert (-3, -2, -1, 0, 1, 2, 3, 4) == metrics.OFFSETS
    for change_batch in (5, 6, 7, 8):
        assert all(1 <= change_batch + offset <= 12 for offset in metrics.OFFSETS)
    names = [metrics.at_offset(offset).name for offset in metrics.OFFSETS]
    assert ["ca_at_-3", "ca_at_+0", "ca_at_+4"] == [names[0], names[3], names[7]]


# -- exploration -------------------------------------------------------------------------------


def sets_of(record):
    """Distinct probe vectors of the two phases; a stationary branch is one phase."""
    early, late = [], []
    for probe in record.probes:
        after = record.drifts and probe.batch_number >= record.change_batch + 1
        phase = late if after else early
        if probe.row not in phase:
            phase.append(probe.row)
    return early, late


@FORTY
@given(RECORDS)
def test_mean_unique_probes(records):
    """Distinct vectors within each phase, added, over episodes."""
    counts = [len(early) + len(late) for early, late in map(sets_of, records)]

    assert same(mean(counts), metrics.UNIQUE_PROBES, records)


@FORTY
@given(RECORDS)
def test_mean_re_probes(records):
    """Vectors met in both phases, over the episodes that have two."""
    counts = [
        sum(row in late for row in early)
        for record in records
        for early, late in [sets_of(record)]
        if record.drifts
    ]

    assert same(mean(counts), metrics.RE_PROBES, records)


# -- recognition -------------------------------------------------------------------------------


def answers_of(record):
    return {a.phase: a.directions for a in record.assessments if a.status == "completed"}


def pooled_f1(records, phase):
    """Micro F1 of a phase over the completed assessments; None where there are none."""
    right = wrong = missed = 0
    for record in records:
        if phase not in answers_of(record) or phase not in record.truth:
            continue
        for field in record.visible_fields:
            named, true = field in answers_of(record)[phase], field in record.truth[phase]
            right += named and true
            wrong += named and not true
            missed += true and not named
    total = 2 * right + wrong + missed
    return Fraction(2 * right, total) if total else None


@FORTY
@given(st.lists(DRIFTING_RECORDS, min_size=1, max_size=5))
def test_factor_recognition_is_the_mean_of_two_micro_f1(records):
    """Pooled counts in each phase, F1 of each, and their mean."""
    pre, post = pooled_f1(records, "pre"), pooled_f1(records, "post")
    expected = None if pre is None or post is None else (pre + post) / 2

    assert same(expected, metrics.FACTOR_RECOGNITION, records)


@FORTY
@given(st.lists(STATIONARY_RECORDS, min_size=1, max_size=5))
def test_factor_recognition_of_one_phase_is_its_micro_f1(records):
    assert same(pooled_f1(records, "post"), metrics.FACTOR_RECOGNITION, records)


def change_atoms(before, after, visible):
    """Removals, additions and reversals, field by field."""
    found = []
    for field in visible:
        was, now = before.get(field), after.get(field)
        if was is not None and now is None:
            found.append(("removal", field, was))
        elif was is None and now is not None:
            found.append(("addition", field, now))
        elif was is not None and was != now:
            found.append(("reversal", field, was, now))
    return found


def change_score(record):
    """Strict set F1 of one episode; None unless both assessments were completed."""
    answers = answers_of(record)
    if not record.drifts or set(answers) != {"pre", "post"}:
        return None
    told = change_atoms(answers["pre"], answers["post"], record.visible_fields)
    true = change_atoms(record.truth["pre"], record.truth["post"], record.visible_fields)
    return Fraction(2 * sum(atom in true for atom in told), len(told) + len(true))


@FORTY
@given(RECORDS)
def test_change_recognition(records):
    """Set F1 under strict matching, averaged over episodes with both assessments."""
    scores = [score for score in map(change_score, records) if score is not None]

    assert same(mean(scores), metrics.CHANGE_RECOGNITION, records)


@FORTY
@given(EPISODE_RECORDS)
def test_change_recognition_of_one_episode(record):
    expected, actual = change_score(record), metrics.change_f1(record)

    assert isnan(actual) if expected is None else float(expected) == pytest.approx(actual)


@FORTY
@given(RECORDS)
def test_completion_rates(records):
    """Of the assessments that were due, and of the episodes that were due two."""
    due = [(2 if r.drifts else 1, len(answers_of(r)), r.drifts) for r in records]
    single = Fraction(sum(done for _, done, _ in due), sum(count for count, _, _ in due))
    pairs = mean([int(done == 2) for _, done, drifts in due if drifts])

    assert same(single, metrics.ASSESSMENT_COMPLETION, records)
    assert same(pairs, metrics.PAIRED_COMPLETION, records)


@FORTY
@given(TRUE_RULES)
def test_atoms_of_the_contracts_transition(pair):
    """Removal with the old direction, addition with the new, reversal with both."""
    before, after = pair
    (gone,), (come,) = set(before) - set(after), set(after) - set(before)
    (turned,) = (f for f in set(before) & set(after) if before[f] != after[f])
    expected = {
        ("removal", gone, before[gone], 0),
        ("addition", come, 0, after[come]),
        ("reversal", turned, before[turned], after[turned]),
    }

    assert expected == metrics.atoms(before, after)


def test_calibrated_accuracy_by_hand():
    """Three cases whose utilities are simple: best, worst and unanswered."""
    case = CaseRecord(
        context_id="case_001", batch_number=1, action=0, utilities=(0.6, 0.2, -0.4, -0.4)
    )
    cases = [case, replace(case, action=3), replace(case, action=None)]
    sums = metrics.accuracy_sums(cases)

    # p is 1, 0 and b; b is 0.4: (1.4 / 3 - 0.4) / (1 - 0.4) = 1 / 9
    assert [1.0, 1.4, 1.2, 1.0, 3.0] == pytest.approx(sums.tolist())
    assert 1 / 9 == pytest.approx(float(metrics.calibrated_accuracy_value(sums)))
    assert 1 / 3 == pytest.approx(float(metrics.exact_accuracy_value(sums)))
