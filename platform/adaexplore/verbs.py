"""The `adaexplore` command: one verb a job."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from adaexplore import launch
from adaexplore.authoring import datasets
from adaexplore.errors import ConfigError

HELP: Final = """\
usage: adaexplore VERB ...

  launch +grid=NAME ...       play a grid, or go on with it; ends with the tables
  plan +grid=NAME ...         show what a launch would do
  dataset build NAME          search a dataset's episodes from its recipe (--out FOLDER)
  dataset list                packaged datasets

'adaexplore launch --help' tells more. Exit codes: 0 done, 2 configuration, 3 partial,
4 infrastructure."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a verb and exit with its code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    verb, *rest = words or ["--help"]
    if verb in ("--help", "-h", "help"):
        print(HELP)
        sys.exit(0 if words else 2)
    if verb == "launch":
        launch.main(rest)
    command = VERBS.get(verb)
    if command is None:
        print(
            f"error: unknown verb '{verb}': expected one of launch, {', '.join(VERBS)}",
            file=sys.stderr,
        )
        sys.exit(2)
    sys.exit(launch.guarded(lambda: command(rest)))


def _plan(words: list[str]) -> int:
    return launch.launch([*words, "--dry-run"])


def _dataset(words: list[str]) -> int:
    match words:
        case ["list"]:
            for path in sorted(datasets.PACKAGED.glob("*/manifest.json")):
                found = datasets.load(path.parent.name)
                print(f"{found.name}: {len(found.worlds)} episodes, digest {found.digest[:12]}")
            return 0
        case ["build", name]:
            return _build(name, Path(name))
        case ["build", name, "--out", folder]:
            return _build(name, Path(folder))
    raise ConfigError("expected 'dataset list' or 'dataset build NAME [--out FOLDER]'")


def _build(name: str, folder: Path) -> int:
    """Build a packaged recipe into a folder and say whether it is what is packaged."""
    recipe = datasets.read_recipe(datasets.PACKAGED / name / "recipe.yaml")
    print(
        f"searching {recipe.episodes_each} episodes for each family of {', '.join(recipe.domains)}"
    )
    files = datasets.build(recipe)
    folder.mkdir(parents=True, exist_ok=True)
    for file, data in files.items():
        (folder / file).write_bytes(data)
        packaged = datasets.PACKAGED / name / file
        same = packaged.is_file() and packaged.read_bytes() == data
        print(f"{folder / file}: {'identical to' if same else 'differs from'} the packaged file")
    return 0


VERBS: Final[dict[str, Callable[[list[str]], int]]] = {"plan": _plan, "dataset": _dataset}

if __name__ == "__main__":
    main()
