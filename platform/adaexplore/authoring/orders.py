"""Orders: what the command line of an author run asks for.

The words are few and are read by hand: one idea file, options with a value each, and profile fields
that are passed on as they stand.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adaexplore.authoring import ideas, pipeline, stages
from adaexplore.authoring.ideas import Idea
from adaexplore.errors import ConfigError

OPTIONS: Final = ("model", "replay", "stages", "out", "date")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the command line asks for."""

    idea: Idea
    model: str | None
    """Name of a model profile; None for a replay."""
    overrides: tuple[str, ...]
    """Profile fields, such as `+profiles.NAME.model=...`."""
    replay: Path | None
    """Folder of stored attempts that answer instead of a model."""
    first: int
    """First stage that may ask; earlier ones are taken as stored."""
    last: int
    out: Path
    """Folder of the finished dataset."""
    date: str | None
    """Date for the provenance, YYYY-MM-DD; None takes that of the first launch."""


def read(words: Sequence[str], runs: Path) -> Order:
    """The order of a command line, with `runs` as the folder of runs; ConfigError if it is none."""
    options, plain, overrides = _sorted_out(words)
    if len(plain) != 1:
        raise ConfigError(f"expected one idea file, got {' '.join(plain) or 'none'}")
    if ("model" in options) == ("replay" in options):
        raise ConfigError("expected either --model PROFILE or --replay DIR")
    idea = ideas.read(Path(plain[0]))
    first, last = _stages(options.get("stages", f"1-{pipeline.LAST_STAGE}"))
    replay = options.get("replay")
    return Order(
        idea=idea, model=options.get("model"), overrides=tuple(overrides),
        replay=None if replay is None else _folder(Path(replay)), first=first, last=last,
        out=Path(options.get("out", runs / idea.domain_id / "dataset")),
        date=_date(options.get("date")),
    )  # fmt: skip


def _sorted_out(words: Sequence[str]) -> tuple[dict[str, str], list[str], list[str]]:
    """(options, plain words, overrides of profile fields)."""
    options: dict[str, str] = {}
    plain: list[str] = []
    overrides: list[str] = []
    rest = iter(words)
    for word in rest:
        name, equals, value = word.removeprefix("--").partition("=")
        if word.startswith("+"):
            overrides.append(word)
        elif not word.startswith("--"):
            plain.append(word)
        elif name not in OPTIONS:
            raise ConfigError(f"unknown option '{word}'; 'adaexplore author --help' lists them")
        else:
            options[name] = value if equals else next(rest, "")
            if not options[name]:
                raise ConfigError(f"--{name}: expected a value")
    return options, plain, overrides


def _stages(text: str) -> tuple[int, int]:
    """(first, last) of `1-6` or `4`."""
    first, _, last = text.partition("-")
    known = [str(number) for number in range(1, pipeline.LAST_STAGE + 1)]
    last = last or first
    if first not in known or last not in known or int(first) > int(last):
        raise ConfigError(
            f"--stages: expected such as 1-6, within 1-{pipeline.LAST_STAGE}, got {text}"
        )
    if int(last) == stages.AUDIT:
        raise ConfigError("--stages: expected an end at 9, got 8: audit and review go together")
    return int(first), int(last)


def _folder(path: Path) -> Path:
    if not path.is_dir():
        raise ConfigError(f"--replay: expected a folder of stored attempts, got {path}")
    return path


def _date(text: str | None) -> str | None:
    try:
        if text is not None:
            time.strptime(text, "%Y-%m-%d")
    except ValueError:
        raise ConfigError(f"--date: expected YYYY-MM-DD, got {text}") from None
    return text
