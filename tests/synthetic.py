"""Synthetic sweeps of known truth: models whose skill, exploration and recognition are planted."""

from dataclasses import dataclass

import numpy as np

from adaexplore.benchmark.game.assessment import Assessment
from adaexplore.benchmark.game.records import CaseRecord, Counts, EpisodeRecord, ProbeRecord
from adaexplore.benchmark.world.fields import FAMILIES
from adaexplore.benchmark.world.utility import utilities
from adaexplore.experiments.usages import Usage
from adaexplore.reports.evidence import Evidence, Origin

VISIBLE = tuple(f"f{i}" for i in range(8))
PRE = {"f0": 1, "f1": 1, "f2": -1}
POST = {"f0": 1, "f1": -1, "f3": -1}
PARTIAL = {"f0": 1, "f1": -1, "f2": -1}
SETTINGS = ("default", "stationary", "stationary_iid", "evidence_given", "forced_probe")
GAIN = {
    "default": 0.0,
    "stationary": 0.20,
    "stationary_iid": 0.20,
    "evidence_given": 0.06,
    "forced_probe": 0.0,
}
"""What a setting adds to the skill of every model after the change."""
SCORES = np.array([k / 40 for k in range(-39, 40) if k % 20])
UTILITIES = [utilities(float(score)) for score in SCORES]


@dataclass(frozen=True)
class Model:
    """Chances: of the best action before and after the change, and of noticing per re-probe."""

    name: str
    before: float
    after: float
    curious: float = 3.0
    silent: float = 0.0


MODELS = tuple(
    Model(name=f"model-{letter}", before=0.35 + 0.05 * i, after=0.30 + 0.035 * i, curious=0.6 * i)
    for i, letter in enumerate("abcdefghij")
)


def drawn_cases(episode, setting):
    """(index of utilities) of the 96 cases of an episode; other ones where they are drawn freely."""
    free = setting == "stationary_iid"
    return np.random.default_rng([episode, free]).integers(0, len(UTILITIES), 96)


def record(model, setting, episode, seed=0):
    """One episode run of a model."""
    name = hash_of(model.name)
    rng = np.random.default_rng([name, SETTINGS.index(setting), episode, seed])
    drifts = not setting.startswith("stationary")
    change = 5 + episode % 4
    again = int(rng.poisson(model.curious)) if drifts else 0
    noticed = rng.random() < min(0.05 + 0.15 * again, 0.95)
    return EpisodeRecord(
        episode_id=f"s-{episode:03d}",
        domain_id=f"domain-{episode % 10}",
        family=FAMILIES[episode // 10 % 4],
        setting=setting,
        drifts=drifts,
        change_batch=change,
        visible_fields=VISIBLE,
        status="completed",
        hidden_digest=f"{episode}-{'free' if setting == 'stationary_iid' else 'held'}",
        observation_digest="",
        truth={"pre": PRE, "post": POST} if drifts else {"post": PRE},
        cases=tuple(_cases(model, setting, episode, change, rng)),
        probes=tuple(_probes(rng, change, again)),
        assessments=tuple(_assessed(drifts, noticed, rng)),
        faults=(),
        counts=Counts(turns=26, repairs=int(rng.random() < 0.1), output_tokens=900),
    )


def hash_of(name):
    """A number of a name that is the same in every process."""
    return sum(ord(char) * 31**i for i, char in enumerate(name)) % 2**31


def _cases(model, setting, episode, change, rng):
    skills = np.where(np.arange(1, 13) <= change, model.before, model.after + GAIN[setting])
    lucky = rng.random((12, 8)) < skills[:, None]
    other = rng.integers(1, 4, (12, 8))
    quiet = rng.random((12, 8)) < model.silent
    for place, index in enumerate(drawn_cases(episode, setting)):
        batch, column = divmod(place, 8)
        values = UTILITIES[index]
        best = values.index(max(values))
        action = best if lucky[batch, column] else int(best + other[batch, column]) % 4
        yield CaseRecord(
            context_id=f"case_{place + 1:03d}",
            batch_number=batch + 1,
            action=None if quiet[batch, column] else action,
            utilities=values,
        )


def _probes(rng, change, again):
    points = [(1, i) for i in range(10)] + [(change + 1, i) for i in range(min(again, 10))]
    points += [(change + 1, 100 + int(i)) for i in rng.integers(0, 5, 2)]
    for number, (batch, point) in enumerate(points, 1):
        yield ProbeRecord(
            context_id=f"probe_{number:03d}", batch_number=batch, base_context_id=None,
            row=(point,) * 8, utilities=UTILITIES[0],
        )  # fmt: skip


def _assessed(drifts, noticed, rng):
    if drifts:
        yield Assessment(phase="pre", status="completed", directions=PRE)
    told = (POST if rng.random() < 0.5 else PARTIAL) if noticed else PRE
    yield Assessment(phase="post", status="completed", directions=told)


def semantic(model, setting, seed=0, **changed):
    """The meaning of a cell, as far as a report reads it."""
    return {
        "identity_version": 1, "protocol_version": 1, "prompts": "a" * 64, "dataset": "b" * 64,
        "protocol": {"batches": None, "max_probes": 16}, "profile": {"model": model},
        "setting": {"name": setting}, "seed": seed, **changed,
    }  # fmt: skip


def evidence(models=MODELS[:4], settings=SETTINGS, episodes=40, seeds=1, *, name="synthetic"):
    """A sweep of planted models as evidence."""
    records, cells = {}, {}
    for model in models:
        for setting in settings:
            records[model.name, setting] = [
                record(model, setting, episode, seed)
                for seed in range(seeds)
                for episode in range(episodes)
            ]
            for seed in range(seeds):
                label = f"{name}: {model.name}/{setting}/{seed}"
                cells[label] = semantic(model.name, setting, seed)
    planned = {group: {f"s-{e:03d}": seeds for e in range(episodes)} for group in records}
    usages = {
        group: Usage(calls=26 * n, input_tokens=9000 * n, output_tokens=900 * n, usd=0.01 * n)
        for group, n in zip(records, map(len, records.values()), strict=True)
    }
    origin = Origin(sweeps=(name,), cells=cells, where="runs/sweeps")
    return Evidence(origin=origin, records=records, planned=planned, usages=usages)
