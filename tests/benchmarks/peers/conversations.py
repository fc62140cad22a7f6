"""The conversations that every peer holds: the same messages, turn for turn, that our client sends.

They are recorded once by `record.py`. A peer is given the messages alone, without the game behind
them: no environment is stepped, nothing is journaled or paced, so that what it is charged with is
talking, and our side, which does all of that, is charged with more. Between two turns a history keeps
its first messages and gets new ones; a finished batch takes the place of the messages about it.
"""

import json
import resource
import sys
import time
from pathlib import Path

PARAMETERS = {"temperature": 0.0, "seed": 0, "max_tokens": 8192}
"""What a call says beside its messages and the model."""


def read():
    """(port of the server, conversations) as the command line asks for them.

    A conversation is a list of turns, and a turn (how many messages of the one before stay, the new
    ones). There are as many as were asked for, in the order of the recorded ones, again and again.
    """
    port, file, episodes = sys.argv[1:]
    recorded = json.loads(Path(file).read_text())
    return port, [recorded[i % len(recorded)] for i in range(int(episodes))]


class Meter:
    """CPU and wall time of what is measured."""

    def __init__(self):
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def tell(self, calls):
        """Print what was measured, as one line of JSON."""
        found = {
            "calls": calls,
            "cpu_s": time.process_time() - self._cpu,
            "wall_s": time.perf_counter() - self._wall,
            "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        print(json.dumps(found))
