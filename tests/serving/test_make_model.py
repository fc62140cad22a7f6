"""The model folder is checked before it is used, without the engine's packages."""

import json
import shutil

import pytest

from serving import make_model


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "model"
    made.mkdir()
    (made / "weights").write_bytes(b"w" * 1000)
    (made / make_model.MANIFEST).write_text(json.dumps(make_model.digests(made)))
    return made


def test_a_folder_is_whole_as_it_was_made(folder):
    assert make_model.whole(folder)


@pytest.mark.parametrize(
    "damage", ["flip", "cut", "lose", "add", "add below", "no manifest", "gone"]
)
def test_a_damaged_folder_is_not(damage, folder):
    weights = folder / "weights"
    if damage == "flip":
        weights.write_bytes(b"w" * 999 + b"x")
    elif damage == "cut":
        weights.write_bytes(b"w" * 999)
    elif damage == "lose":
        weights.unlink()
    elif damage == "add":
        (folder / "more").write_text("")
    elif damage == "add below":
        (folder / "sub").mkdir()
        (folder / "sub" / "more").write_text("")
    elif damage == "no manifest":
        (folder / make_model.MANIFEST).unlink()
    else:
        shutil.rmtree(folder)

    assert not make_model.whole(folder)


def test_folders_lie_outside_the_checkout(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert tmp_path / "adaexplore" / "models" == make_model.cache()
