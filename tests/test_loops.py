"""The loop of a launch asks for as many open files as many episodes at once need."""

import subprocess
import sys

CHILD = """
import resource
from adaexplore import loops

async def limit():
    return resource.getrlimit(resource.RLIMIT_NOFILE)

resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
print(loops.run(limit()))
"""


def limits(soft, hard):
    words = [sys.executable, "-c", CHILD.format(soft=soft, hard=hard)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def test_a_low_limit_is_raised_as_far_as_is_allowed():
    assert "(3000, 3000)" == limits(256, 3000)


def test_a_higher_limit_is_left_as_it_is():
    assert "(3000, 3000)" == limits(3000, 3000)
