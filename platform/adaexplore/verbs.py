"""The `adaexplore` command: one verb a job."""

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Final

from adaexplore import launch

Command = Callable[[list[str]], int]

HELP: Final = """\
usage: adaexplore VERB ...

  launch +grid=NAME ...       play a grid, or go on with it; ends with the tables
  plan +grid=NAME ...         show what a launch would do, and what it would cost
  doctor [+grid=NAME ...]     look at everything that a launch depends on
  status [SWEEP]              how far a sweep is, or all of them
  show SWEEP EPISODE          the course of one episode
  report SWEEP ...            every table and figure, as one page and as files
  compare A B                 two sweeps against each other, episode by episode

  cancel SWEEP                stop a sweep wherever it runs
  logs SWEEP                  what a sweep says where it runs

  freeze +grid=NAME ...       write down all that decides a sweep, with its digests
  rerun FILE                  play a frozen sweep, unless something differs
  replay SWEEP                records and tables again from the journals, without a model
  verify SWEEP                audit what is stored, and what MLflow shows
  sync SWEEP                  make MLflow show what is stored

  dataset ...                 list, build, validate, describe and export datasets
  author IDEA.yaml            grow a domain and its episodes with a model of your own

'adaexplore VERB --help' tells more of each. Exit codes: 0 done, 2 configuration, 3 partial,
4 infrastructure, or findings."""


PLAN_HELP: Final = """\
usage: adaexplore plan +grid=NAME [KEY=VALUE ...]

Shows what 'adaexplore launch' with the same words would play and what that would cost, and plays
nothing. 'adaexplore launch --help' lists the words."""


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
    if {"--help", "-h"} & set(words):
        print(PLAN_HELP)
        return 0
    return launch.launch([*words, "--dry-run"])


def _of(module: str, name: str) -> Command:
    """A command whose module is loaded when it is called: a verb waits for no other verb's."""

    def command(words: list[str]) -> int:
        found: Command = getattr(importlib.import_module(f"adaexplore.{module}"), name)
        return found(words)

    return command


VERBS: Final[dict[str, Command]] = {
    "plan": _plan,
    "doctor": _of("doctor_verbs", "doctor"),
    "status": _of("sweep_verbs", "status"),
    "cancel": _of("cluster_verbs", "cancel"),
    "logs": _of("cluster_verbs", "logs"),
    "show": _of("sweep_verbs", "show"),
    "report": _of("report_verbs", "make"),
    "compare": _of("report_verbs", "compare"),
    "freeze": _of("frozen_verbs", "freeze"),
    "rerun": _of("frozen_verbs", "rerun"),
    "replay": _of("audit_verbs", "replay"),
    "verify": _of("audit_verbs", "verify"),
    "sync": _of("sweep_verbs", "sync"),
    "dataset": _of("dataset_verbs", "main"),
    "author": _of("author", "main"),
}

if __name__ == "__main__":
    main()
