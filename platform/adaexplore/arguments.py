"""The words after a verb: names, KEY=VALUE, and options, told apart in one way for all verbs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from adaexplore.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """What was given."""

    verb: str
    names: tuple[str, ...]
    """Words that are neither options nor hold an equals sign."""
    keys: tuple[str, ...]
    """Words KEY=VALUE."""
    flags: frozenset[str]
    """Options without a value, without their dashes."""
    values: tuple[tuple[str, str], ...]
    """(option, value) in the order given."""

    def one(self, option: str) -> str | None:
        """The value of an option that was given at most once; ConfigError if it was given twice."""
        found = self.all(option)
        if len(found) > 1:
            raise ConfigError(f"{self.verb}: option --{option} is given {len(found)} times")
        return found[0] if found else None

    def all(self, option: str) -> list[str]:
        """All values of an option."""
        return [value for name, value in self.values if name == option]

    def expect(self, *wanted: str) -> tuple[str, ...]:
        """The names, one for each of these; ConfigError that says which are wanted."""
        if len(self.names) != len(wanted):
            got = " ".join(self.names) or "none"
            expected = " ".join(wanted) or "no name"
            raise ConfigError(f"{self.verb}: expected {expected}, got {got}")
        return self.names


def read(
    verb: str, words: Sequence[str], *, flags: Iterable[str] = (), options: Iterable[str] = ()
) -> Arguments:
    """The words after a verb.

    Args:
        verb: For messages.
        words: What was given.
        flags: Options that take no value.
        options: Options that take one, as `--name=value` or `--name value`.

    Raises:
        ConfigError: An option is unknown, or lacks its value.
    """
    flags, options = list(flags), list(options)
    names: list[str] = []
    keys: list[str] = []
    given: set[str] = set()
    values: list[tuple[str, str]] = []
    rest = iter(words)
    for word in rest:
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--"):
            (keys if equals else names).append(word)
        elif name in flags and not equals:
            given.add(name)
        elif name in options:
            value = value if equals else next(rest, "")
            if not value:
                raise ConfigError(f"{verb}: option --{name} needs a value")
            values.append((name, value))
        else:
            known = ", ".join(f"--{option}" for option in [*flags, *options]) or "none"
            raise ConfigError(f"{verb}: unknown option '{word}': expected one of {known}")
    return Arguments(
        verb=verb, names=tuple(names), keys=tuple(keys), flags=frozenset(given),
        values=tuple(values),
    )  # fmt: skip
