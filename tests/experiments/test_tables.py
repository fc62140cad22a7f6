"""Tables say what records say, undefined stays empty, and bytes do not depend on order or luck."""

import csv
import io
from dataclasses import replace

import pytest

from adaexplore.benchmark.game.agents.oracle import Told, oracle
from adaexplore.benchmark.game.play import play
from adaexplore.benchmark.game.protocol import Reply
from adaexplore.benchmark.scores import metrics
from adaexplore.experiments import figures, tables
from adaexplore.experiments.tallies import Tally


def played(world, setting, protocol, reply):
    playing = play(world, setting, protocol)
    request = next(playing)
    try:
        while True:
            request = playing.send(Reply(text=reply(request)))
    except StopIteration as stop:
        return stop.value


@pytest.fixture(scope="module")
def records(worlds, settings, protocol):
    """The oracle, and a model that never says anything legal, on four episodes."""
    grouped = {}
    for name in ("default", "stationary"):
        setting = settings[name]
        grouped["oracle", name] = [
            played(
                w,
                setting,
                protocol,
                lambda r, w=w, s=setting: oracle(r.messages, Told(world=w, drifts=s.drifts)),
            )
            for w in worlds[:4]
        ]
        grouped["mute", name] = [played(w, setting, protocol, lambda _: "no") for w in worlds[:4]]
    return grouped


def tallied(records):
    return {group: Tally.of(found) for group, found in records.items()}


def made(records, name="main"):
    """A table of records."""
    found = tallied(records)
    return next(t for t in tables.all_tables(found, tables.scores(found)) if t.name == name)


def rows(table):
    return list(csv.DictReader(io.StringIO(table.csv().decode())))


def test_the_main_table_has_the_columns_of_the_contract(records):
    header = made(records).csv().decode().splitlines()[0]

    assert (
        "model,setting,n,ea,ea_low,ea_high,ca,ca_low,ca_high,unique_probes,re_probes,"
        "factor_recognition,change_recognition"
    ) == header


def test_the_ends_of_the_scale(records):
    oracle_row, mute_row, stationary_row, _ = rows(made(records))

    assert ("oracle", "default", "4", "1.000000", "1.000000") == tuple(oracle_row.values())[:5]
    assert ("1.000000", "1.000000") == (
        oracle_row["factor_recognition"],
        oracle_row["change_recognition"],
    )
    assert ("", "") == (stationary_row["re_probes"], stationary_row["change_recognition"])
    assert ("0.000000", "0.000000", "0.000000") == (
        mute_row["ea"],
        mute_row["ca"],
        mute_row["unique_probes"],
    )
    assert ("", "") == (mute_row["factor_recognition"], mute_row["change_recognition"])


def test_n_counts_the_runs_for_which_a_metric_is_defined(records):
    """Half of the runs without assessments: n of change recognition is half; the table's is not."""
    group = records["oracle", "default"]
    half = [replace(r, assessments=()) if i % 2 else r for i, r in enumerate(group)]
    mixed = {("oracle", "default"): half}
    found = {row["metric"]: row["n"] for row in rows(made(mixed, "metrics"))}

    assert ("4", "2", "2") == tuple(
        found[name] for name in ("ea", "factor_recognition", "change_recognition")
    )
    assert "4" == rows(made(mixed))[0]["n"]


def test_the_order_of_records_does_not_matter(records):
    turned = {group: list(reversed(found)) for group, found in records.items()}

    one, other = tallied(records), tallied(turned)

    assert [t.csv() for t in tables.all_tables(one, tables.scores(one))] == [
        t.csv() for t in tables.all_tables(other, tables.scores(other))
    ]


def test_a_group_without_records_is_a_row_without_numbers(records):
    table = made({**records, ("late", "default"): []})

    assert ("late", "default", "0", *[""] * 10) == tuple(rows(table)[-1].values())


def test_unscored_episodes_count_in_no_score(records, worlds, settings, protocol):
    playing = play(worlds[4], settings["default"], protocol)
    next(playing)
    with pytest.raises(StopIteration) as stop:
        playing.send(Reply(text="", finish_reason="overflow"))
    group = [*records["oracle", "default"], stop.value.value]

    assert "4" == rows(made({("oracle", "default"): group}))[0]["n"]
    assert "1" == rows(made({("oracle", "default"): group}, "protocol"))[0]["unscored"]


def test_ablations_pair_by_episode(records):
    partial = {**records, ("oracle", "stationary"): records["oracle", "stationary"][:2]}
    row = rows(made(partial, "ablation"))[0]

    assert ("oracle", "stationary", "2", "0.000000") == (
        *tuple(row.values())[:3],
        row["difference"],
    )


def test_a_setting_with_cases_of_its_own_is_no_ablation(records):
    further = {**records, ("oracle", "stationary_iid"): records["oracle", "stationary"]}

    assert rows(made(records, "ablation")) == rows(made(further, "ablation"))


def test_curves_follow_the_change_batch(records):
    found = rows(made(records, "curve"))

    assert [str(offset) for offset in metrics.OFFSETS] == [
        row["batches_after_change"] for row in found[:8]
    ]
    assert {"1.000000"} == {row["ca"] for row in found[:8]}


def test_the_figure_is_the_same_bytes_for_the_same_table(records):
    table = made(records, "curve")
    first, second = figures.curve_figure(table), figures.curve_figure(table)

    assert b"\x89PNG" == first[:4]
    assert first == second


def test_a_figure_of_nothing_is_still_a_figure():
    assert b"\x89PNG" == figures.curve_figure(tables.curve_table({}))[:4]
