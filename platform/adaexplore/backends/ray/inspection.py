"""What a node of a cluster is: looked at there, before anything of ours is needed there.

This module is sent as it is, so it imports the standard library alone; what it says is plain data.
"""

import importlib
import os
import sys
from pathlib import Path
from typing import Any


def inspect(marker: str | None) -> dict[str, Any]:
    """What a node has.

    Args:
        marker: Path of a file that the driver has just written into the store's folder.

    Returns:
        `host`; `python` and digest of our `source`, None where our package is missing (`missing` names
        the module); `sees` the marker.
    """
    found: dict[str, Any] = {
        "host": os.uname().nodename,
        "python": ".".join(map(str, sys.version_info[:3])),
        "source": None,
        "missing": None,
        "sees": marker is None or Path(marker).is_file(),
    }
    try:
        provenance = importlib.import_module("adaexplore.provenance")
    except ImportError as error:
        found["missing"] = error.name or str(error)
    else:
        found["source"] = provenance.source_digest(provenance.PACKAGE)
    return found
