"""Finished work: the domain file and the dataset folder that an author run ends with.

Both have the form of the shipped ones. The domain file stands inside the dataset's folder, so that
the folder loads anywhere; moved to the packaged domains it serves datasets built from recipes too.
Episode ids are positions in shuffled rounds and say nothing of family or candidate.
"""

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any, Final

import yaml

from adaexplore.authoring import builds, stages
from adaexplore.authoring.candidates import Candidate
from adaexplore.authoring.drafts import Draft
from adaexplore.authoring.ideas import Idea
from adaexplore.authoring.pipeline import Authored
from adaexplore.benchmark.world import episodes, seeds
from adaexplore.benchmark.world.fields import FAMILIES

SPLIT: Final = "test"
_WIDTH: Final = 120
"""Columns of a domain file, as in the shipped ones."""


class _Plain(yaml.SafeDumper):
    """A dumper in the layout of the shipped files: mappings in blocks, short lists in one line."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists below their key."""
        del indentless
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        """Write everything out: anchors are for machines."""
        del data
        return True


def _list(dumper: yaml.SafeDumper, data: list[Any]) -> yaml.Node:
    scalars = all(isinstance(item, str | int | float) for item in data)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=scalars)


_Plain.add_representer(list, _list)


def domain_file(draft: Draft) -> bytes:
    """The domain file of a document."""
    text: str = yaml.dump(draft, Dumper=_Plain, sort_keys=False, width=_WIDTH, allow_unicode=True)
    return text.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where an authored dataset comes from."""

    models: list[dict[str, Any]]
    """Semantic part of every model profile whose answers were taken."""
    date: str
    """Given by the caller, as YYYY-MM-DD; nothing depends on it."""

    def document(self, idea: Idea, authored: Authored) -> dict[str, Any]:
        """The manifest's account of the authoring."""
        minimum = idea.plan.minimum
        return {
            "models": self.models,
            "prompts_sha256": stages.DIGEST,
            "idea_sha256": idea.digest,
            "date": self.date,
            "minimum_scores": {
                name: getattr(minimum, name) for name in type(minimum).__dataclass_fields__
            },
            "candidates": authored.counts,
        }


def dataset_files(idea: Idea, authored: Authored, provenance: Provenance) -> dict[str, bytes]:
    """The files of the dataset by name, the manifest last."""
    numbered = _numbered(idea, authored.episodes)
    documents = [episodes.to_document(candidate.world) for candidate, _ in numbered]
    domain_name = f"domains/{idea.domain_id}.yaml"
    reviews = [
        {"episode_id": c.candidate_id, "candidate_id": before, "reasons": authored.reasons[before]}
        for c, before in numbered
    ]
    files = {
        f"{SPLIT}.jsonl": "".join(builds.line(document) for document in documents).encode(),
        domain_name: domain_file(authored.draft),
    }
    sha256 = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    plan = idea.plan
    described = {
        SPLIT: {"episodes": len(documents), "episodes_each": plan.episodes_each, "seed": plan.seed}
    }
    manifest = builds.manifest_of(
        idea.domain_id, described, sha256, authoring=provenance.document(idea, authored)
    )
    files["reviews.json"] = (json.dumps(reviews, indent=1, ensure_ascii=False) + "\n").encode()
    return {**files, "manifest.json": manifest}


def _numbered(idea: Idea, chosen: tuple[Candidate, ...]) -> list[tuple[Candidate, str]]:
    """(candidate under its episode id, its candidate id) in dataset order."""
    numbered: list[tuple[Candidate, str]] = []
    size = len(FAMILIES)
    for start in range(0, len(chosen), size):
        order = seeds.generator("dataset order", idea.plan.seed, start // size).permutation(size)
        for index in order:
            candidate = chosen[start + int(index)]
            episode_id = f"{idea.domain_id}-{len(numbered) + 1:03d}"
            episode = replace(candidate.world.episode, episode_id=episode_id)
            renamed = replace(candidate, world=replace(candidate.world, episode=episode))
            numbered.append((renamed, candidate.candidate_id))
    return numbered
