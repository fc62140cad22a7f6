"""How long a server may be at each stage of its start. Pure: time is what callers say it is."""

from dataclasses import dataclass
from typing import Final

from adaexplore.backends.kubernetes.causes import Cause, Fault, Stage, Waiting
from adaexplore.experiments.serving import ServingConfig

DULL_S: Final = 20.0
"""How long a Job is left to ask for quota: its controller asks ever more seldom, up to minutes."""


@dataclass(slots=True, kw_only=True)
class Limits:
    """The waits of one start, in seconds."""

    config: ServingConfig
    placing_s: float = 0.0
    failing_s: float = 0.0
    starting_s: float = 0.0
    refused_s: float = 0.0

    def spent(self, look: Waiting, seconds: float, *, others: bool) -> Fault | None:
        """Note a time that was spent so; a fault where that was too long.

        A queue may take as long as it takes. While `others` of the same sweep hold places, waiting for
        one is the sweep's own order, and does not count either.
        """
        placing, pods = look.stage is Stage.PLACING, self.config.pods
        if placing:
            self.placing_s += 0.0 if others else seconds
        else:
            self.placing_s = 0.0
        self.failing_s = self.failing_s + seconds if look.failing else 0.0
        self.refused_s = self.refused_s + seconds if look.refused else 0.0
        if look.stage in (Stage.PULLING, Stage.STARTING):
            self.starting_s += seconds
        if placing and self.placing_s > pods.unschedulable_limit_s:
            return self._over(
                Cause.CONFIG, look, pods.unschedulable_limit_s, "unschedulable_limit_s"
            )
        if self.failing_s > pods.image_pull_limit_s:
            return self._over(Cause.IMAGE, look, pods.image_pull_limit_s, "image_pull_limit_s")
        if self.starting_s > self.config.ready_timeout_s:
            limit_s = self.config.ready_timeout_s
            why = f"not ready after {limit_s:g} s (serving.ready_timeout_s)"
            if look.stage is Stage.STARTING and look.pod is not None:  # its log says more
                return Fault(cause=Cause.ENGINE, why=why, pod=look.pod["metadata"]["name"])
            return Fault(cause=Cause.CONFIG, why=f"{why}: {look.why}")
        return None

    def dull(self) -> bool:
        """Whether another Job would be heard sooner; asked once for each such time."""
        if self.refused_s <= DULL_S:
            return False
        self.refused_s = 0.0
        return True

    @staticmethod
    def _over(cause: Cause, look: Waiting, limit_s: float, key: str) -> Fault:
        return Fault(
            cause=cause, why=f"{look.why}; so for {limit_s:g} s (serving.kubernetes.{key})"
        )
