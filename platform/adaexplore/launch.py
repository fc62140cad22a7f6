"""`launch +grid=…`: plan, play what is missing, show and keep the tables.

Run again, it resumes: finished episodes are not played again, interrupted ones go on at their next
turn, and the tables are the same bytes as those of an uninterrupted run.

This module is the words of the command and its exit code; what it does is in `launching`, loaded when
there is something to do, so that a question about the words is answered at once.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Final

from adaexplore import endings
from adaexplore.errors import AdaExploreError

DONE: Final = 0
PARTIAL: Final = 3

HELP: Final = """\
usage: adaexplore launch +grid=NAME [KEY=VALUE ...] [--dry-run]

Plays a grid of models x settings x seeds over the episodes of a dataset, resuming what an earlier
launch left, and ends with the tables. Run it again at any time.

  +grid=smoke            one agent, two episodes, seconds
  +grid=diagnostics      the reference agents under four settings, minutes
  models=[random,oracle] profile and set names (conf/model/)
  settings=[default]     settings (conf/setting/)
  seeds=[0,1,2]          replicates
  dataset=v1             another dataset or split: first, v1, lite, dev (conf/dataset/)
  dataset.limit=8        only the first episodes
  name=my-sweep          a name of your own; launching under it again resumes it
  runs_dir=runs          where everything is written
  tracking=none          without MLflow
  report=false           without the report; 'adaexplore report' makes it at any time
  +profiles.NAME.FIELD=V a field of a model's profile
  budget.cap_usd=20      never spend more, over all launches of the sweep
  --dry-run              show the plan and its forecast, and stop
  --yes                  do not ask about a forecast above budget.confirm_over_usd
  backend=kubernetes     play in a cluster (see backend.kubernetes.*; needs store=s3); Ctrl-C only stops
                         watching, the same command watches again
  --redo overflow        play episodes again that ended unscored so: overflow, content_filter

exit codes: 0 done, 2 configuration, 3 partial (some episodes failed, or interrupted),
4 infrastructure"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or "--help" in words or "-h" in words:
        print(HELP)
        sys.exit(DONE if words else 2)
    sys.exit(guarded(lambda: launch(words)))


def guarded(command: Callable[[], int]) -> int:
    """Exit code of a command; an error that a user can mend is one line on stderr."""
    try:
        with endings.terminable():
            code = command()
            sys.stdout.flush()
            return code
    except AdaExploreError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return endings.interrupted(PARTIAL)
    except (OSError, SystemExit) as error:
        return endings.unwritten(error)


def launch(words: Sequence[str]) -> int:
    """Exit code of a launch."""
    from adaexplore import configure, launching, preparing

    asked, options = preparing.options(words)
    return launching.start(configure.sweep(asked), options)


if __name__ == "__main__":
    main()
