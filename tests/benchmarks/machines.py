"""Where a run was made: machine, versions, load, date. Without it no figure means anything."""

import os
import sys
import time
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("adaexplore", "numpy", "aiohttp", "orjson", "uvloop", "mlflow")


def described():
    """The machine, at the beginning of a run."""
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "processor": _line("/proc/cpuinfo", "model name") or os.uname().machine,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "system": f"{os.uname().sysname} {os.uname().release}",
        "python": sys.version.split()[0],
        "versions": {name: version(name) for name in PACKAGES},
        "load_before": round(os.getloadavg()[0], 2),
        "started": time.time(),
    }


def ended(machine):
    """The same with how long the run took and the load at its end."""
    minutes = (time.time() - machine["started"]) / 60
    rest = {name: value for name, value in machine.items() if name != "started"}
    return rest | {"minutes": round(minutes, 1), "load_after": round(os.getloadavg()[0], 2)}


def shown(machine):
    """The machine in one paragraph."""
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return (
        f"{machine['date']}, {machine['minutes']:g} minutes; {machine['processor']}, "
        f"{machine['cores']} cores, {machine['memory_gb']} GB; {machine['system']}; Python "
        f"{machine['python']}, {versions}; load {machine['load_before']:g} before and "
        f"{machine['load_after']:g} after (the run's own processes included)."
    )


def _line(file, name):
    """The first value of that name in a file of `name : value` lines, or None."""
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:
        return None
    found = (line.partition(":")[2] for line in lines if line.startswith(name))
    return next((" ".join(value.split()) for value in found), None)
