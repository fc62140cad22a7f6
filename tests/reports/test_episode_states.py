"""The hidden rule in words, and pages of runs that were cut short, failed or were never scored."""

from dataclasses import replace

import pytest

from adaexplore.benchmark.game.protocol import PROTOCOL_VERSION, Protocol, Reply
from adaexplore.benchmark.world.fields import FAMILIES
from adaexplore.experiments import turns
from adaexplore.reports.episodes import runs, words
from pages_read import attempt, cell_of, kept, notice, page_of
from players import drive, points_of, steady


@pytest.mark.parametrize("family", FAMILIES)
def test_a_rule_is_told_in_the_units_of_its_fields(family, worlds):
    """A case on either side of a told threshold has a margin of that sign."""
    world = next(w for w in worlds if w.episode.pre.family == family)
    for rule in (world.episode.pre, world.episode.post):
        for slot in rule.slots:
            field = world.domain.catalog[slot.field_id]
            told = words.condition(rule, slot, field)
            if family == "additive_aggregation":
                assert (
                    f"{'higher' if slot.direction > 0 else 'lower'} calls for more, weight {slot.weight:.2f}"
                    == told
                )
                continue
            at = words.threshold(field, slot)
            again = 2 * (at - field.minimum) / (field.maximum - field.minimum) - 1
            assert pytest.approx(slot.threshold, abs=1e-12) == again
            assert told.startswith("above " if slot.direction > 0 else "below ")
            assert float(told.split()[1]) == pytest.approx(at, rel=5e-3, abs=5e-3)
            assert ("undecided within" in told) == (family == "lexicographic_priority")


def test_the_page_tells_both_rules_the_event_and_the_reason(run, world):
    section = page_of(run).section("rule")
    change = world.episode.transition

    for name in {*world.episode.pre.field_ids, *world.episode.post.field_ids}:
        assert name in section
    for told in (change.trigger_event, change.change_reason, "its direction turned", "as before"):
        assert told in section


def test_a_rule_that_never_changes_has_no_event(store, world, settings, protocol):
    record = drive(world, settings["stationary"], steady(points_of(world)))
    cell = cell_of(settings["stationary"], protocol)
    page = page_of(kept(store, cell, world, record.replies, record.record))

    assert "The event" not in page.section("rule")
    assert world.episode.transition.trigger_event not in page.section("rule")
    assert "the rule never changed" in page.section("story")
    assert "never changes in this run" in page.all("dl")[0]["text"]
    assert [] == [e for e in page.elements if "change" in e["attrs"].get("class", "").split()]


# -- what is not whole -------------------------------------------------------------------------


def test_a_run_that_was_cut_short_shows_what_there_is(store, world, settings, protocol, played):
    half = played.replies[:15]
    run = kept(store, cell_of(settings["default"], protocol), world, half)
    page = page_of(run)
    done = {c.batch_number for c in run.record.cases}

    assert "interrupted" == run.status.state
    assert "was interrupted" in notice(page)
    assert 15 == len(page.all("details", "turn"))
    rows = [row for row in page.table("Chosen against best")[1:] if len(row) > 1]
    assert [str(n) for n in sorted(done)] == [row[0][0] for row in rows]
    assert "never reached" in page.section("beliefs")


def test_a_run_that_is_being_played_says_so(store, world, settings, protocol, played):
    cell = cell_of(settings["default"], protocol)
    open_attempt = attempt(store, cell, world, played.replies[:1])
    page = page_of(runs.read(store, "mine", cell, world))
    open_attempt.close()

    assert "is being played" in notice(page)
    assert "No window was completed." in page.section("story")


def test_a_failed_run_tells_its_reason_as_text(store, world, settings, protocol, played):
    cell = cell_of(settings["default"], protocol)
    open_attempt = attempt(store, cell, world, played.replies[:4])
    open_attempt.fail(
        "the endpoint said </pre><script>alert(1)</script>", "overloaded", []
    ).result()
    open_attempt.close()
    page = page_of(runs.read(store, "mine", cell, world))

    assert "failed (the endpoint said </pre>" in notice(page)
    assert 1 == len(page.all("script"))


def test_a_run_that_never_began_has_its_rule_and_nothing_else(store, world, settings, protocol):
    page = page_of(runs.read(store, "mine", cell_of(settings["default"], protocol), world))

    assert "was never played" in notice(page)
    assert ["rule", "conversation", "digests"] == [e["attrs"]["id"] for e in page.all("section")]


@pytest.mark.parametrize("reason", ["overflow", "content_filter"])
def test_an_unscored_run_says_why(store, world, settings, protocol, played, reason):
    replies = [*played.replies[:9], Reply(text="", finish_reason=reason)]
    record = turns.follow(world, settings["default"], protocol, replies).record
    page = page_of(kept(store, cell_of(settings["default"], protocol), world, replies, record))

    assert "ended unscored" in notice(page)
    assert reason.replace("_", " ") in page.all("dl")[0]["text"]
    assert f"ended by {reason}" in page.all("details", "turn")[-1]["text"]


def test_a_run_of_other_rules_shows_its_replies_alone(store, world, settings, protocol, played):
    cell = cell_of(settings["default"], protocol, protocol_version=PROTOCOL_VERSION + 1)
    run = kept(store, cell, world, played.replies, played.record)
    page = page_of(run)

    assert "protocol_version differ" in notice(page)
    assert "system message" not in page.section("conversation")
    assert len(played.replies) == len(page.all("details", "turn"))
    assert page.table("Chosen against best")


def test_a_journal_of_another_result_is_not_shown_as_its_conversation(
    store, world, settings, protocol, played
):
    other = replace(played.record, observation_digest="0" * 64)
    run = kept(store, cell_of(settings["default"], protocol), world, played.replies, other)

    assert "does not lead to the stored result" in notice(page_of(run))
    assert all(exchange.request is None for exchange in run.exchanges)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda data: data.replace(b'"n":3', b'"n":9'), "damaged in the middle"),
        (lambda data: data[:-9], "torn off by a crash"),
    ],
)
def test_a_damaged_journal_leaves_the_result(store, run, world, tmp_path, damage, told):
    (journal,) = (tmp_path / "runs").glob("cells/*/*/*/journal.jsonl")
    journal.write_bytes(damage(journal.read_bytes()))
    page = page_of(runs.read(store, "mine", run.cell, world))

    assert told in notice(page)
    assert page.table("Chosen against best")


def test_a_short_protocol_draws_its_own_windows(store, world, settings):
    short = Protocol(batches=2)
    found = drive(world, settings["default"], steady(points_of(world)), short)
    page = page_of(
        kept(store, cell_of(settings["default"], short), world, found.replies, found.record)
    )

    assert 2 == len(page.table("Chosen against best")[1:])
    assert "never changes in this run" in page.all("dl")[0]["text"]
