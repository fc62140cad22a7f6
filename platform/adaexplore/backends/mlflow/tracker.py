"""The tracker: what a launch tells of its sweep, on its way to MLflow."""

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from adaexplore.backends.mlflow import rest
from adaexplore.backends.mlflow.child import Child
from adaexplore.backends.mlflow.claims import Claim
from adaexplore.backends.mlflow.ledger import Ledger
from adaexplore.backends.mlflow.outbox import Outbox
from adaexplore.backends.mlflow.rest import Rest
from adaexplore.backends.mlflow.service import Service
from adaexplore.backends.mlflow.traces import Tracer
from adaexplore.experiments import contents, projections
from adaexplore.experiments.config import TrackingConfig
from adaexplore.experiments.projections import Projection
from adaexplore.experiments.stores import Store
from adaexplore.experiments.trackers import Artifacts, Read, ShownCell


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where and what is shown: everything that a projection needs but the claim to it."""

    config: TrackingConfig
    root: Path
    """Folder of an embedded database and its artifacts."""
    store: Store
    sweep: str

    def service(self) -> Service:
        """MLflow as configured; nothing is asked yet."""
        if self.config.kind == "server":
            return Rest(self.config.uri or "")
        return Child(self.uri, (self.root.absolute() / "mlartifacts").as_uri())

    @property
    def uri(self) -> str:
        """MLflow's address."""
        if self.config.kind == "server":
            return self.config.uri or ""
        return f"sqlite:///{_quoted(self.root.absolute() / 'mlflow.db')}"

    @property
    def threads(self) -> int:
        """How many show at once: SQLite gains nothing from more than one."""
        return (self.config.workers or rest.THREADS) if self.config.kind == "server" else 1

    def ledger(self, claim: Claim, *, thorough: bool = False) -> Ledger:
        """The ledger of the sweep's runs."""
        service, start_ms = self.service(), projections.started_ms(self.store, self.sweep)
        return Ledger(
            service=service,
            claim=claim,
            experiment=self.config.experiment,
            sweep=self.sweep,
            origin=claim.origin(),
            start_ms=start_ms,
            trace=Tracer(
                service=service,
                store=self.store,
                sweep=self.sweep,
                start_ms=start_ms,
                wanted=self.config.traces,
            ),
            traces=self.config.traces,
            thorough=thorough,
        )


class MlflowTracker:
    """Shows one sweep in MLflow, beside it."""

    def __init__(self, target: Target) -> None:
        """Begin to show, in threads of its own."""
        self._target = target
        claim = Claim(target.store, target.sweep)
        self._outbox = Outbox(
            claim,
            lambda: target.ledger(claim),
            lambda: Projection(target.store, target.sweep),
            threads=target.threads,
            drain_s=target.config.drain_s,
        )

    def episode(self, cell: ShownCell, episode_id: str, read: Read) -> None:
        """Show one finished episode run below its cell."""
        sweep = self._target.sweep
        place = contents.episode_place(sweep, cell, episode_id)
        self._outbox.put((place, lambda: contents.episode(sweep, cell, read())))

    def cell(self, cell: ShownCell, values: Mapping[str, float], artifacts: Artifacts) -> None:
        """Show the metrics and files of a cell."""
        content = contents.cell(self._target.sweep, cell, values, artifacts)
        self._outbox.put((content.place, lambda: content))

    def finish(self, values: Mapping[str, float], artifacts: Artifacts) -> None:
        """Show the sweep's metrics and files, last, and what only the store knows of."""
        content = contents.sweep(self._target.sweep, values, artifacts)
        self._outbox.put((content.place, lambda: content))
        self._outbox.finish()

    def stop(self) -> None:
        """Mark as killed what is under way, within seconds, and give up."""
        self._outbox.stop()

    def wait(self, seconds: float) -> bool:
        """Whether it is over, after at most so many seconds."""
        return self._outbox.wait(seconds)

    def pending(self) -> int:
        """Runs that wait to be shown."""
        return self._outbox.pending()

    def trouble(self) -> str | None:
        """What is not shown and why, in one line."""
        return self._outbox.trouble()

    def where(self) -> str | None:
        """The server's address, or the command that opens the page of the embedded one on loopback."""
        return where(self._target)


def where(target: Target) -> str:
    """How a person opens MLflow's page."""
    if target.config.kind == "server":
        return target.uri
    command = Path(sys.executable).with_name("mlflow")
    program = str(command) if command.exists() else "mlflow"
    options = ["--host", "127.0.0.1", "--port", "5000", "--backend-store-uri", target.uri]
    return shlex.join([program, "ui", *options])


def _quoted(path: Path) -> str:
    """A path inside a database URL, where only these two characters mean something else."""
    return str(path).replace("%", "%25").replace("?", "%3F")
