"""A report's files hold the same numbers, hostile names stay text, and a page from little still says so."""

import csv
import io
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

import synthetic
from adaexplore.benchmark.scores.estimates import Estimate
from adaexplore.experiments.tables import P, Table
from adaexplore.reports import cautions, labels, latex, plots, report
from adaexplore.reports.analyses import contrasts
from adaexplore.reports.evidence import Evidence, Memory, Origin, Sharer

HOSTILE = "<script>alert(1)</script>\"'&${x}\u202e%\\"


@pytest.fixture(scope="module")
def made():
    """A report on two models under two settings."""
    found = synthetic.evidence(synthetic.MODELS[2:4], ("default", "stationary"), 8)
    return report.build(found)


@pytest.fixture(scope="module")
def files(made):
    return dict(report.files(made))


def page(found, against=None):
    return report.html(report.build(found, against)).decode()


def with_records(found, change):
    return replace(
        found, records={g: change(g, r) for g, r in found.records.items()}, memory=Memory()
    )


# -- files -------------------------------------------------------------------------------------


def test_every_table_is_csv_and_latex_and_every_figure_png_and_svg(made, files):
    tables = [t.name for a in made.made for t in a.tables]
    figures = [f.name for a in made.made for f in a.figures]
    expected = {f"tables/{t}.{ending}" for t in tables for ending in ("csv", "tex")}
    expected |= {f"figures/{f}.{ending}" for f in figures for ending in ("png", "svg")}

    assert {*expected, "report.html"} == set(files)
    assert len(set(tables)) == len(tables)
    assert all(files[f"figures/{f}.png"][:4] == b"\x89PNG" for f in figures)
    assert all(ET.fromstring(files[f"figures/{f}.svg"]) is not None for f in figures)  # noqa: S314


def test_the_page_links_to_its_files_and_to_nothing_else(files):
    text = files["report.html"].decode()
    links = re.findall(r'href="([^"]*)"', text)

    assert {link for link in links if link[:1] != "#"} <= set(files)
    assert {path for path in files if path != "report.html"} <= set(links)
    assert not re.findall(r"(?:src|action|data)=\"(?!#)", text)
    assert not re.findall(r"https?://(?!www\.w3\.org/)", text)


def test_ids_are_unique_and_links_inside_lead_somewhere(files):
    text = files["report.html"].decode()
    ids = re.findall(r'\sid="([^"]*)"', text)

    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]*)"', text)) <= set(ids)
    assert set(re.findall(r"url\(#([^)]*)\)", text)) <= set(ids)


def test_pictures_on_the_page_have_names_and_the_colours_of_the_theme(files):
    text = files["report.html"].decode()
    pictures = re.findall(r'<svg [^>]*role="img">(<title>[^<]+</title><desc>[^<]+</desc>)', text)

    assert len(pictures) == len(re.findall(r'role="img"', text)) > 10
    body = text[text.index("<main") :]
    assert not [c for c in plots.THEMED if c in body]
    assert "var(--s0)" in body
    assert "currentColor" in body


def test_the_same_records_make_the_same_bytes(made, files):
    again = dict(report.files(report.build(replace(made.evidence, memory=Memory()))))

    assert files == again


def test_a_table_says_the_same_in_csv_and_latex():
    estimate = Estimate(value=0.5, low=0.25, high=0.75, n=7)
    table = Table(
        name="t",
        columns=("model", "ca", "p"),
        rows=(("a_b", estimate, P(1e-9)), ("c", Estimate.undefined(0), P("nan"))),
        title="50 % & more",
    )
    read = list(csv.DictReader(io.StringIO(table.csv().decode())))
    tex = latex.table(table).decode()

    assert {
        "model": "a_b",
        "ca": "0.500000",
        "ca_low": "0.250000",
        "ca_high": "0.750000",
        "ca_n": "7",
        "p": "1e-09",
    } == read[0]
    assert {"model": "c", "ca": "", "ca_low": "", "ca_high": "", "ca_n": "0", "p": ""} == read[1]
    assert r"a\_b & 7 & $0.500$ [$0.250$, $0.750$] & $<0.001$ \\" in tex
    assert r"c & 0 & -- & -- \\" in tex
    assert r"50 \% \& more" in tex
    assert tex.count(r"\toprule") == tex.count(r"\bottomrule") == 1


def test_n_is_a_column_where_a_table_has_none():
    rows = (
        (
            "a",
            Estimate(value=1.0, low=0.0, high=2.0, n=3),
            Estimate(value=1.0, low=0.0, high=2.0, n=3),
        ),
    )
    table = labels.with_n(Table(name="t", columns=("model", "x", "y"), rows=rows))

    assert ("model", "n", "x", "y") == table.columns
    assert 3 == table.rows[0][1]


def test_equal_cases_are_one_object():
    sharer = Sharer()
    one, other = (sharer.shared(synthetic.record(m, "default", 1)) for m in synthetic.MODELS[:2])

    assert synthetic.record(synthetic.MODELS[0], "default", 1) == one
    same = sum(a is b for a, b in zip(one.cases, other.cases, strict=True))
    assert sum(a == b for a, b in zip(one.cases, other.cases, strict=True)) == same > 0


# -- hostile names -----------------------------------------------------------------------------


def test_what_is_not_ours_stays_text():
    """A name of a model, a setting, a domain and a sweep that would be markup, script or LaTeX."""
    model = synthetic.Model(HOSTILE, 0.6, 0.4)
    found = synthetic.evidence((model, synthetic.MODELS[1]), ("default",), 6, name=HOSTILE)
    found = with_records(found, lambda _, rs: [replace(r, domain_id=HOSTILE) for r in rs])
    made = report.build(found)
    files = dict(report.files(made))
    text = files["report.html"].decode()

    assert "<script>alert" not in text
    assert "\u202e" not in text
    assert 1 == text.count("<script>")
    assert "&lt;script&gt;alert(1)" in text
    svg = b"".join(data for path, data in files.items() if path.endswith(".svg")).decode()
    assert "<script" not in svg
    tex = files["tables/main_results.tex"].decode()
    assert r"\textless{}script\textgreater{}" in tex


# -- little, broken or mixed data ----------------------------------------------------------------


def test_nothing_scored_is_a_page_that_says_so():
    found = synthetic.evidence(synthetic.MODELS[:2], ("default", "stationary"), 4)
    for empty in (
        with_records(found, lambda _, _rs: []),
        with_records(found, lambda _, rs: [replace(r, status="overflow") for r in rs]),
    ):
        files = dict(report.files(report.build(empty)))
        text = files["report.html"].decode()

        assert "No episode run is scored" in text
        assert "<figure>" not in text
        assert not [path for path in files if path.startswith("figures/")]


@pytest.mark.parametrize("episodes", [1, 2, 3])
@pytest.mark.parametrize("models", [1, 2])
@pytest.mark.parametrize("names", [("default",), ("stationary",), synthetic.SETTINGS])
def test_little_data_never_breaks_a_report(episodes, models, names):
    found = synthetic.evidence(synthetic.MODELS[:models], names, episodes)
    made = report.build(found)
    text = " ".join(made.cautions)

    assert report.html(made)
    assert (episodes == 1) == ("one scored episode" in text)
    assert (models == 1) == ("There is one model" in text)
    assert all(a.absent or a.tables for a in made.analyses)
    assert all(f.drawn for a in made.made for f in a.figures)


def test_one_episode_has_values_and_no_intervals():
    made = report.build(synthetic.evidence(synthetic.MODELS[:2], ("default", "stationary"), 1))
    cells = [v for a in made.made for t in a.tables for row in t.rows for v in row]
    estimates = [v for v in cells if isinstance(v, Estimate) and v.value == v.value]

    assert estimates
    rates = [e for e in estimates if e.low == e.low]
    assert all(1 == e.n for e in rates)  # exact intervals of shares of missing episodes


def test_no_drift_leaves_out_what_is_about_it():
    made = report.build(synthetic.evidence(synthetic.MODELS[:2], ("stationary",), 5))

    assert {
        "drop_and_recovery",
        "reprobing_within",
        "atoms",
        "episode_categories",
        "precision_recall",
    } <= {a.key for a in made.absent}


def test_mixed_versions_are_a_warning_with_their_cells():
    found = synthetic.evidence(synthetic.MODELS[:2], ("default",), 4)
    cells = dict(found.origin.cells)
    label = next(iter(cells))
    cells[label] = {**cells[label], "protocol_version": 2}
    mixed = replace(found, origin=replace(found.origin, cells=cells))
    first = cautions.cautions(mixed)[0]

    assert first.startswith("Mixed protocol versions: 2 (synthetic: model-a/default/0) and 1 (")
    assert first in page(mixed).replace("&#x27;", "'")


def test_missing_and_unbalanced_runs_are_warnings():
    found = synthetic.evidence(synthetic.MODELS[:2], ("default", "stationary"), 40)
    short = with_records(found, lambda g, rs: rs[:30] if g == ("model-a", "default") else rs)
    told = cautions.cautions(short)

    assert () == cautions.cautions(found)
    assert "10 planned episode runs have no result" in told[0]
    assert "model-a under default 10 of 40" in told[0]
    assert "only 30 in common" in told[1]


def test_sweeps_without_a_common_episode_are_told_apart():
    one = synthetic.evidence(synthetic.MODELS[:1], ("default",), 4, name="one")
    moved = with_records(one, lambda _, rs: [replace(r, hidden_digest="other") for r in rs])
    elsewhere = synthetic.evidence(synthetic.MODELS[1:3], ("stationary",), 4, name="two")

    assert "no scored episode" in contrasts.contrast(one, moved).absent
    assert "no model and setting in common" in contrasts.contrast(one, elsewhere).absent
    assert "no scored episode" in page(one, moved)


def test_two_single_models_are_compared_with_each_other():
    one, two = (
        synthetic.evidence((m,), ("default",), 4, name=m.name) for m in synthetic.MODELS[:2]
    )

    assert "model-b against model-a" == contrasts.contrast(one, two).tables[0].rows[0][0]


def test_evidence_of_nothing_at_all_is_still_a_page():
    empty = Evidence(origin=Origin(sweeps=("none",), cells={}), records={}, planned={})

    assert "No episode run is scored" in page(empty)
