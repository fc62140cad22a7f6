"""Helpers around stored sweeps: copies to damage, what an audit finds in them, edited documents.

The sweep itself is the fixture `finished_sweep` of conftest.py, played once a session.
"""

import shutil
from pathlib import Path

import yaml

from adaexplore import launch
from adaexplore.backends.folder import FolderStore
from adaexplore.experiments import journals, stored
from adaexplore.experiments.audits import Audit

WORDS = ["+grid=main", "models=[random,one_factor]", "settings=[default,stationary]", "dataset.limit=2",
         "tracking=none", "backend.processes=0", "name=mine"]  # fmt: skip
FREEZE_WORDS = ["+grid=main", "models=[random,constant]", "settings=[default,stationary]", "dataset.limit=2",
                "tracking=none", "backend.processes=0", "name=mine"]  # fmt: skip


def edited(data, change):
    """A YAML document that somebody changed."""
    plain = yaml.safe_load(data)
    change(plain)
    return yaml.safe_dump(plain, sort_keys=False).encode()


def play(folder):
    """Play the sweep below a folder, in this process."""
    assert 0 == launch.guarded(lambda: launch.launch([*WORDS, f"runs_dir={folder}"]))
    return folder


def copied(folder, target):
    """A copy of a played store."""
    shutil.copytree(folder, target)
    return target


def audit(root, *, processes=1):
    """An audit of the sweep below a root."""
    store = FolderStore(Path(root))
    sweep = stored.read(store, "mine")
    worlds = stored.worlds(stored.dataset(store, sweep), sweep)
    return Audit(store=store, sweep=sweep, worlds=worlds, processes=processes)


def found(root):
    """(kind, where) of all findings."""
    return [(finding.kind, finding.where) for finding in audit(root).findings()]


def cell_of(root, label):
    """Id of a cell."""
    store = FolderStore(Path(root))
    return next(c.cell_id for c in stored.read(store, "mine").cells if c.label == label)


def attempt_of(root, label, episode_id="v1-001"):
    """The folder of a run's attempt, and its key."""
    (folder,) = Path(root).glob(f"cells/{cell_of(root, label)}/{episode_id}/attempt-*")
    return folder, folder.relative_to(root).as_posix()


def rewrite(path, change):
    """Change the document of a checked line, and give it a check that matches."""
    document = journals.document(path.read_bytes().rstrip(b"\n"))
    path.write_bytes(journals.line(change(document)))
