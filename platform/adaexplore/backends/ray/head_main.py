"""A Ray of our own: this process is its head, and holds it until it is told to end.

It is run as a file, under a guard, by the launch that uses it: `ray.init` in the launch itself would
leave agents behind when the launch is killed. Where it listens is written to a file, whole or not at
all.

    head_main.py FOLDER CPUS OBJECT_STORE_BYTES DASHBOARD    (yes or no; HOST:PORT in FOLDER/address)
"""

import logging
import signal
import sys
from pathlib import Path

import ray


def main(arguments: list[str]) -> None:
    """Start, say where, and wait for a signal."""
    folder, cpus, size, dashboard = arguments
    ray.init(
        num_cpus=int(cpus),
        num_gpus=0,
        object_store_memory=int(size),
        include_dashboard=dashboard == "yes",
        dashboard_host="127.0.0.1",
        logging_level=logging.ERROR,
        log_to_driver=False,
        _temp_dir=folder,
    )
    whole = Path(folder, ".address")
    whole.write_text(ray.get_runtime_context().gcs_address)
    whole.rename(Path(folder, "address"))
    signal.pause()


if __name__ == "__main__":
    main(sys.argv[1:])
