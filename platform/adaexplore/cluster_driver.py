"""The driver in a cluster: a frozen file, read where the launch has put it, and played there.

What plays is the in-cluster form of the configuration (`experiments.relocations`); what is written
down is the launch's own. The file must be the one that was launched, and all that decides results
must be as it was frozen; what the launch allows to differ (`backend.kubernetes.allow_drift`) is noted.
"""

import hashlib
import os
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from adaexplore import dispatch, display, launching, opening, publish
from adaexplore.authoring import datasets
from adaexplore.errors import ConfigError
from adaexplore.experiments import drifts, frozen, grids, relocations
from adaexplore.experiments.config import SweepConfig
from adaexplore.experiments.drifts import Difference
from adaexplore.experiments.frozen import Frozen
from adaexplore.preparing import Options

DIGEST: Final = "ADAEXPLORE_FROZEN_SHA256"
"""Variable with the SHA-256 of the file, in hex: it marks a driver that a launch has sent."""
RAYJOB: Final = "ADAEXPLORE_RAYJOB"
"""Variable with the name of the RayJob."""


def play(uri: str) -> int:
    """Exit code of the sweep in a file, named by its URI.

    Raises:
        ConfigError: The file is another than the one launched, or what is here differs from it.
    """
    data = opening.fetched(uri)
    digest = hashlib.sha256(data).hexdigest()
    if digest != (expected := os.environ[DIGEST]):
        raise ConfigError(
            f"{uri}: expected the frozen sweep that was launched (sha256 {expected[:12]}), got "
            f"{digest[:12]}: launch again"
        )
    found = frozen.read(data, uri)
    given = replace(found.config, name=found.sweep)
    drift = _drift(found, frozen.renewed(given), uri)
    output = display.console()
    for difference in drift:
        display.show_lines(output, [f"differs from where it was launched: {difference}"])
    note = {
        "kubernetes": {
            "rayjob": os.environ.get(RAYJOB),
            "cluster": os.environ.get("RAY_CLUSTER_NAME"),
            "frozen": uri,
            "drift": {d.name: {"frozen": d.frozen, "here": d.here} for d in drift},
        }
    }
    redo = frozenset(filter(None, os.environ.get(dispatch.REDO, "").split(",")))
    options = Options(dry_run=False, yes=True, redo=redo)
    return launching.start(relocations.in_cluster(given), options, note=note, written=given)


def _drift(found: Frozen, config: SweepConfig, where: str) -> list[Difference]:
    """The differences that the launch allows; ConfigError for any other."""
    dataset = datasets.load(config.dataset.name, config.dataset.split)
    cells = grids.expand(config, dataset.digest)
    here = publish.digests(config, dataset.digest)
    differing = drifts.differences(found, cells, here)
    source = here["code"]["source"]
    same = {"code"} if found.digests["code"].get("source") == source else set()
    same |= {"image"} if found.digests["image"] is None else set()  # an image knows no commits,
    differing = [one for one in differing if one.name not in same]  # and a laptop no image
    allowed: Collection[str] = config.backend.pods.allow_drift
    refused = [difference for difference in differing if difference.name not in allowed]
    if refused:
        names = ",".join(difference.name for difference in refused)
        raise ConfigError(
            f"{where}: the image is not what was launched: {'; '.join(map(str, refused))}: build the image "
            f"from the checkout that launches, or add {names} to backend.kubernetes.allow_drift"
        )
    return differing
