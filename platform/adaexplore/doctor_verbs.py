"""`doctor`: everything that a configuration depends on, looked at, each with what mends it."""

import asyncio
import json
from collections.abc import Sequence
from typing import Final

from adaexplore import arguments, checkup, configure, display
from adaexplore.experiments.config import SweepConfig
from adaexplore.experiments.findings import Finding

DONE: Final = 0
FINDINGS: Final = 4
DEFAULT: Final = "+grid=smoke"

DOCTOR_HELP: Final = """\
usage: adaexplore doctor [+grid=NAME] [KEY=VALUE ...] [--json]

Looks at everything that 'adaexplore launch' with the same words depends on, and creates nothing: the
store, MLflow, keys and endpoints of models, Ray, and with backend=kubernetes the cluster (its answer,
KubeRay, rights, service accounts, Secrets, quotas, GPUs, the image, addresses that pods can reach).

  ok         is as it should be
  WRONG      will not do; the line says what mends it
  unknown    could not be looked at from here, or by you

exit codes: 0 nothing is wrong, 2 the words are, 4 something is wrong"""


def doctor(words: Sequence[str]) -> int:
    """Exit code of `doctor`."""
    if {"--help", "-h"} & set(words):
        print(DOCTOR_HELP)
        return DONE
    given = arguments.read("doctor", words, flags=["json"])
    given.expect()
    grid = () if any(word.lstrip("+").startswith("grid") for word in given.keys) else (DEFAULT,)
    return asyncio.run(_looked(configure.sweep([*grid, *given.keys]), plain="json" in given.flags))


async def _looked(config: SweepConfig, *, plain: bool) -> int:
    output, found = display.console(), []
    async for finding in checkup.look(config):
        found.append(finding)
        if not plain:
            display.show_lines(output, [_line(finding)])
    if plain:
        print(json.dumps([finding.document() for finding in found], indent=2))
    wrong = sum(finding.state == "WRONG" for finding in found)
    if not plain:
        told = f"{wrong} of {len(found)} are wrong" if wrong else "nothing is wrong"
        display.show_lines(output, [told])
    return FINDINGS if wrong else DONE


def _line(finding: Finding) -> str:
    return display.plain(f"{finding.state:<8} {finding.name}: {finding.told}")
