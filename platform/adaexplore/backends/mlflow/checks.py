"""What must be right of a server before the first episode, and what may become right later.

A wrong address, another major version and refused credentials never mend themselves: they are refused.
A server that does not answer may be back in a minute, and what it misses is shown then: that is only
said, since a sweep is worth more than its page.
"""

from importlib.metadata import version

from adaexplore.backends.mlflow.rest import Rest
from adaexplore.backends.mlflow.service import ServiceError
from adaexplore.errors import ConfigError, TrackingError

PATIENCE_S = 5.0


def check(uri: str) -> str | None:
    """A warning in one line if a server does not answer; None if it does.

    Raises:
        ConfigError: Something answers that is no MLflow server.
        TrackingError: It is of another major version, or refuses the credentials.
    """
    server = Rest(uri, read_s=PATIENCE_S)
    try:
        theirs = server.version()
        if not theirs[:1].isdigit() or len(theirs) > 40:
            raise ConfigError(
                f"tracking.uri={uri}: expected an MLflow server, got a page that starts with {theirs[:40]!r}"
            )
        _require_major(uri, theirs)
        server.experiments()
    except ServiceError as error:
        if error.kind == "again":
            return (
                f"MLflow does not answer ({error}): the sweep goes on, and shows its runs when it does; "
                "if that is after its end, 'adaexplore sync' shows them"
            )
        if "access refused" in str(error):
            raise TrackingError(str(error)) from None
        raise ConfigError(f"tracking.uri={uri}: {error}") from None
    finally:
        server.close()
    return None


def _require_major(uri: str, theirs: str) -> None:
    ours = version("mlflow")
    if theirs.partition(".")[0] != ours.partition(".")[0]:
        raise TrackingError(
            f"{uri}: expected an MLflow server of the same major version as here ({ours}), got {theirs}: "
            "install the matching one on either side, or launch with tracking=none"
        )
