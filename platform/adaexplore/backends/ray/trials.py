"""Whether a cluster that runs lets us in, found out within seconds and said in one line."""

import os
import re
import selectors
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from adaexplore.errors import ClusterError
from adaexplore.experiments.placements import RayConfig

ANSWER_S: Final = 10.0
"""How long a cluster may take to answer."""
IMPORT_S: Final = 60.0
_PROGRAM: Final = Path(__file__).with_name("probe.py")
_REFUSED: Final = ("InvalidAuthToken", "Unauthenticated", "AuthenticationError")
_MODES: Final = {"token": "token", "none": "disabled"}


def environment(config: RayConfig) -> dict[str, str]:
    """What a driver of a cluster that runs has in its environment."""
    return {"RAY_AUTH_MODE": _MODES[config.auth], "RAY_USAGE_STATS_ENABLED": "0"}


def require(config: RayConfig) -> None:
    """Refuse a cluster that cannot be joined (ClusterError)."""
    address = config.address or "auto"
    if config.auth == "token":
        _require_token()
    if address != "auto":
        _require_listener(address)
    try:
        said = _tried(address)
    except TimeoutError:
        raise ClusterError(_silent(address, f"nothing within {ANSWER_S:.0f} s")) from None
    if said is not None:
        raise ClusterError(_explained(config, address, said))


def _tried(address: str) -> str | None:
    """What a failed try wrote to its errors; None if it joined. TimeoutError if it goes on trying."""
    command = [sys.executable, "-P", str(_PROGRAM), address]
    with subprocess.Popen(  # noqa: S603 (our own words)
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            return _heard(process)
        finally:
            process.kill()


def _heard(process: "subprocess.Popen[bytes]") -> str | None:
    assert process.stdout is not None  # noqa: S101 (pipes both)
    assert process.stderr is not None  # noqa: S101
    output, errors = b"", b""
    deadline_s = time.monotonic() + IMPORT_S
    trying = False
    with selectors.DefaultSelector() as selector:
        for stream in (process.stdout, process.stderr):
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select(max(deadline_s - time.monotonic(), 0.0)):
                data = os.read(key.fd, 65536)
                if not data:
                    selector.unregister(key.fileobj)
                if key.fileobj is process.stdout:
                    output += data
                else:
                    errors += data
            if b"joined" in output:
                return None
            if b"trying" in output and not trying:
                trying, deadline_s = True, time.monotonic() + ANSWER_S
            if any(word.encode() in errors for word in _REFUSED):
                break  # it would go on trying
            if time.monotonic() > deadline_s:
                raise TimeoutError
    return errors.decode(errors="replace")


def _require_token() -> None:
    """Refuse to begin without a token (ClusterError)."""
    if os.environ.get("RAY_AUTH_TOKEN", "").strip():
        return
    path = _token_file()
    try:
        empty = not path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        empty = True
    if empty:
        raise ClusterError(
            f"{path}: expected the cluster's token, got none: set RAY_AUTH_TOKEN or "
            "RAY_AUTH_TOKEN_PATH, or backend.ray.auth=none for a cluster without"
        )


def _token_file() -> Path:
    given = os.environ.get("RAY_AUTH_TOKEN_PATH")
    return Path(given) if given else Path.home() / ".ray" / "auth_token"


def _require_listener(address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), ANSWER_S).close()
    except (OSError, OverflowError) as error:
        told = getattr(error, "strerror", None) or str(error)
        raise ClusterError(_silent(address, told)) from None


def _silent(address: str, got: str) -> str:
    return (
        f"backend.ray.address={address}: expected a Ray head to answer, got {got}: is it running "
        "('ray status' there), is the port that of the head (6379), not of the dashboard?"
    )


def _explained(config: RayConfig, address: str, said: str) -> str:
    """One line for what Ray says in many."""
    where = f"backend.ray.address={address}"
    if any(word in said for word in _REFUSED):
        if config.auth == "none":
            return (
                f"{where}: expected a cluster without authentication, got one with: set "
                "backend.ray.auth=token"
            )
        variable = bool(os.environ.get("RAY_AUTH_TOKEN", "").strip())
        source = "RAY_AUTH_TOKEN" if variable else str(_token_file())
        return (
            f"{where}: the cluster refuses the token from {source}: it is stale or another cluster's; "
            "get the present one ('ray get-auth-token' on the head)"
        )
    versions = re.findall(r"(Ray|Python): (\S+)", said)
    if "Version mismatch" in said and len(versions) >= 4:
        there, here = versions[:2], versions[2:4]
        told = [" ".join(f"{name} {number}" for name, number in both) for both in (here, there)]
        return (
            f"{where}: expected {told[0]} as here, got {told[1]} on the cluster: install the same "
            "versions on both sides (one image for all)"
        )
    if "ConnectionError" in said and address == "auto":
        return f"{where}: expected a Ray of this machine, got none: start one, or leave the address out"
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return _silent(address, lines[-1][:300] if lines else "nothing")
