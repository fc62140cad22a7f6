"""What a large report costs: 10 models x 5 settings x 240 episodes, from records to files.

`python -m tests.benchmarks.report_bench [EPISODES]` prints seconds, memory and size of the page, and
in its last line the same as JSON.
"""

import json
import resource
import sys
import time

from tests import synthetic

from adaexplore.reports import report
from adaexplore.reports.evidence import Sharer
from adaexplore.reports.page import REPORT


def main(episodes):
    sharer = Sharer()
    found = synthetic.evidence(synthetic.MODELS, episodes=episodes)
    for group, records in found.records.items():
        found.records[group] = [sharer.shared(record) for record in records]
    sharer = None
    start, cpu = time.monotonic(), time.process_time()
    built = report.build(found)
    middle = time.monotonic()
    files = dict(report.files(built))
    seconds, used = time.monotonic() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{found.scored} scored runs: {seconds:.1f} s ({used:.1f} s of CPU, analyses {middle - start:.1f} s)"
    )
    page_mb = len(files[REPORT]) / 1e6
    print(f"peak memory {peak:.0f} MB, page {page_mb:.2f} MB, {len(files)} files")
    print(json.dumps({"seconds": seconds, "rss_mb": peak, "page_mb": page_mb}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 240)
