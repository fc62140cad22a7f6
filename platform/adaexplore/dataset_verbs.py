"""`adaexplore dataset ...`: build, list, validate, describe and export datasets."""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from rich.table import Table as RichTable

from adaexplore import assemble, configure, dataset_page, display, launch, preparing
from adaexplore.authoring import builds, checks, datasets, domain_files, exports, summaries
from adaexplore.authoring.builds import Builder
from adaexplore.backends.folder import store_error
from adaexplore.dataset_page import Difficulty
from adaexplore.errors import ConfigError, DatasetError
from adaexplore.experiments import attempts

DONE: Final = 0
FAULTY: Final = 2
AGENTS: Final = ("random", "one_factor", "scientist", "oracle")
"""Reference agents by whom difficulty is measured."""
SHOWN_EVERY_S: Final = 2.0

HELP: Final = """\
usage: adaexplore dataset ...

  list                          packaged datasets
  build NAME                    search a dataset's episodes from its recipe.yaml
      --out FOLDER              where to (default: ./NAME, or the folder of your own recipe);
                                run again, a killed build goes on
      --processes N             worker processes (default: one a core)
  validate [NAME | FILE.yaml]   every fault of every domain file and dataset, or of one
  stats NAME                    what a dataset is made of
      --split SPLIT             only this split
      --page FOLDER             also write a page with pictures there, with difficulty measured
                                by playing reference agents on its smallest split
      --runs FOLDER             use, and keep, the records of those plays there
  export NAME                   write it in another format
      --format parquet|hf       one Parquet file a split, or a Hugging Face folder with a card
      --out FOLDER              where to

NAME is a packaged dataset, or the path of a dataset folder (with a slash). A folder of your own may
hold domain files in domains/, which come before the packaged ones."""


def main(words: Sequence[str]) -> int:
    """Exit code of a `dataset` command; ConfigError if it cannot be understood."""
    if not words or words[0] == "help" or {"--help", "-h"} & set(words):
        print(HELP)
        return DONE if words else FAULTY
    verb, *rest = words
    if verb not in VERBS:
        raise ConfigError(f"dataset: unknown verb '{verb}': expected one of {', '.join(VERBS)}")
    command, options = VERBS[verb]
    return command(*_parsed(verb, rest, options))


def _parsed(
    verb: str, words: Sequence[str], options: Sequence[str]
) -> tuple[list[str], dict[str, str]]:
    """(names, option values) of the words after a verb."""
    names: list[str] = []
    given: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if not word.startswith("--"):
            names.append(word)
            continue
        option, _, value = word.removeprefix("--").partition("=")
        if option not in options:
            known = ", ".join(f"--{o}" for o in options) or "none"
            raise ConfigError(f"dataset {verb}: unknown option '{word}': expected one of {known}")
        given[option] = value or next(rest, "")
        if not given[option]:
            raise ConfigError(f"dataset {verb}: option --{option} needs a value")
    return names, given


def _one(verb: str, names: Sequence[str]) -> str:
    if len(names) != 1:
        raise ConfigError(f"dataset {verb}: expected one NAME, got {' '.join(names) or 'none'}")
    return names[0]


# -- list and build ----------------------------------------------------------------------------


def _list(names: list[str], _given: dict[str, str]) -> int:
    if names:
        raise ConfigError(f"dataset list: expected no NAME, got {' '.join(names)}")
    for name in datasets.names():
        folder = datasets.folder_of(name)
        manifest = datasets.read_manifest(folder)
        counts = ", ".join(f"{s} {found['episodes']}" for s, found in manifest["splits"].items())
        print(f"{name}: {counts} episodes, digest {datasets.digest(manifest)[:12]}")
    return DONE


def _build(names: list[str], given: dict[str, str]) -> int:
    """Build a recipe into a folder and, if it is packaged, say whether it is what is packaged."""
    name = _one("build", names)
    source = Path(name) if "/" in name else datasets.PACKAGED / name
    recipe = datasets.read_recipe(source / "recipe.yaml")
    folder = Path(given.get("out", name))
    start = time.monotonic()
    builder = Builder(
        processes=_processes(given), work=folder / datasets.WORK, progress=_Progress().show,
        domains=source / "domains",
    )  # fmt: skip
    counts = ", ".join(f"{split.name} {split.episodes_each}" for split in recipe.splits)
    print(f"searching {len(recipe.domains)} domains; for each and each family: {counts}")
    own = [path for i in recipe.domains if (path := source / "domains" / f"{i}.yaml").is_file()]
    with _writing(folder, "--out"):
        files = builder.build(recipe)
        builds.save(folder, files | {f"domains/{path.name}": path.read_bytes() for path in own})
    for file, data in files.items():
        packaged = datasets.PACKAGED / name / file
        same = packaged.is_file() and packaged.read_bytes() == data
        said = f"{'identical to' if same else 'differs from'} the packaged file"
        print(f"{folder / file}: {'written' if '/' in name else said}")
    print(f"built in {time.monotonic() - start:.1f} s")
    return DONE


@contextmanager
def _writing(folder: Path, option: str) -> Iterator[None]:
    """Faults of the file system as StoreError that names the folder and the option for another."""
    try:
        yield
    except OSError as error:
        raise store_error(folder, error, option=option) from None


def _processes(given: dict[str, str]) -> int:
    text = given.get("processes", str(assemble.cores()))
    if not text.isdigit() or int(text) < 1:
        raise ConfigError(f"dataset build: --processes: expected a number from 1 on, got '{text}'")
    return int(text)


class _Progress:
    """A line of progress every few seconds."""

    def __init__(self) -> None:
        self._shown = time.monotonic()

    def show(self, done: int, total: int) -> None:
        """So many searches of so many are done."""
        if done == total or time.monotonic() - self._shown >= SHOWN_EVERY_S:
            self._shown = time.monotonic()
            print(f"  {done}/{total} searches", flush=True)


# -- validate ----------------------------------------------------------------------------------


def _validate(names: list[str], _given: dict[str, str]) -> int:
    """Print every fault on stderr; exit code 2 if there is one."""
    if len(names) > 1:
        raise ConfigError(f"dataset validate: expected at most one NAME, got {' '.join(names)}")
    if names and names[0].endswith((".yaml", ".yml")):
        files, folders = [Path(names[0])], []
    elif names:
        files, folders = [], [datasets.folder_of(names[0])]
        files = _own_domains(folders[0])
    else:
        files = sorted(domain_files.PACKAGED.glob("*.yaml"))
        folders = [datasets.folder_of(name) for name in datasets.names()]
    found = list(checks.domain_faults(files))
    for folder in folders:
        found += checks.dataset_faults(folder)
    for fault in dict.fromkeys(found):
        print(f"fault: {fault}", file=sys.stderr)
    looked = [f"{len(files)} domain files", *(folder.name for folder in folders)]
    print(f"{', '.join(looked)}: {len(set(found)) or 'no'} faults")
    return FAULTY if found else DONE


def _own_domains(folder: Path) -> list[Path]:
    """Domain files that a dataset uses; none if it has no readable manifest."""
    try:
        located = datasets.located(folder, datasets.read_manifest(folder))
    except DatasetError:  # told by the dataset's own check
        return []
    return [path for path in located if path.suffix == ".yaml" and path.is_file()]


# -- stats -------------------------------------------------------------------------------------


def _stats(names: list[str], given: dict[str, str]) -> int:
    """Tables on the terminal and, if asked for, the page with its pictures."""
    name = _one("stats", names)
    manifest = datasets.read_manifest(datasets.folder_of(name))
    splits = [given["split"]] if "split" in given else list(manifest["splits"])
    found = {
        split: [summaries.summarise(world) for world in datasets.load(name, split).worlds]
        for split in splits
    }
    output = display.console()
    for split, group in found.items():
        output.print(f"{manifest['name']}, split {split}: {len(group)} episodes")
        for title, rows in dataset_page.all_tables(group):
            output.print(_rich(title, rows))
    if "page" in given:
        _write_page(name, manifest, found, given)
    return DONE


def _rich(title: str, rows: list[list[str]]) -> RichTable:
    shown = RichTable(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for number, head in enumerate(rows[0]):
        shown.add_column(head, justify="right" if number else "left", no_wrap=True)
    for row in rows[1:]:
        shown.add_row(*row)
    return shown


def _write_page(
    name: str, manifest: dict[str, Any], found: dataset_page.Summaries, given: dict[str, str]
) -> None:
    folder = Path(given["page"])
    split = min(manifest["splits"], key=lambda s: (manifest["splits"][s]["episodes"], s != "lite"))
    with tempfile.TemporaryDirectory() as scratch:
        played = _played(name, split, given.get("runs", scratch))
    text = dataset_page.page(manifest["name"], found, played)
    pictures = dataset_page.pictures(next(iter(found.values())), played)
    with _writing(folder, "--page"):
        builds.write(folder / "dataset.md", text.encode())
        for file, data in pictures.items():
            builds.write(folder / "images" / file, data)
    print(f"wrote {folder / 'dataset.md'} and its pictures in {folder / 'images'}")


def _played(name: str, split: str, runs: str) -> Difficulty:
    """Records of the reference agents on a split, played where they are missing."""
    words = [
        "+grid=main", f"models=[{','.join(AGENTS)}]", f"dataset.name={name}",
        f"dataset.split={split}", "tracking=none", f"runs_dir={runs}",
    ]  # fmt: skip
    if launch.launch(words) != DONE:
        raise DatasetError(f"{name}: some reference plays failed; see above, and run it again")
    config = configure.sweep(words)
    plan, store = preparing.prepare(config).plan, assemble.store(config)
    records = {
        cell.model: [
            attempts.read_result(
                store,
                plan.finished[cell.cell_id, world.episode.episode_id],
                hidden_digest=world.digest,
            )
            for world in plan.worlds
        ]
        for cell in plan.cells
    }
    return Difficulty(split=split, records=records)


# -- export ------------------------------------------------------------------------------------


def _export(names: list[str], given: dict[str, str]) -> int:
    name = _one("export", names)
    forms = {form: form for form in exports.FORMATS}
    form = forms.get(given.get("format", ""))  # type: ignore[call-overload]
    if form is None or "out" not in given:
        raise ConfigError(
            f"dataset export: expected --format {'|'.join(exports.FORMATS)} and --out FOLDER, "
            f"got format '{given.get('format', '')}' and folder '{given.get('out', '')}'"
        )
    with _writing(Path(given["out"]), "--out"):
        paths = list(exports.export(name, form, Path(given["out"])))
    for path in paths:
        print(path)
    return DONE


Command = Callable[[list[str], dict[str, str]], int]
VERBS: Final[dict[str, tuple[Command, tuple[str, ...]]]] = {
    "list": (_list, ()),
    "build": (_build, ("out", "processes")),
    "validate": (_validate, ()),
    "stats": (_stats, ("split", "page", "runs")),
    "export": (_export, ("format", "out")),
}
"""Commands by verb, each with its options."""
