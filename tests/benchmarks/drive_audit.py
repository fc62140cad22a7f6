"""One process that replays, or audits, a stored sweep.

`python drive_audit.py RUNS_DIR SWEEP REPEATS` prints, for each repeat, episodes per CPU second of a replay
and of a whole audit, both in this one process, as JSON. Reading the store is part of both.
"""

import json
import sys
import time
from pathlib import Path

from adaexplore.backends.folder import FolderStore
from adaexplore.experiments import audits, stored
from adaexplore.experiments.audits import Audit


def main():
    store = FolderStore(Path(sys.argv[1]))
    sweep = stored.read(store, sys.argv[2])
    worlds = stored.worlds(stored.dataset(store, sweep), sweep)
    found = {"replay": [], "verify": []}
    for _ in range(int(sys.argv[3])):
        audit = Audit(store=store, sweep=sweep, worlds=worlds, processes=1)
        attempts = audits.by_run(store.keys("cells/"))
        found["replay"].append(rate(audit, lambda a=audit, b=attempts: a.of_attempts(b)))
        audit = Audit(store=store, sweep=sweep, worlds=worlds, processes=1)
        found["verify"].append(rate(audit, audit.findings))
    print(json.dumps(found))


def rate(audit, act):
    """Episodes per CPU second of an audit that finds nothing."""
    start = time.process_time()
    assert [] == list(act())
    return audit.replayed / (time.process_time() - start)


if __name__ == "__main__":
    main()
