"""The authoring pipeline from end to end: one run is a function of the idea and the replies.

A scripted model answers with files: a tiny eleventh domain, with one answer that needs its repair.
"""

import json
import re
import shutil

import pytest
import yaml

import greenhouse
from adaexplore import verbs
from adaexplore.authoring import checks, datasets, domain_files, stages
from adaexplore.benchmark.game import agents
from adaexplore.benchmark.game.agents.oracle import Told, oracle
from adaexplore.benchmark.scores import metrics
from adaexplore.benchmark.world.fields import FAMILIES
from players import drive

REPAIRED = "03-priors-2"
LATER = [call for call in greenhouse.CALLS if call > "05"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run that nothing disturbed."""
    return greenhouse.run(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def copy(whole, tmp_path):
    """A copy of that run, where another launch will find it."""
    folder = tmp_path / "runs" / "author" / greenhouse.DOMAIN
    shutil.copytree(whole, folder, copy_function=shutil.copy2)
    return folder


@pytest.fixture(scope="module")
def made(whole):
    """The dataset of the run."""
    return datasets.load(f"{whole}/dataset")


# -- what comes out ----------------------------------------------------------------------------


def test_the_dataset_loads_and_has_no_faults(whole, made):
    """One episode of each family, in the form of the shipped datasets."""
    families = {world.episode.pre.family for world in made.worlds}

    assert 4 == len(made.worlds)
    assert set(FAMILIES) == families
    assert [f"{greenhouse.DOMAIN}-{n:03d}" for n in (1, 2, 3, 4)] == [
        world.episode.episode_id for world in made.worlds
    ]
    assert [] == list(checks.dataset_faults(whole / "dataset"))


def test_the_domain_file_has_the_form_of_the_shipped_ones(whole):
    """No faults, and the same keys in the same order at every level."""
    path = whole / "dataset" / "domains" / f"{greenhouse.DOMAIN}.yaml"
    own, shipped = (
        yaml.safe_load(file.read_text())
        for file in (path, domain_files.path_of("hospital_bed_flow"))
    )

    domain_files.read(path)
    assert list(shipped) == list(own)
    for key in (
        "actions",
        "fields",
        "constraints",
        "ordered_triples",
        "replacement_groups",
        "events",
    ):
        assert list(shipped[key][0]) == list(own[key][0])
    for key in ("reversal", "populations"):
        assert list(shipped["fields"][0][key]) == list(own["fields"][0][key])
    handoffs = (d["replacement_groups"][0]["transitions"][0] for d in (shipped, own))
    assert list(next(handoffs)) == list(next(handoffs))
    assert max(map(len, path.read_text().splitlines())) < 140


def test_reference_agents_play_the_dataset(made, settings):
    """The oracle is never wrong, and who probes beats who guesses."""
    records = {"random": [], "one_factor": [], "oracle": []}
    for world in made.worlds:
        told = Told(world=world, drifts=True)
        for name, played in records.items():
            player = (
                (lambda messages, told=told: oracle(messages, told))
                if name == "oracle"
                else (lambda messages, name=name: agents.AGENTS[name].reply(messages, 0))
            )
            played.append(drive(world, settings["default"], player).record)
    ea, ca = (
        {name: metrics.value(metric, played) for name, played in records.items()}
        for metric in metrics.MAIN[:2]
    )

    assert 1.0 == ea["oracle"]
    assert ca["random"] < ca["one_factor"] < ca["oracle"]


def test_audit_and_review_decide_what_is_kept(whole, made):
    """Neither a refused core nor a low score; the best of the rest, with its scores."""
    named = json.loads((whole / "dataset" / "reviews.json").read_text())
    chosen = {entry["candidate_id"]: entry["episode_id"] for entry in named}
    scores = {world.episode.episode_id: world.episode.review for world in made.worlds}

    assert {
        "additive_aggregation-02",  # the first was refused
        "conjunctive_gating-02",  # better than the first, once its distractors were redrawn
        "disjunctive_sufficiency-02",  # the first scored 5.0, 3.0, 5.0
        "lexicographic_priority-01",  # 12.3 against 12.0
    } == set(chosen)
    review = scores[chosen["conjunctive_gating-02"]]
    assert (4.1, 3.8, 3.7) == (
        review.field_realism, review.rule_change_realism, review.distractor_quality,
    )  # fmt: skip


def test_a_redrawn_candidate_keeps_its_core(whole):
    """The same change of the same fields, other distractors, and the prior verdict is told."""
    first, again = (
        json.loads(greenhouse_attempt(whole, call)["messages"][1]["content"])["candidates"][-1]
        for call in ("08-audit-conjunctive_gating-1", "08-audit-conjunctive_gating-redraw-1-1")
    )

    assert first["candidate_id"] == again["candidate_id"]
    for key in ("family", "core_before", "core_after", "change"):
        assert first[key] == again[key]
    assert set(first["distractors"]) != set(again["distractors"])
    assert "prior_core_review" not in first
    assert "accept" == again["prior_core_review"]


def test_a_declined_change_is_left_out(whole):
    """Five of the six proposed changes got an event."""
    events = yaml.safe_load((whole / "draft.yaml").read_text())["events"]

    assert 5 == len(events)
    assert "co2_ppm" not in {event["reversed"] for event in events}


def test_the_manifest_says_where_the_episodes_come_from(made):
    """Models, prompts, date, minimum scores, and what became of the candidates."""
    account = made.manifest["authoring"]

    assert [{"kind": "replay"}] == account["models"]
    assert stages.DIGEST == account["prompts_sha256"]
    assert greenhouse.DATE == account["date"]
    assert {"field_realism": 3.0, "rule_change_realism": 3.0, "distractor_quality": 3.0} == account[
        "minimum_scores"
    ]
    assert {
        "searched": 2, "accepted": 1, "reject_core": 1, "reject_distractors": 0, "qualified": 1,
        "selected": 1,
    } == account["candidates"]["additive_aggregation"]  # fmt: skip


# -- repair, resume, replay --------------------------------------------------------------------


def greenhouse_attempt(folder, call, number=1):
    return json.loads((folder / call / f"attempt-{number}.json").read_text())


def test_a_repair_quotes_every_fault(whole):
    """The second attempt holds the first reply and all that was wrong with it."""
    first, second = (greenhouse_attempt(whole, REPAIRED, number) for number in (1, 2))
    roles = [message["role"] for message in second["messages"]]

    assert 3 == len(first["faults"])
    assert not second["faults"]
    assert ["system", "user", "assistant", "user"] == roles
    assert first["reply"]["text"] == second["messages"][2]["content"]
    for fault in first["faults"]:
        assert fault in second["messages"][3]["content"]


def test_a_finished_run_is_not_asked_again(copy, tmp_path):
    """Launched again without any answers, it makes the same dataset from what is stored."""
    before, made = greenhouse.attempts(copy), greenhouse.dataset_bytes(copy)
    shutil.rmtree(copy / "dataset")
    (tmp_path / "none").mkdir()

    again = greenhouse.run(tmp_path, answers=tmp_path / "none")

    assert made == greenhouse.dataset_bytes(again)
    assert before == greenhouse.attempts(again)


def test_a_recorded_run_replays_byte_for_byte(whole, tmp_path):
    """Its own attempts answer, the faulty one included; provenance and date are the recorded ones."""
    again = greenhouse.run(tmp_path, answers=whole)

    assert greenhouse.dataset_bytes(whole) == greenhouse.dataset_bytes(again)
    assert greenhouse.attempts(whole).keys() == greenhouse.attempts(again).keys()


def test_a_recorded_answer_answers_its_own_request_only(whole, tmp_path, capsys):
    """With another idea the stored replies are answers to another question."""
    idea = tmp_path / "idea.yaml"
    idea.write_text(greenhouse.IDEA.read_text().replace("tomato", "cucumber"))

    greenhouse.run(tmp_path, answers=whole, idea=idea, code=3)

    assert "got one to another" in capsys.readouterr().err


def test_a_stage_that_fails_for_good_can_be_resumed(whole, tmp_path, capsys):
    """Junk twice: exit code 3 and the state is kept; then only what is missing is asked."""
    answers = greenhouse.copied(tmp_path / "answers")
    good = greenhouse.stored("05-feasibility")
    unknown = json.loads(json.dumps(good).replace("night_irrigation_l_m2", "night_water"))
    greenhouse.write(answers, "05-feasibility", 1, "I would rather not.")
    greenhouse.write(answers, "05-feasibility", 2, unknown)

    failed = greenhouse.run(tmp_path, answers=answers, code=3)
    state = json.loads((failed / "status.json").read_text())
    before = greenhouse.attempts(failed)
    error = capsys.readouterr().err

    assert ("failed", "05-feasibility") == (state["state"], state["call"])
    assert "unknown field 'night_water'" in state["faults"][0]
    assert error.startswith("error: 05-feasibility: ")
    assert "run the same command again" in error
    assert not (failed / "dataset").exists()
    assert {("05-feasibility", 1), ("05-feasibility", 2)} < before.keys()

    greenhouse.write(answers, "05-feasibility", 3, good)
    resumed = greenhouse.run(tmp_path, answers=answers)
    after = greenhouse.attempts(resumed)

    assert before == {key: after[key] for key in before}
    assert {
        ("05-feasibility", 3),
        *((call, 1) for call in LATER[1:]),
    } == after.keys() - before.keys()
    assert greenhouse.dataset_bytes(whole) == greenhouse.dataset_bytes(resumed)


def test_torn_and_edited_attempts_are_made_again(copy, tmp_path):
    """Nothing half-written or changed is taken for an answer, and nothing else is asked."""
    before, made = greenhouse.attempts(copy), greenhouse.dataset_bytes(copy)
    torn = [(call, 1) for call in (greenhouse.CALLS[0], REPAIRED, greenhouse.CALLS[-1])]
    for call, number in torn:
        path = copy / call / f"attempt-{number}.json"
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2])
    edited = copy / "03-priors-1" / "attempt-1.json"
    edited.write_text(edited.read_text().replace("quiet to strained", "calm to strained"))

    after = greenhouse.attempts(greenhouse.run(tmp_path))

    assert {*torn, ("03-priors-1", 1)} == {key for key in after if after[key] != before[key]}
    assert made == greenhouse.dataset_bytes(copy)


def test_date_and_place_change_nothing_else(whole, tmp_path, capsys):
    """The clock decides nothing; the last line plays the dataset from where it was put."""
    greenhouse.run(tmp_path, "--date", "2031-01-01", "--out", str(tmp_path / "dataset"))
    first, second = (greenhouse.dataset_bytes(folder) for folder in (whole, tmp_path))
    dated = first["manifest.json"].replace(greenhouse.DATE.encode(), b"2031-01-01")
    played = re.search(r"dataset\.name=(\S+)", capsys.readouterr().out)

    assert {**first, "manifest.json": dated} == second
    assert 4 == len(datasets.load(played[1]).worlds)


# -- the command -------------------------------------------------------------------------------


def test_stages_can_be_run_apart(whole, tmp_path, capsys):
    """First some, then the rest; and it says where to look and what is next."""
    folder = greenhouse.run(tmp_path, "--stages", "1-6")
    shown = capsys.readouterr().out

    assert "draft.yaml" in shown
    assert "next is stage 7" in shown
    assert not (folder / "dataset").exists()
    assert {call for call in greenhouse.CALLS if call < "07"} == {
        call for call, _ in greenhouse.attempts(folder)
    }
    rest = greenhouse.run(tmp_path, "--stages", "7-9")
    assert greenhouse.dataset_bytes(whole) == greenhouse.dataset_bytes(rest)


def test_a_later_stage_never_asks_for_an_earlier_one(tmp_path, capsys):
    """Stage 7 alone needs the first six stored."""
    folder = greenhouse.run(tmp_path, "--stages", "7", code=3)

    assert "01-inventory: it has no stored answer" in capsys.readouterr().err
    assert not greenhouse.attempts(folder)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["{idea}"], "either --model PROFILE or --replay DIR"),
        (["{idea}", "--model", "x", "--replay", "."], "either --model PROFILE or --replay DIR"),
        (["{idea}", "{idea}", "--model", "x"], "expected one idea file"),
        (["--model", "x"], "expected one idea file, got none"),
        (["{idea}", "--model"], "--model: expected a value"),
        (["{idea}", "--colour", "red"], "unknown option '--colour'"),
        (["{idea}", "--replay", "nowhere"], "expected a folder of stored attempts, got nowhere"),
        (["{idea}", "--replay", ".", "--stages", "3-1"], "expected such as 1-6"),
        (["{idea}", "--replay", ".", "--stages", "1-12"], "expected such as 1-6"),
        (["{idea}", "--replay", ".", "--stages", "1-8"], "audit and review go together"),
        (["{idea}", "--replay", ".", "--date", "today"], "expected YYYY-MM-DD, got today"),
        (["missing.yaml", "--model", "x"], "missing.yaml: not a readable idea"),
        (["{idea}", "--model", "scientist"], "expected a language model, got a reference agent"),
        (["{idea}", "--model", "reference"], "expected one profile, got a set"),
        (["{idea}", "--model", "scientits"], "did you mean 'scientist'?"),
    ],
)
def test_a_wrong_command_line_says_what_would_be_right(words, told, capsys):
    """One line and exit code 2."""
    with pytest.raises(SystemExit) as left:
        verbs.main(["author", *(word.format(idea=greenhouse.IDEA) for word in words)])
    error = capsys.readouterr().err

    assert 2 == left.value.code
    assert told in error
    assert 1 == error.count("\n")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("action_3", "action_4", "expected the ids action_0, action_1"),
        ("seed: 7", "seed: x", "plan.seed: Input should be a valid integer"),
        ("title:", "name:", "title: Field required; name: Unexpected keyword argument"),
        ("greenhouse_climate", "Greenhouse", "domain_id: String should match pattern"),
    ],
)
def test_a_wrong_idea_is_refused_with_every_fault(tmp_path, old, new, told, capsys):
    """Before anything is asked or written."""
    idea = tmp_path / "idea.yaml"
    idea.write_text(greenhouse.IDEA.read_text().replace(old, new))

    greenhouse.run(tmp_path / "here", idea=idea, code=2)

    assert told in capsys.readouterr().err
    assert not (tmp_path / "here" / "runs").exists()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [("tomato", "cucumber", "another idea"), (stages.DIGEST, "0" * 64, "other prompts")],
)
def test_a_run_is_not_continued_as_another(copy, tmp_path, old, new, told, capsys):
    """The header says what a folder was begun with."""
    from adaexplore.authoring import calls

    header = calls.unsealed((copy / "run.json").read_bytes())
    changed = json.loads(json.dumps(header).replace(old, new))
    (copy / "run.json").write_bytes(calls.sealed(changed))

    greenhouse.run(tmp_path, code=2)

    assert told in capsys.readouterr().err


def test_too_few_good_episodes_name_the_family(tmp_path, capsys):
    """A quota that is not met ends the run with the counts, and no dataset is written."""
    idea = tmp_path / "idea.yaml"
    idea.write_text(greenhouse.IDEA.read_text().replace("episodes_each: 1", "episodes_each: 2"))

    folder = greenhouse.run(tmp_path, idea=idea, code=2)
    error = capsys.readouterr().err

    assert "got additive_aggregation 1, disjunctive_sufficiency 1;" in error
    assert not (folder / "dataset").exists()
