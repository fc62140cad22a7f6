"""`cancel` and `logs` where a sweep runs on this machine, and `doctor` without a cluster."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from adaexplore import cluster_verbs, doctor_verbs, verbs
from adaexplore.errors import ConfigError

LONG = [
    "+grid=main", "name=long", "models=[scientist]", "settings=[default]", "dataset=v1",
    "tracking=none", "report=false", "backend.processes=0", "backend.concurrency=1",
]  # fmt: skip


def launched():
    """A launch that has finished an episode, and has many before it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "adaexplore.launch", *LONG],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 60
    while not list(Path("runs").glob("cells/*/*/*/result.json")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return process


def test_cancel_ends_a_launch_of_this_machine_in_order(capsys):
    process = launched()
    try:
        assert 0 == cluster_verbs.cancel(["long"])
        assert process.poll() is not None or process.wait(60) is not None
    finally:
        process.kill()
    _, told = process.communicate()
    shown = capsys.readouterr().out
    assert 3 == process.returncode
    assert b"interrupted: nothing is lost" in told
    assert f"process {process.pid}): asked to end" in shown
    assert "sweep long: nothing of it runs any more" in shown


def test_cancel_says_where_a_launch_is_that_cannot_be_ended_here(capsys):
    """Another machine's process may have a number that somebody has here."""
    process = launched()
    (note,) = Path("runs/sweeps/long/launches").iterdir()
    document = json.loads(note.read_text())
    note.write_text(json.dumps({**document, "host": "elsewhere"}))
    try:
        assert 3 == cluster_verbs.cancel(["long"])
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()
    assert "runs on elsewhere: stop it there" in capsys.readouterr().out


def test_cancelling_what_does_not_run_is_fine_and_an_unknown_sweep_is_not(finished_sweep, capsys):
    words = [f"runs_dir={finished_sweep}"]
    assert 0 == cluster_verbs.cancel(["mine", *words])
    assert "nothing of it runs any more" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="none"):
        cluster_verbs.cancel(["none", *words])


def test_logs_are_those_of_model_servers(finished_sweep, tmp_path, capsys):
    words = [f"runs_dir={finished_sweep}"]
    with pytest.raises(ConfigError, match="has no logs"):
        cluster_verbs.logs(["mine", *words])
    import sweep_copies

    copy = sweep_copies.copied(finished_sweep, tmp_path / "copy")
    (copy / "serving").mkdir()
    (copy / "serving" / "small-8100.log").write_text("first\nlast \x1b[1mwords\n")
    assert 0 == cluster_verbs.logs(["mine", f"runs_dir={copy}"])
    assert "small-8100: first\nsmall-8100: last  [1mwords\n" == capsys.readouterr().out


def test_doctor_looks_at_what_a_local_launch_needs(capsys, tmp_path, monkeypatch):
    assert 0 == doctor_verbs.doctor([])
    assert "nothing is wrong" in capsys.readouterr().out
    monkeypatch.delenv("MY_KEY", raising=False)
    remote = [
        "models=[openai_compatible]", "+profiles.openai_compatible.model=m",
        "+profiles.openai_compatible.route.base_url=http://127.0.0.1:9/v1",
        "+profiles.openai_compatible.auth.key_env=MY_KEY",
    ]  # fmt: skip
    file = tmp_path / "file"
    file.touch()
    code = doctor_verbs.doctor(["--json", "+grid=smoke", *remote, f"runs_dir={file}/runs"])
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert 4 == code
    assert ("ok", "WRONG") == (
        found["models"]["state"],
        found["key of openai_compatible"]["state"],
    )
    assert "export MY_KEY" in found["key of openai_compatible"]["told"]


@pytest.mark.parametrize("verb", ["doctor", "cancel", "logs"])
def test_each_verb_tells_how_it_is_used(verb, capsys):
    assert 0 == verbs.VERBS[verb](["--help"])
    assert f"usage: adaexplore {verb}" in capsys.readouterr().out
