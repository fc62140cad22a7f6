"""Ports of our servers: on loopback, free before they are given, and given to one server only.

Looking whether a port is free and taking it are two steps, and the engine takes minutes between
them. So a number is first claimed on the whole machine by an abstract socket's name, which the
system frees with the process that holds it, however it ends. Source: unix(7).
"""

import errno
import socket
from typing import Final, Self

from adaexplore.errors import ServingError

HOST: Final = "127.0.0.1"
SPAN: Final = 1000
"""Ports looked at from the first one on."""


class Claim:
    """A port that is ours on this machine until closed."""

    def __init__(self, port: int, holder: socket.socket) -> None:
        """Hold a claimed name."""
        self.port = port
        self._holder = holder

    def close(self) -> None:
        """Give the port back."""
        self._holder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def claim(start: int) -> Claim:
    """The first port from `start` on that nobody listens on and nobody has claimed.

    Raises:
        ServingError: None of the next thousand is free.
    """
    for port in range(start, min(start + SPAN, 65536)):
        holder = _name(port)
        if holder is None:
            continue
        if free(port):
            return Claim(port, holder)
        holder.close()
    raise ServingError(
        f"no free port from {start} to {min(start + SPAN, 65536) - 1} for a model server; set "
        "serving.port_start to a free range"
    )


def free(port: int) -> bool:
    """Whether a server could listen; connections that only fade out do not count."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen()
        except OSError as error:
            if error.errno in {errno.EADDRINUSE, errno.EACCES}:
                return False
            raise
    return True


def _name(port: int) -> socket.socket | None:
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        holder.bind(f"\0adaexplore/port/{port}")
    except OSError:
        holder.close()
        return None
    return holder
