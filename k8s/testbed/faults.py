"""The errors of the test bed."""

from typing import Any

from adaexplore.errors import AdaExploreError


class BedError(AdaExploreError):
    """The test bed cannot be built, started or used."""

    exit_code = 4


class ApiError(BedError):
    """An answer of the API server that is not a success."""

    def __init__(self, status: int, body: Any, where: str) -> None:
        """Keep the status; the line says what the server said."""
        said = body.get("message", body) if isinstance(body, dict) else body
        super().__init__(f"{where}: status {status}: {said}")
        self.status = status
        self.reason = body.get("reason", "") if isinstance(body, dict) else ""
