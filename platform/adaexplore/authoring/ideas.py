"""Ideas: the seed that an author gives, and how much is to be grown from it.

An idea names a decision that recurs, who takes it, and four actions of rising intensity. Everything
else about the domain is authored by the stages. `plan` holds the sizes; all of them have defaults.
Source: paper, appendix prompts (scenario and action ladder are inputs of every stage).
"""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from adaexplore.errors import ConfigError

STRICT = ConfigDict(extra="forbid")
Text = Annotated[str, Field(pattern=r"\S")]
Score = Annotated[float, Field(ge=0.0, le=5.0)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Minimum:
    """Review score, on each dimension, that an episode must be above to be selected."""

    field_realism: Score = 3.0
    rule_change_realism: Score = 3.0
    distractor_quality: Score = 3.0


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Plan:
    """How much is authored, searched and kept."""

    seed: int = Field(default=0, ge=0)
    """Seed of the choice of changes and of the episode search."""
    fields_a_call: int = Field(default=12, ge=1)
    """Fields whose numeric priors are asked for in one call."""
    events_each: int = Field(default=10, ge=1)
    """Compound changes proposed for each family."""
    events_a_call: int = Field(default=10, ge=1)
    candidates_each: int = Field(default=12, ge=1)
    """Candidate episodes searched for each family."""
    candidates_a_call: int = Field(default=6, ge=1)
    """Candidates that are audited, or reviewed, in one call."""
    redraws: int = Field(default=2, ge=0)
    """How often a candidate with rejected distractors gets others."""
    episodes_each: int = Field(default=6, ge=1)
    """Episodes kept for each family."""
    minimum: Minimum = Field(default_factory=Minimum)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class IdeaAction:
    """One of the four actions."""

    action_id: Text
    display_name: Text
    description: Text


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Idea:
    """A scenario idea."""

    domain_id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,59}$")]
    title: Text
    role: Text
    """One sentence in the second person: who decides, and what."""
    question: Text
    actions: Annotated[list[IdeaAction], Field(min_length=4, max_length=4)]
    """In rising intensity of one kind of intervention; ids `action_0` to `action_3`."""
    plan: Plan = Field(default_factory=Plan)

    @property
    def scenario(self) -> dict[str, Any]:
        """What every stage is told, and the head of the domain's document."""
        document = asdict(self)
        del document["plan"]
        return document

    @property
    def digest(self) -> str:
        """SHA-256 of the idea and its plan, in hex."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


_IDEA: TypeAdapter[Idea] = TypeAdapter(Idea)


def read(path: Path) -> Idea:
    """The idea in a file; ConfigError that lists every fault if there is none."""
    try:
        return parse(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: not a readable idea: {' '.join(str(error).split())}") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def parse(document: Any) -> Idea:
    """The idea of a document; ConfigError that lists every fault if it is not one."""
    try:
        idea = _IDEA.validate_python(document)
    except ValidationError as error:
        listed = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or '(the whole file)'}: {fault['msg']}"
            for fault in error.errors(include_url=False)
        )
        raise ConfigError(f"not a scenario idea: {listed}") from None
    expected = [f"action_{number}" for number in range(4)]
    if [action.action_id for action in idea.actions] != expected:
        raise ConfigError(f"not a scenario idea: actions: expected the ids {', '.join(expected)}")
    return idea
