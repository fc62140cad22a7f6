"""Every number of a report is what an independent computation gives, on a sweep of planted truth."""

import itertools
from collections import defaultdict
from dataclasses import replace
from math import isfinite, isnan, nan

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

import synthetic
from adaexplore.benchmark.scores.estimates import Estimate
from adaexplore.reports import report
from adaexplore.reports.analyses import (
    contrasts,
    drift,
    exploration,
    gaps,
    outcomes,
    recognitions,
    settings,
    spending,
)
from adaexplore.reports.evidence import Memory

NAMED = {
    "main", "ablations", "curves", "drop_and_recovery", "reprobing_within", "reprobing_across",
    "model_correlations", "precision_recall", "factor_errors", "atoms", "episode_categories", "iid",
    "by_family", "by_domain", "protocol", "cost", "missingness", "episodes",
}  # fmt: skip


@pytest.fixture(scope="module")
def found():
    """Four planted models, five settings, 20 episodes, two seeds."""
    return synthetic.evidence(episodes=20, seeds=2)


def rows(table):
    """Rows as dictionaries."""
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def by(table, *keys):
    return {tuple(row[key] for key in keys): row for row in rows(table)}


def accuracy(records, batches=range(1, 13)):
    """Calibrated accuracy, written again from the contract."""
    gains, chances = [], []
    for record in records:
        for case in record.cases:
            if case.batch_number in (batches(record) if callable(batches) else batches):
                low, high = min(case.utilities), max(case.utilities)
                chance = np.mean([(u - low) / (high - low) for u in case.utilities])
                u = 0.0 if case.action is None else case.utilities[case.action]
                gains.append((u - low) / (high - low))
                chances.append(chance)
    p, b = np.mean(gains), np.mean(chances)
    return (p - b) / (1 - b)


def by_episode(records, batches=range(1, 13)):
    groups = defaultdict(list)
    for record in records:
        groups[record.episode_id].append(record)
    return {name: accuracy(own, batches) for name, own in sorted(groups.items())}


def wilcoxon(differences):
    """Scipy's exact test with Pratt's zeros is not exact; without zeros and ties it is."""
    return stats.wilcoxon(differences, method="exact").pvalue


def close(expected, got):
    assert expected == pytest.approx(got, abs=1e-9, nan_ok=True)


# -- outcomes ----------------------------------------------------------------------------------


def test_the_main_table_says_what_the_records_say(found):
    for (model, setting), row in by(outcomes.main(found).tables[0], "model", "setting").items():
        records = found.records[model, setting]
        best = [
            c.action is not None and c.utilities[c.action] == max(c.utilities)
            for r in records
            for c in r.cases
        ]
        close(accuracy(records), row["ca"].value)
        close(np.mean(best), row["ea"].value)
        assert 40 == row["n"] == row["ca"].n
        assert row["ca"].low < row["ca"].value < row["ca"].high


def test_breakdowns_are_the_parts_of_the_whole(found):
    for analysis, part in ((outcomes.by_family, "family"), (outcomes.by_domain, "domain")):
        for row in rows(analysis(found).tables[0]):
            key = "domain_id" if part == "domain" else "family"
            own = [
                r for r in found.records[row["model"], "default"] if getattr(r, key) == row[part]
            ]
            close(accuracy(own), row["ca"].value)
            assert len(own) == row["ca"].n


# -- paired tests ------------------------------------------------------------------------------


def test_ablations_are_paired_tests_with_holm(found):
    table = settings.ablations(found).tables[0]
    ps, adjusted = [], []
    for row in rows(table):
        base, other = (
            by_episode(found.records[row["model"], s]) for s in ("default", row["setting"])
        )
        differences = np.array([other[e] - base[e] for e in base])
        first, second = (
            accuracy(found.records[row["model"], s]) for s in ("default", row["setting"])
        )
        close(second - first, row["difference"].value)
        close(wilcoxon(differences), row["p"])
        close(differences.mean() / differences.std(ddof=1), row["d_z"].value)
        ranks = stats.rankdata(np.abs(differences))
        close((np.sign(differences) * ranks).sum() / ranks.sum(), row["rank_biserial"].value)
        quantiles = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
        spread = differences.std(ddof=1)
        close(quantiles * spread / np.sqrt(len(differences) * 3 / np.pi), row["detectable"])
        ps.append(row["p"])
        adjusted.append(row["p_holm"])
    assert 12 == len(ps)
    np.testing.assert_allclose(multipletests(ps, method="holm")[1], adjusted, atol=1e-9)


def test_over_models_the_models_are_the_sample(found):
    single, over = settings.ablations(found).tables
    for row in rows(over):
        values = [r["difference"].value for r in rows(single) if r["setting"] == row["setting"]]
        close(np.mean(values), row["difference"].value)
        close(wilcoxon(values), row["p"])


def test_free_cases_are_paired_by_episode_alone(found):
    for row in rows(settings.independent_cases(found).tables[0]):
        runs = [found.records[row["model"], s] for s in ("stationary", "stationary_iid")]
        close(accuracy(runs[1]) - accuracy(runs[0]), row["difference"].value)
        assert 20 == row["n"]


def test_drop_and_recovery_are_differences_of_windows(found):
    levels, differences = drift.drop_and_recovery(found).tables
    windows = {
        "plateau": lambda r: range(r.change_batch - 2, r.change_batch + 1),
        "first_after": lambda r: (r.change_batch + 1,),
        "final": lambda _: (11, 12),
    }
    ps, adjusted = [], []
    for key, row in by(differences, "model", "setting").items():
        level = by(levels, "model", "setting")[key]
        for name, batches in windows.items():
            close(accuracy(found.records[key], batches), level[name].value)
        pairs = (("plateau", "first_after"), ("first_after", "final"), ("plateau", "final"))
        for (first, second), name in zip(pairs, ("drop", "regained", "remaining"), strict=True):
            close(level[second].value - level[first].value, row[name].value)
            one, other = (by_episode(found.records[key], windows[w]) for w in (first, second))
            ps.append(wilcoxon([other[e] - one[e] for e in one]))
            adjusted.append(row[f"p_{name}"])
    np.testing.assert_allclose(multipletests(ps, method="holm")[1], adjusted, atol=1e-9)


def test_curves_are_the_batches_around_the_change(found):
    for row in rows(drift.curves(found).tables[0]):
        records = found.records[row["model"], row["setting"]]
        expected = accuracy(records, lambda r, row=row: (r.change_batch + row["offset"],))
        assert expected == pytest.approx(row["ca"].value, abs=1e-12)


def test_planted_effects_are_found():
    """Stationary is planted 0.20 above after the change, forced probing nothing; with 60 episodes both show."""
    found = synthetic.evidence(synthetic.MODELS[5:7], ("default", "stationary", "forced_probe"), 60)
    table = by(settings.ablations(found).tables[0], "model", "setting")
    for model in found.models:
        assert 0.001 > table[model, "stationary"]["p_holm"]
        assert 0.05 < table[model, "forced_probe"]["p"]


# -- correlations ------------------------------------------------------------------------------


def _probed_and_noticed(records):
    pairs = []
    for r in records:
        before = {p.row for p in r.probes if p.batch_number <= r.change_batch}
        after = {p.row for p in r.probes if p.batch_number > r.change_batch}
        told = {a.phase: a.directions for a in r.assessments}
        reported = _atoms(told["pre"], told["post"])
        true = _atoms(synthetic.PRE, synthetic.POST)
        pairs.append(
            (
                len(before & after),
                2 * len(reported & true) / (len(reported) + len(true)),
                len(before),
            )
        )
    return np.array(pairs).T


def _atoms(one, other):
    gone = {("-", f, d) for f, d in one.items() if f not in other}
    came = {("+", f, d) for f, d in other.items() if f not in one}
    return gone | came | {("!", f, d) for f, d in other.items() if f in one and one[f] != d}


def test_re_probing_goes_with_noticing_as_scipy_says(found):
    table = by(exploration.within(found).tables[0], "model")
    centred = []
    for model in found.models:
        x, y, known = _probed_and_noticed(found.records[model, "default"])
        row = table[model,]
        varies = x.std() > 0 and y.std() > 0
        close(stats.pearsonr(x, y).statistic if varies else nan, row["r"].value)
        close(stats.pearsonr(x / known, y).statistic if varies else nan, row["r_normalised"].value)
        close(stats.spearmanr(x, y).statistic if varies else nan, row["rho"].value)
        if row["floor"] == "above":
            centred.append((x - x.mean(), y - y.mean()))
    x, y = (np.concatenate(part) for part in zip(*centred, strict=True))
    close(stats.pearsonr(x, y).statistic, table[exploration.POOLED,]["r"].value)


def test_across_models_the_points_are_models(found):
    main = by(outcomes.main(found).tables[0], "model", "setting")
    own = [main[model, "default"] for model in found.models]
    row = rows(exploration.across(found).tables[0])[0]
    expected = stats.pearsonr(
        *([r[n].value for r in own] for n in ("re_probes", "change_recognition"))
    )
    close(expected.statistic, row["r"].value)
    close(expected.pvalue, row["p"])
    for row in rows(exploration.with_outcomes(found).tables[0]):
        with_ea, with_ca = (
            stats.pearsonr([r[row["metric"]].value for r in own], [r[end].value for r in own])
            for end in ("ea", "ca")
        )
        close(with_ea.statistic, row["r_ea"].value)
        close(with_ca.pvalue, row["p_ca"])
        close((with_ea.statistic + with_ca.statistic) / 2, row["average"].value)


# -- recognition -------------------------------------------------------------------------------


def test_shares_of_recognition_are_counts(found):
    """Planted: a second report is right, the right fields but one, or the first again."""
    categories = by(recognitions.episode_categories(found).tables[0], "model", "setting")
    errors = by(recognitions.factor_errors(found).tables[0], "model", "setting", "phase")
    parts = by(recognitions.atoms(found).tables[0], "model", "setting")
    for (model, setting), row in categories.items():
        told = [r.assessments[-1].directions for r in found.records[model, setting]]
        whole, half, same = (
            np.mean([t == kind for t in told])
            for kind in (synthetic.POST, synthetic.PARTIAL, synthetic.PRE)
        )
        close(whole, row["complete"].value)
        close(half, row["reversal_only"].value)
        close(same, row["unchanged"].value)
        close(
            1.0,
            sum(
                row[name].value
                for name in ("complete", "replacement_only", "reversal_only", "neither")
            ),
        )
        close(1.0, errors[model, setting, "pre"]["exact"].value)
        close(whole, errors[model, setting, "post"]["exact"].value)
        close(half + same, errors[model, setting, "post"]["both"].value)
        close(whole, parts[model, setting]["recovered_replacement"].value)
        close(whole + half, parts[model, setting]["recovered_reversal"].value)


def test_precision_and_recall_are_counts(found):
    for row in rows(recognitions.precision_and_recall(found).tables[0]):
        told = [r.assessments[-1].directions for r in found.records[row["model"], row["setting"]]]
        right = sum(len(t.keys() & synthetic.POST.keys()) for t in told)
        post = right / (3 * len(told))
        close((1.0 + post) / 2, row["factor_precision"].value)
        close((1.0 + post) / 2, row["factor_recall"].value)
        true = _atoms(synthetic.PRE, synthetic.POST)
        reported = [_atoms(synthetic.PRE, t) for t in told]
        hits = sum(len(r & true) for r in reported)
        count = sum(map(len, reported))
        close(hits / count if count else nan, row["change_precision"].value)
        close(hits / (3 * len(told)), row["change_recall"].value)


# -- spending and gaps -------------------------------------------------------------------------


def test_spending_is_sums_and_means(found):
    means, sums = spending.protocol(found).tables
    for (model, setting), row in by(means, "model", "setting").items():
        repairs = [r.counts.repairs for r in found.records[model, setting]]
        close(np.mean(repairs), row["repairs"].value)
        assert sum(repairs) == by(sums, "model", "setting")[model, setting]["repairs"]
    cost = rows(spending.cost(found).tables[0])
    assert {26 * 40} == {row["calls"] for row in cost}
    close(0.01, cost[0]["usd_per_run"])


def test_missing_runs_are_told_three_ways_and_tested(found):
    group = ("model-a", "default")
    short = dict(found.records)
    short[group] = [r for r in short[group] if r.episode_id >= "s-008"]
    gapped = replace(found, records=short, memory=Memory())
    table = by(gaps.policies(gapped).tables[0], "model", "setting", "metric")
    row = table[(*group, "ca")]
    lost = [r for r in found.records["model-b", "default"] if r.episode_id < "s-008"]

    def played(choose):
        return [
            replace(r, cases=tuple(replace(c, action=choose(c.utilities)) for c in r.cases))
            for r in lost
        ]

    assert (40, 16, 0) == (row["planned"], row["missing"], row["unknown"])
    close(accuracy(short[group]), row["excluded"].value)
    close(accuracy([*short[group], *played(lambda _: None)]), row["as_zero"].value)
    close(accuracy([*short[group], *played(lambda u: u.index(max(u)))]), row["best"].value)
    close(accuracy([*short[group], *played(lambda u: u.index(min(u)))]), row["worst"].value)
    analysis = gaps.equal_missingness(gapped)
    pair = by(analysis.tables[2], "setting", "first", "second")["default", "model-a", "model-b"]
    close(stats.fisher_exact([[8, 12], [0, 20]]).pvalue, pair["p"])
    assert analysis.warnings


# -- two sweeps --------------------------------------------------------------------------------


def test_two_sweeps_are_compared_in_pairs():
    """The second sweep's model was planted better after the change by 0.2."""
    one = synthetic.evidence((synthetic.Model("m", 0.5, 0.3),), ("default",), 40, name="one")
    two = synthetic.evidence((synthetic.Model("m", 0.5, 0.5),), ("default",), 40, name="two")
    made = contrasts.contrast(one, two)
    row = by(made.tables[0], "metric")["ca",]
    runs = [e.records["m", "default"] for e in (one, two)]
    close(accuracy(runs[1]) - accuracy(runs[0]), row["difference"].value)
    first, second = map(by_episode, runs)
    close(wilcoxon([second[e] - first[e] for e in first]), row["p"])
    assert 0.001 > row["p_holm"]
    assert "two against one" == made.title


def test_a_sweep_against_itself_differs_in_nothing(found):
    for row in rows(contrasts.contrast(found, found).tables[0]):
        assert 0.0 == row["difference"].value
        assert 1.0 == row["p"]


# -- the whole ---------------------------------------------------------------------------------


def test_every_analysis_of_the_contract_is_there(found):
    made = report.build(found)

    assert NAMED == {a.key for a in made.made}
    assert {"failures"} == {a.key for a in made.absent}


def test_every_defined_estimate_has_an_n_and_an_interval_if_any(found):
    tables = [t for a in report.build(found).made for t in a.tables]
    cells = [v for t in tables for row in t.rows for v in row if isinstance(v, Estimate)]

    assert all(e.n > 0 for e in cells if isfinite(e.value))
    assert all(e.low <= e.high for e in cells if isfinite(e.low))
    assert not [e for e in cells if isnan(e.value) and isfinite(e.low)]


def test_the_order_of_records_does_not_matter(found):
    turned = replace(
        found, records={g: list(reversed(r)) for g, r in found.records.items()}, memory=Memory()
    )
    pairs = zip(report.build(found).analyses, report.build(turned).analyses, strict=True)
    for one, other in itertools.islice(pairs, 12):
        assert [t.csv() for t in one.tables] == [t.csv() for t in other.tables]
