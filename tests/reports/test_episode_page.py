"""The page of an episode says what its record says, number by number."""

import re
from collections import Counter

from adaexplore.benchmark.scores import metrics
from adaexplore.reports.episodes import windows
from adaexplore.reports.markup import visible
from pages_read import best, page_of
from players import View, belief, call, drive, is_fork, submit


def test_the_table_of_cases_is_the_record(run):
    page, record = page_of(run), run.record
    rows = [row for row in page.table("Chosen against best")[1:] if len(row) > 1]
    total = 0.0

    assert record.drifts
    assert 12 == len(rows)
    for number, row in enumerate(rows, start=1):
        cases = [case for case in record.cases if case.batch_number == number]
        earned = sum(0 if c.action is None else c.utilities[c.action] for c in cases)
        total += earned
        right = sum(c.action == best(c.utilities) for c in cases)
        probes = sum(p.batch_number == number for p in record.probes)
        told = [text for text, _ in row]
        assert [str(number), str(probes)] == told[:2]
        assert [
            f"{right}/8",
            f"{earned:+.2f}",
            f"{sum(max(c.utilities) for c in cases):.2f}",
            f"{total:+.2f}",
        ] == told[-4:]
        for case, (text, attrs) in zip(cases, row[2:-4], strict=True):
            chosen = "\u2013" if case.action is None else str(case.action)
            top = str(best(case.utilities))
            hit = case.action == best(case.utilities)
            assert (f"right {top}" if hit else f"{chosen}\u2192 best {top}") == text
            values = ", ".join(f"action_{k} {u:+.2f}" for k, u in enumerate(case.utilities))
            assert f"best action_{top}; {values}" in attrs["title"]
            assert attrs["title"].startswith(case.context_id)


def test_the_change_stands_after_its_window_and_nowhere_else(run):
    rows = page_of(run).table("Chosen against best")[1:]

    assert [run.record.change_batch] == [i for i, row in enumerate(rows) if len(row) == 1]


def test_cumulative_utility_ends_at_the_sums_of_the_record(run):
    cases = run.record.cases
    own = sum(0 if c.action is None else c.utilities[c.action] for c in cases)
    oracle = sum(max(c.utilities) for c in cases)
    (told,) = [
        e
        for e in page_of(run).all("svg")
        if e["attrs"].get("aria-label", "").startswith("Cumulative")
    ]

    for line in (f"oracle {oracle:.1f}", f"this run {own:.1f}", "by lot 0.0"):
        assert line in told["text"]


def test_every_probe_is_a_mark_in_every_panel(run, world):
    page = page_of(run)
    panels = {
        e["attrs"]["aria-label"]: e["text"]
        for e in page.elements
        if e["attrs"].get("aria-label", "").startswith("Probes over")
    }
    shapes = Counter(
        e["attrs"]["class"]
        for e in page.elements
        if re.fullmatch("a[0-3]", e["attrs"].get("class", "")) and "figure" in e["inside"]
    )

    assert {f"Probes over {f.display_name}" for f in world.fields} == set(panels)
    expected = Counter(f"a{best(p.utilities)}" for p in run.record.probes)
    assert {name: 8 * count for name, count in expected.items()} == dict(shapes)
    for field in world.fields:
        for probe in run.record.probes:
            value = world.numbers(probe.row)[field.field_id]
            told = f"{probe.context_id}, window {probe.batch_number}: {value} {field.unit},"
            assert told in panels[f"Probes over {field.display_name}"]


def test_a_panel_says_when_its_field_matters(run, world):
    captions = [e["text"] for e in page_of(run).all("figcaption")]
    truth = {"before": run.record.truth["pre"], "after": run.record.truth["post"]}
    signs = {1: "+", -1: "\u2212"}

    for field in world.fields:
        (told,) = [
            text for text in captions if text.startswith(f"{field.display_name} {field.unit}")
        ]
        for when, directions in truth.items():
            if field.field_id in directions:
                assert f"{when} {signs[directions[field.field_id]]}" in told
            else:
                assert f"{when} " not in told.removeprefix(field.display_name)
        assert told.endswith("distractor") == (
            field.field_id not in {*truth["before"], *truth["after"]}
        )


def test_beliefs_are_the_assessments_against_the_truth(run, world):
    rows = page_of(run).table("Believed against true")[1:]
    told = {row[0][0]: [text for text, _ in row[1:]] for row in rows}
    signs = {1: "+", -1: "\u2212"}
    answers = {a.phase: a.directions for a in run.record.assessments if a.status == "completed"}

    assert {"pre", "post"} == set(answers)
    for field in world.fields:
        expected = []
        for phase in ("pre", "post"):
            true = run.record.truth[phase].get(field.field_id)
            said = answers[phase].get(field.field_id)
            verdict = (
                "" if true is None and said is None
                else "does not matter" if true is None
                else "missed" if said is None
                else "right" if said == true else "wrong direction"
            )  # fmt: skip
            expected += [signs.get(true, ""), signs.get(said, ""), verdict]
        assert (expected if any(expected) else None) == told.get(field.display_name)


def test_changes_and_their_score(run):
    rows = page_of(run).table(
        f"Change recognition of this run: {metrics.change_f1(run.record):.2f}"
    )
    verdicts = Counter(row[-1][0] for row in rows[1:])
    true, said = metrics.true_atoms(run.record), metrics.reported_atoms(run.record)

    assert len(true & said) == verdicts["told"]
    assert len(true - said) == verdicts["not told"]
    assert len(said - true) == verdicts["told, did not happen"]


def test_faults_are_told_with_their_reasons(run):
    rows = page_of(run).table("Refused and cut off")[1:]
    counts = run.record.counts

    assert len(run.record.faults) == len(rows) > 3
    for fault, row in zip(run.record.faults, rows, strict=True):
        assert [str(fault.batch_number), fault.decision, fault.kind, "".join(fault.reasons)] == (
            [text for text, _ in row]
        )
    assert (
        f"{counts.repairs} repairs, {counts.fallbacks} fallbacks, {counts.truncations} replies"
        in (page_of(run).section("faults"))
    )


def test_every_turn_is_there_with_its_messages_and_what_it_spent(run, played):
    page = page_of(run)
    turns = page.all("details", "turn")

    assert len(played.replies) == len(turns)
    for number, (turn, messages, reply) in enumerate(
        zip(turns, played.requests, played.replies, strict=True), start=1
    ):
        assert f"turn {number}" in turn["text"]
        assert (
            f"0.2 s \u00b7 {reply.input_tokens} tokens in, {reply.output_tokens} out"
            in turn["text"]
        )
        last = messages[-1].content
        forked = is_fork(messages[-1:])
        assert ("the last message again" if forked else visible(last)) in turn["text"]
        assert visible(reply.text) in turn["text"]
        assert (number == 2) == ("1 failed attempts before it" in turn["text"])
    assert played.requests[0][0].content in page.section("conversation")


def test_the_story_counts_as_the_record_does(run):
    story = page_of(run).section("story")
    change, record = run.record.change_batch, run.record
    before = [c for c in record.cases if c.batch_number <= change]
    probes = [p for p in record.probes if p.batch_number <= change]
    right = sum(c.action == best(c.utilities) for c in before)
    post = run.record.truth["post"]
    named = next(a.directions for a in record.assessments if a.phase == "post")

    assert (
        f"made {len(probes)} probes in {len({p.batch_number for p in probes})} of {change}" in story
    )
    assert (
        f"best action in {right} of {len(before)} cases ({100 * right / len(before):.0f} %)"
        in story
    )
    assert f"it named {len(set(named) & set(post))} of the 3 relevant fields" in story


def test_answers_of_the_old_rule_are_found(world, settings):
    """Who goes on with the rule of before errs exactly where the two rules differ."""
    episode = world.episode
    rows = {
        f"case_{8 * b + i + 1:03d}": row
        for b, batch in enumerate(episode.cases)
        for i, row in enumerate(batch)
    }

    def stubborn(messages):
        view = View(messages)
        if view.forked:
            return belief()
        if not view.pending:
            return call("request_next_batch")
        return submit(
            view, lambda c: best(world.utilities(episode.pre, [rows[c["context_id"]]])[0])
        )

    record = drive(world, settings["default"], stubborn).record
    wrong = {c.context_id for c in record.cases if c.action != best(c.utilities)}

    assert wrong == windows.answers_of_old(record, world, iid=False)
    assert 4 * (12 - record.change_batch) == len(wrong)
    still = drive(world, settings["stationary"], stubborn).record
    assert frozenset() == windows.answers_of_old(still, world, iid=False)
