"""Between the store and the page: completing what MLflow misses, and telling where it differs.

Both make from the store what each run of a sweep must say, and look at what MLflow says. `synchronise`
mends; `differences` only tells.
"""

from collections.abc import Callable, Iterator, Mapping

from adaexplore.backends.mlflow import comparing
from adaexplore.backends.mlflow.claims import Claim
from adaexplore.backends.mlflow.ledger import FILES, ID, PARENT, Ledger, files_digest
from adaexplore.backends.mlflow.outbox import Outbox
from adaexplore.backends.mlflow.service import Run, ServiceError
from adaexplore.backends.mlflow.tracker import Target, where
from adaexplore.errors import StoreError, TrackingError
from adaexplore.experiments.contents import Content
from adaexplore.experiments.projections import Projection


def synchronise(target: Target, notify: Callable[[int], None]) -> list[str]:
    """Make MLflow show a sweep as it is stored; lines that say what was done and where to look.

    Args:
        target: Where and what.
        notify: Told now and then how many runs are left.

    Raises:
        ConfigError: There is no such sweep.
        StoreError: The store cannot be read, or somebody else shows the sweep at this moment.
        TrackingError: MLflow could not be completed; says why.
    """
    projection = Projection(target.store, target.sweep)
    claim = Claim(target.store, target.sweep)
    if not claim.taken():
        raise StoreError(
            f"{target.sweep}: expected that nobody else shows this sweep, got a launch under way, which "
            "completes MLflow itself: wait for it, or stop it and sync again"
        )
    outbox = Outbox(
        claim,
        lambda: target.ledger(claim, thorough=True),
        lambda: projection,
        threads=target.threads,
        drain_s=target.config.drain_s,
    )
    runs = list(projection.runs())
    for item in runs:
        outbox.put(item)
    outbox.finish()
    while not outbox.wait(1.0):
        notify(outbox.pending())
    if (trouble := outbox.trouble()) is not None:
        raise TrackingError(f"MLflow is behind ({trouble}): mend that and sync again")
    return [
        f"{target.sweep}: {len(runs)} runs are in MLflow as they are stored",
        f"look at the runs:  {where(target)}",
    ]


def differences(target: Target) -> list[str]:
    """Where MLflow says something else of a sweep than the store, a line each; none is agreement.

    Raises:
        ConfigError: There is no such sweep.
        StoreError: The store cannot be read.
        TrackingError: MLflow cannot be asked.
    """
    projection = Projection(target.store, target.sweep)
    ledger = target.ledger(Claim(target.store, target.sweep))
    try:
        return list(_compared(ledger, projection))
    except ServiceError as error:
        if error.kind == "gone":
            return [f"{error}; 'adaexplore sync' makes it"]
        raise TrackingError(
            f"MLflow cannot be asked ({error}): mend that and verify again"
        ) from None
    finally:
        ledger.service.close()


def _compared(ledger: Ledger, projection: Projection) -> Iterator[str]:
    if not ledger.origin:
        yield "nothing of this sweep was ever shown in MLflow; 'adaexplore sync' does it"
        return
    ledger.find()
    found: dict[str, list[Run]] = {}
    for run in ledger.search():
        found.setdefault(run.tags[ID], []).append(run)
    ids = {run.run_id: run.tags[ID] for runs in found.values() for run in runs}
    for place, make in projection.runs():
        runs = found.pop(place.identity, [])
        if len(runs) != 1:
            yield f"{place.level} {place.identity}: expected one run in MLflow, got {len(runs)}"
        if runs:
            yield from _differing(ledger, make(), runs[0], ids)
    for identity in sorted(found):
        yield f"{identity}: expected no run in MLflow, got {len(found[identity])}"


def _differing(ledger: Ledger, content: Content, run: Run, ids: Mapping[str, str]) -> Iterator[str]:
    parent = content.place.parent.identity if content.place.parent else None
    pairs: dict[str, tuple[str | None, str | None]] = {
        "status": ("FINISHED" if content.complete else "FAILED", run.status),
        "parent": (parent, ids.get(run.tags.get(PARENT, ""))),
    }
    if content.artifacts:
        files = {path: make() for path, make in content.artifacts.items()}
        pairs["files"] = (files_digest(files), run.tags.get(FILES))
    lines = [*comparing.told(pairs), *comparing.differences(ledger.service, content, run)]
    yield from (f"{content.place.level} {content.place.identity}: {line}" for line in lines)
