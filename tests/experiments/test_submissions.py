"""The notes of RayJobs are read back in their order, and say where a sweep went."""

import pytest

from adaexplore.backends.folder import FolderStore
from adaexplore.errors import StoreError
from adaexplore.experiments import launches, submissions
from adaexplore.experiments.submissions import Submission


def submission(number):
    return Submission(
        number=number, rayjob=f"mine-1234abcd-{number}", namespace="adaexplore", context="lab",
        frozen=submissions.frozen_key("mine", "5" * 64), submitted="2026-11-30T06:35:00Z", host="laptop",
    )  # fmt: skip


def test_notes_come_back_the_last_one_last(tmp_path):
    store = FolderStore(tmp_path)
    sent = [submission(number) for number in (2, 10, 1)]
    for one in sent:
        submissions.note(store, "mine", one)
    assert sorted(sent, key=lambda one: one.number) == submissions.read(store, "mine")
    assert [] == submissions.read(store, "another")
    assert [] == launches.names(store, "mine")
    assert "RayJob mine-1234abcd-2 in namespace adaexplore (lab)" in str(submission(2))


def test_a_damaged_note_is_named(tmp_path):
    store = FolderStore(tmp_path)
    store.put("sweeps/mine/submissions/0001-x.json", b'{"number": 1}')
    with pytest.raises(StoreError, match=r"0001-x\.json: not the note of a submission; remove it"):
        submissions.read(store, "mine")


def test_a_frozen_file_lies_under_its_digest():
    keys = {submissions.frozen_key("mine", digit * 64) for digit in "0123456789abcdef"}
    assert 16 == len(keys)
