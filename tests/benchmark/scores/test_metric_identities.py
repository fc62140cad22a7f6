"""What must hold for every record: the identities of the metrics, and agents whose scores are known."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from adaexplore.benchmark.game import records as record_module
from adaexplore.benchmark.game.assessment import Assessment
from adaexplore.benchmark.game.records import Counts, Played
from adaexplore.benchmark.scores import metrics
from strategies import CASE_RECORDS, DIRECTIONS, DRIFTING_RECORDS, EPISODE_RECORDS

FORTY = hypothesis_settings(max_examples=40)  # each holds several episodes of many cases
LISTS = st.lists(EPISODE_RECORDS, min_size=1, max_size=5)


def answered(record, choose):
    """The record with every case answered as a function of the case says."""
    cases = tuple(replace(case, action=choose(case)) for case in record.cases)
    return replace(record, cases=cases)


def assessed(record, **directions):
    """The record with these completed assessments and no other."""
    done = tuple(
        Assessment(phase=phase, status="completed", directions=answer)
        for phase, answer in directions.items()
    )
    return replace(record, assessments=done)


def best(case):
    return case.utilities.index(max(case.utilities))


# -- accuracies --------------------------------------------------------------------------------


@FORTY
@given(LISTS)
def test_all_four_actions_together_are_worth_nothing(records):
    """Uniform random choice has calibrated accuracy 0 in expectation, exactly over the actions."""
    each = [answered(record, lambda _, a=action: a) for record in records for action in range(4)]

    assert 0.0 == pytest.approx(metrics.value(metrics.CALIBRATED_ACCURACY, each), abs=1e-9)
    assert 0.25 == metrics.value(metrics.EXACT_ACCURACY, each)


@FORTY
@given(LISTS)
def test_the_best_actions_are_worth_one(records):
    oracle = [answered(record, best) for record in records]

    assert 1.0 == pytest.approx(metrics.value(metrics.CALIBRATED_ACCURACY, oracle), abs=1e-12)
    assert 1.0 == metrics.value(metrics.EXACT_ACCURACY, oracle)


@FORTY
@given(LISTS, st.data())
def test_no_answers_are_worth_more_than_the_best(records, data):
    """And none less than always the worst."""
    bounds = [
        metrics.value(metrics.CALIBRATED_ACCURACY, [answered(r, choose) for r in records])
        for choose in (lambda c: c.utilities.index(min(c.utilities)), best)
    ]
    other = [answered(r, lambda _: data.draw(st.none() | st.integers(0, 3))) for r in records]
    value = metrics.value(metrics.CALIBRATED_ACCURACY, other)

    assert bounds[0] - 1e-9 <= value <= bounds[1] + 1e-9


@FORTY
@given(CASE_RECORDS)
def test_an_unanswered_case_takes_what_chance_takes(case):
    """The two shares are equal exactly, because utility 0 is the mean of the four."""
    ((_, share, chance, *_),) = metrics.case_rows([replace(case, action=None)])
    low, high = (Fraction(bound(case.utilities)) for bound in (min, max))

    assert share == chance
    assert float((0 - low) / (high - low)) == pytest.approx(share, abs=1e-11)
    assert not metrics.is_best(replace(case, action=None))


@FORTY
@given(LISTS)
def test_silence_is_worth_nothing(records):
    silent = [answered(record, lambda _: None) for record in records]

    assert 0.0 == metrics.value(metrics.CALIBRATED_ACCURACY, silent)
    assert 0.0 == metrics.value(metrics.EXACT_ACCURACY, silent)
    assert 1.0 == metrics.value(metrics.UNANSWERED, silent)


# -- probes ------------------------------------------------------------------------------------


@FORTY
@given(DRIFTING_RECORDS)
def test_probes_after_the_change_are_new_or_re_probed(record):
    """|S_post| = new + re-probed, and both metrics are counts of these sets."""
    before = {p.row for p in record.probes if p.batch_number <= record.change_batch}
    after = {p.row for p in record.probes if p.batch_number > record.change_batch}
    re_probed = metrics.value(metrics.RE_PROBES, [record])
    new = len(after - before)

    assert len(after) == new + re_probed
    assert len(before) + new + re_probed == metrics.value(metrics.UNIQUE_PROBES, [record])


@FORTY
@given(DRIFTING_RECORDS)
def test_a_stationary_branch_is_one_phase(record):
    """The same probes without a drift: every vector counts once, and none is a re-probe."""
    still = replace(record, drifts=False, truth={"post": record.truth["post"]})

    assert len({p.row for p in record.probes}) == metrics.value(metrics.UNIQUE_PROBES, [still])
    assert (set(), set()) == (metrics.probe_points(still)[1], set())
    assert [0.0, 0.0] == metrics.RE_PROBES.contribution(still).tolist()


# -- recognition -------------------------------------------------------------------------------


@FORTY
@given(DRIFTING_RECORDS)
def test_the_truth_recognises_itself(record):
    told = assessed(record, **record.truth)

    assert 1.0 == metrics.value(metrics.FACTOR_RECOGNITION, [told])
    assert 1.0 == metrics.value(metrics.CHANGE_RECOGNITION, [told])
    assert 1.0 == metrics.value(metrics.PAIRED_COMPLETION, [told])


@FORTY
@given(DRIFTING_RECORDS)
def test_the_truth_has_three_atoms(record):
    kinds = sorted(atom[0] for atom in metrics.true_atoms(record))

    assert ["addition", "removal", "reversal"] == kinds


def test_every_shipped_episode_has_three_true_atoms(worlds, settings):
    """Through the record that the game would make of it."""
    nothing = Played(
        status="completed", drifts=True, probes=(), results=(), assessments=(), faults=(),
        counts=Counts(), observation_digest="",
    )  # fmt: skip
    for world in worlds:
        record = record_module.episode_record(world, settings["default"], nothing)
        transition = world.episode.transition
        kinds = {(atom[0], atom[1]) for atom in metrics.true_atoms(record)}
        assert {
            ("removal", transition.outgoing),
            ("addition", transition.incoming),
            ("reversal", transition.reversed),
        } == kinds
        assert 3 == len(metrics.true_atoms(record))


@FORTY
@given(DRIFTING_RECORDS, DIRECTIONS)
def test_a_report_without_change_scores_zero(record, same):
    """Twice the same answer, an empty one included, predicts no atoms: 0, not undefined."""
    unchanged = assessed(record, pre=same, post=same)

    assert set() == metrics.reported_atoms(unchanged)
    assert 0.0 == metrics.change_f1(unchanged)
    assert 0.0 == metrics.value(metrics.CHANGE_RECOGNITION, [unchanged])


@FORTY
@given(DRIFTING_RECORDS)
def test_an_atom_with_a_wrong_direction_is_wrong(record):
    """Strict matching: the right fields with every direction turned recognise nothing."""
    turned = {phase: {f: -d for f, d in truth.items()} for phase, truth in record.truth.items()}
    told = assessed(record, **turned)

    assert 0.0 == metrics.value(metrics.CHANGE_RECOGNITION, [told])
    assert 1.0 == metrics.value(metrics.FACTOR_RECOGNITION, [told])


@FORTY
@given(
    st.lists(DRIFTING_RECORDS, min_size=1, max_size=4),
    DRIFTING_RECORDS,
    st.sampled_from(("pre", "post")),
)
def test_missing_assessments_never_enter_a_pool(records, other, missing):
    """An episode without them moves the completion rates and nothing else."""
    mute = replace(other, assessments=())
    for metric in (metrics.FACTOR_RECOGNITION, metrics.CHANGE_RECOGNITION):
        expected = metrics.value(metric, records)
        actual = metrics.value(metric, [*records, mute])
        assert expected == pytest.approx(actual, nan_ok=True)
    rejected = Assessment(phase=missing, status="rejected", directions={})
    kept = tuple(a for a in other.assessments if a.phase != missing)
    half, broken = (replace(other, assessments=kept + extra) for extra in ((), (rejected,)))
    assert metrics.completed(broken, missing) is None
    for metric in (metrics.FACTOR_RECOGNITION, metrics.CHANGE_RECOGNITION):
        expected = metrics.value(metric, [*records, half])
        actual = metrics.value(metric, [*records, broken])
        assert expected == pytest.approx(actual, nan_ok=True)


@FORTY
@given(DRIFTING_RECORDS)
def test_half_a_pair_is_no_change_report(record):
    """One assessment alone recognises no change, and is not scored as if it had failed to."""
    alone = assessed(record, post=record.truth["post"])

    assert metrics.reported_atoms(alone) is None
    assert [0.0, 0.0] == metrics.CHANGE_RECOGNITION.contribution(alone).tolist()


@FORTY
@given(DRIFTING_RECORDS)
def test_an_empty_answer_omits_everything(record):
    """It is completed: three false negatives, F1 of 0."""
    empty = assessed(record, pre={}, post={})

    assert (0, 0, 3) == metrics.factor_counts(empty, "pre") == metrics.factor_counts(empty, "post")
    assert 0.0 == metrics.value(metrics.FACTOR_RECOGNITION, [empty])


@FORTY
@given(st.lists(DRIFTING_RECORDS, min_size=1, max_size=4))
def test_factor_recognition_is_the_mean_of_its_phases(records):
    """Each phase scored as if it were alone; their plain mean whatever the counts."""
    told = [assessed(r, pre=r.truth["pre"], post={}) for r in records]

    assert 0.5 == metrics.value(metrics.FACTOR_RECOGNITION, told)
