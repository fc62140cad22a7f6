"""`freeze` and `rerun`: a sweep as one file, and that file played again.

`freeze` writes down everything that decides a sweep; `rerun` builds the sweep from the file alone,
without the configuration files of today, and refuses where anything that decides results is not what
it was.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from adaexplore import arguments, assemble, configure, display, launching, opening, publish
from adaexplore.arguments import Arguments
from adaexplore.authoring import datasets
from adaexplore.backends.folder import store_error
from adaexplore.errors import ConfigError
from adaexplore.experiments import config, drifts, frozen, grids
from adaexplore.experiments.config import SweepConfig
from adaexplore.experiments.drifts import Difference
from adaexplore.experiments.frozen import Frozen
from adaexplore.preparing import Options

DONE: Final = 0
GROUPS: Final = ("backend", "store", "tracking", "serving", "budget")
"""What may be chosen anew for a rerun: none of it decides a result."""
FREE: Final = ("runs_dir", "name", "report")
"""So may these, which are no groups."""

FREEZE_HELP: Final = """\
usage: adaexplore freeze +grid=NAME [KEY=VALUE ...] [--out FILE]

Writes what 'adaexplore launch' with the same words would play as one readable file: the resolved
configuration, every cell with what its id is made of, and the digests of all that results rest on
(dataset, prompts, rules of play, code, lock file, Python, packages, image, served models). Plays
nothing. Keys are named by their variables and never written.

  --out FILE   where to (default: standard output)

'adaexplore rerun FILE' plays it, here or elsewhere. A launch writes the same file as
sweeps/NAME/frozen.yaml. 'adaexplore launch --help' lists the words."""

RERUN_HELP: Final = """\
usage: adaexplore rerun FILE [KEY=VALUE ...] [--allow-drift=NAME ...] [--dry-run] [--yes]

Plays a frozen sweep again; FILE is a path, file://PATH or s3://BUCKET/KEY. Everything that decides
results comes from the file, and every digest in it is made again first: if one differs, nothing is
played and each is named, with both values.

  runs_dir=FOLDER        where it is written; where the sweep was played already, it is resumed
  name=NAME              another name for the sweep
  backend.KEY=VALUE      and store, tracking, serving, budget: how it is run, not what is played;
                         also whole, as in tracking=none
  --allow-drift=NAME     play although NAME differs, and note that with the launch; NAME is one of
                         {names}
  --dry-run, --yes       as for 'adaexplore launch'

exit codes: 0 done, 2 configuration or a difference, 3 partial, 4 infrastructure"""


def freeze(words: Sequence[str]) -> int:
    """Exit code of `freeze`."""
    if {"--help", "-h"} & set(words) or not words:
        print(FREEZE_HELP)
        return DONE if words else 2
    given = arguments.read("freeze", words, options=["out"])
    resolved = configure.sweep([*given.keys, *given.names])
    assemble.check_models(resolved)
    dataset = datasets.load(resolved.dataset.name, resolved.dataset.split)
    cells = grids.expand(resolved, dataset.digest)
    name = grids.sweep_name(resolved, cells)
    data = publish.frozen_document(resolved, name, cells)
    out = given.one("out")
    if out is None:
        print(data.decode(), end="")
        return DONE
    _write(Path(out), data)
    print(f"sweep {name}: {len(cells)} cells frozen in {out}")
    print(f"play it with:  adaexplore rerun {out}")
    return DONE


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise store_error(path, error, option="--out") from None


def rerun(words: Sequence[str]) -> int:
    """Exit code of `rerun`."""
    if {"--help", "-h"} & set(words) or not words:
        print(RERUN_HELP.format(names=", ".join(frozen.NAMES)))
        return DONE if words else 2
    given = arguments.read("rerun", words, flags=["dry-run", "yes"], options=["allow-drift"])
    (file,) = given.expect("FILE")
    data = opening.fetched(file)
    found = frozen.read(data, file)
    resolved = frozen.renewed(found.config)
    drift = _drift(found, resolved, given, file)
    output = display.console()
    for difference in drift:
        display.show_lines(output, [f"drift allowed: {difference}"])
    note = {
        "of": found.sweep,
        "frozen_sha256": hashlib.sha256(data).hexdigest(),
        "allowed_drift": {d.name: {"frozen": d.frozen, "here": d.here} for d in drift},
    }
    options = Options(dry_run="dry-run" in given.flags, yes="yes" in given.flags, redo=frozenset())
    return launching.start(_overlaid(resolved, given.keys), options, note={"rerun": note})


def _drift(found: Frozen, resolved: SweepConfig, given: Arguments, file: str) -> list[Difference]:
    """The allowed differences of a document from what is here; ConfigError for any other."""
    dataset = datasets.load(resolved.dataset.name, resolved.dataset.split)
    cells = grids.expand(resolved, dataset.digest)
    here = publish.digests(resolved, dataset.digest)
    differences = drifts.differences(found, cells, here)
    return drifts.require_same(differences, given.all("allow-drift"), file)


def _overlaid(resolved: SweepConfig, words: Sequence[str]) -> SweepConfig:
    """The configuration with what a rerun may choose anew laid over it (ConfigError for other keys)."""
    document = resolved.document()
    for word in words:
        key, _, text = word.partition("=")
        group, dot, name = key.partition(".")
        if key in FREE:
            document[key] = _value(word, text)
        elif group in GROUPS and dot:
            document[group] = _with(document[group], name, _value(word, text))
        elif group in GROUPS:
            document[group] = configure.option(group, text)
        else:
            allowed = ", ".join((*FREE, *(f"{group}.KEY" for group in GROUPS)))
            raise ConfigError(
                f"rerun: '{word}': expected one of {allowed}; the frozen file says all else"
            )
    return config.from_document(document)


def _with(section: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A section with one field, which may be a field of a field, set anew."""
    name, dot, rest = path.partition(".")
    inner = _with(section.get(name) or {}, rest, value) if dot else value
    return {**section, name: inner}


def _value(word: str, text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise ConfigError(f"rerun: cannot read '{word}': expected KEY=VALUE") from None
