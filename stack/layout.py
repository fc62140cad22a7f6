"""Where the stack lives and listens.

Ports are few and outside the range from which the system serves outgoing connections (32768 and up
on Linux): a port inside it is free today and somebody's connection tomorrow. `STACK_PORTS` moves
them by name; the choice is kept with the data, so that addresses that were written down stay true.
"""

import json
import random
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Final, Self

from adaexplore.backends.vllm import ports as sockets
from adaexplore.errors import AdaExploreError, ConfigError

HOST: Final = "127.0.0.1"
SEAWEED_ROW: Final = 8
"""Ports in a row that SeaweedFS uses among its own parts."""
SEAWEED_ADMIN: Final = 10_000
"""Distance of one more: its worker looks for the admin part there, whatever it was told."""
_TRIES: Final = 200


class StackError(AdaExploreError):
    """A service of the stack that does not start, answer or stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """TCP ports on loopback."""

    postgres: int = 15432
    s3: int = 8333
    mlflow: int = 5000
    seaweed: int = 18340
    """First of those that SeaweedFS uses among its own parts: eight in a row, and 10,007 further on."""

    def moved(self, text: str) -> Self:
        """The same with the ports of a text such as `mlflow=5001,s3=8334`.

        Raises:
            ConfigError: An unknown name, something that is no port, or a port that is given twice.
        """
        given = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, _, number = part.partition("=")
            if name not in {field.name for field in fields(self)} or not number.isdecimal():
                raise ConfigError(
                    f"expected ports as postgres=N,s3=N,mlflow=N,seaweed=N, got {part!r} in "
                    "STACK_PORTS; name only those that move"
                )
            given[name] = int(number)
        return replace(self, **given).checked()

    def checked(self) -> Self:
        """Itself, if all its ports exist and differ.

        Raises:
            ConfigError: Otherwise.
        """
        numbers = self.numbers()
        twice = sorted({number for number in numbers if numbers.count(number) > 1})
        wrong = [number for number in numbers if not 1024 <= number <= 65535]
        if twice or wrong:
            raise ConfigError(
                f"expected distinct ports from 1024 to 65535, got {(wrong or twice)[0]} "
                f"{'outside' if wrong else 'twice'} (seaweed=N stands for N to N+{SEAWEED_ROW - 1} and "
                "for one 10,000 higher); change STACK_PORTS"
            )
        return self

    def numbers(self) -> list[int]:
        """All of them."""
        return [self.postgres, self.s3, self.mlflow, *self.internal()]

    def internal(self) -> tuple[int, ...]:
        """The ports that SeaweedFS uses among its own parts; the last two are of its admin part."""
        row = range(self.seaweed, self.seaweed + SEAWEED_ROW)
        return (*row, row[-1] + SEAWEED_ADMIN)


def saved(folder: Path) -> Ports:
    """The ports of the last start in a folder; the defaults before the first."""
    try:
        return Ports(**json.loads((folder / "ports.json").read_text()))
    except FileNotFoundError:
        return Ports()


def save(folder: Path, ports: Ports) -> None:
    """Keep the ports for the next start."""
    (folder / "ports.json").write_text(json.dumps(asdict(ports)) + "\n")


def free_ports() -> Ports:
    """Ports that nobody listens on, for a stack beside others.

    Raises:
        StackError: None were found.
    """
    chance = random.SystemRandom()
    for _ in range(_TRIES):
        start = chance.randrange(20_000, 22_500)
        ports = Ports(postgres=start, s3=start + 1, mlflow=start + 2, seaweed=start + 3)
        if all(sockets.free(port) for port in ports.numbers()):
            return ports
    raise StackError(
        "expected eleven free ports in a row from 20000 to 22500, found none; stop some servers"
    )
