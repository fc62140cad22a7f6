"""The population: on the grid, inside ranges and constraints, with the profiles' moments."""

from dataclasses import replace
from itertools import pairwise
from math import sqrt

import numpy as np
import pytest
from scipy import stats

import twins
from adaexplore.benchmark.world import population, seeds
from adaexplore.benchmark.world.constraints import Constraint
from adaexplore.benchmark.world.fields import PROFILES, Populations

IDS = tuple(f"f{i}" for i in range(8))
NOBODY = ("", "")
SIZE = 6000


def draw(domain, visible=IDS, *, size=SIZE, drifting=NOBODY, seed=1):
    rng = seeds.generator("test population", seed)
    return population.draw(domain, visible, size, rng, drifting=drifting)


def constraint(op, left, right, name="relation"):
    expression = {"op": op, "left": left, "right": right}
    return Constraint(constraint_id=name, description="", expression=expression)


def field(name):
    return {"field": name}


def plus(*terms):
    return {"op": "add", "args": list(terms)}


@pytest.fixture(scope="module")
def plain(world):
    """Eight decimal fields from 0 to 100, alike in every profile; no replacement group has them."""
    flat = Populations(low=(3.0, 3.0), mixed=(3.0, 3.0), high=(3.0, 3.0))
    template = replace(
        world.domain.fields[0], type="decimal", minimum=0, maximum=100, populations=flat
    )
    fields = tuple(replace(template, field_id=name) for name in IDS)
    return replace(world.domain, fields=fields, constraints=())


def coupled(domain, *pairs, strength=0.6):
    """The domain with these pairs as replacement groups."""
    template = domain.replacement_groups[0]
    groups = tuple(
        replace(template, group_id=f"{a}_{b}", members=(a, b), coupling_strength=strength)
        for a, b in pairs
    )
    return replace(domain, replacement_groups=groups)


def chunks(domain):
    """All fields of a domain, eight at a time."""
    names = [f.field_id for f in domain.fields]
    return [tuple(names[i : i + 8]) for i in range(0, len(names) - 7, 8)] + [tuple(names[-8:])]


def shipped(worlds):
    return {world.domain.domain_id: world.domain for world in worlds}.values()


def test_values_lie_on_the_grid_inside_their_range(worlds):
    """Every field of every domain: two places or whole numbers, never outside its bounds."""
    for domain in shipped(worlds):
        for visible in chunks(domain):
            values = draw(replace(domain, constraints=()), visible, size=500).values
            assert (500, 8) == values.shape
            for name, column in zip(visible, values.T, strict=True):
                own = domain.catalog[name]
                assert own.minimum * 100 <= column.min() <= column.max() <= own.maximum * 100
                assert own.type == "decimal" or not (column % 100).any()


def test_every_row_satisfies_every_visible_constraint(worlds):
    """Each constraint of each domain, row by row, against the exact twin."""
    for domain in shipped(worlds):
        for wanted in domain.constraints:
            names = sorted(_names(wanted.expression))
            rest = [f.field_id for f in domain.fields if f.field_id not in names]
            visible = (*names, *rest[: 8 - len(names)])
            active = domain.constraints_among(visible)
            assert wanted in active
            rows = draw(domain, visible, size=400).values.tolist()
            assert 400 == len(rows)
            cases = [dict(zip(visible, row, strict=True)) for row in rows]
            assert all(twins.holds(c.expression, case) for c in active for case in cases)


def _names(node):
    if isinstance(node, dict):
        own = {node["field"]} if "field" in node else set()
        return own.union(*(_names(child) for child in node.values()))
    return set().union(*(_names(child) for child in node)) if isinstance(node, list) else set()


def test_means_and_spreads_are_those_of_the_profiles(worlds):
    """A third of the rows from each profile's Beta: mean and variance of the mixture."""
    for domain in shipped(worlds):
        for visible in chunks(domain):
            values = draw(replace(domain, constraints=()), visible).values
            for name, column in zip(visible, values.T, strict=True):
                own = domain.catalog[name]
                mean, variance = _mixture(own)
                step = (1.0 if own.type == "integer" else 0.01) / (own.maximum - own.minimum)
                shares = (column / 100.0 - own.minimum) / (own.maximum - own.minimum)
                error = sqrt(variance / SIZE)
                assert abs(shares.mean() - mean) <= 5.0 * error + step / 2, name
                assert shares.var() == pytest.approx(variance, rel=0.1), name


def _mixture(own):
    betas = [stats.beta(*own.populations.beta(profile)) for profile in PROFILES]
    mean = sum(beta.mean() for beta in betas) / 3
    return mean, sum(beta.var() + (beta.mean() - mean) ** 2 for beta in betas) / 3


def test_profiles_are_shared_by_the_fields_of_a_row(plain):
    """Uncoupled fields vary together exactly as far as their profiles do."""
    apart = Populations(low=(2.0, 6.0), mixed=(4.0, 4.0), high=(6.0, 2.0))
    fields = tuple(replace(own, populations=apart) for own in plain.fields)
    values = draw(replace(plain, fields=fields)).values / 10000.0
    covariance = np.cov(values.T)
    expected = (0.25**2 + 0.25**2) / 3  # means 0.25, 0.5, 0.75

    off_diagonal = covariance[~np.eye(8, dtype=bool)]
    assert off_diagonal == pytest.approx(np.full(56, expected), abs=0.005)


# -- coupling ----------------------------------------------------------------------------------


def rank_correlations(domain, **arguments):
    return stats.spearmanr(draw(domain, **arguments).values).statistic


def test_coupled_pairs_correlate_and_others_do_not(plain):
    """Rank correlation of a Gaussian copula: 6 / pi * asin(strength / 2); all others near 0."""
    found = rank_correlations(coupled(plain, ("f1", "f4"), ("f6", "f2")))
    expected = np.eye(8)
    for i, j in ((1, 4), (2, 6)):
        expected[i, j] = expected[j, i] = 6 / np.pi * np.arcsin(0.3)

    assert np.abs(found - expected).max() < 0.05


def test_a_drifting_pair_alone_is_not_coupled(plain):
    """Else its correlation would mark it; with another coupled pair both keep theirs."""
    alone, two = coupled(plain, ("f1", "f4")), coupled(plain, ("f1", "f4"), ("f2", "f6"))
    for drifting in (("f1", "f4"), ("f4", "f1")):
        assert abs(rank_correlations(alone, drifting=drifting)[1, 4]) < 0.05
        kept = rank_correlations(two, drifting=drifting)
        assert min(kept[1, 4], kept[2, 6]) > 0.5
    assert rank_correlations(alone, drifting=("f1", "f5"))[1, 4] > 0.5


def test_a_partner_out_of_sight_couples_nothing(plain):
    """The pair counts only when both members are visible; a pair of strength 0 does not count."""
    domain = coupled(plain, ("f1", "f4"), ("f2", "f7"))
    found = rank_correlations(domain, visible=IDS[:7], drifting=("f1", "f4"))
    assert np.abs(found - np.eye(7)).max() < 0.05
    silent = replace(domain.replacement_groups[1], coupling_strength=0.0)
    domain = replace(domain, replacement_groups=(domain.replacement_groups[0], silent))
    assert abs(rank_correlations(domain, drifting=("f1", "f4"))[1, 4]) < 0.05


def test_couplings_that_no_copula_can_have_are_mended(plain):
    """One field coupled at 0.6 to three others that are not coupled: the nearest possible."""
    found = rank_correlations(coupled(plain, ("f0", "f1"), ("f0", "f2"), ("f0", "f3")))

    assert all(0.45 < found[0, i] < 0.6 for i in (1, 2, 3))


def test_coupling_keeps_each_marginal(plain):
    """The copula reorders values, it does not change them: still the Beta distribution."""
    values = draw(coupled(plain, *pairwise(IDS))).values / 10000.0
    for column in values.T:
        assert stats.kstest(column, stats.beta(3.0, 3.0).cdf).pvalue > 1e-4


# -- constraints -------------------------------------------------------------------------------


@pytest.mark.parametrize("turned", [False, True])
def test_an_eq_constraint_computes_its_field(plain, turned):
    """No row is thrown away: the total is the exact sum of its parts, on whichever side it is."""
    sides = (field("f3"), plus(field("f0"), field("f1")))
    domain = replace(
        plain,
        fields=tuple(replace(f, maximum=200) if f.field_id == "f3" else f for f in plain.fields),
        constraints=(constraint("eq", *(sides[::-1] if turned else sides)),),
    )
    before, after = draw(plain).values, draw(domain).values

    assert (after[:, 0] + after[:, 1]).tolist() == after[:, 3].tolist()
    untouched = [0, 1, 2, 4, 5, 6, 7]
    assert np.array_equal(before[:, untouched], after[:, untouched])


def test_an_eq_constraint_rejects_totals_outside_the_range(plain):
    """A computed value that the field cannot have does not hold, so the row is not drawn."""
    domain = replace(
        plain, constraints=(constraint("eq", field("f3"), plus(*map(field, IDS[:2]))),)
    )
    values = draw(domain).values

    assert (values[:, 0] + values[:, 1]).tolist() == values[:, 3].tolist()
    assert values[:, 3].max() <= 10000


def test_an_eq_constraint_that_fixes_no_field_is_a_condition(plain):
    """Between two sums nothing can be computed, so draws are rejected, nearly all of them."""
    sums = (plus(*map(field, IDS[:2])), plus(*map(field, IDS[2:4])))
    circular = (field("f0"), plus(field("f0"), field("f1")))
    for sides in (sums, circular):
        with pytest.raises(population.InfeasibleError, match="infeasible: relation"):
            draw(replace(plain, constraints=(constraint("eq", *sides),)))


def test_a_constraint_that_rejects_too_much_is_named(plain):
    """Over 90 % of the draws: the candidate cannot be used, and the reason says why."""
    domain = replace(
        plain,
        constraints=(
            constraint("le", field("f0"), plus(field("f1"), {"const": 20}), "mild"),
            constraint("le", plus(field("f2"), {"const": 60}), field("f3"), "harsh"),
        ),
    )
    with pytest.raises(population.InfeasibleError) as caught:
        draw(domain)
    assert caught.value.reason == "infeasible: harsh"


def test_constraints_that_contradict_each_other_end_the_draw(plain):
    """Each alone leaves enough, together nothing is left: it ends, and says so."""
    domain = replace(
        plain,
        constraints=(
            constraint("lt", field("f0"), field("f1"), "one_way"),
            constraint("gt", field("f0"), field("f1"), "other_way"),
        ),
    )
    with pytest.raises(population.InfeasibleError, match="all constraints together"):
        draw(domain, size=300)


def test_a_constraint_with_a_hidden_field_is_not_applied(plain):
    """It cannot be evaluated, so even an impossible one changes nothing."""
    impossible = constraint("ge", field("f0"), plus(field("f7"), {"const": 500}))
    hidden = draw(replace(plain, constraints=(impossible,)), IDS[:7]).values

    assert np.array_equal(draw(plain, IDS[:7]).values, hidden)


def test_columns_are_the_values_on_minus_one_to_one(world):
    """Column by column the normalised values, under their field's id."""
    drawn = draw(world.domain, world.episode.visible_fields, size=50)
    columns = drawn.columns()

    assert list(world.episode.visible_fields) == list(columns)
    for row, values in enumerate(drawn.values.tolist()):
        for name, expected in twins.normalised_row(world, values).items():
            assert float(expected) == pytest.approx(columns[name][row], abs=1e-12)
