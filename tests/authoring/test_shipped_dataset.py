"""adaexplore-v1 as it is shipped: composition, balance, natural flip rates, separation."""

from collections import Counter
from itertools import chain

import pytest

from adaexplore.authoring import datasets, summaries
from adaexplore.benchmark.world.fields import FAMILIES

COUNTS = {"test": 240, "lite": 40, "dev": 40}


@pytest.fixture(scope="module")
def splits():
    """Worlds by split."""
    return {split: datasets.load("adaexplore-v1", split).worlds for split in COUNTS}


@pytest.fixture(scope="module")
def found(splits):
    """Summaries by split."""
    return {split: [summaries.summarise(w) for w in worlds] for split, worlds in splits.items()}


@pytest.mark.parametrize(("split", "count"), COUNTS.items())
def test_families_and_domains_are_equally_frequent(found, split, count):
    """240 episodes: 60 a family, 24 a domain, 6 of each combination; a sixth in lite and dev."""
    groups = Counter((s.domain_id, s.family) for s in found[split])

    assert count == len(found[split])
    assert 40 == len(groups)
    assert {count // 40} == set(groups.values())
    assert dict.fromkeys(FAMILIES, count // 4) == {
        family: len(group) for family, group in summaries.by_family(found[split]).items()
    }
    assert {count // 10} == {len(g) for g in summaries.by_domain(found[split]).values()}


@pytest.mark.parametrize("split", COUNTS)
def test_each_action_is_best_for_15_to_35_percent_of_each_phase(found, split):
    for phase in summaries.PHASES:
        assert all(0.15 <= share <= 0.35 for share in summaries.action_shares(found[split], phase))


@pytest.mark.parametrize("split", COUNTS)
def test_change_batches_are_balanced(found, split):
    """5 to 8, each a quarter of the episodes: exactly in lite and dev, within one in test."""
    counts = summaries.change_batches(found[split])

    assert [5, 6, 7, 8] == list(counts)
    assert all(abs(count - len(found[split]) / 4) <= 1 for count in counts.values())


@pytest.mark.parametrize("split", COUNTS)
def test_flip_rates_stay_within_the_limits(found, split):
    """Natural ones on a fresh population, up to its error; sampled ones follow them."""
    for s in found[split]:
        assert 0.22 <= s.natural_flip_rate <= 0.88
        assert abs(s.natural_flip_rate - s.sampled_flip_rate) < 0.25


def test_dev_shares_no_case_and_no_change_with_test(splits):
    """A change is an event with the rule's fields before it; across families too."""

    def changes(worlds):
        return {
            (w.domain.domain_id, w.episode.transition.event_id, frozenset(w.episode.pre.field_ids))
            for w in worlds
        }

    def cases(worlds):
        return {
            (w.domain.domain_id, frozenset(zip(w.episode.visible_fields, row, strict=True)))
            for w in worlds
            for row in chain(*w.episode.cases, *w.episode.iid_cases)
        }

    assert not changes(splits["dev"]) & changes(splits["test"])
    assert not cases(splits["dev"]) & cases(splits["test"])


def test_lite_is_the_first_round_of_test(splits):
    assert splits["lite"] == splits["test"][:40]


def test_reviews_are_empty_until_made(splits):
    assert {None} == {w.episode.review for worlds in splits.values() for w in worlds}


def test_summaries_count_the_cases_of_each_phase(splits, found):
    for world, summary in zip(splits["lite"], found["lite"], strict=True):
        change = world.episode.change_batch
        assert [8 * change, 8 * (12 - change)] == [sum(summary.best[p]) for p in summaries.PHASES]


def test_every_domain_is_rich(splits):
    """Ten of them: at least 28 fields, 8 groups of two transitions, and constraints."""
    domains = {w.domain.domain_id: w.domain for w in splits["lite"]}

    assert 10 == len(domains)
    for domain in domains.values():
        assert len(domain.fields) >= 28
        assert len(domain.replacement_groups) >= 8
        assert domain.constraints
        assert domain.ordered_triples
