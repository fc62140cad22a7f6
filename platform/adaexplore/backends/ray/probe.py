"""Whether a Ray cluster lets this machine in: tried by a process of its own, which may be killed.

Ray itself goes on trying for minutes, and says what is wrong in its log only. Run as a file:

    probe.py ADDRESS

writes `importing` to its output, then `trying`, then `joined`, and anything else to its errors.
"""

import logging
import sys

print("importing", flush=True)
import ray  # noqa: E402 (the deadline begins when it is there)


def main(address: str) -> None:
    """Join and leave."""
    print("trying", flush=True)
    ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    print("joined", flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
