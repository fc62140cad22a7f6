"""The two-file front door: our command from a checkout, the standard library's module for all others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(*arguments, cwd=ROOT, **environment):
    command = [sys.executable, "-W", "error", *arguments]
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    return done.stdout.strip()


def test_platform_is_the_standard_librarys_inside_the_checkout():
    inside = run(
        "-c", "import platform; print(platform.system(), len(dir(platform)), platform.__file__)"
    )
    outside = run(
        "-c",
        "import platform; print(platform.system(), len(dir(platform)), platform.__file__)",
        cwd="/",
    )

    assert os.uname().sysname == inside.split()[0]
    # The one difference is the search path that we lend it.
    assert [outside.split()[2], int(outside.split()[1]) + 1] == [
        inside.split()[2],
        int(inside.split()[1]),
    ]


@pytest.mark.parametrize(
    ("module", "place"),
    [
        ("platform.launch", "checkout"),
        ("adaexplore.launch", "elsewhere"),
        ("adaexplore", "elsewhere"),
    ],
)
def test_the_command_answers_from_where_it_should(module, place, tmp_path):
    cwd = ROOT if place == "checkout" else tmp_path

    assert "+grid=" in run("-m", module, "--help", cwd=cwd)


def test_the_installed_command_answers_from_anywhere(tmp_path):
    command = Path(sys.executable).with_name("adaexplore")
    done = subprocess.run(
        [command, "plan", "+grid=smoke"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (0, "") == (done.returncode, done.stderr)
    assert "scientist" in done.stdout


def test_nothing_is_loaded_twice_through_the_lent_path():
    """`platform.adaexplore` would be a second copy of the package."""
    code = (
        "import sys, runpy; sys.argv = ['launch', '+grid=smoke', '--dry-run']\n"
        "try: runpy.run_module('platform.launch', run_name='__main__')\n"
        "except SystemExit as stop: assert stop.code == 0, stop.code\n"
        "print([name for name in sys.modules if name.startswith('platform.')])"
    )

    assert "['platform.launch']" == run("-c", code).splitlines()[-1].replace(
        "['platform']", "[]"
    ) or ("[]" == run("-c", code).splitlines()[-1])


def test_a_python_without_the_dependencies_is_told_what_to_do():
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-m", "platform.launch", "+grid=smoke"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert 4 == done.returncode
    assert done.stderr.startswith("error: yaml is missing: run 'make .venv/.installed'")
    assert 1 == done.stderr.count("\n")
