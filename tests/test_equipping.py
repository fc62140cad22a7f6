"""What a launch is given: what it may spend is looked up where a cap asks for it."""

import pytest

from adaexplore import configure, equipping

WORDS = [
    "+grid=smoke", "models=[openai_compatible]", "+profiles.openai_compatible.model=mock",
    "+profiles.openai_compatible.route.base_url=http://127.0.0.1:1/v1",
]  # fmt: skip
CELLS = {"c" * 32: "openai_compatible"}


class LookedUpError(Exception):
    pass


class Unread:
    """A store that nobody is to read."""

    def keys(self, _prefix):
        raise LookedUpError


def test_without_a_cap_what_was_spent_is_not_looked_up():
    found = equipping.budget(configure.sweep(WORDS), Unread(), CELLS)

    assert (None, None) == (found.cap_usd, found.cap_tokens)


@pytest.mark.parametrize("cap", ["budget.cap_tokens=1000", "budget.cap_usd=1"])
def test_with_a_cap_it_is(cap):
    with pytest.raises(LookedUpError):
        equipping.budget(configure.sweep([*WORDS, cap]), Unread(), CELLS)
