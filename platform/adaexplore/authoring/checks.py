"""Checks: what is wrong with a dataset, all of it at once.

The digests show that nothing was edited; these checks show that what was stored is right: its form,
its authorship in the domain, and every acceptance rule that can be measured on the stored rules and
cases alone. What needs a population (thresholds at their quantiles, natural flip rates) is checked by
tests on a fresh one. Source: the acceptance rules of `world.acceptance`.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np

from adaexplore.authoring import datasets, domain_files, episode_forms
from adaexplore.benchmark.world import acceptance, constraints, episodes, rules, utility
from adaexplore.benchmark.world import fields as field_module
from adaexplore.benchmark.world.acceptance import Parameters, RejectedError
from adaexplore.benchmark.world.domains import Domain
from adaexplore.benchmark.world.episodes import BATCH_SIZE, World
from adaexplore.errors import DatasetError

_LIMITS: Final = Parameters()


def domain_faults(paths: Iterable[Path]) -> Iterable[str]:
    """Every fault of every domain file, `file: path: reason` each."""
    for path in paths:
        try:
            domain = domain_files.read(path)
        except DatasetError as error:
            first, *listed = str(error).splitlines()
            yield from (f"{path}: {fault.strip()}" for fault in listed)
            if not listed:
                yield first
            continue
        if domain.domain_id != path.stem:
            yield f"{path}: domain_id: expected '{path.stem}' as the file's name says, got '{domain.domain_id}'"


def dataset_faults(folder: Path) -> Iterable[str]:
    """Every fault of a dataset folder: digests, lines, episodes, splits."""
    try:
        manifest = datasets.read_manifest(folder)
        paths = datasets.located(folder, manifest)
    except DatasetError as error:
        yield str(error)
        return
    for path, expected in paths.items():
        try:
            datasets.require_digest(path, expected)
        except DatasetError as error:
            yield str(error)
    try:
        domains = datasets.read_domains(folder, manifest)
    except DatasetError as error:  # the domains have checks of their own that list it all
        yield str(error).splitlines()[0]
        return
    splits: dict[str, list[World]] = {}
    for split in manifest["splits"]:
        splits[split] = []
        yield from _split_faults(folder / f"{split}.jsonl", domains, splits[split])
    yield from _between(folder, manifest["splits"], splits)


def _split_faults(path: Path, domains: Mapping[str, Domain], found: list[World]) -> Iterable[str]:
    """Faults of a split's file; its sound episodes are added to `found`."""
    try:
        texts = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        yield f"{path}: cannot be read: {' '.join(str(error).split())}"
        return
    for number, text in enumerate(texts, start=1):
        where = f"{path} line {number}"
        yield from (f"{where}: {fault}" for fault in _line_faults(text, domains, found))


def _line_faults(text: str, domains: Mapping[str, Domain], found: list[World]) -> Iterable[str]:
    try:
        document = json.loads(text)
    except ValueError as error:
        yield f"not JSON: {error}"
        return
    broken = list(episode_forms.faults(document))
    yield from broken
    if broken:
        return
    domain = domains.get(document["domain_id"])
    if domain is None:
        yield f"domain_id: '{document['domain_id']}' is not a domain of the manifest"
        return
    unknown = set(document["visible_fields"]) - set(domain.catalog)
    if unknown:
        yield f"visible_fields: unknown in {domain.domain_id}: {', '.join(sorted(unknown))}"
        return
    world = World(domain=domain, episode=episodes.from_document(document, domain))
    yield from episode_faults(world)
    found.append(world)


# -- one episode -------------------------------------------------------------------------------


def episode_faults(world: World) -> list[str]:
    """Every acceptance rule that an episode's stored rules and cases break; empty when none."""
    structure = [*_roles(world), *_change(world)]
    if structure:  # what is not a rule has no scores
        return [f"{world.episode.episode_id}: {fault}" for fault in structure]
    checks: tuple[Callable[[World], Iterable[str]], ...] = (_parameters, _legal, _scored, _constant)
    return [f"{world.episode.episode_id}: {fault}" for check in checks for fault in check(world)]


def _roles(world: World) -> Iterable[str]:
    episode = world.episode
    core = {*episode.pre.field_ids, episode.transition.incoming}
    if len(set(episode.visible_fields)) < len(episode.visible_fields):
        yield "visible_fields: expected 8 different fields"
    if len(core) != 4 or not core <= set(episode.visible_fields):
        yield "visible_fields: expected the three relevant fields and the incoming one among them"
    if episode.change_batch not in _LIMITS.change_batches:
        yield f"change_batch: expected one of {_LIMITS.change_batches}, got {episode.change_batch}"


def _change(world: World) -> Iterable[str]:
    """The drift is exactly the one that the domain has an event for."""
    episode, named = world.episode, world.episode.transition
    event = next((e for e in world.domain.events if e.event_id == named.event_id), None)
    texts = ("outgoing", "incoming", "reversed", "trigger_event", "change_reason")
    if event is None or any(getattr(event, name) != getattr(named, name) for name in texts):
        yield f"transition: '{named.event_id}' is not the event that the domain has under this id"
        return
    threshold = {slot.field_id: slot.threshold for slot in episode.post.slots}
    try:
        expected = rules.drift(
            episode.pre, outgoing=named.outgoing, incoming=named.incoming,
            reversed_=named.reversed, threshold=threshold.get(named.incoming, 0.0),
        )  # fmt: skip
    except ValueError as error:
        yield f"transition: {error}"
        return
    if expected != episode.post:
        yield "post: is not the rule before the change with this replacement and this reversal"


def _parameters(world: World) -> Iterable[str]:
    """Directions, eligibility, weights, thresholds and band agree with catalog and family."""
    rule, catalog = world.episode.pre, world.domain.catalog
    for slot in rule.slots:
        if slot.direction != catalog[slot.field_id].pressure_direction:
            yield f"pre: {slot.field_id} has another direction than its catalog entry"
    triples = {triple.fields for triple in world.domain.ordered_triples}
    for name, one in (("pre", rule), ("post", world.episode.post)):
        if rule.family == field_module.LEXICOGRAPHIC:
            if one.field_ids not in triples:
                yield f"{name}: {', '.join(one.field_ids)} is not an authored triple"
        elif any(rule.family not in catalog[f].eligible_families for f in one.field_ids):
            yield f"{name}: a field is not eligible for {rule.family}"
    strengths = [catalog[f].effect_strength for f in rule.field_ids]
    additive = rule.family == field_module.ADDITIVE
    for slot, strength in zip(rule.slots, strengths, strict=True):
        weight = round(strength / sum(strengths), 12) if additive else 0.0
        if slot.weight != weight or not -1.0 <= slot.threshold <= 1.0:
            yield f"pre: weight or threshold of {slot.field_id} is not one that the family has"
    if (rule.band > 0.0) != (rule.family == field_module.LEXICOGRAPHIC):
        yield f"pre: a band of {rule.band} in a rule of {rule.family}"


def _legal(world: World) -> Iterable[str]:
    """Cases are distinct, in range, on the grid and feasible."""
    visible = world.episode.visible_fields
    for name, batches in _kinds(world):
        rows = list(chain(*batches))
        if len(set(rows)) < len(rows):
            yield f"{name}: the same case stands there more than once"
        for number, row in enumerate(rows, start=1):
            case = dict(zip(visible, row, strict=True))
            for field, value in zip(world.fields, row, strict=True):
                if not field.minimum <= value / 100 <= field.maximum:
                    yield f"{name} {number}: {field.field_id} is outside its range"
            for constraint in world.constraints:
                if not constraints.holds(constraint.expression, case):
                    yield f"{name} {number}: breaks constraint {constraint.constraint_id}"


def _scored(world: World) -> Iterable[str]:
    """Cases keep away from boundaries; half of every batch are flip cases."""
    episode = world.episode
    for name, batches in _kinds(world):
        rows = list(chain(*batches))
        scores = [world.scores(rule, rows) for rule in (episode.pre, episode.post)]
        near = np.minimum(*(utility.boundary_distances(s) for s in scores))
        for number in np.flatnonzero(near <= _LIMITS.boundary_margin) + 1:
            yield f"{name} {number}: its score lies within {_LIMITS.boundary_margin} of a boundary"
        before, after = (utility.best_actions(s).reshape(-1, BATCH_SIZE) for s in scores)
        flips = (before != after).sum(axis=1)
        for number in np.flatnonzero(flips != BATCH_SIZE // 2) + 1 if name == "cases" else ():
            yield f"cases: batch {number} has {flips[number - 1]} flip cases, expected {BATCH_SIZE // 2}"


def _constant(world: World) -> Iterable[str]:
    try:
        acceptance.require_no_constant(world, _LIMITS)
    except RejectedError:
        yield f"cases: a constant action reaches CA above {_LIMITS.max_constant_ca} in a phase"


def _kinds(world: World) -> tuple[tuple[str, Any], ...]:
    return ("cases", world.episode.cases), ("iid_cases", world.episode.iid_cases)


# -- between splits ----------------------------------------------------------------------------


def _between(
    folder: Path, described: Mapping[str, Mapping[str, Any]], splits: Mapping[str, list[World]]
) -> Iterable[str]:
    """Counts, ids, parts and separation of the splits."""
    for name, worlds in splits.items():
        where, about = folder / f"{name}.jsonl", described[name]
        ids = [world.episode.episode_id for world in worlds]
        if len(ids) != about["episodes"] or len(set(ids)) != len(ids):
            yield (
                f"{where}: expected {about['episodes']} sound episodes with ids of their own, "
                f"got {len(set(ids))}"
            )
        groups = Counter((w.domain.domain_id, w.episode.pre.family) for w in worlds)
        if "episodes_each" in about and set(groups.values()) - {about["episodes_each"]}:
            yield f"{where}: expected {about['episodes_each']} episodes for each domain and family"
        whole = splits.get(about.get("part_of", ""))
        if whole is not None and worlds != whole[: len(worlds)]:
            yield f"{where}: expected the first episodes of {about['part_of']}"
        other = splits.get(about.get("apart_from", ""))
        if other is not None:
            yield from (f"{where}: {fault}" for fault in _shared(worlds, other))


def _shared(worlds: Iterable[World], others: Iterable[World]) -> Iterable[str]:
    known = {key: w.episode.episode_id for w in others for key in _keys(w)}
    for world in worlds:
        for episode_id in sorted({known[key] for key in _keys(world) if key in known}):
            yield f"{world.episode.episode_id} shares its change or a case with {episode_id}"


def _keys(world: World) -> set[Any]:
    """What two episodes of separate splits must not share: the change, and any case."""
    episode = world.episode
    change = (world.domain.domain_id, episode.transition.event_id, frozenset(episode.pre.field_ids))
    rows = chain(*episode.cases, *episode.iid_cases)
    cases = {frozenset(zip(episode.visible_fields, row, strict=True)) for row in rows}
    return {change} | {(world.domain.domain_id, case) for case in cases}
