"""What probes and cases were worth, as the JSON that an agent reads.

It is most of what an environment says, so it is written straight into its text.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

from adaexplore.benchmark.game.records import CaseRecord
from adaexplore.benchmark.game.settings import Setting
from adaexplore.benchmark.game.written import Json
from adaexplore.benchmark.world.rounding import SURE
from adaexplore.benchmark.world.utility import ACTIONS, Utilities

SHOWN_DIGITS: Final = 2
"""Decimals of a utility that an agent sees."""
_TEXTS: Final = {hundredths: repr(hundredths / 100.0) for hundredths in range(-100, 101)}
"""Every utility that an agent can see, as it is written."""


def shown(value: float) -> float:
    """A utility as the agent sees it: two decimals, and never a negative zero."""
    return round(value, SHOWN_DIGITS) + 0.0


def probes(ids: Sequence[str], bases: Sequence[str | None], utilities: Sequence[Utilities]) -> Json:
    """What probes answered, one of each a probe, in order: the utilities of all four actions."""
    told = zip(map(_probe, ids, bases), _shown_utilities(utilities), strict=True)
    return _listed([f"{probe}, {worth}}}" for probe, worth in told])


def _probe(context_id: str, base: str | None) -> str:
    if base is None:
        return f'{{"context_id": "{context_id}", "probe_mode": "new_context"'
    return (
        f'{{"context_id": "{context_id}", "probe_mode": "existing_context", '
        f'"base_context_id": "{base}"'
    )


def cases(results: Sequence[CaseRecord], setting: Setting) -> Json:
    """What the cases of a finished batch earned, and what else the setting shows of them."""
    earned = _texts(result.utility for result in results)
    named = setting.evidence != "rewritten"
    told = [_case(*one, named=named) for one in zip(results, earned, strict=True)]
    if setting.evidence == "full":
        worth = _shown_utilities([result.utilities for result in results])
        told = [f"{case}, {utilities}" for case, utilities in zip(told, worth, strict=True)]
    return _listed([f"{case}}}" for case in told])


def _case(result: CaseRecord, earned: str, *, named: bool) -> str:
    chosen = "null" if result.action is None else f'"{ACTIONS[result.action]}"'
    action = f', "action_id": {chosen}' if named else ""
    abstained = ', "abstained": true' if result.action is None else ""
    return f'{{"context_id": "{result.context_id}"{action}, "utility": {earned}{abstained}'


def _shown_utilities(utilities: Sequence[Sequence[float]]) -> list[str]:
    """The utilities of all four actions, of each probe or case."""
    a0, a1, a2, a3 = ACTIONS
    texts = iter(_texts(chain.from_iterable(utilities)))
    return [
        f'"utilities": {{"{a0}": {u0}, "{a1}": {u1}, "{a2}": {u2}, "{a3}": {u3}}}'
        for u0, u1, u2, u3 in zip(texts, texts, texts, texts, strict=True)
    ]


def _texts(utilities: Iterable[float]) -> list[str]:
    """The text of `shown` for each utility, looked up unless it lies next to a tie (see `rounding`)."""
    texts = []
    for value in utilities:
        scaled = value * 100.0
        hundredths = round(scaled)
        sure = -SURE < scaled - hundredths < SURE
        texts.append(_TEXTS[hundredths] if sure else repr(shown(value)))
    return texts


def _listed(items: Sequence[str]) -> Json:
    return Json(f"[{', '.join(items)}]")
