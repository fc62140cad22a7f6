"""Configuration: from the words on a command line to one resolved document.

The only module that knows Hydra, and only its compose API. Configuration files are looked for in
`./conf`, `$ADAEXPLORE_CONF` and the packed folder, in this order. Profiles and settings are named in
a sweep by their file names; a set such as `models=reference` is a profile file that lists members.
"""

import difflib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.errors import HydraException, OverrideParseException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from adaexplore.errors import ConfigError
from adaexplore.experiments import config
from adaexplore.experiments.config import Places, SweepConfig
from adaexplore.models import contents
from adaexplore.models.profiles import Profile

ROOT: Final = "adaexplore"
"""Name of the root configuration file, unlike the usual `config`, so that a project of its own
below `./conf` is never taken for ours."""
PACKED: Final = (Path(__file__).parent / "conf", Path(__file__).parent.parent.parent / "conf")
"""In a wheel, and in a checkout."""
_COMPOSED: Final = re.compile(rb"^defaults:|@package|\$\{", re.MULTILINE)
"""What a file says that is more than its own values."""


def sweep(overrides: Sequence[str]) -> SweepConfig:
    """The configuration that a command line asks for.

    Raises:
        ConfigError: A key, name or value is wrong; one line that says what would be right.
    """
    with _hydra() as folders:
        grid = _grid(overrides, folders)
        document = _compose(ROOT, overrides, folders)
        composed = config.from_document(_resolve(document, grid, folders))
    models = {name: contents.identified(name, own) for name, own in composed.models.items()}
    return replace(composed, models=models)


def places(overrides: Sequence[str]) -> Places:
    """Where sweeps are kept, from the words of a verb that reads one back.

    Raises:
        ConfigError: A word is about something else than `runs_dir`, `store` or `tracking`, or wrong.
    """
    for word in overrides:
        key = word.partition("=")[0]
        if "=" not in word or key.partition(".")[0] not in ("runs_dir", "store", "tracking"):
            raise ConfigError(
                f"'{word}': expected runs_dir=FOLDER, store=KIND, store.KEY=VALUE, tracking=KIND or "
                "tracking.KEY=VALUE here: the sweep itself says all else"
            )
    with _hydra() as folders:
        return config.places(_compose(ROOT, ["models=[]", *overrides], folders))


def option(group: str, name: str) -> dict[str, Any]:
    """The file of one group, such as `tracking` and `none`, as plain data; ConfigError if unknown."""
    with _hydra() as folders:
        return _load(group, name, folders)


def profile(name: str, overrides: Sequence[str] = ()) -> Profile:
    """One model profile, with `+profiles.NAME.FIELD=VALUE` laid over it; ConfigError if it is none."""
    with _hydra() as folders:
        loaded = _load("model", name, folders)
        if loaded.get("kind") == "set":
            raise ConfigError(f"model '{name}': expected one profile, got a set of them")
        document = _compose(ROOT, [f"models={name}", *overrides], folders)
        given = document.get("profiles") or {}
        if unused := sorted(given.keys() - {name}):
            raise ConfigError(f"profiles.{unused[0]}: expected a field of profiles.{name}")
        merged = OmegaConf.to_container(OmegaConf.merge(loaded, given.get(name, {})))
    return config.profile(name, merged)


def _resolve(document: dict[str, Any], grid: str, folders: list[Path]) -> dict[str, Any]:
    """The document with names replaced by what they name."""
    given = _fields_of("profiles", document.pop("profiles", None) or {})
    models = _members(_names(document, "models"), folders)
    unused = sorted(given.keys() - set(models))
    if unused:
        raise ConfigError(
            f"profiles.{unused[0]}: no such model in this sweep; models are {', '.join(models)}"
        )
    profiles = {
        name: _load("model", name, folders) | _fields_of(f"profiles.{name}", given.get(name, {}))
        for name in models
    }
    settings = [
        {"name": name, **_load("setting", name, folders)} for name in _names(document, "settings")
    ]
    seeds = document.get("seeds")
    return {
        **document,
        "grid": grid,
        "models": profiles,
        "settings": settings,
        "seeds": list(dict.fromkeys(seeds)) if isinstance(seeds, list) else [seeds],
    }


def _fields_of(key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{key}: expected +profiles.NAME.FIELD=VALUE, got {value!r}")
    return value


def _names(document: dict[str, Any], key: str) -> list[str]:
    """One name or a list of names, without repetition."""
    value = document.get(key)
    names = value if isinstance(value, list) else [value]
    for name in names:
        if not isinstance(name, str):
            raise ConfigError(
                f"configuration key '{key}': expected a name or a list of names, got {value!r}"
            )
    if not names:
        raise ConfigError(
            f"configuration key '{key}': expected at least one name, got an empty list"
        )
    return list(dict.fromkeys(names))


def _members(names: list[str], folders: list[Path]) -> list[str]:
    """Profile names, sets replaced by their members."""
    found: list[str] = []
    for name in names:
        loaded = _load("model", name, folders)
        found += _names(loaded, "members") if loaded.get("kind") == "set" else [name]
    return list(dict.fromkeys(found))


# -- Hydra -------------------------------------------------------------------------------------


class SearchPath(SearchPathPlugin):
    """Every folder after the first, which is Hydra's own main one."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Append them, the first to look in first."""
        for folder in _folders()[1:]:
            search_path.append(provider="adaexplore", path=f"file://{folder}")


def _folders() -> list[Path]:
    """The folders of the search path that exist, first one first."""
    own = os.environ.get("ADAEXPLORE_CONF")
    if own and not Path(own).is_dir():
        raise ConfigError(f"ADAEXPLORE_CONF: expected a folder, got {own!r}")
    candidates = [Path("conf"), *([Path(own)] if own else []), *PACKED]
    return list(dict.fromkeys(path.resolve() for path in candidates if path.is_dir()))


@contextmanager
def _hydra() -> Iterator[list[Path]]:
    """Hydra on the search path."""
    folders = _folders()
    GlobalHydra.instance().clear()
    Plugins.instance().register(SearchPath)
    with initialize_config_dir(config_dir=str(folders[0]), version_base="1.3"):
        yield folders


def _compose(name: str, overrides: Sequence[str], folders: list[Path]) -> dict[str, Any]:
    """A composed document as plain data."""

    def composed() -> DictConfig:
        _require_plain(overrides)
        return compose(name, overrides=list(overrides))

    return _contained(name, composed, overrides, folders)


def _contained(
    name: str,
    make: Callable[[], DictConfig | ListConfig],
    overrides: Sequence[str],
    folders: list[Path],
) -> dict[str, Any]:
    """What `make` gives as plain data; ConfigError of one line where it gives none."""
    try:
        composed = make()
        _require_unexpanded(OmegaConf.to_container(composed, resolve=False))
        document = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
    except OverrideParseException as error:
        word = error.override or ""
        more = "" if word.isascii() else "; names are ASCII, the rest needs quotes: KEY='\"TEXT\"'"
        raise ConfigError(f"cannot read '{word}': expected KEY=VALUE{more}") from None
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(_explain(error, overrides, folders)) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{name}: not a readable YAML file: {' '.join(str(error).split())}"
        ) from None
    if not isinstance(document, dict):
        raise ConfigError(f"{name}: expected a mapping, got {type(document).__name__}")
    return {str(key): value for key, value in document.items()}


def _require_plain(overrides: Sequence[str]) -> None:
    """Refuse what Hydra's own command line offers and ours does not (ConfigError)."""
    for override in OverridesParser.create().parse_overrides(list(overrides)):
        key, word = override.key_or_group, override.input_line
        if re.match(r"hydra\b", key):
            raise ConfigError(f"'{word}': Hydra itself is not configured here; leave it out")
        if override.is_sweep_override():
            value = override.value()
            listed = ",".join(map(str, getattr(value, "list", None) or ["..."]))
            raise ConfigError(f"'{word}': expected one value or one list; write {key}=[{listed}]")


def _require_unexpanded(document: Any, where: str = "") -> None:
    """Refuse values from the environment: they would be stored with everything else (ConfigError)."""
    if isinstance(document, dict):
        for key, value in document.items():
            _require_unexpanded(value, f"{where}.{key}".lstrip("."))
    elif isinstance(document, list):
        for value in document:
            _require_unexpanded(value, where)
    elif isinstance(document, str) and "${oc.env:" in document:
        raise ConfigError(
            f"configuration key '{where}': expected a value, got one from the environment, which would "
            "be written down with the sweep: write it out, or name the variable of a key in auth.key_env"
        )


def _load(group: str, name: str, folders: list[Path]) -> dict[str, Any]:
    """One file of a group, as it stands in the first folder that has it."""
    known = options(group, folders)
    if name not in known:
        raise ConfigError(
            f"unknown {group} '{name}'{_suggest(name, known)}; known: {', '.join(known)}"
        )
    path = next(path for folder in folders if (path := folder / group / f"{name}.yaml").is_file())
    if not _COMPOSED.search(path.read_bytes()):  # composing takes ten times as long as reading
        return _contained(f"{group}/{name}", lambda: OmegaConf.load(path), [], folders)
    loaded = _compose(f"{group}/{name}", [], folders)
    inside = loaded.get(group)
    return inside if isinstance(inside, dict) else loaded


def options(group: str, folders: Sequence[Path]) -> list[str]:
    """Names of the files of a group in all folders, sorted."""
    files = (path for folder in folders for path in (folder / group).glob("*.yaml"))
    return sorted({path.stem for path in files})


def _grid(overrides: Sequence[str], folders: list[Path]) -> str:
    """The one grid that is asked for."""
    known = options("grid", folders)
    listed = ", ".join(known)
    chosen = [word for word in overrides if re.match(r"\+{0,2}grid(@[^=]*)?=", word)]
    if len(chosen) != 1:
        got = " ".join(chosen) or "none"
        raise ConfigError(
            f"expected exactly one grid, such as +grid=smoke, got {got}; known: {listed}"
        )
    start, _, name = chosen[0].partition("=")
    if start != "+grid":
        raise ConfigError(f"a grid is added with a plus: write +grid={name}, not {chosen[0]}")
    if name not in known:
        raise ConfigError(
            f"expected exactly one known grid, got '{name}'{_suggest(name, known)}; known: {listed}"
        )
    return name


# -- explanations ------------------------------------------------------------------------------


def _explain(error: Exception, overrides: Sequence[str], folders: list[Path]) -> str:
    """One line for what Hydra and OmegaConf say in several."""
    text = " ".join(str(error).split())
    if (missing := re.search(r"Could not find '([\w-]+)/([\w.-]+)'", text)) is not None:
        group, name = missing.groups()
        known = options(group, folders)
        return f"unknown {group} '{name}'{_suggest(name, known)}; known: {', '.join(known)}"
    unknown = re.search(r"Key '([^']+)' is not in struct|Could not override '([^']+)'", text)
    if unknown is not None:
        return _unknown_key(overrides, text)
    if (unset := re.search(r"Missing mandatory value: ([\w.]+)", text)) is not None:
        return f"configuration key '{unset[1]}' has no value; give one on the command line"
    return text


def _unknown_key(overrides: Sequence[str], text: str) -> str:
    keys = _known_keys()
    for word in overrides:
        key, _, value = word.lstrip("+~").partition("=")
        if key.partition("@")[0] in keys or key.startswith(("profiles.", "grid")):
            if key.startswith("profiles.") and not word.startswith("+"):
                return f"profile fields are added with a plus: write +{word}"
            continue
        return f"unknown configuration key '{key}' (value {value}){_suggest(key, sorted(keys))}"
    return text


def _known_keys() -> set[str]:
    """Every key, dotted, of the root configuration."""
    composed = OmegaConf.to_container(compose(ROOT), throw_on_missing=False)
    found: set[str] = set()

    def walk(node: Any, path: str) -> None:
        for key, value in node.items():
            found.add(f"{path}{key}")
            if isinstance(value, dict):
                walk(value, f"{path}{key}.")

    walk(composed, "")
    return found


def _suggest(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean '{near[0]}'?" if near else ""
