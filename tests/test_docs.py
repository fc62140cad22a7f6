"""Commands in the documentation run, and what it names exists."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


READING = ("status", "show", "verify", "replay", "sync")
"""Verbs that read a sweep of an earlier line of their block."""


def blocks():
    for page in PAGES:
        for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            lines = block.splitlines()
            alone = not any(line.split()[1] in READING for line in lines)
            yield from ([line] for line in lines) if alone else [lines]


@pytest.mark.parametrize("block", list(blocks()), ids=lambda block: block[-1])
def test_every_command_runs(block, tmp_path):
    """`make` targets are run by CI itself; all others are run here, with the records kept apart."""
    for command in block:
        run(command, tmp_path)


def run(command, folder):
    if command.startswith("make "):
        target = command.split()[1]
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert command in (ROOT / ".ci" / "run").read_text()
        return
    program, *arguments = shlex.split(command)
    launched = "platform.launch" in command
    if launched or arguments[0] in READING:
        arguments.append(f"runs_dir={folder}")
    if launched and "smoke" not in command:  # one of them with MLflow is enough
        arguments.append("tracking=none")
    path = Path(sys.executable).parent
    done = subprocess.run(
        [path / program, *arguments], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": f"{path}:{os.environ['PATH']}"},
    )  # fmt: skip

    assert 0 == done.returncode, done.stderr
    assert "" == done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_that_a_page_names_exists(page):
    """Relative links, images and paths in backticks that look like ours."""
    text = page.read_text()
    links = re.findall(r"\]\((?!http)([^)#]+)\)", text)
    named = re.findall(r"`((?:platform|conf|docs|tests|charts|k8s|jobs)/[\w./-]+)`", text)

    assert [] == [path for path in links if not (page.parent / path).exists()]
    assert [] == [path for path in named if not (ROOT / path).exists()]


SHARED = [Path(name) for name in ("/", "/data", "/home", "/mnt", "/opt", "/root", "/srv", "/var",
                                  tempfile.gettempdir())]  # fmt: skip
"""Folders that every machine has, and documents may name."""


def test_no_machine_is_named_in_the_project():
    """No path of a developer's machine in any tracked file."""
    files = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    home = str(ROOT if ROOT.parent in SHARED else ROOT.parent) + "/"
    found = [
        name
        for name in files.splitlines()
        if (ROOT / name).is_file() and home.encode() in (ROOT / name).read_bytes()
    ]

    assert [] == found
