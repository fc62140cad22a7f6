"""A replay gives the record that is stored, or names what was changed, whatever was changed."""

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from adaexplore.backends.folder import FolderStore
from adaexplore.experiments import attempts, audits, journals, replays
from adaexplore.experiments.replays import Kept
from sweep_copies import attempt_of, audit

RUN = ("one_factor/default/0", "v1-001")


@pytest.fixture(scope="module")
def rules(finished_sweep):
    """What its replies met."""
    return audit(finished_sweep)._rules()


@pytest.fixture(scope="module")
def kept(finished_sweep):
    """The bytes of one attempt of it."""
    folder, key = attempt_of(finished_sweep, *RUN)
    return Kept(
        prefix=f"{key}/",
        journal=(folder / "journal.jsonl").read_bytes(),
        result=(folder / "result.json").read_bytes(),
    )


def changed(kept, **files):
    return Kept(**{"prefix": kept.prefix, "journal": kept.journal, "result": kept.result, **files})


def places(checked):
    return [file for file, _ in checked.faults]


# -- one attempt -------------------------------------------------------------------------------


def test_an_untouched_attempt_gives_its_record_again(kept, rules, finished_sweep):
    checked = replays.check(kept, rules)

    assert () == checked.faults
    assert (
        attempts.read_result(FolderStore(finished_sweep), f"{kept.prefix}result.json")
        == checked.record
    )


@hypothesis_settings(max_examples=60)
@given(data=st.data())
def test_any_changed_byte_is_found_in_its_own_file(kept, rules, data):
    file = data.draw(st.sampled_from(["journal", "result"]))
    text = bytearray(getattr(kept, file))
    place = data.draw(st.integers(0, len(text) - 1))
    text[place] ^= data.draw(st.integers(1, 255))

    name = {"journal": "journal.jsonl", "result": "result.json"}[file]
    assert [name] == places(replays.check(changed(kept, **{file: bytes(text)}), rules))


@hypothesis_settings(max_examples=30)
@given(data=st.data())
def test_a_file_that_was_cut_short_is_found(kept, rules, data):
    file = data.draw(st.sampled_from(["journal", "result"]))
    text = getattr(kept, file)
    short = text[: data.draw(st.integers(0, len(text) - 1))]

    assert places(replays.check(changed(kept, **{file: short}), rules))


def test_a_line_taken_out_with_care_is_found_by_replay(kept, rules):
    lines = kept.journal.splitlines(keepends=True)
    without = changed(kept, journal=b"".join(lines[:5] + lines[6:]))

    assert places(replays.check(without, rules))


def test_a_reply_too_many_or_too_few_is_told(kept, rules):
    lines = kept.journal.splitlines(keepends=True)
    less = replays.check(changed(kept, journal=b"".join(lines[:-1])), rules)
    more = replays.check(changed(kept, journal=kept.journal + lines[-1]), rules)

    count = len(lines) - 1
    assert (
        ("journal.jsonl",
         f"cannot be replayed: expected replies to the episode's end, got only {count - 1}"),
    ) == less.faults  # fmt: skip
    assert (
        ("journal.jsonl",
         f"cannot be replayed: the episode ends at reply {count}, got {count + 1} replies"),
    ) == more.faults  # fmt: skip


def test_a_forged_record_with_a_good_check_is_found_with_its_field(kept, rules):
    document = journals.document(kept.result.rstrip(b"\n"))
    document["record"]["cases"][3]["action"] = None
    forged = replays.check(changed(kept, result=journals.line(document)), rules)
    before = replays.check(kept, rules).record.cases[3].action

    assert (
        ("result.json", f"record.cases[3].action: stored None, the journal gives {before}"),
    ) == forged.faults


def test_another_environment_is_told_by_the_observation_digest(kept, rules):
    document = journals.document(kept.result.rstrip(b"\n"))
    document["record"]["observation_digest"] = "0" * 64
    forged = replays.check(changed(kept, result=journals.line(document)), rules)

    assert [
        ("result.json", "the observation digest differs: the replies met another environment")
    ] == list(forged.faults)


def test_a_result_or_journal_of_another_cell_is_told(kept, rules, finished_sweep):
    _, other = attempt_of(finished_sweep, "random/default/0")
    moved = Kept(prefix=f"{other}/", journal=kept.journal, result=kept.result)

    assert [
        ("journal.jsonl", "is of something else (cell_id differ)"),
        ("result.json", "is of something else (cell_id differ)"),
    ] == list(replays.check(moved, rules).faults)


def test_an_unfinished_attempt_may_end_in_half_a_line_but_not_in_a_finished_sweep_bad_one(
    kept, rules
):
    half = kept.journal[:-30]
    bad = bytearray(kept.journal)
    bad[-10] ^= 1

    assert () == replays.check(changed(kept, journal=half, result=None), rules).faults
    assert ["journal.jsonl"] == places(
        replays.check(changed(kept, journal=bytes(bad), result=None), rules)
    )


def test_many_processes_find_what_one_finds(finished_sweep, rules):
    store = FolderStore(finished_sweep)
    found = [a for several in audits.by_run(store.keys("cells/")).values() for a in several]
    one = list(replays.check_all(replays.read(store, found), rules, processes=1))
    two = list(replays.check_all(replays.read(store, found), rules, processes=2))

    assert 8 == len(one)
    assert one == two
