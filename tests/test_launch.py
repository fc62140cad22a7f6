"""The command from end to end: it plays, resumes, refuses, and says in one line what is wrong."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from adaexplore import assemble, launch, provenance, verbs
from adaexplore.authoring import datasets
from adaexplore.backends.folder import FolderStore
from adaexplore.experiments import attempts, launches
from adaexplore.experiments.attempts import EpisodeKey

GRID = ["+grid=main", "models=[random,constant,oracle]", "settings=[default,stationary]", "dataset.limit=3",
        "tracking=none", "report=false", "backend.processes=0"]  # fmt: skip
TABLES = ("main", "ablation", "curve", "metrics", "protocol")


def run(*words, code=0):
    """Exit code and output of a launch in this process."""
    assert code == launch.guarded(lambda: launch.launch([*GRID, *words]))


def command(*words, code=None):
    """A launch in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "adaexplore.launch", *GRID, *words],
        capture_output=True,
        text=True,
        check=False,
    )
    if code is not None:
        assert code == done.returncode, done.stderr
    return done


def tables(root, sweep="*"):
    (folder,) = Path(root).glob(f"sweeps/{sweep}/tables")
    assert {f"{name}.csv" for name in TABLES} == {path.name for path in folder.iterdir()}
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def snapshot(root):
    """Every file below the cells, with what it holds and when it was written."""
    return {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in Path(root).glob("cells/**/*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Tables of a sweep that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    subprocess.run(
        [sys.executable, "-m", "adaexplore.launch", *GRID],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder / "runs"


def test_the_last_paths_printed_are_the_tables_and_the_report(whole, capsys):
    run(f"runs_dir={whole}", "report=true")
    out = capsys.readouterr().out
    tables, report, opener = (line.split()[-1] for line in out.strip().splitlines()[-3:])

    assert {f"{name}.csv" for name in TABLES} == {path.name for path in Path(tables).iterdir()}
    assert Path(report).read_bytes().startswith(b"<!DOCTYPE html>")
    assert Path(report).absolute().as_uri() == opener
    assert "finished  18, to play 0" in out
    assert "Main table" in out
    assert "Ablations" in out


def test_running_again_replays_nothing_and_shows_the_same(whole):
    before = snapshot(whole), tables(whole)
    run(f"runs_dir={whole}")

    assert before == (snapshot(whole), tables(whole))


def test_the_scale_is_visible(whole):
    rows = (tables(whole)["main.csv"]).decode().splitlines()

    assert any(
        row.startswith("oracle,default,3,1.000000,1.000000,1.000000,1.000000") for row in rows
    )
    assert any(row.startswith("oracle,stationary,3,1.000000") for row in rows)


def test_a_sweep_killed_at_many_moments_ends_with_the_same_tables(whole):
    """SIGKILL after a growing number of journal writes, then once undisturbed."""
    for target in (1, 7, 40, 90, 200, 310):
        child = subprocess.Popen(
            [sys.executable, "-m", "adaexplore.launch", *GRID],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while child.poll() is None and journaled("runs") < target:
            time.sleep(0.002)  # the process is killed by what it has written, not by the clock
        child.send_signal(signal.SIGKILL)
        child.wait()
    command(code=0)

    assert tables(whole) == tables("runs")
    assert replies(whole) == replies("runs")


def journaled(root):
    return sum(
        path.read_bytes().count(b"\n") for path in Path(root).glob("cells/*/*/*/journal.jsonl")
    )


def replies(root):
    """Replies of the longest journal of each episode run, without times."""
    found = {}
    for path in sorted(Path(root).glob("cells/*/*/*/journal.jsonl")):
        key = path.parts[-4:-2]
        texts = [line.split(b'"meta"')[0] for line in path.read_bytes().splitlines()[1:]]
        found[key] = max(found.get(key, []), texts, key=len)
    return found


@contextlib.contextmanager
def under_way(whole, *words):
    """A launch in the middle of its work; it cannot end by itself, since one episode is played elsewhere."""
    head = json.loads(max(whole.glob("cells/*/*/*/journal.jsonl")).read_bytes().splitlines()[0])
    key = EpisodeKey(**{name: head[name] for name in ("cell_id", "episode_id", "hidden_digest")})
    store = FolderStore(Path("runs"))
    assert attempts.claim(store, key)
    with subprocess.Popen(
        [*words, sys.executable, "-m", "adaexplore.launch", *GRID],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        try:
            while journaled("runs") < 20:
                assert child.poll() is None
                time.sleep(0.002)
            yield child
        finally:
            child.kill()
            store.close()


def test_interrupting_twice_is_safe_and_says_how_to_go_on(whole):
    with under_way(whole) as child:
        child.send_signal(signal.SIGINT)
        child.send_signal(signal.SIGINT)
        _, stderr = child.communicate()

    assert 3 == child.returncode
    assert "run the same command again" in stderr
    assert "Traceback" not in stderr
    command(code=0)
    assert tables(whole) == tables("runs")


def test_a_sweep_grows_under_its_name():
    run("name=mine", "dataset.limit=1", "models=[random]")
    run("name=mine", "dataset.limit=2", "models=[random,constant]", "seeds=[0,1]")
    main = Path("runs/sweeps/mine/tables/main.csv").read_text().splitlines()

    assert [
        "random,default,4",
        "random,stationary,4",
        "constant,default,4",
        "constant,stationary,4",
    ] == [",".join(row.split(",")[:3]) for row in main[1:]]


def test_a_sweep_over_lite_grows_to_all_and_plays_nothing_twice(capsys):
    """The same episodes in another split are the same cells; other episodes are refused."""
    run("name=mine", "dataset=lite", "dataset.limit=2", "models=[random]")
    run("name=mine", "dataset=v1", "dataset.limit=3", "models=[random]")
    assert "finished  4, to play 2" in capsys.readouterr().out
    run("name=mine", "dataset=dev", "models=[random]", code=2)

    assert "sweep 'mine' plays split test with limit 3 (3 episodes)" in capsys.readouterr().err


def test_a_change_of_meaning_under_a_name_is_refused_with_the_keys(capsys):
    run("name=mine", "dataset.limit=1", "models=[random]")
    before = snapshot("runs")
    run("name=mine", "dataset.limit=1", "models=[random]", "protocol.max_probes=8", code=2)
    message = capsys.readouterr().err

    assert (
        "sweep 'mine' holds random/default/0 with another meaning (protocol.max_probes differ)"
        in message
    )
    assert before == snapshot("runs")


def test_another_sweep_uses_the_cells_again(capsys):
    run("name=one", "dataset.limit=1")
    run("name=two", "dataset.limit=1")

    assert "finished  6, to play 0" in capsys.readouterr().out


def test_a_dry_run_writes_nothing(capsys):
    run("--dry-run")

    assert "18 episode runs" in capsys.readouterr().out
    assert [] == list(Path().glob("runs/cells/*")) + list(Path().glob("runs/sweeps/*"))


@pytest.mark.parametrize("names", [("name=one", "name=one"), ("name=one", "name=two")])
def test_two_launchers_at_once_share_the_work_and_end_with_the_same_tables(names, whole):
    """Of one sweep, or of two that share their cells: no turn is asked by both."""
    pair = [
        subprocess.Popen(
            [sys.executable, "-m", "adaexplore.launch", *GRID, name],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for name in names
    ]  # fmt: skip
    ends = [child.communicate()[1] for child in pair]

    assert ["", ""] == ends
    assert [0, 0] == [child.returncode for child in pair]
    for name in names:
        assert tables(whole) == tables("runs", name.removeprefix("name="))
    assert asked(whole) == asked("runs")


def asked(root):
    """Replies that were asked for, over all attempts; what was carried over is not among them."""
    total = 0
    for path in Path(root).glob("cells/*/*/*/journal.jsonl"):
        head, *entries = path.read_bytes().splitlines()
        total += len(entries) - json.loads(head)["carried"]
    return total


def test_a_capped_sweep_has_one_launcher_at_a_time(capsys):
    """Each would spend all that is left of the cap."""
    run("name=mine", "dataset.limit=1", "models=[random]")
    store = FolderStore(Path("runs"))
    launches.note(store, "mine", {}, capped=False)
    run("name=mine", "dataset.limit=1", "models=[random]", "budget.cap_usd=1", code=4)
    message = capsys.readouterr().err
    store.close()
    run("name=mine", "dataset.limit=1", "models=[random]", "budget.cap_usd=1")

    assert (
        f"expected to be the only launch of a sweep with a cap, got launch 0002-{store.writer}"
        in message
    )
    assert 1 == message.count("\n")


def test_a_store_of_a_newer_version_is_refused_and_left_alone(capsys):
    run("name=mine", "dataset.limit=1", "models=[random]")
    Path("runs/store.json").write_text('{"store_version": 2}')
    before = snapshot("runs")
    run("name=mine", "dataset.limit=2", "models=[random]", code=4)

    assert "runs/store.json: expected store_version 1, got 2" in capsys.readouterr().err
    assert before == snapshot("runs")


def test_only_known_statuses_are_redone(capsys):
    run("--redo", "completed", code=2)

    assert "--redo completed: expected one of overflow, content_filter" in capsys.readouterr().err


def test_a_launch_that_names_fewer_models_keeps_the_others_in_the_tables():
    run("name=mine", "dataset.limit=1", "models=[random]")
    run("name=mine", "dataset.limit=1", "models=[constant]")
    main = Path("runs/sweeps/mine/tables/main.csv").read_text().splitlines()

    assert ["random,default", "random,stationary", "constant,default", "constant,stationary"] == [
        ",".join(row.split(",")[:2]) for row in main[1:]
    ]


def test_a_torn_journal_is_carried_on_and_said(whole, capsys):
    shutil.copytree(whole, "runs")
    result = min(Path("runs").glob("cells/*/*/*/result.json"))
    result.unlink()
    journal = result.with_name("journal.jsonl")
    journal.write_bytes(journal.read_bytes()[:-5])
    run()

    assert tables(whole) == tables("runs")
    assert 1 == capsys.readouterr().out.count("the journal's torn last line was asked again")


def test_a_damaged_journal_and_a_damaged_result_stop_the_launch(whole, capsys):
    shutil.copytree(whole, "runs")
    result = min(Path("runs").glob("cells/*/*/*/result.json"))
    kept = result.read_bytes()
    result.write_bytes(kept.replace(b'"utilities":[', b'"utilities":[9,', 1))
    run(code=4)
    first = capsys.readouterr().err
    result.unlink()
    journal = result.with_name("journal.jsonl")
    journal.write_bytes(journal.read_bytes().replace(b'\\"', b"'", 1))
    damaged = journal.read_bytes()
    run(code=4)
    second = capsys.readouterr().err

    assert f"{result}: damaged result" in first
    assert f"{journal} line 2: damaged" in second
    assert damaged == journal.read_bytes()
    assert (1, 1) == (first.count("\n"), second.count("\n"))


def test_an_edited_dataset_is_refused(capsys, tmp_path):
    folder = tmp_path / "edited"
    shutil.copytree(datasets.PACKAGED / "first", folder)
    lines = (folder / "test.jsonl").read_text()
    (folder / "test.jsonl").write_text(lines.replace('"change_batch":5', '"change_batch":6', 1))
    run("dataset=first", f"dataset.name={folder}", code=2)
    message = capsys.readouterr().err

    assert f"{folder}/test.jsonl: expected sha256" in message
    assert 1 == message.count("\n")


def test_a_read_only_place_is_named(capsys):
    run("runs_dir=/proc/runs", code=4)

    assert "/proc/runs" in capsys.readouterr().err


def test_a_full_disk_stops_the_launch_and_loses_nothing(whole):
    """A real one: the largest file that the process may write is smaller than a journal."""
    limited = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))\n"
        "from adaexplore import launch; launch.main(sys.argv[1:])"
    )
    done = subprocess.run(
        # Without -B, half of a module's bytecode might stay behind for everybody.
        [sys.executable, "-B", "-c", limited, *GRID],
        capture_output=True,
        text=True,
        check=False,
    )

    assert 4 == done.returncode
    assert "File too large" in done.stderr
    assert 1 == done.stderr.count("\n")
    command(code=0)
    assert tables(whole) == tables("runs")


def test_a_place_that_is_a_file_is_named(capsys):
    Path("runs").write_text("in the way")
    run(code=4)

    assert "runs" in capsys.readouterr().err
    assert "in the way" == Path("runs").read_text()


ENDING = """
import atexit, os, signal, sys
from adaexplore import launch

class Late:
    def __del__(self):
        os.kill(os.getpid(), signal.{name})

def stop():
    raise KeyboardInterrupt

sys.late = Late()  # freed when Python has taken its handlers away
code = launch.guarded(stop)
atexit.register(os.kill, os.getpid(), signal.{name})
{now}
sys.exit(code)
"""


@pytest.mark.parametrize("now", ["", "os.kill(os.getpid(), signal.{name})"], ids=["late", "now"])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_second_signal_changes_no_exit_code_however_late_it_comes(name, now):
    code = ENDING.format(name=name, now=now.format(name=name))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (3, 1) == (done.returncode, done.stderr.count("\n"))
    assert "run the same command again" in done.stderr


def test_sigterm_counts_as_ctrl_c(whole):
    with under_way(whole) as child:
        child.send_signal(signal.SIGTERM)
        _, stderr = child.communicate()

    assert (3, 1) == (child.returncode, stderr.count("\n"))
    assert "run the same command again" in stderr
    command(code=0)
    assert tables(whole) == tables("runs")


def test_sigterm_ends_a_launch_that_ignores_ctrl_c(whole):
    """As one does that a script has put into the background."""
    with under_way(whole, "sh", "-c", 'trap "" INT; exec "$@"', "sh") as child:
        child.send_signal(signal.SIGINT)
        child.send_signal(signal.SIGTERM)
        _, stderr = child.communicate()

    assert (3, 1) == (child.returncode, stderr.count("\n"))
    assert "run the same command again" in stderr


@pytest.mark.parametrize(
    "words", [("launch", "+grid=smoke", "tracking=none"), ("dataset", "stats", "first"), ("dataset", "list")]
)  # fmt: skip
def test_a_full_output_is_one_line_and_a_closed_one_is_quiet(words):
    program = [sys.executable, "-m", "adaexplore", *words]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    reader, writer = os.pipe()
    os.close(reader)
    closed = subprocess.run(program, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)

    assert (4, "error: standard output: No space left on device; mend it and run again\n") == (
        done.returncode,
        done.stderr,
    )
    assert (4, "") == (closed.returncode, closed.stderr)


@pytest.mark.parametrize("verb", ["launch", "plan", "dataset", "author"])
def test_every_verb_has_help(verb, capsys):
    with pytest.raises(SystemExit) as stop:
        verbs.main([verb, "--help"])

    assert 0 == stop.value.code
    assert f"usage: adaexplore {verb} " in capsys.readouterr().out


def test_cores_are_those_that_the_process_may_use():
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert 1 == assemble.cores()
    finally:
        os.sched_setaffinity(0, allowed)


def test_outside_a_checkout_nothing_is_said_of_its_state(monkeypatch, tmp_path):
    monkeypatch.setattr(provenance, "CHECKOUT", tmp_path)
    found = provenance.collect()

    assert (None, None) == (found["commit"], found["dirty"])


def test_pods_do_not_serve_outside_a_cluster_and_nothing_is_written(capsys):
    image = "serving.kubernetes.image=r.example/engine:1"
    run("serving=kubernetes", image, code=2)

    assert "this process is in none; add backend=kubernetes" in capsys.readouterr().err
    assert [] == list(Path().iterdir())
