"""What a person asks of a stored sweep: how far it is, how an episode went, and help that helps."""

import json
import re
import shutil

import pytest
from rich.console import Console

from adaexplore import course, display, launch, sweep_verbs, verbs
from adaexplore.backends.folder import FolderStore
from adaexplore.benchmark.game.records import Fault
from adaexplore.experiments import attempts, statuses, stored
from adaexplore.experiments.attempts import EpisodeKey
from sweep_copies import WORDS, attempt_of, cell_of, copied, rewrite


@pytest.fixture
def runs(finished_sweep, tmp_path):
    """A copy of it."""
    return copied(finished_sweep, tmp_path / "runs")


def verb(command, *words, code=0):
    assert code == launch.guarded(lambda: command(list(words)))


def emptied(root, label, episode_id):
    """Take a run's attempts away; returns its key."""
    folder, _ = attempt_of(root, label, episode_id)
    shutil.rmtree(folder.parent)
    return EpisodeKey(cell_id=cell_of(root, label), episode_id=episode_id, hidden_digest="d")


# -- help --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["launch", *verbs.VERBS])
def test_every_verb_is_listed_and_has_a_help_of_its_own(name, capsys):
    with pytest.raises(SystemExit) as ended:
        verbs.main([name, "--help"])
    shown = capsys.readouterr().out

    assert 0 == ended.value.code
    assert shown.startswith(f"usage: adaexplore {name}")
    assert len(shown.splitlines()) > 3
    assert re.search(rf"^  {name}\b", verbs.HELP, re.MULTILINE)


def test_a_plan_is_a_dry_run(finished_sweep, capsys):
    verb(verbs.VERBS["plan"], *WORDS, f"runs_dir={finished_sweep}")
    plan = capsys.readouterr().out
    verb(launch.launch, *WORDS, f"runs_dir={finished_sweep}", "--dry-run")

    assert plan == capsys.readouterr().out
    assert "finished  8, to play 0" in plan


# -- status ------------------------------------------------------------------------------------


def test_status_tells_every_state_from_the_store_alone(runs, capsys):
    """Another store object stands for another process: one lives, one has closed, one failed."""
    playing, cut, failed = (
        emptied(runs, *run)
        for run in (
            ("random/default/0", "v1-001"),
            ("random/default/0", "v1-002"),
            ("one_factor/default/0", "v1-001"),
        )
    )
    emptied(runs, "one_factor/default/0", "v1-002")
    live, dead = FolderStore(runs), FolderStore(runs)
    attempts.claim(live, playing)
    attempts.claim(dead, cut)
    ended = attempts.claim(dead, failed)
    ended.fail("the endpoint said \x1b[31mno\x1b[0m", "overloaded", []).result()
    ended.close()
    dead.close()
    verb(sweep_verbs.status, "mine", f"runs_dir={runs}", "--json")
    told = {cell["label"]: cell for cell in json.loads(capsys.readouterr().out)["cells"]}
    verb(sweep_verbs.status, "mine", f"runs_dir={runs}")
    shown = capsys.readouterr().out
    live.close()

    assert {"playing": 1, "interrupted": 1} == told["random/default/0"]["runs"]
    assert {"failed": 1, "missing": 1} == told["one_factor/default/0"]["runs"]
    assert {"finished": 2} == told["random/stationary/0"]["runs"]
    assert (
        "v1-001: the endpoint said \x1b[31mno\x1b[0m"
        == (told["one_factor/default/0"]["last_failure"])
    )
    assert "\x1b" not in shown
    assert "4 finished, 1 playing, 1 failed, 1 interrupted, 1 missing" in shown


def test_spend_is_the_sum_over_attempts(finished_sweep, capsys):
    verb(sweep_verbs.status, "mine", f"runs_dir={finished_sweep}", "--json")
    told = json.loads(capsys.readouterr().out)
    journaled = sum(
        path.read_bytes().count(b"\n") - 1
        for path in finished_sweep.glob("cells/*/*/*/journal.jsonl")
    )

    assert journaled == told["usage"]["calls"]
    assert journaled == sum(cell["usage"]["calls"] for cell in told["cells"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", told["last_launch"])


def test_two_cells_of_one_meaning_count_once(finished_sweep):
    store = FolderStore(finished_sweep)
    sweep = stored.read(store, "mine")
    twice = stored.StoredSweep(
        name="mine", cells=(*sweep.cells, sweep.cells[0]), selection=sweep.selection
    )
    once, again = (statuses.of_sweep(store, s) for s in (sweep, twice))

    assert (8, 8) == (once.count("finished"), again.count("finished"))
    assert (8, 8) == (once.runs, again.runs)
    assert once.usage == again.usage


def test_status_of_all_sweeps_is_a_line_each(finished_sweep, capsys):
    verb(sweep_verbs.status, f"runs_dir={finished_sweep}")

    assert "mine: 4 cells, 8 episode runs: 8 finished\n" == capsys.readouterr().out


def test_a_store_without_sweeps_says_so(tmp_path, capsys):
    (tmp_path / "runs").mkdir()
    verb(sweep_verbs.status)

    assert "no sweep in runs/sweeps: launch one" in capsys.readouterr().out


# -- show --------------------------------------------------------------------------------------


def test_show_tells_the_course_of_an_episode(finished_sweep, capsys):
    verb(sweep_verbs.show, "mine", "v1-001", "--model", "one_factor", "--setting=default",
         f"runs_dir={finished_sweep}")  # fmt: skip
    out = capsys.readouterr().out
    folder, key = attempt_of(finished_sweep, "one_factor/default/0")
    record = attempts.read_result(FolderStore(finished_sweep), f"{key}/result.json")

    assert f"episode {record.episode_id} of sweep mine, played by one_factor/default/0" in out
    rows = [line.split() for line in out.splitlines() if re.match(r"  +\d+  ", line)]
    assert 12 == len(rows)
    for row, number in zip(rows, range(1, 13), strict=True):
        cases = [case for case in record.cases if case.batch_number == number]
        right = sum(c.action == c.utilities.index(max(c.utilities)) for c in cases)
        probes = sum(probe.batch_number == number for probe in record.probes)
        earned = sum(0 if c.action is None else c.utilities[c.action] for c in cases)
        assert [str(number), str(probes), f"{right}/8", f"{earned:+.2f}"] == (
            [row[0], row[1], row[5], row[6]]
        )
    assert 1 == out.count("-- the rule changes --")
    assert 2 == out.count("believed")
    assert str(folder / "journal.jsonl") in out


def test_show_names_who_else_played_it(finished_sweep, capsys):
    verb(sweep_verbs.show, "mine", "v1-001", f"runs_dir={finished_sweep}")
    out = capsys.readouterr().out

    assert "played by random/default/0" in out
    assert (
        "also played by random/stationary/0, one_factor/default/0, one_factor/stationary/0" in out
    )


def test_show_of_a_rule_that_never_changes_draws_no_change(finished_sweep, capsys):
    verb(
        sweep_verbs.show, "mine", "v1-001", "--setting", "stationary", f"runs_dir={finished_sweep}"
    )
    out = capsys.readouterr().out

    assert "the rule never changes here" in out
    assert "-- the rule changes --" not in out


def test_what_an_agent_wrote_cannot_steer_the_terminal(finished_sweep, capsys):
    _, key = attempt_of(finished_sweep, "one_factor/default/0")
    store = FolderStore(finished_sweep)
    sweep = stored.read(store, "mine")
    world = stored.worlds(stored.dataset(store, sweep), sweep)["v1-001"]
    record = attempts.read_result(store, f"{key}/result.json")
    hostile = Fault(
        batch_number=2, decision="act", kind="rejected",
        reasons=("\x1b]0;owned\x07 [red]bold[/red]\r\n\u202e",),
    )  # fmt: skip
    document = {name: getattr(record, name) for name in type(record).__dataclass_fields__}
    lines = course.lines(type(record)(**{**document, "faults": (hostile,)}), world)
    display.show_lines(Console(), lines)
    shown = capsys.readouterr().out

    assert "window 2, act: rejected:  ]0;owned  [red]bold[/red]" in shown
    assert not set("\x1b\x07\r\u202e") & set(shown)


def test_show_of_an_unfinished_episode_says_how_far_it_is(runs, capsys):
    key = emptied(runs, "random/default/0", "v1-001")
    verb(
        sweep_verbs.show,
        "mine",
        "v1-001",
        "--model=random",
        "--setting=default",
        f"runs_dir={runs}",
    )
    assert "random/default/0 v1-001 was never played; launch again" in capsys.readouterr().out
    store = FolderStore(runs)
    attempts.claim(store, key)
    verb(
        sweep_verbs.show,
        "mine",
        "v1-001",
        "--model=random",
        "--setting=default",
        f"runs_dir={runs}",
    )
    store.close()

    assert "is being played" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mine"], "show: expected SWEEP EPISODE, got mine"),
        (["mine", "v1-999"], "has no episode 'v1-999': expected one of v1-001 ... v1-002"),
        (
            ["mine", "v1-001", "--model=oracle"],
            "has no such cell: expected one of random/default/0",
        ),
        (["other", "v1-001"], "unknown sweep 'other'"),
        (["mine", "v1-001", "--model=a", "--model=b"], "option --model is given 2 times"),
    ],
)
def test_what_cannot_be_shown_is_one_line(finished_sweep, words, message, capsys):
    verb(sweep_verbs.show, *words, f"runs_dir={finished_sweep}", code=2)
    err = capsys.readouterr().err

    assert message in err
    assert 1 == err.count("\n")


def test_a_damaged_result_is_not_shown(runs, capsys):
    folder, _ = attempt_of(runs, "random/default/0")
    rewrite(folder / "result.json", lambda d: {**d, "record": {}})
    verb(sweep_verbs.show, "mine", "v1-001", f"runs_dir={runs}", code=4)

    assert "expected an episode's record" in capsys.readouterr().err


def test_nothing_to_synchronise_with_is_said(finished_sweep, capsys):
    verb(sweep_verbs.sync, "mine", f"runs_dir={finished_sweep}", code=2)

    assert "tracking=none shows nothing" in capsys.readouterr().err
