"""The errors a user can meet, one class per boundary.

Every message is one line that says what was expected, what came, where, and what to do. The verbs
print the line and exit with the class's ``exit_code`` (0 is done, 3 is "some episodes failed").

    AdaExploreError
    ├── ConfigError       2   a key, a name or a value that the user gave
    ├── DatasetError      2   a domain or dataset file that is not what its manifest says
    ├── SearchError       2   an episode search that cannot succeed
    ├── StoreError        4   the folder or bucket with the records
    └── TrackingError     4   MLflow
"""


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


class StoreError(AdaExploreError):
    """A store that cannot be read or written, or holds something damaged."""


class TrackingError(AdaExploreError):
    """A tracker that cannot be opened."""
