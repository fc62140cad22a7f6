"""The errors a user can meet, one class per boundary.

Every message is one line that says what was expected, what came, where, and what to do. The verbs
print the line and exit with the class's ``exit_code`` (0 is done, 3 is "some episodes failed").

    AdaExploreError
    ├── ConfigError       2   a key, a name or a value that the user gave
    ├── DatasetError      2   a domain or dataset file that is not what its manifest says
    ├── SearchError       2   an episode search that cannot succeed
    ├── StageError        3   an authoring stage without a faultless answer; run again to go on
    ├── StoreError        4   the folder or bucket with the records
    ├── TrackingError     4   MLflow
    ├── ServingError      4   a model server that we start
    ├── ClusterError      4   Ray: its head, its nodes, its workers
    └── BudgetError       3   the money or token cap is reached
"""

from typing import Any


class AdaExploreError(Exception):
    """Base of every error that is shown to a user as one line."""

    exit_code = 4


class ConfigError(AdaExploreError):
    """A configuration key, name or value that cannot be used."""

    exit_code = 2


class DatasetError(AdaExploreError):
    """A domain or dataset file that cannot be trusted or read."""

    exit_code = 2


class SearchError(AdaExploreError):
    """An episode search that cannot succeed; names the dominating reason."""

    exit_code = 2


class StageError(AdaExploreError):
    """An authoring call that failed for good in this run; stored, and resumable."""

    exit_code = 3

    def __init__(self, call: str, faults: list[str]) -> None:
        """Name the call and its first fault; `faults` keeps them all."""
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        super().__init__(
            f"{call}: {faults[0]}{more}; run the same command again to go on from here"
        )
        self.call = call
        self.faults = faults


class StoreError(AdaExploreError):
    """A store that cannot be read or written, or holds something damaged."""


class TrackingError(AdaExploreError):
    """A tracker that cannot be opened."""


class ServingError(AdaExploreError):
    """A model server that does not start, or does not come back."""


class ClusterError(AdaExploreError):
    """A cluster that cannot be reached or used, or that loses its workers again and again."""


class BudgetError(AdaExploreError):
    """The cap of the sweep is reached; what is played is kept, and the sweep can go on later."""

    exit_code = 3
    kind = "budget"

    def __init__(self, message: str) -> None:
        """Keep the message; `attempts` are the failed ones of the call that found no money left."""
        super().__init__(message)
        self.attempts: list[dict[str, Any]] = []
