"""What is built: the dataset, byte for byte the same each time, and a large report.

The report is of a synthetic sweep of 10 models, 5 settings and 240 episodes.
"""

import tempfile
import time

from tests.benchmarks.children import ROOT, run, told
from tests.benchmarks.rows import measured

REPORT_S, REPORT_MB, PAGE_MB = 60, 1024, 5


def rows(bench):
    """The rows of the group."""
    bench.say("building adaexplore-v1")
    yield measured("builds.dataset", "`adaexplore dataset build adaexplore-v1`", _dataset_s(), "s")
    bench.say("a report of 10 models, 5 settings, 240 episodes")
    found = told(["-m", "tests.benchmarks.report_bench"], paths=[ROOT])
    shown = "report of 10 models x 5 settings x 240 episodes"
    yield measured("builds.report", shown, found["seconds"], "s", REPORT_S)
    yield measured("builds.report_memory", "its peak RSS", found["rss_mb"], "MB", REPORT_MB)
    yield measured("builds.page", "size of its page", found["page_mb"], "MB", PAGE_MB)


def _dataset_s():
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        run(["-m", "adaexplore", "dataset", "build", "adaexplore-v1", "--out", folder], cwd=folder)
        return time.perf_counter() - start
