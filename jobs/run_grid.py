r"""Play one frozen sweep on the cluster that runs this: what a Ray job, and so a Kubernetes one, is.

    python jobs/run_grid.py URI [KEY=VALUE ...]     as 'adaexplore rerun' does; URI is a path, file:// or
                                                    s3:// (keys come from where the AWS tools look)

    ray job submit --working-dir . -- python jobs/run_grid.py s3://bucket/sweeps/NAME/frozen.yaml \
        store=s3 store.bucket=bucket

In a RayJob that 'adaexplore launch backend=kubernetes' has made, the file alone says everything, and it
must be the one that was launched: ADAEXPLORE_FROZEN_SHA256 is its digest.

Inside a Ray job the sweep plays on that Ray, whatever address the file says. SIGTERM ends it in order:
run again, it resumes. Exit codes: 0 done, 2 configuration, 3 partial, 4 infrastructure.
"""

import os
import sys
from pathlib import Path

try:
    from adaexplore import cluster_driver, frozen_verbs, launch
except ModuleNotFoundError:  # a working directory that was sent, without the package installed
    sys.path.insert(0, str(Path(__file__).parent.parent / "platform"))
    from adaexplore import cluster_driver, frozen_verbs, launch


def main(words: list[str]) -> int:
    """Exit code of the sweep."""
    if cluster_driver.DIGEST in os.environ:
        return launch.guarded(lambda: cluster_driver.play(*words))
    if "RAY_ADDRESS" in os.environ:
        words = ["backend.kind=ray", "backend.processes=0", *words, "backend.ray.address=auto"]
    return launch.guarded(lambda: frozen_verbs.rerun(words))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
