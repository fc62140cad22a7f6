"""Submissions: the notes of RayJobs that launches of a sweep have made, and of what they play.

A cluster forgets a RayJob that is deleted, and the driver in it leaves its own note only once it runs.
So whoever submits notes where the sweep went: `status`, `logs` and `cancel` find it there.
"""

import json
from dataclasses import asdict, dataclass

from adaexplore.errors import StoreError
from adaexplore.experiments.stores import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One RayJob of a sweep."""

    number: int
    """Of all of the sweep's, from 1."""
    rayjob: str
    namespace: str
    context: str
    """Of the submitter's kubeconfig."""
    frozen: str
    """Store key of the frozen file that it plays."""
    submitted: str
    """When, in UTC."""
    host: str
    """Of the submitter."""

    def __str__(self) -> str:
        """Where it went, for people."""
        where = f"RayJob {self.rayjob} in namespace {self.namespace} ({self.context})"
        return f"{where}, {self.submitted} from {self.host}"


def frozen_key(sweep: str, digest: str) -> str:
    """Store key of a frozen file that a launch has sent, by its SHA-256: never written anew."""
    return f"sweeps/{sweep}/frozen/{digest[:16]}.yaml"


def note(store: Store, sweep: str, submission: Submission) -> None:
    """Write the note of a submission."""
    text = json.dumps(asdict(submission), indent=2)
    store.put(f"{_prefix(sweep)}{submission.number:04d}-{submission.rayjob}.json", text.encode())


def read(store: Store, sweep: str) -> list[Submission]:
    """All submissions of a sweep, the last one last; StoreError if a note is damaged."""
    return [_read(store, key) for key in store.keys(_prefix(sweep))]


def _read(store: Store, key: str) -> Submission:
    try:
        return Submission(**json.loads(store.get(key) or b""))
    except (ValueError, TypeError):
        raise StoreError(f"{store.locate(key)}: not the note of a submission; remove it") from None


def _prefix(sweep: str) -> str:
    return f"sweeps/{sweep}/submissions/"
