"""`python -m k8s.testbed missing|build|up`: the test control plane by hand.

`missing` prints the Debian packages that are not installed, `build` builds the programs if need be and
prints where they are, `up` runs a bed with a GPU node until it is interrupted. Exit codes: 0 done, 2
configuration, 4 infrastructure.
"""

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from adaexplore.errors import AdaExploreError
from k8s.testbed import builds, images
from k8s.testbed.beds import CHECKOUT, Bed
from k8s.testbed.kubelet import Node


def main(arguments: list[str]) -> int:
    """Do one command; its exit code."""
    parser = argparse.ArgumentParser(prog="python -m k8s.testbed", description=__doc__)
    parser.add_argument("command", choices=["missing", "build", "up"])
    command = parser.parse_args(arguments).command
    try:
        if command == "missing":
            print(*builds.missing())
        elif command == "build":
            print(builds.ensure())
        else:
            _up()
    except AdaExploreError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 0
    return 0


def _up() -> None:
    table = {"python": images.this_python(CHECKOUT)}
    nodes = [Node(name="gpu-0", gpus=2), Node(name="cpu-0")]
    with (
        tempfile.TemporaryDirectory(prefix="bed-") as folder,
        Bed(Path(folder), nodes=nodes, table=table) as bed,
    ):
        bed.start_operator()
        print(f"export KUBECONFIG={bed.kubeconfig()}")
        print(f"image `python` is {sys.prefix}; logs in {bed.logs}; ends with Ctrl-C")
        sys.stdout.flush()
        signal.pause()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
