"""`make chaos N=90`: the sweep's process is killed at random moments, and its tables are the same.

Each chain is one sweep in a folder of its own, killed a few times in a row and then left in peace;
there are as many chains as it takes for N kills.
Two ways to die: at a store operation chosen by the seed (before it, in its middle, after it), or by
SIGKILL from outside once a chosen number of replies is journaled. At the end of a chain the tables
must be the bytes of an undisturbed run, and over all attempts every turn must have been asked once.
The seed is printed: `make chaos N=90 SEED=7` does the same again.
"""

import argparse
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path
from threading import Lock

from tests.chaos.dying import DyingStore, Fuse
from tests.chaos.victim import GRID, play

from adaexplore import assemble, launch
from adaexplore.experiments import journals as reading

KILLS_A_CHAIN = 3
CHILDREN = multiprocessing.get_context("forkserver")
# A process that starts asks after all others, and an exit code can be read once: two threads that
# ask at the same time would tell one of them 255.
ASKING = Lock()


def launch_in(folder, fuse=None, kill_at=None):
    """Exit code of a launch that may be killed from outside after so many journaled replies."""
    child = CHILDREN.Process(target=play, args=(folder, fuse))
    with ASKING:
        child.start()
    while not wait([child.sentinel], None if kill_at is None else 0.001):
        if journaled(folder) >= kill_at:  # what has been written kills it, not the clock
            with suppress(ProcessLookupError):  # it has ended since it was looked at
                os.kill(child.pid, signal.SIGKILL)
            kill_at = None
    with ASKING:
        child.join()
    return child.exitcode


def journals(folder):
    return sorted(Path(folder).glob("runs/cells/*/*/*/journal.jsonl"))


def journaled(folder):
    return sum(path.read_bytes().count(b"\n") for path in journals(folder))


def asked(folder):
    """Replies by episode run that attempts asked for themselves; what was carried over is not theirs."""
    found = {}
    for path in journals(folder):
        journal = reading.read(path.read_bytes(), str(path))
        own = 0 if journal is None else len(journal.own_entries)
        found[path.parts[-4:-2]] = found.get(path.parts[-4:-2], 0) + own
    return found


def tables(folder):
    paths = Path(folder).glob("runs/sweeps/*/tables/[!.]*")  # what a kill half wrote is hidden
    return {path.name: path.read_bytes() for path in paths}


def chain(seed, whole, operations, replies):
    """(what was done, kills, what is wrong) of one sweep; nothing is wrong when all is well."""
    rng = random.Random(f"chaos {seed}")
    told, wrong, kills = [], [], 0
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        for _ in range(KILLS_A_CHAIN):
            if rng.random() < 0.7:
                # The last operations of all, the tables, are met by the first kill of a chain alone.
                most = operations if not told else operations // 2
                fuse = (rng.randint(1, most), rng.choice(["before", "middle", "after"]))
                told.append(f"{fuse[1]} operation {fuse[0]}")
                code = launch_in(folder, fuse=fuse)
            else:
                kill_at = journaled(folder) + rng.randint(0, replies // 2)
                told.append(f"at journal line {kill_at}")
                code = launch_in(folder, kill_at=kill_at)
            kills += code == -signal.SIGKILL
            if code == 0:  # it was done before its time had come
                break
            if code != -signal.SIGKILL:
                wrong.append(f"exit code {code} instead of a kill")
        if (code := launch_in(folder)) != 0:
            wrong.append(f"exit code {code} at the end")
        if tables(whole) != tables(folder):
            wrong.append("other tables")
        if asked(whole) != asked(folder):
            wrong.append("a turn was asked twice, or never")
    return told, kills, wrong


def count_operations(folder):
    """Operations of an undisturbed launch, counted by a fuse that is never burnt down."""
    fuse, whole = Fuse(0, "after"), assemble.store
    assemble.store = lambda config: DyingStore(whole(config), fuse)
    before = Path.cwd()
    os.chdir(folder)
    quiet, output = os.open(os.devnull, os.O_WRONLY), os.dup(1)
    os.dup2(quiet, 1)
    try:
        assert launch.launch(GRID) == 0
    finally:
        os.dup2(output, 1)
        os.chdir(before)
        assemble.store = whole
    return -fuse.operations


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kills", type=int)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    options = parser.parse_args()
    CHILDREN.set_forkserver_preload(["tests.chaos.victim"])
    start = time.monotonic()
    print(f"seed {options.seed}: {options.kills} kills", flush=True)
    kills = chains = failed = 0
    with tempfile.TemporaryDirectory(prefix="chaos-whole-") as whole:
        operations = count_operations(whole)
        replies = journaled(whole)
        print(f"undisturbed: {operations} store operations, {replies} journal lines", flush=True)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            while kills < options.kills:
                seeds = [f"{options.seed}/{chains + n}" for n in range(2 * os.cpu_count())]
                chains += len(seeds)
                found = pool.map(lambda seed: chain(seed, whole, operations, replies), seeds)
                for seed, (told, killed, wrong) in zip(seeds, found, strict=True):
                    kills += killed
                    failed += bool(wrong)
                    print(f"  {seed}: {', '.join(told)}: {'; '.join(wrong) or 'same'}", flush=True)
    print(f"{kills} kills in {chains} sweeps, {time.monotonic() - start:.0f} s")
    print(f"{chains - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
