"""The locks name the same versions, and the image's build is given what it copies and nothing else."""

import re
from pathlib import PurePosixPath

import pytest

from conftest import ROOT


def pins(name):
    """Every line of a lock that names a version, by package and marker."""
    text = (ROOT / name).read_text()
    return set(re.findall(r"^[\w.-]+(?:\[[^]]*\])?==[^\\\n]*[^\\\s]", text, re.MULTILINE))


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-image.lock"])
def test_every_lock_is_part_of_the_lock_of_all_extras(name):
    versions = {pin.split(";")[0].strip() for pin in pins("requirements-all.lock")}

    assert set() == {pin.split(";")[0].strip() for pin in pins(name)} - versions


def test_the_build_is_given_what_it_copies_and_nothing_else():
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    allowed = {line[1:] for line in lines if line.startswith("!")}
    copied = {
        source
        for line in (ROOT / "Dockerfile").read_text().splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for source in line.split()[1:-1]
    }

    assert "*" == next(line for line in lines if not line.startswith("#"))
    assert copied == allowed
    assert [] == [path for path in copied if not (ROOT / PurePosixPath(path)).exists()]
